#!/usr/bin/env bash
# Installs what `make audit` and `make sbom` use below target/supply: minutes the first time, nothing afterwards.
set -euo pipefail
place=$PWD/target/supply
deny=0.20.2 cyclonedx=0.5.9
mkdir -p "$place"
for tool in cargo-deny@$deny cargo-cyclonedx@$cyclonedx; do
  [ -e "$place/.$tool" ] && continue
  echo "building $tool"
  cargo install --quiet --locked --root "$place" --target-dir "$place/build" "$tool"
  rm -rf "$place/build"
  touch "$place/.$tool"
done
tools/environment.sh "$place/python" tools/supply/requirements.lock
