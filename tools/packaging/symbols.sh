#!/usr/bin/env bash
# What programs and libraries ask of the C library and the C++ library; sourced by the scripts that build for old ones.

newer_symbols() { # FILE [GLIBC]: in words what this C library, or EL8's C++ library, does not have of it, or nothing
  local -A newest=([GLIBC]=${2:-2.17} [GLIBCXX]=3.4.25 [CXXABI]=1.3.11)
  local library version
  while read -r library version; do
    [ "$(printf '%s\n%s\n' "$version" "${newest[$library]}" | sort -V | tail -n 1)" = "${newest[$library]}" ] ||
      { echo "needs ${library}_$version"; return; }
  done < <(readelf --wide --version-info "$1" 2>/dev/null | sed -n '/Version needs/,$p' |
    grep -oE '(GLIBC|GLIBCXX|CXXABI)_[0-9.]+' | sort -u | tr _ ' ')
}

unknown_symbols() { # FILE: in words what glibc 2.17 did not have when it was linked, or nothing
  local strong
  # What the compiler did not find in that library has no version: a loader there does not find it either. Weak ones
  # may be absent, and those of Python and of C++ come with theirs.
  strong=$(readelf --wide --dyn-syms "$1" | awk '$7 == "UND" && $5 != "WEAK" && $8 != "" && $8 !~ /@/ {print $8}' |
    grep -v -e '^_*Py' -e '^_Z' || true)
  [ -z "$strong" ] || echo "needs $(echo $strong), which glibc 2.17 does not have"
}

check_symbols() { # DIR GLIBC MACHINE: fails where a program or library below it does not start there
  local file why checked=0 name=X86-64
  [ "$3" = x86_64 ] || name=AArch64
  while IFS= read -r -d '' file; do
    [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || continue
    readelf --file-header "$file" | grep -q "$name" || fail "$file is not for $3"
    why=$(newer_symbols "$file" "$2")
    [ -z "$why" ] || fail "$file $why, and glibc $2 does not have that"
    checked=$((checked + 1))
  # Agents are for other machines too; agent.sh judges each.
  done < <(find "$1" -type f \( -name '*.so*' -o -perm -0100 \) ! -path '*/lib/agent/*' -print0)
  [ "$checked" -gt 0 ] || fail "there is no program and no library in $1"
}
