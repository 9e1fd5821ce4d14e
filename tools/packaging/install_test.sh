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
  another "$tree"
  refusals "$tree"
  rm -rf "$home"
}

another() { # TREE: another version is replaced, and other files stay; in a directory whose name has a space
  export BEFORE='mount -t tmpfs -o mode=1777 tmpfs "$1/mnt"'
  inside "$1" /bin/sh -euc '
    cd; prefix="/mnt/a b"
    leadline-*-linux-x86_64/install.sh --prefix "$prefix" >/dev/null
    cd "$prefix"; mv leadline-* leadline-0.0.1; touch mine
    printf "%s\n" leadline-0.0.1 bin/leadline >.leadline-install
    ~/leadline-*-linux-x86_64/install.sh --prefix "$prefix" >/dev/null
    test ! -e leadline-0.0.1
    bin/leadline --version >/dev/null
    leadline-*/install.sh --uninstall --prefix "$prefix" >/dev/null
    test "$(ls -A)" = mine
  ' || fail "$1: another version is not replaced"
}

refusals() { # TREE: where it cannot be installed it says why in one line, and leaves nothing
  refused "$1" "noexec" 'mount -t tmpfs -o noexec,mode=1777 tmpfs "$1/mnt"' "mounted noexec"
  refused "$1" "full disk" 'mount -t tmpfs -o size=50m,mode=1777 tmpfs "$1/mnt"' "MB free, and leadline needs"
  refused "$1" "full while it copies" 'mount -t tmpfs -o nr_inodes=500,mode=1777 tmpfs "$1/mnt"' "No space left on device"
  refused "$1" "not ours" 'mount -t tmpfs -o mode=1777 tmpfs "$1/mnt"; mkdir -p "$1/mnt/p/bin"; touch "$1/mnt/p/bin/leadline"' \
    "did not install"
  refused "$1" "no permission" 'mount -t tmpfs -o mode=0755 tmpfs "$1/mnt"' "Permission denied"
  refused "$1" "no permission in it" 'mount -t tmpfs tmpfs "$1/mnt"; mkdir -m 0755 "$1/mnt/p"' "Permission denied"
  refused "$1" "another machine" "$(says uname 'echo Linux aarch64')" "this is Linux aarch64"
  refused "$1" "an old C library" "$(says getconf 'echo glibc 2.17')" "this system has 2.17"
  refused "$1" "an old C library without getconf" "$(says getconf 'exit 127' ldd 'echo "ldd (GNU libc) 2.17"')" \
    "this system has 2.17"
  refused "$1" "another C library" "$(says getconf 'exit 1' ldd 'echo "musl libc (x86_64)" >&2; exit 1')" "has another C library"
  refused "$1" "no home" "" "Name one with --prefix" 'unset HOME; set --'
  refused "$1" "half an archive" "" "Unpack the whole archive again" 'cp "$1" /tmp/; set -- /tmp/install.sh'
}

says() { # PROGRAM SCRIPT...: what puts programs that say this before the system's
  printf 'mkdir -p "$1/tmp/bin";'
  for ((; $#; )); do
    printf ' printf "%%s\\n" "#!/bin/sh" %q >"$1/tmp/bin/%s"; chmod 0755 "$1/tmp/bin/%s";' "$2" "$1" "$1"
    shift 2
  done
}

refused() { # TREE NAME PREPARATION WORDS [BEFORE]: the script before it has the call as its arguments
  export BEFORE=$3
  local said
  said=$(inside "$1" /bin/sh -c 'PATH=/tmp/bin:$PATH; cd; before=$(find /mnt); script=$(echo leadline-*-linux-x86_64/install.sh)
    set -- "$script" --prefix /mnt/p
    '"${5:-}"'
    "${@:-$script}" 2>&1 && echo "it installed"
    [ "$(find /mnt)" = "$before" ] || echo "it left something: $(find /mnt)"')
  [[ $said == *"$4"* && $said != *"it left"* && $said != *"it installed"* && $said != *$'\n'* ]] || fail "$2: $said"
}

for suite in ${SUITES:-bullseye bookworm trixie sid}; do
  said=$(try "$suite") # not within echo, which would hide that it failed
  echo "$suite: $said"
done
