#!/usr/bin/env bash
# One archive that installs leadline where there is no network, no compiler and no Python: the wheel, what it needs, a
# Python and install.sh. target/packaging/dist/leadline-VERSION-linux-x86_64.tar.gz, for glibc 2.28 and newer.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "the bundle: $1" >&2; exit 1; }
. tools/packaging/symbols.sh
MACHINE=x86_64 tools/packaging/wheel.sh >/dev/null
tools/packaging/python.sh
here=$PWD/target/packaging
wheel=$(echo "$here"/dist/leadline-*_x86_64.whl)
version=$(basename "$wheel" | cut -d- -f2)
name=leadline-$version
top=$here/bundle/$name-linux-x86_64
python=$(basename "$here"/python/bin/python3.*)
rm -rf "$here/bundle"
mkdir -p "$top/$name/bin"
cp -R "$here/python" "$top/$name/python"
site=$top/$name/python/lib/python3/dist-packages # where a Python of Debian looks

# The newest of these names is the oldest C library that all of it runs on: glibc 2.28 is EL8's and Debian 10's.
platforms=()
for libc in 2014 _2_17 _2_24 _2_26 _2_27 _2_28; do platforms+=(--platform "manylinux${libc}_x86_64"); done
"$here/tools/bin/python" tools/packaging/runtime_lock.py >"$here/runtime.lock"
install=("$here/tools/bin/python" -m pip install --quiet --no-deps --target "$site" --no-compile
  --python-version "${python#python}" --implementation cp "${platforms[@]}" --only-binary :all:)
"${install[@]}" --require-hashes --requirement "$here/runtime.lock"
rm -rf "$site/bin"
"${install[@]}" --no-index "$wheel"
# Tests, headers and sources of the libraries, and parts of Arrow that leadline does not load.
find "$site" -type d \( -name tests -o -name include -o -name __pycache__ \) -prune -exec rm -rf {} +
rm -rf "$site/bin" "$site"/pyarrow/src "$site"/pyarrow/libarrow_flight.so* "$site"/pyarrow/*.{pyx,pxi,pxd} \
  "$site"/pyarrow/_flight.*

check_symbols "$top" 2.28 x86_64

filled() { sed -e "s/@NAME@/$name/g; s/@VERSION@/$version/g; s/@PYTHON@/$python/g; s/@MACHINE@/x86_64/g; s/@GLIBC@/2.28/g" "$1"; }
filled tools/packaging/leadline.sh >"$top/$name/bin/leadline"
filled tools/packaging/install.sh >"$top/install.sh"
chmod 0755 "$top/$name/bin/leadline" "$top/install.sh"
# Compiled once here, and valid by the sources' digests: whoever runs it may not write there.
"$top/$name/python/bin/$python" -I -m compileall -q --invalidation-mode unchecked-hash "$top/$name/python/lib" \
  >/dev/null || fail "some of its Python cannot be compiled"
[ "$("$top/install.sh" --help | head -n 1)" ] || fail "install.sh does not start"
archive=$here/dist/$name-linux-x86_64.tar.gz
tar --create --owner=0 --group=0 --numeric-owner --sort=name --directory "$here/bundle" "$name-linux-x86_64" |
  gzip -6 >"$archive.new"
mv "$archive.new" "$archive"
echo "$archive: $(du -m "$archive" | cut -f1) MB, installed $(du -sm "$top/$name" | cut -f1) MB"
