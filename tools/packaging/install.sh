#!/bin/sh
# Installs leadline from this directory: no root, no network, no Python and no compiler is needed.
#
#   ./install.sh [--prefix DIR]              to DIR (default: ~/leadline); runs DIR/bin/leadline
#   ./install.sh --uninstall [--prefix DIR]  removes what it put there
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd -P)
prefix=${HOME:-/nonexistent}/leadline
action=install
fail() { echo "install.sh: $1" >&2; exit 1; }
installed() { # what this script put into the prefix, by its own list: other words there are not believed
  while read -r name; do
    case $name in bin/leadline) echo "$name" ;; *[!A-Za-z0-9._+-]* | *..*) ;; leadline-*) echo "$name" ;; esac
  done <"$ours"
}
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) [ $# -ge 2 ] || fail "--prefix needs a directory"; prefix=$2; shift ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --uninstall) action=uninstall ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail "there is no option $1: see --help" ;;
  esac
  shift
done
[ -n "$prefix" ] || fail "--prefix needs a directory"
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
ours=$prefix/.leadline-install

if [ "$action" = uninstall ]; then
  [ -f "$ours" ] || fail "$prefix has no leadline that this script installed"
  for name in $(installed); do rm -rf "${prefix:?}/$name"; done
  rm -f "$ours"
  rmdir "$prefix/bin" 2>/dev/null || true
  rmdir "$prefix" 2>/dev/null || echo "$prefix stays: it has other files"
  exit 0
fi

[ "$(uname -s) $(uname -m)" = "Linux @MACHINE@" ] || fail "this is for Linux on @MACHINE@, and here is $(uname -sm)"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | awk '{print $2}') || true
[ -n "$libc" ] || fail "it needs glibc @GLIBC@ or newer, and this system has another C library"
[ "$(printf '%s\n' "$libc" "@GLIBC@" | sort -t. -k1,1n -k2,2n | head -n 1)" = "@GLIBC@" ] ||
  fail "it needs glibc @GLIBC@ or newer, and this system has $libc"
if [ -e "$prefix/@NAME@" ] || [ -e "$prefix/bin/leadline" ]; then
  [ -f "$ours" ] || fail "$prefix has a leadline that this script did not install: name another --prefix"
fi

near=$prefix # the nearest directory that is there
while [ ! -e "$near" ]; do near=$(dirname "$near"); done
need=$(du -sk "$here/@NAME@" | awk '{print $1}')
free=$(df -Pk "$near" | awk 'NR == 2 {print $4}')
[ "$free" -gt "$need" ] || fail "$near has $((free / 1024)) MB free, and leadline needs $((need / 1024)) MB"
new=$prefix/.@NAME@.new.$$
undo() { # what was made and is empty goes, up to what was there
  rm -rf "$new"
  made=$prefix
  while [ "$made" != "$near" ] && rmdir "$made" 2>/dev/null; do made=$(dirname "$made"); done
}
trap undo EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$prefix" || fail "$prefix cannot be made: name another with --prefix"
cp -R "$here/@NAME@" "$new" || fail "$prefix could not be written"
"$new/python/bin/@PYTHON@" -I -c "" 2>/dev/null ||
  fail "programs in $prefix cannot be started: is it mounted noexec? Name another with --prefix"
"$new/bin/leadline" --version >/dev/null || fail "leadline does not start from $prefix"

mkdir -p "$prefix/bin" || fail "$prefix/bin cannot be made"
old=""
if [ -f "$ours" ]; then
  for name in $(installed); do
    case $name in leadline-*) [ ! -e "$prefix/$name" ] || { mv "$prefix/$name" "$new.old"; old=$new.old; } ;; esac
  done
fi
mv "$new" "$prefix/@NAME@"
[ -z "$old" ] || rm -rf "$old"
ln -sf "../@NAME@/bin/leadline" "$prefix/bin/leadline"
cp "$0" "$prefix/@NAME@/install.sh"
printf '%s\n' "@NAME@" bin/leadline >"$ours"
echo "leadline @VERSION@ is installed: $prefix/bin/leadline"
echo "remove it with: $prefix/@NAME@/install.sh --uninstall --prefix $prefix"
