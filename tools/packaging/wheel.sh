#!/usr/bin/env bash
# Builds the wheel for every Linux with glibc 2.17 or newer: target/packaging/dist/*.whl. MACHINE is x86_64 or aarch64;
# by itself it is this machine. The extension and the tracer are compiled by zig, which knows the symbols of old C libraries.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "the wheel: $1" >&2; exit 1; }
machine=${MACHINE:-$(uname -m)}
case $machine in x86_64 | aarch64) ;; *) fail "it is built for x86_64 and aarch64, and not for $machine" ;; esac
target=$machine-unknown-linux-gnu
if ! rustc --print target-libdir --target "$target" | xargs test -d; then
  rustup target add "$target" || fail "Rust lacks its library for $machine: rustup target add $target"
fi
# The reader for root:// is of C++ and needs the compiler whose standard library XRootD's client was built with.
compiler=g++
if [ "$machine" != "$(uname -m)" ]; then
  compiler=$machine-linux-gnu-g++
  command -v "$compiler" >/dev/null || apt-get install --quiet --quiet --yes "g++-${machine/_/-}-linux-gnu" >/dev/null ||
    fail "it needs $compiler: apt-get install g++-${machine/_/-}-linux-gnu"
fi
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

cargo zigbuild --profile tracer --locked --quiet --target "$target.2.17" --package leadline-tracer
install -m 0644 "$CARGO_TARGET_DIR/$target/tracer/libleadline_tracer.so" "$library/"
tools/packaging/agent.sh >/dev/null
mkdir -p "$library/agent"
install -m 0755 "$here"/dist/leadline-agent-* "$library/agent/"
(cd "$source" && CXX=$compiler tools/xrootd_shim.sh)
install -m 0644 python/leadline/report/templates/vega-*.js "$source/python/leadline/report/templates/"
rm -f "$here"/dist/leadline-*_"$machine".whl
(cd "$source" && maturin build --release --locked --quiet --zig --target "$target" --compatibility manylinux_2_17 \
  --out "$here/dist")

wheel=$(echo "$here"/dist/leadline-*_"$machine".whl)
opened=$here/opened
rm -rf "$opened"
"$bin/python" -m zipfile --extract "$wheel" "$opened"
for part in _core.abi3.so lib/libleadline_tracer.so lib/libleadline_xrootd.so lib/agent/leadline-agent-$machine report/templates/$(basename python/leadline/report/templates/vega-*.js); do
  [ -s "$opened/leadline/$part" ] || fail "it lacks leadline/$part"
done
! grep --quiet --text -e 'clang was missing' -e 'clang was built without' "$opened/leadline/_core.abi3.so" ||
  fail "it lacks the tracer in the kernel, which needs clang: apt-get install clang"
check_symbols "$opened" 2.17 "$machine"
for library in $(find "$opened" -name '*.so' -o -name "leadline-agent-$machine"); do
  why=$(unknown_symbols "$library")
  [ -z "$why" ] || fail "$library $why"
done
"$bin/abi3audit" --strict "$wheel" >/dev/null || fail "abi3audit finds calls outside of Python's stable interface"
echo "$wheel"
