#!/bin/bash
# Shows that leadline works from a wheel alone, away from its sources: the tracer is a second library that a
# wheel may lack without any other test noticing.
set -euo pipefail
python=$PWD/.venv/bin/python
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$python" -m pip install --quiet --no-deps --no-index --target "$place/site" target/packaging/dist/leadline-*_"$(uname -m)".whl
mkdir "$place/work"
cd "$place/work"
echo content > file
# -P and PYTHONPATH put the wheel before the development install.
export PYTHONPATH=$place/site
"$python" -P -c "import leadline, sys; sys.exit(not leadline.__file__.startswith('$place'))"
"$python" -P -m leadline trace --via preload -o result -- tar cf archive.tar file
"$python" -P -m leadline show result --json | "$python" -c "
import json, sys
assert json.load(sys.stdin)['trace']['totals']['bytes_written'] > 0"
echo "the wheel traces"
