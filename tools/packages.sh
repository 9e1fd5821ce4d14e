#!/usr/bin/env bash
# Installs the Debian packages that leadline's demo and tests use and that are missing here.
# Without root and sudo it names them and goes on: what works without them works.
set -euo pipefail

wanted=(
  ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse ceph-common librados2 libcephfs2 # a disposable real Ceph
  fuse3 attr                                                          # its mount and layouts
  nfs-ganesha-ceph samba samba-vfs-modules xrootd-server xrootd-ceph-plugins radosgw # the gateways of a lab
  libradosstriper1 libnfs13 libsmbclient libxrootd-client-dev         # what the engines open at run time, and a header
  libnfs-utils smbclient xrootd-client s3cmd                          # peers of the bench, and second readers of the tests
  qemu-system-x86 busybox-static                                      # a guest with the kernel's own clients
  gcc g++ libc6-dev libfuse3-dev pkg-config                               # a slow file system of the tests, bare loops of the bench
  clang                                                               # the tracer's programs for the kernel, at build time
  chromium                                                            # tests of the report
  fio                                                                 # tests of fio's formats, a subject of the tracers'
  libaio-dev liburing-dev                                             # subjects of the tracers' tests
  strace ffmpeg sqlite3 git                                           # the truth of the tracers' tests, and programs to trace
  iproute2 iperf3                                                     # a lab's hosts and switches, and what judges their links
  tmux                                                                # tests of the live display
  faketime                                                   # clocks of a lab's clients
)
python3 -c 'import ensurepip, venv' 2>/dev/null || wanted+=(python3-venv)
# Studies over SSH are tried with a server of the tests' own; a developer's machine is not made one for that.
[ -n "${CI:-}" ] && wanted+=(openssh-server)

command -v dpkg-query >/dev/null || { echo "not Debian: install by hand what 'leadline doctor' names"; exit 0; }

missing=()
for package in "${wanted[@]}"; do
  # fuse and fuse3 exclude each other; either has what is needed
  if [ "$package" = fuse3 ] && command -v fusermount >/dev/null; then continue; fi
  dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ]; then
  become=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
  become=(sudo)
else
  echo "not root and no sudo: these Debian packages are missing and stay so: ${missing[*]}"
  echo "what needs them is left out and says so; to have it: apt-get install ${missing[*]}"
  exit 0
fi

echo "installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# The lists of a fresh machine are empty or old; a lock held by another installation is waited for.
if ! { "${become[@]}" apt-get -o DPkg::Lock::Timeout=300 update &&
       "${become[@]}" apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 15 "$log" >&2
  echo "the packages could not be installed: what needs them is left out and says so" >&2
fi
