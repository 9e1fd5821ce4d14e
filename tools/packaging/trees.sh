#!/usr/bin/env bash
# Root trees of Debian's releases, to try an installation in; sourced by the tests of packages. They stay in
# target/packaging/trees for the next time.

[ "$(id -u)" = 0 ] || fail "it makes root trees, which needs root"
command -v mmdebstrap >/dev/null || apt-get install --quiet --quiet --yes mmdebstrap >/dev/null
here=$PWD/target/packaging
mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 'Component: main' |
  awk '$1 == "Debian" {print $2; exit}')
mkdir -p "$here/trees"
export BEFORE="" # what is done as root with a tree, which is $1, before a command in it

tree_of() { # SUITE: its tree, made where there is none
  local tree=$here/trees/$1
  if [ ! -e "$tree/.made" ]; then
    rm -rf "$tree"
    # A mirror's copy of sid may be older than its own date of expiry.
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' "$1" "$tree" "$mirror" ||
      fail "$1: no tree could be made"
    touch "$tree/.made"
  fi
  rm -rf "$tree/home/user"
  mkdir -p "$tree/home/user"
  chown -R 1000:1000 "$tree/home/user"
  echo "$tree"
}

inside() { # TREE COMMAND...: as an ordinary user, without network
  as 1000 "$@"
}

as() { # USER TREE COMMAND...: without network
  local user=$1 tree=$2
  shift 2
  unshare --mount --net --pid --fork --kill-child /bin/sh -c '
    mount --make-rprivate /
    mount --bind "$2" "$2" # so that / is a mount inside, as it is on every host
    mount -t proc proc "$2/proc"
    mount -t tmpfs -o mode=1777 tmpfs "$2/tmp"
    mount -t tmpfs tmpfs "$2/dev"
    for node in null zero full random urandom; do touch "$2/dev/$node"; mount --bind "/dev/$node" "$2/dev/$node"; done
    [ -z "$BEFORE" ] || sh -c "$BEFORE" sh "$2"
    user=$1 tree=$2; shift 2
    exec chroot --userspec="$user:$user" "$tree" /usr/bin/env -i HOME=/home/user PATH=/usr/bin:/bin:/usr/sbin:/sbin "$@"' \
    sh "$user" "$tree" "$@"
}
