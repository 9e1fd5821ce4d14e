"""Every verb against a mount whose daemon is stopped: an answer in time, no call on it by the command itself.

All commands run at once, under strace, so that the whole lasts as long as the slowest deadline. They are
forks of one process that has loaded leadline: this very file, run as a program.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import forking
import slow_fuse
from forking import Forks
from leadline.cli.main import leadline as verbs
from leadline.cli.main import main as run
from leadline.cli.options import AskedOrAddress, AskedPath, AskedUnlessValues, UntouchedPath
from slow_fuse import SlowMount

ANSWER_S = 10.0
BUSY_S = 60.0  # what a busy host may add to start dozens of commands under strace at once
_MARK = "LEADLINE_TEST_HANGING"
CENTRE = "switches: {core: {}}\nhosts: {a: {switch: core, osds: 3}}\nclients: {b: {switch: core}}\n"
SIZING = Path(__file__).parents[2] / "docs" / "examples" / "suse-sizing.yaml"
WORKS = (
    "format: leadline.requirements/1\nsizing:\n  capacity: 1 TB\n  protection: ['3']\n"
    "  clients: {a: {clients: 1, work: {study: HUNG/study.yaml}}}\n"
)
_PATH_TYPES = (AskedPath, AskedOrAddress, AskedUnlessValues, UntouchedPath)

pytestmark = [
    pytest.mark.skipif(slow_fuse.missing() is not None, reason=str(slow_fuse.missing())),
    pytest.mark.skipif(not slow_fuse.can_hold(), reason="no strace or setpriv"),
]


@dataclass(frozen=True)
class Case:
    """A command line; `HUNG` stands for the mount, `GOOD` for a result that is not on it.

    `says` is what its error names beside the mount; None where it has to succeed.
    """

    words: str
    names: str | None = "HUNG"
    directory: str = "WORK"
    variables: str = ""


GO_ON = {"targets", "doctor"}  # they say what hangs among what they found
CASES = {
    "plan": (
        Case("plan quick --target a=HUNG"),
        Case("plan quick --target a=HUNG/deep"),
        Case("plan HUNG/study.yaml --target a=GOOD"),
        Case("plan quick --target a=GOOD --like HUNG/result"),
        Case("plan quick --target a=GOOD --hosts HUNG/hosts.yaml"),
        Case("plan quick --target a=GOOD --conf HUNG/ceph.conf"),
        Case("plan analysis --target a=GOOD --input GOOD -- HUNG/prog"),
        Case("plan analysis --target a=GOOD --input HUNG/input -- true"),
        Case("plan media --target a=GOOD --source HUNG/film.mp4"),
        Case("plan analysis --target a=GOOD --input GOOD -- ./prog", directory="HUNG"),
        Case("plan analysis --target a=GOOD --input GOOD -- nowhere", variables="PATH=HUNG/bin:/bin"),
    ),
    "run": (
        Case("run quick --target a=HUNG"),
        Case("run quick --target a=GOOD --out HUNG/out"),
        Case("run quick --target a=GOOD --hosts HUNG/hosts.yaml"),
        Case("run quick --target a=GOOD --conf HUNG/ceph.conf"),
        Case("run quick --target a=GOOD --require HUNG/asked.yaml"),
        Case("run quick --target a=GOOD", directory="HUNG"),
        Case("run quick --target a=GOOD", variables="LEADLINE_LAB_DIR=HUNG"),
        Case("run --resume HUNG/result"),
        Case("run --resume OTHER"),
        Case("run media --target a=GOOD --source HUNG/film.mp4"),
    ),
    "trace": (
        Case("trace -- HUNG/prog"),
        Case("trace -- ./prog", directory="HUNG"),
        Case("trace -o HUNG/out -- true"),
        Case("trace --recover HUNG/out"),
        Case("trace -- true", directory="HUNG"),
        Case("trace -- nowhere", variables="PATH=HUNG/bin:/bin"),
    ),
    "profile": (
        Case("profile -- HUNG/prog"),
        Case("profile -- ./prog", directory="HUNG"),
        Case("profile --below HUNG -- true"),
        Case("profile -- cat HUNG/data"),
        Case("profile --below GOOD -o HUNG/out -- true"),
        Case("profile --below GOOD --like HUNG/result -- true"),
        Case("profile --from HUNG/profile.json"),
        Case("profile -- true", directory="HUNG"),
        Case("profile --below GOOD -- nowhere", variables="PATH=HUNG/bin:/bin"),
    ),
    "replay": (Case("replay HUNG/trace --dry-run"), Case("replay GOOD --target a=GOOD --out HUNG/out")),
    "show": (
        Case("show HUNG/result"),
        Case("show result", directory="HUNG"),
        Case("show GOOD --require HUNG/asked.yaml"),
    ),
    "report": (
        Case("report HUNG/result"),
        Case("report GOOD -o HUNG/page.html"),
        Case("report GOOD --require HUNG/asked.yaml"),
    ),
    "compare": (Case("compare HUNG/a GOOD"), Case("compare GOOD HUNG/b")),
    "hosts": (Case("hosts GOOD HUNG/a"),),
    "gate": (
        Case("gate HUNG/new --baseline GOOD"),
        Case("gate GOOD --baseline HUNG/old"),
        Case("gate GOOD --baseline GOOD --junit HUNG/x.xml"),
        Case("gate GOOD --baseline GOOD --openmetrics HUNG/x.txt"),
    ),
    "list": (Case("list HUNG"), Case("list", directory="HUNG"), Case("list ABOVE", names=None)),
    "trend": (Case("trend a.b.iops HUNG"),),
    "reproduce": (Case("reproduce HUNG/document.yaml"), Case("reproduce GOOD --measured HUNG/result")),
    "check": (
        Case("check --conf HUNG/ceph.conf"),
        Case("check --no-ceph --with HUNG/other.json"),
        Case("check --no-ceph --baseline HUNG/before.json"),
        Case("check --no-ceph -o HUNG/check.json"),
        Case("check --no-ceph --on HUNG"),
        Case("check --no-ceph --destroy HUNG/device"),
        Case("check", variables="CEPH_CONF=HUNG/ceph.conf"),
        Case("check --no-ceph --page HUNG/check.html"),
        Case("check --no-ceph --hosts HUNG/hosts.yaml"),
    ),
    "diagnose": (
        Case("diagnose HUNG/result"),
        Case("diagnose HUNG/trace --json"),
        Case("diagnose --live HUNG --for 1s --no-bpf --json"),
        Case("diagnose --live HUNG/deep --for 1s --no-bpf --json"),
        Case("diagnose GOOD --active --yes -o HUNG/out"),
    ),
    "size": (
        Case("size HUNG/asked.yaml"),
        Case("size GOOD/works.yaml"),
        Case("size GOOD/sizing.yaml --from HUNG/result"),
        Case("size GOOD/sizing.yaml --hardware HUNG/ours.yaml"),
        Case("size GOOD/sizing.yaml --csv HUNG/designs.csv"),
        Case("size GOOD/sizing.yaml --page HUNG/designs.html"),
        Case("size GOOD/sizing.yaml -o HUNG/centre.yaml"),
    ),
    "simulate": (
        Case("simulate HUNG/centre.yaml --work rw=write"),
        Case("simulate --parameters HUNG/own.yaml --work rw=write HUNG/centre.yaml"),
        Case("simulate GOOD/centre.yaml --calibrate HUNG/result"),
        Case("simulate GOOD/centre.yaml --work rw=write --page HUNG/page.html"),
        Case("simulate GOOD/centre.yaml --out HUNG/own.yaml --calibrate GOOD"),
    ),
    "model aggregate": (Case("model aggregate --topology HUNG/centre.yaml --protection 3"),),
    # Values only, from wherever it is called.
    **{
        f"model {words.split()[0]}": (Case(f"model {words}", names=None, directory="HUNG"),)
        for words in (
            "stream --buffer 1M --link 1Gbit --latency 1ms",
            "ec --bs 4k --protection 3",
            "sync --rate 1G --protection 3",
            "metadata --in-flight 4 mds=1ms",
            "copies 1=1 2=1.1 3=1.2 --cpus 4 --copies 4",
            "scaling 1=1 2=1.9 4=3.6 8=6",
        )
    },
    "import published": (
        Case("import published HUNG/a.yaml -o new"),
        Case("import published GOOD -o HUNG/a"),
    ),
    "import elbencho": (
        Case("import elbencho HUNG/a.csv -o new"),
        Case("import elbencho GOOD -o HUNG/a"),
    ),
    "import io500": (Case("import io500 HUNG/a -o new"), Case("import io500 GOOD -o HUNG/a")),
    "import fio": (Case("import fio HUNG/a.json -o new"), Case("import fio GOOD -o HUNG/a")),
    "import result": (Case("import result HUNG/a"), Case("import result GOOD --into HUNG")),
    "import opencast": (Case("import opencast HUNG/a.json -o new"), Case("import opencast GOOD -o HUNG/a")),
    "import darshan": (Case("import darshan HUNG/a.darshan"), Case("import darshan GOOD -o HUNG/a")),
    "import agent": (Case("import agent HUNG/log"), Case("import agent GOOD -o HUNG/a")),
    "import strace": (Case("import strace HUNG/log"), Case("import strace GOOD -o HUNG/a")),
    "watch": (
        Case("watch HUNG --for 1s --no-bpf"),
        Case("watch HUNG/deep/er --for 1s --no-bpf"),
        Case("watch . --for 1s --no-bpf", directory="HUNG"),
    ),
    "mount plan": (Case("mount plan HUNG"),),
    "mount check": (Case("mount check HUNG"),),
    "undo": (
        Case("undo HUNG/result"),
        Case("undo CRASHED"),
        Case("undo GOOD --hosts HUNG/hosts.yaml"),
    ),
    "tune apply": (
        Case("tune apply HUNG/plan.yaml --dry-run"),
        Case("tune apply vm.swappiness=7 --dry-run --conf HUNG/ceph.conf"),
        Case("tune apply vm.swappiness=7 --yes --state HUNG/state"),
        Case("tune apply vm.swappiness=7 --yes", variables="XDG_STATE_HOME=HUNG"),
        Case("tune apply vm.swappiness=7 --dry-run --settings HUNG/own.yaml"),
    ),
    **{
        f"tune {verb}": (
            Case(f"tune {verb} --state HUNG/state"),
            Case(f"tune {verb} --conf HUNG/ceph.conf"),
            Case(f"tune {verb}", variables="XDG_STATE_HOME=HUNG"),
        )
        for verb in ("revert", "status", "confirm")
    },
    "tune search": (
        Case("tune search quick --space vm.swappiness=7..9 --budget 1h --target a=HUNG"),
        Case("tune search quick --space vm.swappiness=7..9 --budget 1h --target a=GOOD --out HUNG/out"),
        Case(
            "tune search quick --space vm.swappiness=7..9 --budget 1h --target a=GOOD --conf HUNG/ceph.conf"
        ),
        Case("tune search quick --space vm.swappiness=7..9 --budget 1h --target a=GOOD", directory="HUNG"),
        Case("tune search HUNG/study.yaml --space vm.swappiness=7..9 --budget 1h --target a=GOOD"),
        Case("tune search quick --space audit --for HUNG/result --budget 1h --target a=GOOD"),
        Case("tune search quick --space mine=7..9 --settings HUNG/own.yaml --budget 1h --target a=GOOD"),
        Case("tune search quick --space HUNG/space.yaml --budget 1h --target a=GOOD"),
        Case("tune search quick --space vm.swappiness=7..9 --budget 1h --target a=GOOD --state HUNG/state"),
        Case(
            "tune search quick --space vm.swappiness=7..9 --budget 1h --target a=GOOD",
            variables="XDG_STATE_HOME=HUNG",
        ),
        Case("tune search --resume HUNG/result"),
    ),
    "tune prove": (
        Case("tune prove quick --with vm.swappiness=7 --target a=HUNG"),
        Case("tune prove quick --with vm.swappiness=7 --target a=GOOD --out HUNG/out"),
        Case("tune prove quick --with vm.swappiness=7 --target a=GOOD --conf HUNG/ceph.conf"),
        Case("tune prove quick --with vm.swappiness=7 --target a=GOOD", directory="HUNG"),
        Case("tune prove --resume HUNG/result"),
        Case("tune prove quick --with vm.swappiness=7 --target a=GOOD --settings HUNG/own.yaml"),
        Case("tune prove quick --with vm.swappiness=7 --target a=GOOD --state HUNG/state"),
        Case("tune prove quick --with vm.swappiness=7 --target a=GOOD", variables="XDG_STATE_HOME=HUNG"),
    ),
    "deploy emit": (
        Case("deploy emit --topology HUNG/centre.yaml"),
        Case("deploy emit --reference suse -o HUNG/spec.yaml"),
        Case("deploy emit", variables="HOME=HUNG"),
    ),
    "tune list": (Case("tune list --settings HUNG/own.yaml"),),
    "tune explain": (Case("tune explain --settings HUNG/own.yaml vm.swappiness"),),
    "tune audit": (
        Case("tune audit --settings HUNG/own.yaml --no-ceph"),
        Case("tune audit --conf HUNG/ceph.conf"),
        Case("tune audit --no-ceph --hosts HUNG/hosts.yaml"),
        Case("tune audit --no-ceph --for HUNG/result"),
    ),
    "tune emit": (
        Case("tune emit HUNG/plan.json --format sysctl"),
        Case("tune emit net.core.rmem_max=4096 --format sysctl --from HUNG/result"),
        Case("tune emit net.core.rmem_max=4096 --format sysctl -o HUNG/90.conf"),
        Case("tune emit net.core.rmem_max=4096 --format sysctl --settings HUNG/own.yaml"),
    ),
    "lab up": (
        Case("lab up --dir HUNG/lab"),
        Case("lab up", variables="HOME=HUNG"),
        Case("lab up --topology HUNG/centre.yaml"),
    ),
    "lab status": (Case("lab status --dir HUNG/lab"), Case("lab status", variables="HOME=HUNG")),
    "lab env": (Case("lab env --dir HUNG/lab"),),
    "lab targets": (Case("lab targets --dir HUNG/lab"),),
    "lab list": (Case("lab list", variables="HOME=HUNG"),),
    "lab down": (Case("lab down --dir HUNG/lab"), Case("lab down", variables="HOME=HUNG")),
    "lab exec": (Case("lab exec client1 --dir HUNG/lab -- true"),),
    "lab mount": (Case("lab mount client1 --dir HUNG/lab"),),
    "lab unmount": (Case("lab unmount client1 --dir HUNG/lab"),),
    "lab inject": (Case("lab inject --list --dir HUNG/lab"),),
    "lab guest": (Case("lab guest --results HUNG/out -- true"),),
    # What a hung directory of the environment must not hold up.
    "targets": (Case("targets"), Case("targets", directory="HUNG")),
    "studies": (Case("studies", names=None, directory="HUNG"),),
    "engines": (Case("engines", names=None, variables="TMPDIR=HUNG PATH=HUNG/bin:/bin"),),
    "completion": (
        Case("completion bash", directory="HUNG"),
        Case("completion zsh", variables="PATH=HUNG/bin"),
    ),
    "doctor": (
        Case("doctor", directory="HUNG"),
        Case("doctor", variables="TMPDIR=HUNG"),
        Case("doctor", variables="PATH=HUNG/bin:/bin"),
    ),
}
# What a mount that answers is measured, looked at and traced by: even so the command itself never touches it.
LIVE = (
    Case("watch HUNG --for 1s --no-bpf --json", names=None),
    Case("plan WORK/study.yaml --target a=HUNG", names=None),
    Case("run WORK/study.yaml --target a=HUNG --out WORK/live --quiet", names=None),
    Case("trace -o WORK/traced -- HUNG/prog", names=None),
)
ALL = [(verb, case) for verb, cases in CASES.items() for case in cases]


def leaves(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every verb that does something, by its words."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for word in command.list_commands(context):
        found = command.get_command(context, word)
        assert found is not None
        yield from leaves(found, f"{name} {word}".strip())


def test_every_verb_is_tried() -> None:
    assert {name for name, _ in leaves(verbs)} == set(CASES)


def test_every_path_that_a_verb_takes_is_asked_first_and_tried_hung() -> None:
    for name, command in leaves(verbs):
        tried = [case.words for case in CASES[name]]
        for parameter in command.params:
            if isinstance(parameter.type, (click.Path, click.File)):
                assert isinstance(parameter.type, AskedPath), f"{name}: {parameter.name}"
            if isinstance(parameter.type, _PATH_TYPES):
                option = (
                    "|".join(parameter.opts)
                    if isinstance(parameter, click.Option)
                    else f"^{name}( [^-]\\S*)*"
                )
                pattern = re.compile(rf"({option})[ =](\S*=)?HUNG")
                assert any(map(pattern.search, tried)), f"{name}: {parameter.opts}"


@dataclass(frozen=True)
class Ended:
    """How a command went: its exit code (None: none in time), its words, its own calls, what it left."""

    code: int | None
    output: str
    calls: str
    left: tuple[int, ...]


class Hung:
    """The mount, its stopped daemon, and every case as it went."""

    def __init__(self, mount: SlowMount, work: Path, forks: Forks) -> None:
        self.mount, self.work = mount, work
        self.good = work / "good"
        self.good.mkdir()
        shutil.copy(SIZING, self.good / "sizing.yaml")
        (self.good / "works.yaml").write_text(WORKS.replace("HUNG", str(mount.path)))
        (self.good / "centre.yaml").write_text(CENTRE)
        for name in ("crashed", "other"):  # of two studies: one is not undone while it is resumed
            crash(mount.path, work / name, forks)
        program = mount.backing / "prog"
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)
        self.ended: dict[Case, Ended] = {}

    def _text(self, text: str) -> str:
        above = self.mount.path.parent
        places = {
            "CRASHED": self.work / "crashed",
            "OTHER": self.work / "other",
            "HUNG": self.mount.path,
            "GOOD": self.good,
            "ABOVE": above,
            "WORK": self.work,
        }
        return re.sub("|".join(places), lambda word: str(places[word[0]]), text)

    def run_all(self, cases: Sequence[Case], *, hold: bool) -> None:
        """Start every case, stop the daemon where asked to, let them go, and wait for each."""
        strace = [str(shutil.which("strace")), "-D", "-ff", "--seccomp-bpf", "-qq", "-e", "signal=none"]
        command = [*strace, "-e", "trace=%file", "-o", str(self.work / "calls"), sys.executable, __file__]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert server.stdin is not None
        assert server.stdout is not None
        with server:
            for number, case in enumerate(cases):
                server.stdin.write(self._request(case, number))
            server.stdin.write("\n")
            server.stdin.flush()
            pids = [int(server.stdout.readline()) for _ in cases]
            with slow_fuse.held(self.mount) if hold else nullcontext():
                server.stdin.close()
                codes = dict(map(int, line.split()) for line in server.stdout)
                self._look(cases, pids, codes)

    def _look(self, cases: Sequence[Case], pids: Sequence[int], codes: Mapping[int, int]) -> None:
        """What each has said, called and left."""
        left = marked()
        for number, (pid, case) in enumerate(zip(pids, cases, strict=True)):
            printed = (self.work / f"out-{number}").read_text(errors="replace")
            calls = (self.work / f"calls.{pid}").read_text(errors="replace")
            mine = tuple(one for one, mark in left.items() if mark == str(number))
            self.ended[case] = Ended(codes.get(pid), printed, calls, mine)
            if pid not in codes:  # it must not go on once the daemon does
                end_all({pid, *mine})

    def _request(self, case: Case, number: int) -> str:
        request = {
            "words": [self._text(word) for word in case.words.split()],
            "directory": self._text(case.directory),
            "variables": dict(word.split("=", 1) for word in self._text(case.variables).split()),
            "out": str(self.work / f"out-{number}"),
            "number": number,
        }
        return json.dumps(request) + "\n"


# More commands at once than this hold each other up until a healthy disk seems to hang, too.
AT_ONCE = 80


def end_all(pids: Iterable[int]) -> None:
    """Kill processes that a case left."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def crash(target: Path, result: Path, forks: Forks) -> None:
    """A run that died with its directory on the mount, as `result`."""
    study = result.parent / "study.yaml"
    study.write_text(
        "format: leadline.study/1\nblocks: 1\nlimits: {reserve: 0}\n"
        "works: {a: {rw: read, bs: 4k, size: 64k, engine: psync, direct: false}}\n"
    )
    before = set(target.glob("leadline-*"))
    for number in range(4, 8):
        shutil.rmtree(result, ignore_errors=True)
        words = ("run", str(study), "--target", f"a={target}", "--out", str(result), "--quiet")
        died = forks.command(words, os.environ, 60, dies=("after", number))
        assert died.returncode == -signal.SIGKILL, died.stderr
        if set(target.glob("leadline-*")) - before:
            return


def marked() -> dict[int, str]:
    """Processes that come from a case, by their environment; those that have ended are not there."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            for variable in (entry / "environ").read_bytes().split(b"\0"):
                if variable.startswith(_MARK.encode() + b"=") and (entry / "comm").read_text() != "strace\n":
                    found[int(entry.name)] = variable.partition(b"=")[2].decode()
        except OSError:
            continue
    return found


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> Iterator[Hung]:
    work = tmp_path_factory.mktemp("work")
    program = slow_fuse.build()
    above = tmp_path_factory.mktemp("above")
    with slow_fuse.mounted(program, above, believed_s=0) as mount:
        found = Hung(mount, work, forks)
        found.run_all(LIVE, hold=False)
        for first in range(0, len(ALL), AT_ONCE):
            found.run_all([case for _, case in ALL[first : first + AT_ONCE]], hold=True)
        yield found
        end_all(marked())


@pytest.mark.parametrize(
    ("verb", "case"), ALL, ids=[f"{case.directory} {case.variables} {case.words}" for _, case in ALL]
)
def test_a_hung_mount_gets_an_answer_and_no_call(hung: Hung, verb: str, case: Case) -> None:
    ended = hung.ended[case]
    assert ended.code is not None, f"no answer: {ended.output}"
    assert "Traceback" not in ended.output
    assert "\\n" not in ended.output, "what to do has a line of its own"
    if case.names is not None:
        assert str(hung.mount.path) in "".join(ended.output.split()), "named, if over two lines of a table"
        assert "no answer within" in " ".join(ended.output.split()), "over two lines of a table, too"
        if verb not in GO_ON:
            # A failure, a usage that names the path, or (125) what wraps another command.
            assert ended.code in (1, 2, 125)
    for pid in ended.left:
        assert f"process {pid} " in ended.output, f"{pid} is left and not named: {ended.output}"
    assert ended.calls, "strace saw nothing"
    assert not touched(hung, ended)


def touched(hung: Hung, ended: Ended) -> list[str]:
    """The command's own calls on the mount."""
    call = re.compile(rf'^(?!getcwd|chdir)\w+\((\w+, )?"{hung.mount.path}')
    return [line for line in ended.calls.splitlines() if call.match(line)]


@pytest.mark.parametrize("case", LIVE, ids=[case.words for case in LIVE])
def test_the_command_makes_no_call_on_a_target_that_answers(hung: Hung, case: Case) -> None:
    ended = hung.ended[case]
    # 3: the page cache may have the small file that the run reads (INVALID).
    codes = (0, 3) if case.words.startswith("run ") else (0,)
    assert ended.code in codes, ended.output
    assert not touched(hung, ended)


def test_nothing_is_left_once_the_daemon_goes_on(hung: Hung) -> None:
    end = time.monotonic() + 10
    while (left := marked()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left


def serve() -> None:
    """Forks that become the commands asked for on standard input, once that ends; says their exit codes."""
    forking.load()
    gc.freeze()  # what is loaded stays shared with the forks
    gate, opening = os.pipe()
    pids = []
    while line := sys.stdin.readline().strip():
        pid = os.fork()
        if pid == 0:
            os.close(opening)
            become(json.loads(line), gate)
        pids.append(pid)
    print(*pids, sep="\n", flush=True)
    sys.stdin.read()
    os.close(opening)
    end = time.monotonic() + ANSWER_S + BUSY_S
    while pids and time.monotonic() < end:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            pids.remove(pid)
            print(pid, os.waitstatus_to_exitcode(status), flush=True)
        else:
            time.sleep(0.02)


def become(request: dict[str, Any], gate: int) -> NoReturn:
    """Begin in the directory while that still answers, wait for the word, and be the command."""
    os.setsid()
    os.chdir(request["directory"])
    out = os.open(request["out"], os.O_CREAT | os.O_WRONLY)
    for descriptor, stream in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (out, 2)):
        os.dup2(descriptor, stream)
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "TMPDIR"):
        os.environ.pop(name, None)
    work = str(Path(request["out"]).parent)
    os.environ.update({_MARK: str(request["number"]), "HOME": work, "PYTHONPYCACHEPREFIX": work})
    os.environ.update(request["variables"])
    sys.argv = ["leadline", *request["words"]]
    os.read(gate, 1)
    forking.run_to_end(run)


if __name__ == "__main__":
    serve()
