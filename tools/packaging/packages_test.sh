#!/usr/bin/env bash
# Installs the .deb and the .rpm in fresh root trees without network, uses them as an ordinary user, and removes them
# again. SUITES names Debian's releases; there is no tree of an EL, so the .rpm is tried by rpm in one of Debian.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "deb-rpm-test: $1" >&2; exit 1; }
. tools/packaging/trees.sh
deb=$(echo "$here"/dist/leadline_*_amd64.deb) rpm=$(echo "$here"/dist/leadline-*.x86_64.rpm)
[ -f "$deb" ] && [ -f "$rpm" ] || fail "there are no packages: make deb-rpm"
command -v rpm >/dev/null || apt-get install --quiet --quiet --yes rpm >/dev/null

use() { # TREE: what an ordinary user does with it
  inside "$1" /bin/sh -euc '
    cd; mkdir data
    leadline run quick --target data="$HOME/data" --out result >screen 2>&1 || [ $? = 3 ]
    leadline report result --output page.html >/dev/null
    grep -q vega page.html
    leadline trace --out traced -- sh -c "head -c 1000000 /dev/zero >file" >said 2>&1
    leadline show traced --json | grep -q "\"bytes_written\": 1000000"
    gzip -cd /usr/share/man/man1/leadline-run.1.gz | grep -q "^\.SH OPTIONS"
    grep -q "^ExecStart=/usr/bin/leadline watch" /usr/lib/systemd/system/leadline-exporter@.service
    bash -c ". /usr/share/bash-completion/completions/leadline; complete -p leadline" | grep -q leadline
  ' || fail "$1: see its /home/user"
}

gone() { # TREE: nothing of it is there any more
  [ ! -e "$1/opt/leadline" ] && [ ! -e "$1/usr/bin/leadline" ] || fail "$1: it was removed, and something is left"
}

for suite in ${SUITES:-bullseye bookworm trixie sid}; do
  tree=$(tree_of "$suite")
  BEFORE="cp '$deb' \"\$1/tmp/\"" as 0 "$tree" sh -c 'dpkg --install /tmp/*.deb' >"$here/trees/said" || fail "$(cat "$here/trees/said")"
  use "$tree"
  as 0 "$tree" dpkg --verify leadline >"$here/trees/said" # no file of it was changed by its use
  [ ! -s "$here/trees/said" ] || fail "$suite: changed by its use: $(cat "$here/trees/said")"
  as 0 "$tree" dpkg --purge leadline >"$here/trees/said"
  gone "$tree"
  echo "$suite: the .deb is installed, used and removed"
done
tree=$(tree_of bookworm)
rpm --root "$tree" --install --nodeps "$rpm"
use "$tree"
rpm --root "$tree" --verify --nodeps leadline || fail "the .rpm: changed by its use"
rpm --root "$tree" --erase --nodeps leadline
gone "$tree"
rm -rf "$tree/var/lib/rpm" "$tree/usr/lib/sysimage" "$here/trees/said"
echo "the .rpm is installed, used and removed"
