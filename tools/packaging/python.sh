#!/usr/bin/env bash
# Builds the Python that the bundle carries, for glibc 2.28 and newer: target/packaging/python. Storage nodes have any
# Python from 3.6 on, or none. The source is Debian's, with its security patches; PYTHON_SOURCES names a directory that
# has the unpacked sources already (python3.*, zlib-*, libffi-*, bzip2-*, xz-utils-*, sqlite3-*, openssl-*).
set -euo pipefail
cd "$(dirname "$0")/../.."

here=$PWD/target/packaging
out=$here/python
[ -e "$out/.built" ] && [ ! "$0" -nt "$out/.built" ] && exit 0
for program in dpkg-source make tclsh; do
  command -v "$program" >/dev/null ||
    { echo "the bundle's Python needs $program: apt-get install dpkg-dev make tcl" >&2; exit 1; }
done
tools/packaging/tools.sh
sources=${PYTHON_SOURCES:-$here/sources}
logs=$here/python-build.log

fetch() { # from the archives that this machine has its packages from
  rm -rf "$sources"
  mkdir -p "$sources/apt/lists/partial" "$sources/apt/cache/archives/partial" "$sources/apt/parts"
  apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Component: main' | sort -u |
    while read -r label uri; do
      case $label in
        Debian) printf 'Types: deb-src\nURIs: %s\nSuites: trixie bookworm\nComponents: main\nSigned-By: %s\n' "$uri" \
          /usr/share/keyrings/debian-archive-keyring.gpg ;;
      esac
    done >"$sources/apt/parts/debian.sources"
  : >"$sources/apt/status"
  local apt=(apt-get -q=2 -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$sources/apt/parts"
    -o Dir::State::lists="$sources/apt/lists" -o Dir::Cache="$sources/apt/cache" -o Dir::State::status="$sources/apt/status" -o APT::Sandbox::User=root)
  "${apt[@]}" update
  cd "$sources"
  # Python is that of Debian 13, and the libraries are of Debian 12: those need no autotools.
  "${apt[@]}" source --only-source --download-only python3.13/trixie {zlib,libffi,bzip2,xz-utils,sqlite3,openssl}/bookworm
  for file in *.dsc; do dpkg-source --no-check --extract "$file"; done
}

build() { # a directory's configure and what it is given, then make
  local source=$1
  shift
  cd "$source"
  ./configure --quiet "$@"
  make --jobs=2 MAKEINFO=true
  make MAKEINFO=true install
}

work() {
  local bin=$here/tools/bin dep=$here/python-libraries
  rm -rf "$dep" "$out"
  mkdir -p "$dep"
  export CC=$bin/zig-cc CXX=$bin/zig-c++ AR=$bin/zig-ar RANLIB=$bin/zig-ranlib
  export CFLAGS="-O2 -fPIC -fno-sanitize=undefined -Wno-date-time"
  [ -n "${PYTHON_SOURCES:-}" ] || (fetch)
  (cd "$sources"/zlib-*/ && ./configure --static --prefix="$dep" && make --jobs=2 install)
  (build "$sources"/libffi-*/ --prefix="$dep" --disable-shared --disable-docs --disable-exec-static-tramp \
    --disable-multi-os-directory)
  (cd "$sources"/bzip2-*/ && make CC="$CC" AR="$AR" RANLIB="$RANLIB" CFLAGS="$CFLAGS" libbz2.a &&
    install -m 0644 libbz2.a "$dep/lib/" && install -m 0644 bzlib.h "$dep/include/")
  (build "$sources"/xz-utils-*/ --prefix="$dep" --disable-shared --disable-nls --disable-doc --disable-xz \
    --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-scripts)
  (build "$sources"/sqlite3-*/ --prefix="$dep" --disable-shared --disable-tcl --disable-readline --disable-math \
    --disable-load-extension)
  # Arrow loads Python's ssl, and many hosts talk by TLS.
  (cd "$sources"/openssl-*/ && ./Configure linux-x86_64 no-shared no-tests no-legacy --prefix="$dep" --libdir=lib \
    --openssldir=/etc/ssl && make --jobs=2 build_generated libcrypto.a libssl.a libcrypto.pc libssl.pc openssl.pc &&
    make install_dev)
  export CPPFLAGS="-I$dep/include" LDFLAGS="-L$dep/lib"
  export PKG_CONFIG_PATH=$dep/lib/pkgconfig PKG_CONFIG_LIBDIR=$dep/lib/pkgconfig
  (build "$sources"/python3.*/ --prefix="$out" --without-ensurepip --disable-test-modules MODULE_BUILDTYPE=static)
}

echo "building Python for the bundle, which takes some minutes: $logs"
set +e # before || a shell would go on after what fails in there
(set -e; work) >"$logs" 2>&1
code=$?
set -e
[ "$code" = 0 ] || { tail -n 20 "$logs" >&2; echo "the bundle's Python: see $logs" >&2; exit 1; }
"$out"/bin/python3 -I -c "import bz2, ctypes, lzma, sqlite3, ssl, zlib" || { echo "the bundle's Python lacks a module" >&2; exit 1; }
# What only builds need: the static library alone is larger than all that runs.
rm -rf "$out"/lib/libpython*.a "$out"/lib/python3.*/config-* "$out"/lib/pkgconfig "$out"/include "$out"/share \
  "$out"/bin/*config "$out"/bin/idle* "$out"/bin/pydoc* "$out"/lib/python3.*/{idlelib,tkinter,turtledemo,lib2to3}
find "$out" -name __pycache__ -prune -exec rm -rf {} +
for source in "$sources"/{python3.,zlib-,libffi-,bzip2-,xz-utils-,sqlite3-,openssl-}*/; do
  install -D -m 0644 "$source/debian/copyright" "$out/share/licences/$(basename "$source").txt"
done
touch "$out/.built"
