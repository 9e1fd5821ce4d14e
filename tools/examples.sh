#!/usr/bin/env bash
# The built-in studies with their defaults on a lab: their first screens and reports, in docs/examples.
# Over an hour, on a host with nothing else to do:    tools/examples.sh [NAME...]
# Names are: reach quick metadata interference shared coherence media render. KEEP=DIR keeps their results there.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
pages=$root/docs/examples
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(reach quick metadata interference shared coherence media render)
work=$(mktemp -d "${TMPDIR:-/tmp}/leadline-examples-XXXXXX")
results=${KEEP:-$work}
mkdir -p "$work/local" "$results" "$pages"

clean_up() {
  leadline lab down --dir "$work/lab" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

leadline lab up examples --dir "$work/lab" --gateways all >"$work/lab.log" 2>&1 || { tail -n 5 "$work/lab.log"; exit 1; }
mounts=(--target "local=$work/local" --target "cephfs=$work/lab/mnt/replicated")

# NAME, its result, and the words of the command as a reader would write them.
example() {
  local name=$1 shown=$2 code=0
  shift 2
  echo "$name ..."
  local begun=$SECONDS
  leadline run "$name" "$@" --out "$results/$name" --quiet >/dev/null || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || { echo "$name ended with $code"; return 0; }
  local took=$((SECONDS - begun))
  {
    echo "<!-- Made by tools/examples.sh -->"
    printf '\n    %s\n\n' "$shown"
    printf 'It took %d minutes %d seconds. The first screen:\n\n' $((took / 60)) $((took % 60))
    echo '```text'
    leadline show "$results/$name" --redact || true
    echo '```'
    echo
    leadline report "$results/$name" --format md --redact | sed 's/^#/##/'
  } >"$pages/$name.md"
  echo "$name took $took s"
}

for name in "${names[@]}"; do
  case $name in
    reach | coherence) example "$name" "leadline run $name --lab" --lab examples ;;
    media) example "$name" "leadline run media --target local=DIR --target cephfs=LAB/replicated" "${mounts[@]}" ;;
    *) example "$name" "leadline run $name --target local=DIR --target cephfs=LAB/replicated" "${mounts[@]}" ;;
  esac
done
