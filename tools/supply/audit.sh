#!/usr/bin/env bash
# Licences, sources and versions of every dependency, and the advisories that are known of them.
#   RUSTSEC_DB=DIR   a git clone of the RustSec advisory database; PYPA_DB=DIR   a copy of the Python one.
# Neither can be had from a package registry: what was not checked is said, and is not "nothing found".
set -euo pipefail
tools/supply/tools.sh
place=$PWD/target/supply
export PATH=$place/bin:$PATH
cargo deny --locked check licenses sources bans
if [ -n "${RUSTSEC_DB:-}" ]; then
  # Where cargo-deny keeps the database that it would fetch itself.
  database=$place/advisories/advisory-db-3157b0e258782691
  rm -rf "$place/advisories"
  git clone --quiet --single-branch "$RUSTSEC_DB" "$database"
  sed "s|^\[advisories\]|&\ndb-path = \"$place/advisories\"|" deny.toml >"$place/deny.toml"
  echo "RustSec database of $(git -C "$database" log -1 --format=%cs)"
  cargo deny --locked --offline --config "$place/deny.toml" check advisories
else
  echo "NOT CHECKED: advisories of Rust crates: give a clone of their database: make audit RUSTSEC_DB=DIR"
fi
.venv/bin/python tools/supply/advisories.py "$place/python/bin/pip-audit" "${PYPA_DB:-}"
