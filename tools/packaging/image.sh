#!/usr/bin/env bash
# A container image of the .deb and Ceph's client libraries, as an OCI archive in target/packaging/dist; then a program
# is traced in it. Base images of a registry are not needed: Debian's own packages make the tree.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "image: $1" >&2; exit 1; }
. tools/packaging/trees.sh
deb=$(echo "$here"/dist/leadline_*_amd64.deb)
[ -f "$deb" ] || fail "there is no .deb: make deb-rpm"
command -v buildah >/dev/null || apt-get install --quiet --quiet --yes --no-install-recommends buildah >/dev/null
clients=ceph-common,ceph-fuse,libcephfs2,librados2,libradosstriper1,nfs-common,libsmbclient0
place=$here/image
rm -rf "$place"
mkdir -p "$place/tmp"
export TMPDIR=$place/tmp # nothing is left elsewhere, also where it is ended
mmdebstrap --quiet --variant=minbase --include="$clients" --customize-hook="upload '$deb' /leadline.deb" \
  --customize-hook='chroot "$1" dpkg --install /leadline.deb >/dev/null && rm "$1/leadline.deb"' \
  trixie "$place/tree.tar" "$mirror" || fail "no tree could be made"
version=$(basename "$deb" _amd64.deb)
archive=$here/dist/leadline-${version#leadline_}-image.tar
build() { buildah --root "$place/store" --runroot "$place/run" --storage-driver vfs "$@"; }
build build --quiet --isolation chroot --file tools/packaging/Containerfile --tag leadline "$place" >/dev/null
rm -f "$archive"
build push --quiet leadline "oci-archive:$archive:leadline:${version#leadline_}"
container=$(build from --quiet "oci-archive:$archive")
said=$(build run --isolation chroot "$container" -- sh -c \
  'leadline trace --out traced -- sh -c "head -c 1000000 /dev/zero >file" >&2; leadline show traced --json')
grep -q '"bytes_written": 1000000' <<<"$said" || fail "it does not trace: $said"
build rm --all >/dev/null
build rmi --all --force >/dev/null
rm -rf "$place"
echo "$archive: $(du -m "$archive" | cut -f1) MB; the image traces"
