#!/usr/bin/env bash
# A .deb and an .rpm of what the bundle installs: it is in /opt/leadline, with the command in /usr/bin, and man pages
# and the shells' completions where these look. In target/packaging/dist.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "packages: $1" >&2; exit 1; }
here=$PWD/target/packaging
bundle=$(echo "$here"/bundle/leadline-*-linux-x86_64)
[ -d "$bundle" ] || fail "there is no bundle: make bundle"
command -v rpmbuild >/dev/null || apt-get install --quiet --quiet --yes rpm >/dev/null
tools/packaging/tools.sh
name=$(basename "$bundle" -linux-x86_64)
version=${name#leadline-}
summary=$(sed -n 's/^description = "\(.*\)"/\1/p' pyproject.toml)

root=$here/root
rm -rf "$root" "$here/deb" "$here/rpm"
umask 022
mkdir -p "$root/opt" "$root/usr/bin" "$root/usr/share/man"
cp -R "$bundle/$name" "$root/opt/leadline"
ln -s /opt/leadline/bin/leadline "$root/usr/bin/leadline"
PYTHONPATH=$(echo "$here"/tools/lib/python3.*/site-packages) "$(echo "$root"/opt/leadline/python/bin/python3.*)" \
  -B tools/packaging/manual.py "$version" "$root/usr/share/man/man1"
gzip -9 --no-name "$root"/usr/share/man/man1/*.1
completion() { # SHELL FILE
  mkdir -p "$(dirname "$root/usr/share/$2")"
  "$root/opt/leadline/bin/leadline" completion "$1" >"$root/usr/share/$2"
}
completion bash bash-completion/completions/leadline
completion fish fish/vendor_completions.d/leadline.fish
completion zsh zsh/site-functions/_leadline

mkdir -p "$root/usr/lib/systemd/system"
install -m 0644 tools/packaging/leadline-exporter@.service "$root/usr/lib/systemd/system/"

filled() { sed -e "s/@VERSION@/$version/g; s/@SUMMARY@/$summary/g; s|@ROOT@|$root|g" "$1"; }
mkdir -p "$here/rpm"
filled tools/packaging/leadline.spec >"$here/rpm/leadline.spec"
rpmbuild -bb --quiet --define "_topdir $here/rpm" "$here/rpm/leadline.spec" >"$here/rpm/log" 2>&1 ||
  fail "no .rpm was made: see $here/rpm/log"
mv "$here"/rpm/RPMS/x86_64/leadline-*.rpm "$here/dist/"

cp -al "$root" "$here/deb"
mkdir -p "$here/deb/DEBIAN" "$here/deb/usr/share/doc/leadline" "$here/deb/usr/share/zsh/vendor-completions"
mv "$here/deb/usr/share/zsh/site-functions/_leadline" "$here/deb/usr/share/zsh/vendor-completions/"
rmdir "$here/deb/usr/share/zsh/site-functions"
cat LICENSE NOTICES-crates.txt >"$here/deb/usr/share/doc/leadline/copyright"
cat >"$here/deb/DEBIAN/control" <<END
Package: leadline
Version: $version
Architecture: amd64
Section: admin
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$here/deb" | cut -f1)
Depends: libc6 (>= 2.28)
Suggests: ceph-fuse, librados2, libcephfs2
Maintainer: leadline's developers
Description: $summary
 leadline measures CephFS, RADOS and any mounted file system, names the
 bottleneck, and tunes and sizes clusters. It brings its own Python.
END
dpkg-deb --build --root-owner-group -Zgzip -z6 "$here/deb" "$here/dist/leadline_${version}_amd64.deb" >/dev/null
rm -rf "$here/deb" "$here/rpm" "$root"
for file in "$here"/dist/*.deb "$here"/dist/*.rpm; do echo "$file: $(du -m "$file" | cut -f1) MB"; done
