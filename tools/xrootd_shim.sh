#!/usr/bin/env bash
# Builds what the engine for root:// opens at run time, where XRootD's headers are; without them the rest is built and
# `leadline engines xrootd` says what is missing. CXX may be a compiler for another machine.
set -euo pipefail
cd "$(dirname "$0")/.."

headers=${XROOTD_INCLUDE:-/usr/include/xrootd}
library=python/leadline/lib/libleadline_xrootd.so
compiler=${CXX:-g++}
if [ ! -e "$headers/XrdCl/XrdClFile.hh" ] || ! command -v "$compiler" >/dev/null; then
  rm -f "$library"
  echo "root:// is left out: it needs the packages g++ and libxrootd-client-dev"
  exit 0
fi
mkdir -p python/leadline/lib
new=$(mktemp python/leadline/lib/.xrootd.XXXXXX)
places=()
trap 'rm -rf "$new" "${places[@]}"' EXIT
if [ "$("$compiler" -dumpmachine)" != "$(g++ -dumpmachine)" ]; then
  # That machine's libraries are not here. Empty ones of their names do: what is in them is found when it is used.
  places=("$(mktemp -d)")
  for name in XrdCl XrdUtils; do
    used=$(readelf --dynamic "$(g++ -print-file-name="lib$name.so")" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
    "$compiler" -shared -Wl,-soname,"$used" -o "$places/lib$name.so" -x c++ /dev/null
  done
fi
"$compiler" -std=c++17 -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -isystem "$headers" \
  -o "$new" crates/engine/xrootd/shim.cc "${places[@]/#/-L}" -Wl,--no-as-needed -lXrdCl -lXrdUtils
chmod 0644 "$new"
mv "$new" "$library"
