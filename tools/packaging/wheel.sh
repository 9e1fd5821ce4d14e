#!/usr/bin/env bash
# Builds the wheel for every Linux with glibc 2.17 or newer (x86-64): target/packaging/dist/*.whl.
# The extension and the tracer are compiled by zig, which knows the symbols of old C libraries.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "the wheel: $1" >&2; exit 1; }
[ "$(uname -m)" = x86_64 ] || fail "it is built on x86-64 only, and this is $(uname -m)"
tools/packaging/tools.sh
. tools/packaging/symbols.sh
here=$PWD/target/packaging
bin=$here/tools/bin
export PATH=$bin:$PATH CARGO_TARGET_DIR=$here/cargo
# The sources as they are here, away from what the development build put among them.
source=$here/source
rm -rf "$source"
mkdir -p "$source" "$here/dist"
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$source"
library=$source/python/leadline/lib
mkdir -p "$library"

cargo zigbuild --profile tracer --locked --quiet --target x86_64-unknown-linux-gnu.2.17 --package leadline-tracer
install -m 0644 "$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/tracer/libleadline_tracer.so" "$library/"
# This one is of C++ and needs the compiler whose standard library XRootD's client was built with.
(cd "$source" && tools/xrootd_shim.sh)
install -m 0644 python/leadline/report/templates/vega-*.js "$source/python/leadline/report/templates/"
rm -f "$here"/dist/leadline-*.whl
(cd "$source" && maturin build --release --locked --quiet --zig --compatibility manylinux_2_17 --out "$here/dist")

wheel=$(echo "$here"/dist/leadline-*.whl)
opened=$here/opened
rm -rf "$opened"
"$bin/python" -m zipfile --extract "$wheel" "$opened"
for part in _core.abi3.so lib/libleadline_tracer.so lib/libleadline_xrootd.so report/templates/$(basename python/leadline/report/templates/vega-*.js); do
  [ -s "$opened/leadline/$part" ] || fail "it lacks leadline/$part"
done
for library in $(find "$opened" -name '*.so'); do
  why=$(newer_symbols "$library")
  [ -z "$why" ] || fail "$library $why"
done
"$bin/abi3audit" --strict "$wheel" >/dev/null || fail "abi3audit finds calls outside of Python's stable interface"
echo "$wheel"
