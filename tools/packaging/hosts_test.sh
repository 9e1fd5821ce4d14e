#!/usr/bin/env bash
# A study on three hosts that have OpenSSH's server and nothing else: Debian 11, each in network and mounts of its own. The
# agent is copied there, and nothing of it is left. INSTALLED names an installation to try in place of the bundle's.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "hosts-test: $1" >&2; exit 1; }
. tools/packaging/trees.sh
tree=$here/trees/bullseye-ssh
if [ ! -e "$tree/.made" ]; then
  rm -rf "$tree"
  mmdebstrap --quiet --variant=minbase --include=openssh-server bullseye "$tree" "$mirror" || fail "no tree could be made"
  chroot "$tree" useradd --home-dir /home/user --shell /bin/sh user
  touch "$tree/.made"
fi
place=$(mktemp -d "$here/hosts-XXXXXX")
head=leadline-$$-head
hosts=(1 2 3)
servers=()
finish() {
  for server in "${servers[@]}"; do kill -KILL "$server" 2>/dev/null || true; done
  wait
  for host in "${hosts[@]}"; do ip netns delete "leadline-$$-$host" 2>/dev/null || true; done
  ip netns delete "$head" 2>/dev/null || true
  rm -rf "$place"
}
trap finish EXIT

ssh-keygen -q -t ed25519 -N "" -f "$place/id"
ip netns add "$head"
ip -n "$head" link add br0 type bridge
ip -n "$head" address add 10.99.0.1/24 dev br0
ip -n "$head" link set br0 up
for host in "${hosts[@]}"; do
  space=leadline-$$-$host
  ip netns add "$space"
  ip -n "$head" link add "h$host" type veth peer name eth0 netns "$space"
  ip -n "$head" link set "h$host" master br0 up
  ip -n "$space" address add "10.99.0.1$host/24" dev eth0
  ip -n "$space" link set eth0 up
  ip -n "$space" link set lo up
  ip netns exec "$space" unshare --mount --pid --fork --kill-child /bin/sh -euc '
    mount --make-rprivate /
    mount --bind "$1" "$1"
    mount -t proc proc "$1/proc"
    for directory in tmp home run; do mount -t tmpfs -o mode=1777 tmpfs "$1/$directory"; done
    mount -t tmpfs tmpfs "$1/dev"
    for node in null zero full random urandom; do touch "$1/dev/$node"; mount --bind "/dev/$node" "$1/dev/$node"; done
    mkdir -p "$1/home/user/.ssh" "$1/home/user/data" "$1/run/sshd"
    cp "$2" "$1/home/user/.ssh/authorized_keys"
    chmod -R go-rwx "$1/home/user"
    chown -R --reference="$1/home/user" "$1/home/user"
    chroot "$1" chown -R user:user /home/user
    exec chroot "$1" /usr/sbin/sshd -D -e' sh "$tree" "$place/id.pub" 2>"$place/sshd-$host" &
  servers+=($!)
done
: >"$place/known"
for host in "${hosts[@]}"; do
  for _ in $(seq 100); do
    ip netns exec "$head" ssh-keyscan -t ed25519 "10.99.0.1$host" >>"$place/known" 2>/dev/null && break
    sleep 0.1
  done
done
[ "$(wc -l <"$place/known")" = 3 ] || fail "$(cat "$place"/sshd-*)"

installed=${INSTALLED:-}
if [ -z "$installed" ]; then
  tar -xf "$here"/dist/leadline-*-linux-x86_64.tar.gz -C "$place"
  "$place"/leadline-*/install.sh --prefix "$place/installed" >/dev/null
  installed=$place/installed
fi
cat >"$place/hosts.yaml" <<YAML
ssh: {username: user, client_keys: [$place/id], known_hosts: $place/known}
hosts:
  node1: {address: 10.99.0.11}
  node2: {address: 10.99.0.12}
  node3: {address: 10.99.0.13}
YAML
began=$(date +%s)
ip netns exec "$head" env -i HOME="$place" PATH=/usr/bin:/bin LEADLINE_AGENT="${LEADLINE_AGENT:-}" \
  "$installed/bin/leadline" run quick --blocks 2 \
  --set defaults.runtime=500ms --set defaults.size=16M --target data=/home/user/data \
  --hosts "$place/hosts.yaml" --out "$place/result" >"$place/screen" 2>&1 || [ $? = 3 ] || fail "$(cat "$place/screen")"
took=$(($(date +%s) - began))
grep -q "3 of 3 hosts are ready" "$place/screen" || fail "$(cat "$place/screen")"
grep -q "its agent runs there" "$place/screen" || fail "no agent ran: $(cat "$place/screen")"
copied=0
for host in "${hosts[@]}"; do
  copied=$((copied + $(ip netns exec "leadline-$$-$host" cat /sys/class/net/eth0/statistics/rx_bytes)))
done
for host in "${hosts[@]}"; do
  words=(ssh -i "$place/id" -o "UserKnownHostsFile=$place/known" -o BatchMode=yes "user@10.99.0.1$host")
  for _ in $(seq 300); do
    left=$(ip netns exec "$head" "${words[@]}" 'ls -A /tmp /var/tmp data; find .local -type f 2>/dev/null' |
      grep -v -e : -e '^$' || true)
    [ -n "$left" ] || break
    sleep 0.1
  done
  [ -z "$left" ] || fail "left on host $host: $left"
done
echo "three hosts with nothing but SSH: a study in $took s, $((copied / 3)) bytes to each, nothing left"
