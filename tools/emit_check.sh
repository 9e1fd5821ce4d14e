#!/usr/bin/env bash
# What `leadline tune emit` and `mount plan --emit` write, read by the tools that it is for: each format by its own, and what manages
# hosts applied twice. Root. Debian's packages are installed into an overlay below target/emit and seen in a mount
# namespace only; Python's into virtual environments there. `rm -r target/emit` begins anew.
set -euo pipefail
place=$PWD/target/emit
packages=(puppet tuned kmod udev grub-common)
ansible=$place/venv/bin salt=$place/salt/bin

environment() { # DIRECTORY PACKAGE…
  [ -e "$1/.complete" ] && return
  python3 -m venv "$1" && "$1/bin/pip" install --quiet "${@:2}" && touch "$1/.complete"
}

root() { # the host's files with changes of our own on top
  mount --make-rprivate /
  mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/merged"
  for folder in proc dev sys; do mount --rbind "/$folder" "$place/merged/$folder"; done
  mount -t tmpfs tmpfs "$place/merged/run"
  mkdir -p "$place/merged$PWD"
  mount --rbind "$PWD" "$place/merged$PWD"
}

failed=0
try() { # WORDS COMMAND…: says how it went, and shows what a failure printed
  if "${@:2}" >"$place/said" 2>&1; then echo "ok      $1"; else
    failed=1; echo "FAILED  $1"; tail -n 20 "$place/said" | sed 's/^/        /'
  fi
}

begin_with() { sysctl -qw "net.ipv4.tcp_rmem=4096 131072 6291456"; setfattr -x user.leadline "$pinned" 2>/dev/null || true; }
holds() {
  [ "$(sysctl -n net.ipv4.tcp_rmem | xargs)" = "4096 131072 4194304" ] &&
    [ "$(getfattr --absolute-names --only-values -n user.leadline "$pinned")" = "{{ it's \$x }}" ]
}
sysctl_file() { sysctl -p "$out/applied/sysctl/90-leadline.conf" && [ "$(sysctl -n net.ipv4.tcp_rmem | xargs)" = "4096 131072 4194304" ]; }
udev_rules() { # udev of Debian 12 has no `verify`; it names every line of a rule that it does not take
  cp "$out/all/udev/90-leadline.rules" /etc/udev/rules.d/
  udevadm test /sys/class/net/lo >"$place/udev" 2>&1
  grep -q 'Reading rules file: /etc/udev/rules.d/90-leadline.rules' "$place/udev" || return 1
  ! grep '90-leadline.rules:' "$place/udev"
}
udev_sees() { # so that silence above means something
  sed 's/ATTR{/ATTRX{/' "$out/all/udev/90-leadline.rules" >/etc/udev/rules.d/90-leadline.rules
  udevadm test /sys/class/net/lo >"$place/udev" 2>&1
  grep -q '90-leadline.rules:' "$place/udev"
}
tuned_profile() {
  mkdir -p /etc/tuned/leadline && cp "$out/all/tuned/tuned.conf" /etc/tuned/leadline/
  /usr/bin/python3 - <<'PYTHON'
from tuned.profiles import Factory, Loader, Locator, Merger
from tuned import consts, profiles
from tuned.utils.global_config import GlobalConfig
profile = Loader(Locator(consts.LOAD_DIRECTORIES), Factory(), Merger(), GlobalConfig(), profiles.variables.Variables()).load(["leadline"])
options = {key: value for unit in profile.units.values() for key, value in unit.options.items()}
assert options["net.ipv4.tcp_rmem"] == "4096 131072 8388608", options
assert options["/sys/block/sda/queue/scheduler"] == "none", options
assert options["ring"] == "rx 4096" and options["cmdline_leadline_mitigations"] == "+ mitigations=off", options
PYTHON
}
modules() { cp "$out/all/modprobe/leadline.conf" /etc/modprobe.d/ && modprobe --showconfig | grep -x 'options ceph disable_send_metrics=1'; }
tmpfiles() {
  : >"$place/enabled" # it is not emptied: a file of the kernel need not be
  sed "s|/sys/kernel/mm/transparent_hugepage|$place|" "$out/all/systemd/leadline.conf" >"$place/tmpfiles.conf"
  systemd-tmpfiles --create "$place/tmpfiles.conf" && [ "$(cat "$place/enabled")" = never ]
}
fstab() { mkdir -p "/mnt/my files"; findmnt --verify --tab-file "$out/all/fstab/leadline.fstab" 2>&1 | tee "$place/fstab"; grep -q '^0 parse errors' "$place/fstab"; }
ceph_conf() { [ "$(ceph-conf -c "$out/all/ceph/leadline-ceph.conf" -s osd --lookup osd_op_num_shards)" = 8 ]; }
play() { (cd "$out/$1/ansible" && "$ansible/ansible-playbook" -i localhost, -c local -e ansible_python_interpreter=/usr/bin/python3 "${@:2}" leadline-tuning.yml); }
lint() { (cd "$out/all/ansible" && PATH=$ansible:$PATH ansible-lint --offline --nocolor leadline-tuning.yml); }
states() { "$salt/salt-call" --local --config-dir="$place/salt-conf" --file-root="$out/$1/salt" --retcode-passthrough "${@:2}"; }
twice_ansible() { begin_with; play applied && holds && play applied | tee "$place/second" && grep -q 'changed=0' "$place/second"; }
twice_salt() { begin_with; states applied state.apply leadline_tuning && holds && states applied state.apply leadline_tuning | tee "$place/second" && grep -q '^Succeeded: [0-9]*$' "$place/second"; }
manifest() { puppet apply --detailed-exitcodes "$out/applied/puppet/leadline_tuning.pp"; }
twice_puppet() { begin_with; manifest; [ $? = 2 ] && holds && manifest; }

quiet() { rm -f "$out/canary"; "$@" || return 1; [ ! -e "$out/canary" ]; } # it executes nothing that it reads
loud() { rm -f "$out/canary"; "$@"; [ -e "$out/canary" ]; }             # so that silence above means something
hostile_play() { (cd "$1" && "$ansible/ansible-playbook" -i localhost, -c local -e ansible_python_interpreter=/usr/bin/python3 --check "${@:3}" "$2"); }
live() { # FILE PATTERN: the hostile folder with a template that is live
  rm -rf "$out/live" && cp -r "$out/hostile" "$out/live" && sed -i "s/$2//" "$out/live/$1"
}
live_ansible() { live ansible/tasks.yml '!unsafe '; loud hostile_play "$out/live/ansible" play.yml; }
live_salt() { live salt/hostile.sls '^#!yaml$'; loud states live state.show_sls hostile; }
hostile_fstab() { findmnt --verify --tab-file "$out/hostile/fstab/fstab" 2>&1 | tee "$place/fstab"; grep -q '^0 parse errors' "$place/fstab"; }
hostile_puppet() { puppet parser validate "$out"/hostile/puppet/{.,tuned/puppet}/*.pp; }

if [ "${1:-}" = install ]; then
  root
  printf '#!/bin/sh\nexit 101\n' >"$place/merged/usr/sbin/policy-rc.d"; chmod +x "$place/merged/usr/sbin/policy-rc.d"
  DEBIAN_FRONTEND=noninteractive chroot "$place/merged" apt-get install -y --no-install-recommends "${packages[@]}" >"$place/apt.log" 2>&1
  touch "$place/.installed"
elif [ "${1:-}" = namespace ]; then
  root
  ip link set lo up
  exec chroot "$place/merged" bash -c 'cd "$1" && exec bash tools/emit_check.sh inside' bash "$PWD"
elif [ "${1:-}" = inside ]; then
  set +e
  out=$place/out pinned="$place/out/my directory"
  mkdir -p "$place/salt-conf"; printf 'root_dir: %s\nlog_file: %s\n' "$place/salt-root" "$place/salt.log" >"$place/salt-conf/minion"
  try "sysctl: set by sysctl -p" sysctl_file
  try "udev: read by udevadm test" udev_rules
  try "udev: a broken rule is seen by it" udev_sees
  try "tuned: loaded as a profile" tuned_profile
  try "modprobe: in modprobe --showconfig" modules
  try "grub: sh -n" sh -n "$out/all/grub/90-leadline.cfg"
  try "systemd: systemd-analyze verify" systemd-analyze verify --man=no "$out"/all/systemd/*.mount
  try "systemd: written by systemd-tmpfiles" tmpfiles
  try "fstab: findmnt --verify" fstab
  try "ceph: ceph-conf" ceph_conf
  try "ceph: sh -n" sh -n "$out/all/ceph/leadline-ceph.sh"
  try "ansible: --syntax-check" play all --syntax-check
  try "ansible: ansible-lint" lint
  try "ansible: applied twice" twice_ansible
  try "salt: state.show_sls" states all state.show_sls leadline_tuning
  try "salt: applied twice" twice_salt
  try "puppet: parser validate" puppet parser validate "$out/all/puppet/leadline_tuning.pp"
  try "puppet: applied twice" twice_puppet
  try "hostile names, ansible: --syntax-check" quiet hostile_play "$out/hostile/ansible" play.yml --syntax-check
  try "hostile names, ansible: read by --check" quiet hostile_play "$out/hostile/ansible" play.yml
  try "hostile names, ansible: settings read by --check" quiet hostile_play "$out/hostile/ansible/tuned/ansible" leadline-tuning.yml
  try "hostile names, ansible: a live template is seen" live_ansible
  try "hostile names, salt: state.show_sls" quiet states hostile state.show_sls hostile
  try "hostile names, salt: settings by state.show_sls" quiet states hostile/salt/tuned state.show_sls leadline_tuning
  try "hostile names, salt: a live template is seen" live_salt
  try "hostile names, systemd: systemd-analyze verify" quiet systemd-analyze verify --man=no "$out"/hostile/systemd/*.mount
  try "hostile names, fstab: findmnt --verify" quiet hostile_fstab
  try "hostile names, puppet: parser validate" quiet hostile_puppet
  exit $failed
else
  [ "$(id -u)" -eq 0 ] || { echo "root is needed: an overlay and namespaces are made"; exit 2; }
  mkdir -p "$place"/{upper,work,merged}
  environment "$place/venv" ansible ansible-lint
  # Salt's wheel names none of what it needs.
  environment "$place/salt" salt==3007.13 tornado==6.4.2 PyYAML==6.0.2 Jinja2==3.1.6 jmespath==1.0.1 msgpack==1.1.1 \
    requests==2.32.4 distro==1.9.0 psutil==7.0.0 packaging==24.1 looseversion==1.3.0 cryptography==42.0.8 \
    python-dateutil==2.9.0.post0 croniter==2.0.7 aiohttp==3.11.18 backports.tarfile==1.2.0 pyzmq==26.4.0 \
    python-gnupg==0.5.4 urllib3==1.26.20
  [ -e "$place/.installed" ] || unshare --mount bash "$0" install || { tail -n 5 "$place/apt.log"; exit 1; }
  rm -rf "$place/out"
  .venv/bin/python tools/emit_check.py "$place/out"
  unshare --mount --net bash "$0" namespace
fi
