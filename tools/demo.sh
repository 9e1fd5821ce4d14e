#!/usr/bin/env bash
# The main job: a small render study on a local directory and on a real CephFS, replicated 3 times
# and erasure-coded 2+1, through ceph-fuse. About three minutes after the build; leaves only demo/.
set -euo pipefail

demo=$PWD/demo
stamp=$(date +%Y%m%d-%H%M%S)
work=$(mktemp -d "${TMPDIR:-/tmp}/leadline-demo-XXXXXX")
mkdir -p "$work/local" "$demo"

clean_up() {
  leadline lab down --dir "$work/lab" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

targets=(--target "local=$work/local")
echo "starting a lab: a monitor, a manager, four OSDs, a metadata server, ceph-fuse"
if leadline lab up --dir "$work/lab" --osds 4 --ec 2+1 >"$work/lab.log" 2>&1; then
  targets+=(--target "replicated=$work/lab/mnt/replicated" --target "erasure=$work/lab/mnt/erasure")
else
  tail -n 5 "$work/lab.log"
  echo "no lab: the study compares two local directories instead"
  mkdir -p "$work/second"
  targets+=(--target "second=$work/second")
fi

result=$demo/render-$stamp
code=0
leadline run render "${targets[@]}" --out "$result" --blocks 3 --seed 1 \
  --set 'factors.bs=[4k,1M]' --set size=64M --set runtime=1200ms --set ramp_time=200ms || code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 3 ] || exit "$code"
leadline report "$result" --format html -o "$result/report.html"
clean_up
echo "report: $result/report.html"
echo "why it is not faster: leadline diagnose $result"
exit "$code"
