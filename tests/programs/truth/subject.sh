#!/bin/sh
# A subject in shell: a tree of processes whose bytes are known and whose calls are theirs.
set -eu
head -c 30000 /dev/zero > a
cat a > b
(cat a; cat b) | wc -c > count
dd if=b of=c bs=100 count=1 status=none
rm a
echo '{"bytes_read": 90100, "bytes_written": 60106, "calls": {}}'
