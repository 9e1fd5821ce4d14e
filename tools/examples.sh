#!/usr/bin/env bash
# Runs the built-in studies with their defaults on a lab, and writes their first screens to docs/examples.
# Over an hour, on a host with nothing else to do:    tools/examples.sh [NAME...]
# Names are: reach quick metadata interference shared coherence media render demo. KEEP=DIR keeps their results there.
# Each page names the digest of its study: tests/unit/test_examples.py fails where the study has changed since.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
pages=$root/docs/examples
studies=$root/python/leadline/studies
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(reach quick metadata interference shared coherence media render demo)
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

lab() { # starts it once
  [ -e "$work/lab" ] && return 0
  leadline lab up examples --dir "$work/lab" --gateways all >"$work/lab.log" 2>&1 ||
    { tail -n 5 "$work/lab.log"; exit 1; }
}

page() { # NAME STUDY RESULT SECONDS COMMAND: what a reader of the page would see on the terminal
  {
    echo "<!-- Made by tools/examples.sh from $2.yaml, sha256 $(sha256sum "$studies/$2.yaml" | cut -c1-16) -->"
    printf '# Example: %s\n\n    %s\n\n' "$1" "$5"
    printf 'It took %d minutes %d seconds. The first screen:\n\n' $(($4 / 60)) $(($4 % 60))
    echo '```text'
    COLUMNS=100 leadline show "$3" --redact || true
    echo '```'
    printf '\n`leadline diagnose` shows the bottleneck of each workload:\n\n```text\n'
    COLUMNS=100 leadline diagnose "$3" | sed "s|$3|DIR|g" | head -n 40 || true
    echo '```'
  } >"$work/page.md"
  mv "$work/page.md" "$pages/$1.md"
}

example() { # NAME SHOWN WORDS...: run a study; SHOWN is the command as a reader would write it
  local name=$1 shown=$2 code=0 begun=$SECONDS
  shift 2
  echo "$name ..."
  lab
  leadline run "$name" "$@" --out "$results/$name" --quiet >/dev/null || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || { echo "$name ended with $code"; return 0; }
  page "$name" "$name" "$results/$name" $((SECONDS - begun)) "$shown"
  echo "$name took $((SECONDS - begun)) s"
}

demo() {
  local code=0 begun=$SECONDS result
  echo "demo ..."
  (cd "$results" && "$root/tools/demo.sh" >/dev/null 2>&1) || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || { echo "demo ended with $code"; return 0; }
  result=$(ls -d "$results"/demo/render-* | tail -n 1)
  page demo render "$result" $((SECONDS - begun)) "make demo"
}

mounts=(--target "local=$work/local" --target "cephfs=$work/lab/mnt/replicated")
for name in "${names[@]}"; do
  case $name in
    demo) demo ;;
    reach | coherence) example "$name" "leadline run $name --lab" --lab examples ;;
    *) example "$name" "leadline run $name --target local=DIR --target cephfs=LAB/replicated" "${mounts[@]}" ;;
  esac
done
