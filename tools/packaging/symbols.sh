#!/usr/bin/env bash
# What a program or library asks of the C library; sourced by the scripts that build for glibc 2.17.

newer_symbols() { # FILE: in words what glibc 2.17 does not have of it, or nothing
  local newest strong
  newest=$(objdump -T "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
  [ "$(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.17 ] || { echo "needs $newest"; return; }
  # What the compiler did not find in that library has no version: a loader there does not find it either. Weak ones
  # (marked w) may be absent, and those of Python come with it.
  strong=$(objdump -T "$1" | awk '$0 ~ /\*UND\*/ && $2 != "w" && $0 !~ /\(?(GLIBC|GCC|CXXABI|GLIBCXX)_/ {print $NF}' |
    grep -v -e '^_*Py' -e '^_Z' || true)
  [ -z "$strong" ] || echo "needs $(echo $strong), which glibc 2.17 does not have"
}
