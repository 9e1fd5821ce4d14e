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
  while read -r name; do
    case $name in leadline-*/* | *..*) ;; leadline-* | bin/leadline) rm -rf "${prefix:?}/$name" ;; esac
  done <"$ours"
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

made=""
[ -d "$prefix" ] || made=$prefix
mkdir -p "$prefix/bin" || fail "$prefix cannot be made: name another with --prefix"
need=$(du -sk "$here/@NAME@" | awk '{print $1}')
free=$(df -Pk "$prefix" | awk 'NR == 2 {print $4}')
new=$prefix/.@NAME@.new.$$
undo() {
  rm -rf "$new"
  [ -z "$made" ] || rmdir "$prefix/bin" "$prefix" 2>/dev/null || true
}
trap undo EXIT
trap 'exit 1' HUP INT TERM
[ "$free" -gt "$need" ] || fail "$prefix has $((free / 1024)) MB free, and leadline needs $((need / 1024)) MB"
cp -R "$here/@NAME@" "$new" || fail "$prefix could not be written"
"$new/python/bin/@PYTHON@" -I -c "" 2>/dev/null ||
  fail "programs in $prefix cannot be started: is it mounted noexec? Name another with --prefix"
"$new/bin/leadline" --version >/dev/null || fail "leadline does not start from $prefix"

old=""
if [ -f "$ours" ]; then
  while read -r name; do
    case $name in leadline-*) [ ! -e "$prefix/$name" ] || { mv "$prefix/$name" "$new.old"; old=$new.old; } ;; esac
  done <"$ours"
fi
mv "$new" "$prefix/@NAME@"
[ -z "$old" ] || rm -rf "$old"
ln -sf "../@NAME@/bin/leadline" "$prefix/bin/leadline"
cp "$0" "$prefix/@NAME@/install.sh"
printf '%s\n' "@NAME@" bin/leadline >"$ours"
made=""
echo "leadline @VERSION@ is installed: $prefix/bin/leadline"
echo "remove it with: $prefix/@NAME@/install.sh --uninstall --prefix $prefix"
