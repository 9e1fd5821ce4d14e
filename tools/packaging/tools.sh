#!/usr/bin/env bash
# Makes the environment with the compiler that builds for old C libraries, below target/packaging/tools.
# Its zig-cc is for the bundle, of which all else needs glibc 2.28 too: for 2.17 Python would lack os.memfd_create.
set -euo pipefail
cd "$(dirname "$0")/../.."

place=target/packaging/tools
tools/environment.sh "$place" tools/packaging/requirements.lock
zig=$PWD/$("$place/bin/python" -c "import os, ziglang; print(os.path.relpath(ziglang.__path__[0]))")/zig
for tool in cc c++ ar ranlib; do
  target=""
  case $tool in cc | c++) target="-target x86_64-linux-gnu.2.28" ;; esac
  # Autoconf asks a compiler for its name of the machine, which this one does not know.
  cat >"$place/bin/zig-$tool" <<END
#!/bin/sh
case "\$*" in *print-multiarch*) echo x86_64-linux-gnu; exit 0 ;; esac
exec "$zig" $tool $target "\$@"
END
  chmod 0755 "$place/bin/zig-$tool"
done
