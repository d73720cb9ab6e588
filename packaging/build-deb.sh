#!/usr/bin/env bash
# Builds the Debian package and prints its path. The same tree and binaries give the same bytes.
#
#   build-deb.sh [FOLDER]      where the package goes (target/package)
#
#   NEXUS_BIN=DIR              takes nexusd and nexusctl from there; else they are built
#   SOURCE_DATE_EPOCH=SECONDS  the time in the package; else that of the last commit
#
# Needs dpkg-deb; with dpkg-shlibdeps (dpkg-dev) the versions of the libraries are those it finds.
set -euo pipefail
umask 022
export LC_ALL=C

[ $# -le 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }

tree=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$tree/target/package}
work=$(mktemp -d /tmp/nexus-deb-XXXXXXXX)
trap 'rm -rf "$work"' EXIT

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$tree" log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$tree/Cargo.toml")
[ -n "$version" ] || { echo 'error: no version in Cargo.toml' >&2; exit 1; }
# 0.2.0-rc.1 comes before 0.2.0; the last number is that of the packaging.
version="${version/-/\~}-1"
architecture=$(dpkg --print-architecture)

root="$work/root"
doc="$root/usr/share/doc/nexus"
NEXUS_ZSH=share/zsh/vendor-completions "$tree/packaging/stage.sh" "$root/usr"

{
  printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: Nexus\n\n'
  printf 'Files: *\nCopyright: The Nexus authors\nLicense: MIT or Apache-2.0\n\n'
  printf 'License: MIT\n'
  sed -e 's/ *$//' -e 's/^$/./' -e 's/^/ /' "$tree/LICENSE-MIT"
  printf '\nLicense: Apache-2.0\n On Debian systems, the whole text is in /usr/share/common-licenses/Apache-2.0.\n'
} >"$doc/copyright"
gzip -n9c "$tree/CHANGELOG.md" >"$doc/changelog.gz"
{
  printf 'nexus (%s) unstable; urgency=medium\n\n  * See changelog.gz for what changed.\n\n' "$version"
  printf ' -- The Nexus authors <>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -n9 >"$doc/changelog.Debian.gz"
install -D -m 644 "$tree/packaging/deb/lintian-overrides" "$root/usr/share/lintian/overrides/nexus"

depends() {
  if command -v dpkg-shlibdeps >/dev/null; then
    mkdir -p "$work/source/debian"
    printf 'Source: nexus\n\nPackage: nexus\nArchitecture: any\n' >"$work/source/debian/control"
    (cd "$work/source" && dpkg-shlibdeps -O -e"$root/usr/bin/nexusd" -e"$root/usr/bin/nexusctl" 2>/dev/null) |
      sed -n 's/^shlibs:Depends=//p'
  fi
}
depends=$(depends)

mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<CONTROL
Package: nexus
Version: $version
Architecture: $architecture
Maintainer: The Nexus authors
Section: utils
Priority: optional
Depends: ${depends:-libc6}
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Description: one pool of MCP servers for every agent on a machine
 nexusd starts each configured MCP server once, keeps it alive, and lets all
 agents of a user call it through one private endpoint. nexusctl lists, calls
 and steers what runs.
 .
 Nothing is started by the installation. Each user says
 "systemctl --user enable --now nexusd".
CONTROL
for script in postinst prerm postrm; do
  install -m 755 "$tree/packaging/deb/$script" "$root/DEBIAN/$script"
done
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"

mkdir -p "$out"
deb="$out/nexus_${version}_$architecture.deb"
dpkg-deb --root-owner-group --build "$root" "$deb" >/dev/null
printf '%s\n' "$deb"
