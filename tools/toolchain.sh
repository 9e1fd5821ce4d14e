#!/usr/bin/env bash
# Says what is missing or too old before a build fails on it half-way.
set -euo pipefail

python=${1:-python3}
oldest_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
fail() { echo "leadline's build: $1" >&2; exit 1; }

command -v "$python" >/dev/null || fail "no $python: install Python 3.11 or newer (Debian: python3 python3-venv)"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$("$python" --version) is too old: Python 3.11 or newer is needed; name one with: make PYTHON=python3.12"
"$python" -c 'import ensurepip' 2>/dev/null || fail "$python cannot make environments: apt-get install python3-venv"
command -v cc >/dev/null || command -v gcc >/dev/null || fail "no C compiler: apt-get install gcc"
command -v cargo >/dev/null || fail "no cargo: install Rust $oldest_rust or newer"
rust=$(rustc --version | awk '{print $2}')
[ "$(printf '%s\n' "$oldest_rust" "$rust" | sort -V | head -n 1)" = "$oldest_rust" ] ||
  fail "Rust $rust is too old: $oldest_rust or newer is needed"
