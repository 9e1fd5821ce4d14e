#!/bin/sh
# Runs leadline by the Python beside it, whatever the environment says of another Python.
self=$0
while [ -L "$self" ]; do
  link=$(readlink "$self")
  case $link in /*) self=$link ;; *) self=$(dirname "$self")/$link ;; esac
done
exec "$(dirname "$self")/../python/bin/@PYTHON@" -I -m leadline "$@"
