#!/usr/bin/env bash
# Makes a Python environment of a lock file, and anew when that has changed: tools/environment.sh PLACE LOCK
set -euo pipefail
place=$1 lock=$2
if ! cmp --silent "$lock" "$place/.installed"; then
  rm -rf "$place"
  .venv/bin/python -m venv "$place"
  "$place/bin/pip" install --quiet --require-hashes --requirement "$lock"
  cp "$lock" "$place/.installed"
fi
