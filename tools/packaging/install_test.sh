#!/usr/bin/env bash
# Installs the bundle as an ordinary user in fresh root trees without network, uses it and removes it again.
# SUITES names Debian's releases.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "install-test: $1" >&2; exit 1; }
. tools/packaging/trees.sh
archive=$(echo "$here"/dist/leadline-*-linux-x86_64.tar.gz)
[ -f "$archive" ] || fail "there is no bundle: make bundle"

try() { # SUITE
  local tree home
  tree=$(tree_of "$1")
  home=$tree/home/user
  cp "$archive" "$home/"
  chown -R 1000:1000 "$home"
  export BEFORE=""
  inside "$tree" /bin/sh -euc '
    cd; tar -xf leadline-*.tar.gz; mkdir work data; cd work
    began=$(date +%s%N)
    ~/leadline-*-linux-x86_64/install.sh >../said
    installed=$(date +%s%N)
    PATH=$HOME/leadline/bin:$PATH
    leadline run quick --target data="$HOME/data" --out result >../screen 2>&1 || [ $? = 3 ]
    ended=$(date +%s%N)
    leadline report result --output page.html >/dev/null
    leadline trace --out traced -- sh -c "head -c 1000000 /dev/zero >file; cat file >/dev/null" >../traced 2>&1
    leadline show traced --json >traced.json
    grep -q "\"bytes_written\": 1000000" traced.json
    grep -q vega page.html
    cd; ~/leadline/leadline-*/install.sh --uninstall
    test ! -e leadline
    echo "installed in $(((installed - began) / 1000000)) ms, first screen after $(((ended - began) / 1000000)) ms"
  ' || fail "$1: see $home"
  # Where it cannot be installed it says why, and leaves nothing.
  refused "$tree" noexec 'mount -t tmpfs -o noexec,mode=1777 tmpfs "$1/mnt"' "mounted noexec"
  refused "$tree" "full disk" 'mount -t tmpfs -o size=50m,mode=1777 tmpfs "$1/mnt"' "MB free, and leadline needs"
  refused "$tree" "not ours" 'mount -t tmpfs -o mode=1777 tmpfs "$1/mnt"; mkdir -p "$1/mnt/p/bin"; touch "$1/mnt/p/bin/leadline"' \
    "did not install"
  rm -rf "$home"
}

refused() { # TREE NAME PREPARATION WORDS
  export BEFORE=$3
  local said
  said=$(inside "$1" /bin/sh -c 'before=$(find /mnt); cd; leadline-*-linux-x86_64/install.sh --prefix /mnt/p 2>&1 &&
    echo "it installed"; [ "$(find /mnt)" = "$before" ] || echo "it left something: $(find /mnt)"')
  [[ $said == *"$4"* && $said != *"it left"* && $said != *"it installed"* ]] || fail "$2: $said"
}

for suite in ${SUITES:-bullseye bookworm trixie sid}; do
  said=$(try "$suite") # not within echo, which would hide that it failed
  echo "$suite: $said"
done
