#!/usr/bin/env bash
# Runs what shares memory with libraries and the kernel under the sanitizers, and its model under Miri. A part's name as
# an argument runs that part alone. Needs a nightly Rust with rust-src and Miri: AddressSanitizer and ThreadSanitizer are
# unstable flags, and the latter sees through the standard library's locks only when that is built with it.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "make sanitize: $1" >&2; exit 1; }
command -v rustup >/dev/null || fail "no rustup: it brings the nightly Rust that sanitizers need"
rustup component add --toolchain nightly miri rust-src >/dev/null 2>&1 ||
  fail "no nightly Rust: rustup toolchain install nightly --component miri,rust-src"

built=$PWD/target/sanitize
triple=$(rustc -vV | sed -n 's/^host: //p')
headers=${XROOTD_INCLUDE:-/usr/include/xrootd}
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
mkdir -p "$built"

later() { gcc -std=c11 -D_GNU_SOURCE -g -O1 -fPIC -Wall -Wextra -Werror "$@" -c -o "$built/later.o" tests/fakes/later.c; }
cxx() { g++ -std=c++17 -g -O1 -fPIC -pthread -Wall -Wextra -isystem "$headers" "$@"; }

# The C++ shim, with undefined behaviour and wrong addresses ending it.
shim() {
  [ -e "$headers/XrdCl/XrdClFile.hh" ] || { echo "shim: left out, it needs libxrootd-client-dev"; return; }
  local watched=(-fsanitize=address,undefined -fno-sanitize-recover=all)
  later "${watched[@]}"
  cxx "${watched[@]}" -o "$built/shim_throws" tests/fakes/shim_throws.cc tests/fakes/xrdcl.cc \
    crates/engine/xrootd/shim.cc "$built/later.o"
  # Callers that the client threw at stay on purpose.
  FAKE_STORE=$store ASAN_OPTIONS=detect_leaks=0 "$built/shim_throws"
}

# What is in flight, with threads in the libraries' place, as Rust's rules of memory have it; several schedules.
miri() {
  MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-many-seeds=0..${SEEDS:-16}" \
    cargo +nightly miri test --quiet --locked --package leadline-engine --target-dir "$built/miri" --test in_flight
}

# Whole trials of the engine on fake libraries: answers that come soon, far too late, and never.
engine() {
  local sanitizer=$1 urls=(rados://pool/space?object_size=16K) extra=()
  [ "$sanitizer" = thread ] && extra=(-Zbuild-std)
  # Optimised a little: ThreadSanitizer makes each access of an unoptimised build ten times as slow.
  CARGO_PROFILE_DEV_OPT_LEVEL=1 RUSTFLAGS="-Zsanitizer=$sanitizer" cargo +nightly build --quiet --locked --package leadline-engine --example storm \
    --target "$triple" --target-dir "$built/$sanitizer" "${extra[@]}"
  local examples=$built/$sanitizer/$triple/debug/examples
  mkdir -p "$examples/lib"
  later
  gcc -std=c11 -D_GNU_SOURCE -g -O1 -fPIC -pthread -shared -Wall -Wextra -Werror -Wl,-soname,librados.so.2 \
    -o "$examples/lib/librados.so.2" tests/fakes/librados.c "$built/later.o"
  if [ -e "$headers/XrdCl/XrdClFile.hh" ]; then
    cxx -shared -o "$examples/lib/libleadline_xrootd.so" tests/fakes/xrdcl.cc crates/engine/xrootd/shim.cc "$built/later.o"
    urls+=(root://localhost//plain root://localhost//vectors?readv=8)
  fi
  for answers in soon late never; do
    local work=$store/$sanitizer.$answers
    mkdir -p "$work"/{store/{plain,vectors},files}
    FAKE_STORE=$work/store LD_LIBRARY_PATH=$examples/lib \
      FAKE_LATE=$([ $answers = late ] && echo 97) FAKE_LATE_MS=8000 FAKE_NEVER=$([ $answers = never ] && echo 97) \
      ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS="halt_on_error=1 ${TSAN_OPTIONS:-}" \
      timeout 300 "$examples/storm" "$work/files" "$([ $answers = late ] && echo 8000 || echo 0)" "${urls[@]}" \
      >"$work/log" 2>"$work/errors" || { tail -n 60 "$work/log" "$work/errors" >&2; fail "$sanitizer, answers $answers"; }
  done
}

for part in ${*:-shim miri address thread}; do
  began=$SECONDS
  case $part in
    address | thread) engine "$part" ;;
    shim | miri) "$part" ;;
    *) fail "there is no part $part: shim, miri, address and thread are" ;;
  esac
  echo "$part: $((SECONDS - began)) s"
done
