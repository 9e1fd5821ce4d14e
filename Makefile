# Every target sets up what it needs by itself; a second run starts within seconds.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup packages demo test test-all test-everything test-for test-conformance test-guest test-quick damage fuzz journeys kills hosts-kills tune-kills result-swaps lab-bench fio-bench many-hosts-bench search-bench search-lab-bench diagnosis-bench nothing-bench budget-bench imports-bench simulation-bench tuning-bench drishti-bench programs-bench lab-kills mutants sentences sanitize check emit-check audit \
  sbom notices format bench lock clean wheel agent bundle wheel-test install-test conda deb-rpm deb-rpm-test image docs

PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export VIRTUAL_ENV := $(CURDIR)/.venv
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name '*.c' -o -name '*.cc' -o -name '*.h' -o -name Cargo.toml) Cargo.toml Cargo.lock pyproject.toml

help: ## Say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

packages: ## Install the Debian packages that are missing (root or sudo), or name them
	@tools/packages.sh

.venv/.installed: requirements.lock
	@tools/toolchain.sh $(PYTHON)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	@touch $@

.venv/.built: .venv/.installed $(RUST_SOURCES) python/leadline/report/templates/notices.txt
	@tools/build.sh
	@touch $@

setup: packages .venv/.built ## Install packages, Python environment and extension: leaves .venv/bin/leadline

demo: setup ## A lab, a small study on local, replicated and erasure-coded CephFS, and its report
	@tools/demo.sh

test: setup ## Run what a merge needs: Rust, units, integration, browser, real Ceph, every promise of docs/safety.md
	$(BIN)/python tools/test_phases.py $(PHASES)

# What runs nightly, each a target of its own.
NIGHTLY := test-everything test-conformance test-guest journeys sentences damage fuzz kills hosts-kills lab-kills tune-kills result-swaps mutants sanitize emit-check wheel-test install-test deb-rpm-test image

test-all: setup ## Run everything, one target after the other, to the end: root, a night; the last lines name what failed
	@failed=; for target in $(NIGHTLY); do $(MAKE) --no-print-directory $$target || failed="$$failed $$target"; done; \
	  if [ -n "$$failed" ]; then echo "FAILED:$$failed"; exit 1; fi; echo "passed: $(NIGHTLY)"

test-everything: setup ## Run all that `make test` runs, with the tests and samples that it leaves out (tests/levels.toml)
	$(BIN)/python tools/test_phases.py --all $(PHASES)

test-for: .venv/.built ## Run the tests that a change of files touches (FILES="python/leadline/units.py crates/bpf")
	$(BIN)/python tools/test_for.py $(FILES)

test-conformance: setup ## Large programs natively and traced (JVM, node, Go, chromium, 100,000 spawns): minutes
	$(BIN)/pytest tests/conformance --timeout=1800

test-guest: setup ## Guests with the kernel's own clients: emulated where KVM does not work, so minutes each
	$(BIN)/pytest tests/guest --timeout=600

test-quick: .venv/.built ## Run the quick unit tests of Python: no Rust, no slow file, no command, no Ceph; under a minute
	$(BIN)/pytest tests/unit -m "not (processors or nightly or slow)" -n 2 --dist worksteal -q

damage: .venv/.built ## The store on a disk that fails at each of its calls, and without power after each: some minutes
	LEADLINE_EVERY_CALL=1 $(BIN)/pytest tests/integration/test_full_disk.py tests/integration/test_power_loss.py --timeout=1200

fuzz: .venv/.built ## Readers of stored and foreign bytes, and emitted configuration, against anything (FUZZ_SECONDS=60 each, READERS="journal s3"); x86-64
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement tests/fuzz/requirements.lock
	$(BIN)/python tests/fuzz/readers.py $(or $(FUZZ_SECONDS),60) $(READERS)

kills: setup ## Kills at random moments with resume, over every way a lab has: 1,000 take half an hour (KILLS=, SEED=)
	cd tests && ../$(BIN)/python kills.py --kills $(or $(KILLS),1000) $(if $(SEED),--seed $(SEED))

hosts-kills: setup ## Studies on many hosts, of which something is killed or cut off: what is lost, done twice or left? root, an hour (ROUNDS=100, SEED=)
	cd tests && ../$(BIN)/python hosts_kills.py --rounds $(or $(ROUNDS),100) $(if $(SEED),--seed $(SEED))

lab-kills: setup ## Labs with hosts, killed at random moments and taken down: what stays? root, half an hour (ROUNDS=50, SEED=)
	cd tests && ../$(BIN)/python lab_kills.py --rounds $(or $(ROUNDS),50) $(if $(SEED),--seed $(SEED))

tune-kills: setup ## Changes of settings, killed at random moments and put back: is all as before? root, half an hour (ROUNDS=200, SEED=)
	cd tests && ../$(BIN)/python tune_kills.py --rounds $(or $(ROUNDS),200) $(if $(SEED),--seed $(SEED))

result-swaps: .venv/.built ## Another account swaps parts of the paths that root writes results by: what is followed? root, minutes (SWAPS=5000, SEED=)
	PYTHONPATH=tests/unit $(BIN)/python tests/result_swaps.py --swaps $(or $(SWAPS),5000) $(if $(SEED),--seed $(SEED))

journeys: setup ## The steps of a physicist and of a media operator on a lab, held against strace, wc, ffprobe and /proc: minutes
	$(BIN)/pytest tests/journeys -q

docs: .venv/.installed ## The documentation as a site, searchable and without network, in target/docs; fails where a link leads nowhere
	@[ -x target/docs-tools/bin/mkdocs ] || $(PYTHON) -m venv target/docs-tools
	@target/docs-tools/bin/pip install --quiet --require-hashes --requirement tools/docs/requirements.lock
	@NO_MKDOCS_2_WARNING=1 target/docs-tools/bin/mkdocs build --quiet
	@echo "target/docs/index.html"

sentences: .venv/.built ## What is said of results made by chance, worked out a second time (SEEDS=100 of each kind: some minutes)
	LEADLINE_SENTENCE_SEEDS=$(or $(SEEDS),100) $(BIN)/pytest tests/sentences -n 2 --timeout=3600

mutants: setup ## Wrong programs on purpose, each of which a test must catch: root, half an hour (ONLY="statistics cache")
	$(BIN)/python tests/mutants/run.py $(ONLY)

sanitize: packages ## What shares memory with libraries and the kernel, under sanitizers and Miri (PARTS="shim miri")
	@tools/sanitize.sh $(PARTS)

check: setup ## Formatting, lints, types, stubs, layers, the rules of the house
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- --deny warnings
	$(BIN)/ruff format --check python tests bench tools
	$(BIN)/ruff check python tests bench tools
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest leadline._core --allowlist tools/stubtest-allowed.txt
	$(BIN)/lint-imports
	for rule in circles interpreters kinds mutants names pins schemes sentences shares sizes words; do $(BIN)/python tools/house/$$rule.py; done

emit-check: setup ## What `tune emit` and `mount plan --emit` write, hostile names too, read and applied by the tools that it is for: root, some minutes, online the first time
	@tools/emit_check.sh

bench: .venv/.built ## What leadline costs, and whether it agrees with fio: writes bench/results.md (QUICK=1: two minutes)
	cargo build --release --locked --quiet --package leadline-engine --examples
	@mkdir -p target/bench
	@ln -sfn $(CURDIR)/python/leadline/lib target/release/examples/lib
	gcc -O2 -Wall -Wextra -o target/bench/pread_loop bench/floors/pread_loop.c
	gcc -O2 -Wall -Wextra -o target/bench/uring_loop bench/floors/uring_loop.c
	gcc -O2 -Wall -Wextra -pthread -o target/bench/trace_loop bench/floors/trace_loop.c
	gcc -O2 -Wall -Wextra -fPIC -shared -o target/bench/trace_shim.so bench/floors/trace_shim.c
	gcc -O2 -Wall -Wextra -fPIC -shared -o target/bench/trace_shim_programs.so bench/floors/trace_shim_programs.c
	gcc -O2 -Wall -Wextra -o target/bench/call_loop bench/floors/call_loop.c
	$(BIN)/python bench/run.py $(if $(QUICK),--quick --output target/bench/quick.md)

lab-bench: setup ## A lab's links, judged by iperf3, and what an idle lab costs: writes bench/lab.md; root, some minutes
	$(BIN)/python bench/lab_network.py

diagnosis-bench: setup ## Whether causes that are injected into a lab are named: writes bench/diagnosis.md; root, over two hours
	$(BIN)/python bench/diagnosis.py run
	$(BIN)/python bench/diagnosis.py judge

nothing-bench: setup ## What diagnosis accuses on labs where nothing is broken (RUNS=200, MINUTES=40): writes bench/nothing.md; root
	$(BIN)/python bench/nothing.py run --runs $(or $(RUNS),200) --minutes $(or $(MINUTES),40)
	$(BIN)/python bench/nothing.py judge

budget-bench: setup ## In which segment of the latency budget are known delays? writes bench/budget.md; root, a quarter of an hour
	rm -f bench/budget.jsonl
	$(BIN)/python bench/budget.py run
	$(BIN)/python bench/budget.py judge

imports-bench: .venv/.built ## What becomes of other programs' files (ARCHIVE=DIR): read, refused, accused, and why: writes bench/imports.md
	$(BIN)/python bench/imports.py $(or $(ARCHIVE),$(error name a directory of files: make imports-bench ARCHIVE=DIR))

simulation-bench: setup ## Whether predicted rates are those that labs then have: writes bench/simulation.md; root, half an hour
	test -s bench/simulation_parameters.yaml || $(BIN)/python bench/simulation.py calibrate
	$(BIN)/python bench/simulation.py predict
	$(BIN)/python bench/simulation.py measure
	$(BIN)/python bench/simulation.py judge

tuning-bench: setup ## Whether proofs of settings whose effect is known say so, and of placebos nothing: writes bench/tuning.md; root, an hour
	$(BIN)/python bench/tuning.py run
	$(BIN)/python bench/tuning.py judge

programs-bench: setup ## Programs whose bottleneck is known, and what leadline concludes: writes bench/programs.md (DARSHAN=LIB, Darshan's own library); root, minutes
	rm -f bench/programs.jsonl
	$(BIN)/python bench/programs.py run $(if $(DARSHAN),--darshan $(DARSHAN))
	$(BIN)/python bench/programs.py judge

drishti-bench: setup ## Habits of I/O as leadline and Drishti name them: writes bench/drishti.md (DARSHAN=LIB RANKED=LIB, Darshan's own library); minutes
	$(BIN)/python bench/drishti.py run --darshan $(or $(DARSHAN),none) $(if $(RANKED),--ranked $(RANKED)) --seeds $(or $(SEEDS),2)
	$(BIN)/python bench/drishti.py judge

fio-bench: .venv/.built ## Job files by fio and by leadline in turns: bytes and rates (EXAMPLES="DIR…" of job files; ONLY="ssd-test"; DIRECTORY=/on/a/disk): bench/results.md
	$(BIN)/python bench/fio_examples.py tests/data/fio/suites $(EXAMPLES) $(foreach name,$(ONLY),--only $(name)) $(if $(DIRECTORY),--directory $(DIRECTORY))

search-bench: .venv/.built ## Whether a search of settings finds more than random search: writes bench/search.md; minutes
	$(BIN)/python bench/search.py

search-lab-bench: setup ## Ten searches on labs, beside random search: writes bench/search.md; root, half an hour
	$(BIN)/python bench/search.py run
	$(BIN)/python bench/search.py lab

many-hosts-bench: setup ## What a thousand simulated hosts and 64 Dask workers cost: bench/results.md; some minutes
	$(BIN)/python bench/many_hosts.py

format: .venv/.built ## Format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format python tests bench tools
	$(BIN)/ruff check --fix python tests bench tools

audit: .venv/.installed ## Licences, sources and advisories of all dependencies (RUSTSEC_DB=DIR PYPA_DB=DIR); minutes at first
	@tools/supply/audit.sh

sbom: .venv/.installed ## A bill of materials of all of it: target/sbom/leadline.cdx.json (CycloneDX)
	@tools/supply/tools.sh
	@PATH=$(CURDIR)/target/supply/bin:$(CURDIR)/target/supply/python/bin:$(PATH) \
	  target/supply/python/bin/python tools/supply/sbom.py target/sbom/leadline.cdx.json

notices: .venv/.installed ## The notices of what pages and the wheel redistribute, anew from the packages (npm, cargo)
	$(BIN)/python tools/notices.py

PIP_COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe --no-header \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links
lock: .venv/.installed ## Resolve the Python dependencies anew into the lock files of the package and of the bundle
	$(PIP_COMPILE) --extra dev --output-file requirements.lock pyproject.toml
	$(PIP_COMPILE) --output-file tools/packaging/requirements.lock tools/packaging/requirements.in

clean: ## Remove what the build made
	rm -rf .venv target dist demo

wheel: .venv/.built ## The wheel for Linux with glibc 2.17 and newer, checked, in target/packaging/dist (MACHINE=aarch64)
	@tools/packaging/wheel.sh

agent: ## The program for hosts without leadline (x86-64 and aarch64, glibc 2.17 and newer), in target/packaging/dist
	@tools/packaging/agent.sh

bundle: .venv/.built ## One archive that installs without network, Python and compiler, in target/packaging/dist
	@tools/packaging/bundle.sh

wheel-test: wheel ## An installed wheel traces a program: installs it elsewhere and runs it from there
	@tools/wheel_test.sh

conda: wheel ## A conda package of the wheel, in target/packaging/dist (MACHINE=aarch64)
	@target/packaging/tools/bin/python tools/packaging/conda/build.py \
	  target/packaging/dist/leadline-*_$(or $(MACHINE),$(shell uname -m)).whl target/packaging/dist

deb-rpm: bundle ## A .deb and an .rpm of what the bundle installs, in target/packaging/dist (root)
	@tools/packaging/packages.sh

deb-rpm-test: deb-rpm ## The .deb and the .rpm in fresh root trees: installed, used and removed (root)
	@tools/packaging/packages_test.sh

image: deb-rpm ## A container image with Ceph's client libraries, as an OCI archive in target/packaging/dist (root)
	@tools/packaging/image.sh

install-test: bundle ## The bundle in fresh root trees of Debian 11 to sid: installed, used, removed; on hosts with SSH alone (root)
	@tools/packaging/install_test.sh
	@tools/packaging/hosts_test.sh
