#!/usr/bin/env bash
# Installs the bundle as an ordinary user in fresh root trees without network, uses it and removes it again.
# SUITES names Debian's releases; trees stay in target/packaging/trees for the next time.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "install-test: $1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "it makes root trees, which needs root"
command -v mmdebstrap >/dev/null || apt-get install --quiet --quiet --yes mmdebstrap >/dev/null
here=$PWD/target/packaging
archive=$(echo "$here"/dist/leadline-*-linux-x86_64.tar.gz)
[ -f "$archive" ] || fail "there is no bundle: make bundle"
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Component: main' |
  awk '$1 == "Debian" {print $2; exit}')
mkdir -p "$here/trees"

inside() { # TREE COMMAND...: as an ordinary user, without network
  local tree=$1
  shift
  unshare --mount --net --pid --fork --kill-child /bin/sh -c '
    mount --make-rprivate /
    mount --bind "$1" "$1" # so that / is a mount inside, as it is on every host
    mount -t proc proc "$1/proc"
    mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
    mount -t tmpfs tmpfs "$1/dev"
    for node in null zero full random urandom; do touch "$1/dev/$node"; mount --bind "/dev/$node" "$1/dev/$node"; done
    [ -z "$BEFORE" ] || sh -c "$BEFORE" sh "$1"
    tree=$1; shift
    exec chroot --userspec=1000:1000 "$tree" /usr/bin/env -i HOME=/home/user PATH=/usr/bin:/bin "$@"' sh "$tree" "$@"
}

try() { # SUITE
  local tree=$here/trees/$1 home=$here/trees/$1/home/user
  if [ ! -e "$tree/.made" ]; then
    rm -rf "$tree"
    # A mirror's copy of sid may be older than its own date of expiry.
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' "$1" "$tree" "$mirror" ||
      fail "$1: no tree could be made"
    touch "$tree/.made"
  fi
  rm -rf "$home"
  mkdir -p "$home"
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
