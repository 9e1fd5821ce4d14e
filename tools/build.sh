#!/usr/bin/env bash
# Builds the extension, the tracer and the agent and puts them into the Python sources, where .venv finds them.
# PORTABLE=1 takes them out of the wheel: what is tested is then what is shipped, and nothing is compiled twice.
set -euo pipefail
cd "$(dirname "$0")/.."

package=python/leadline
put() { # FILE PLACE [MODE]: in one step, as a running program may have the old one open
  mkdir -p "$(dirname "$2")"
  install -m "${3:-0644}" "$1" "$2.new"
  mv "$2.new" "$2"
}
if [ -z "${PORTABLE:-}" ]; then
  cargo build --profile tracer --locked --quiet --package leadline-tracer
  put target/tracer/libleadline_tracer.so $package/lib/libleadline_tracer.so
  # The agent that `--hosts` copies to hosts like this one, with that library in it.
  LEADLINE_TRACER=$PWD/target/tracer/libleadline_tracer.so \
    cargo build --profile agent --locked --quiet --package leadline-agent
  put target/agent/leadline-agent "$package/lib/agent/leadline-agent-$(uname -m)" 0755
  tools/xrootd_shim.sh
  maturin develop --release --locked --quiet >/dev/null
  python tools/vega_runtime.py
  exit 0
fi
PYTHONPATH=python python tools/vega_runtime.py
# The agent for other machines is made for what is handed out: `make wheel`.
wheel=$(MACHINES=$(uname -m) tools/packaging/wheel.sh | tail -n 1)
opened=target/packaging/opened/leadline # where that script judged it
for part in _core.abi3.so $(cd "$opened" && echo lib/*.so); do put "$opened/$part" "$package/$part"; done
for part in $(cd "$opened" && echo lib/agent/*); do put "$opened/$part" "$package/$part" 0755; done
python -m pip install --quiet --force-reinstall --no-deps --no-index "$wheel"
site=$(python -c "import sysconfig; print(sysconfig.get_path('platlib'))")
rm -rf "$site/leadline"
echo "$PWD/python" >"$site/leadline.pth"
