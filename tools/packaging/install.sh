#!/bin/sh
# Installs leadline from this directory: no root, no network, no Python and no compiler is needed.
#
#   ./install.sh [--prefix DIR]              to DIR (default: ~/leadline); runs DIR/bin/leadline
#   ./install.sh --uninstall [--prefix DIR]  removes what it put there
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd -P)
prefix=${HOME:+$HOME/leadline}
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
[ -n "$prefix" ] || fail "there is no directory to install to: HOME is not set. Name one with --prefix."
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

machine=$(uname -sm)
[ "$machine" = "Linux @MACHINE@" ] || fail "this archive is for Linux on @MACHINE@, and this is $machine. Take the archive for it."
# "glibc 2.31", or the last word of "ldd (Debian GLIBC 2.31-13) 2.31"
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null || ldd --version 2>/dev/null | grep -i -e glibc -e 'gnu libc' | head -n 1) || true
libc=${libc##* }
need="leadline needs glibc @GLIBC@ or newer"
[ -n "$libc" ] || fail "$need, and this system has another C library. Use a host or a container with glibc."
[ "$(printf '%s\n' "$libc" "@GLIBC@" | sort -t. -k1,1n -k2,2n | head -n 1)" = "@GLIBC@" ] ||
  fail "$need, and this system has $libc. Use a newer host or a container."
[ -d "$here/@NAME@" ] || fail "$here lacks @NAME@. Unpack the whole archive again."
if [ -e "$prefix/@NAME@" ] || [ -e "$prefix/bin/leadline" ]; then
  [ -f "$ours" ] || fail "$prefix has a leadline that this script did not install. Name another directory with --prefix."
fi

near=$prefix # the nearest directory that is there
while [ ! -e "$near" ]; do near=$(dirname "$near"); done
need=$(du -sk "$here/@NAME@" | awk '{print $1}')
free=$(df -Pk "$near" | sed -n '2s/.* \([0-9][0-9]*\)  *[0-9-]*% .*/\1/p')
[ "${free:-0}" -gt "$need" ] || fail "$near has $((${free:-0} / 1024)) MB free, and leadline needs $((need / 1024)) MB. \
Name another directory with --prefix."
new=$prefix/.@NAME@.new.$$
old=""
undo() { # what was made and is empty goes, up to what was there; an installation that was moved away comes back
  [ -z "$old" ] || [ ! -e "$new.old" ] || mv "$new.old" "$prefix/$old"
  rm -rf "$new"
  made=$prefix
  while [ "$made" != "$near" ] && rmdir "$made" 2>/dev/null; do made=$(dirname "$made"); done
}
trap undo EXIT
trap 'exit 1' HUP INT TERM
another="Name another directory with --prefix."
try() { # WHAT COMMAND...: fails with the first thing that the command says
  what=$1
  shift
  said=$("$@" 2>&1) || fail "$what: $(printf '%s' "$said" | head -n 1 | sed 's/.*: //'). $another"
}
try "$prefix cannot be made" mkdir -p "$prefix"
try "$prefix cannot be written" cp -R "$here/@NAME@" "$new"
"$new/python/bin/@PYTHON@" -I -c "" 2>/dev/null ||
  fail "programs in $prefix cannot be started: the file system may be mounted noexec. $another"
try "leadline does not start from $prefix" "$new/bin/leadline" --version
try "$prefix/bin cannot be made" mkdir -p "$prefix/bin"
if [ -f "$ours" ]; then
  for name in $(installed); do
    case $name in leadline-*) [ ! -e "$prefix/$name" ] || { mv "$prefix/$name" "$new.old"; old=$name; } ;; esac
  done
fi
mv "$new" "$prefix/@NAME@"
old=""
rm -rf "$new.old"
ln -sf "../@NAME@/bin/leadline" "$prefix/bin/leadline"
cp "$0" "$prefix/@NAME@/install.sh"
printf '%s\n' "@NAME@" bin/leadline >"$ours"
echo "leadline @VERSION@ is installed: $prefix/bin/leadline"
echo "remove it with: '$prefix/@NAME@/install.sh' --uninstall --prefix '$prefix'"
