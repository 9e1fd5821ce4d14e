#!/usr/bin/env bash
# Builds leadline-agent, the program for hosts without leadline: target/packaging/dist/leadline-agent-x86_64 and
# leadline-agent-aarch64, for every Linux with glibc 2.17 or newer. MACHINES names those that are wanted.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "the agent: $1" >&2; exit 1; }
tools/packaging/tools.sh
. tools/packaging/symbols.sh
here=$PWD/target/packaging
export PATH=$here/tools/bin:$PATH CARGO_TARGET_DIR=$here/cargo
mkdir -p "$here/dist"
largest=$((15 << 20))
for machine in ${MACHINES:-x86_64 aarch64}; do
  target=$machine-unknown-linux-gnu
  [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup target add "$target" ||
    fail "the compiler has no library for $target: rustup target add $target"
  cargo zigbuild --profile tracer --locked --quiet --target "$target.2.17" --package leadline-tracer
  tracer=$CARGO_TARGET_DIR/$target/tracer/libleadline_tracer.so
  LEADLINE_TRACER=$tracer cargo zigbuild --profile agent --locked --quiet --target "$target.2.17" --package leadline-agent
  program=$CARGO_TARGET_DIR/$target/agent/leadline-agent
  why=$(newer_symbols "$program")$(unknown_symbols "$program")
  [ -z "$why" ] || fail "$program $why"
  size=$(stat -c %s "$program")
  [ "$size" -lt "$largest" ] || fail "$program has $size bytes, and $largest are the most"
  install -m 0755 "$program" "$here/dist/leadline-agent-$machine"
  echo "$here/dist/leadline-agent-$machine: $((size >> 20)).$(((size % (1 << 20)) * 10 >> 20)) MiB"
done
