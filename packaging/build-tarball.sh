#!/usr/bin/env bash
# Builds an archive to be unpacked anywhere, for instance into ~/.local, and prints its path. The same
# tree and binaries give the same bytes.
#
#   build-tarball.sh [FOLDER]  where the archive goes (target/package)
#
#   NEXUS_BIN=DIR              takes nexusd and nexusctl from there; else they are built
#   SOURCE_DATE_EPOCH=SECONDS  the time in the archive; else that of the last commit
set -euo pipefail
umask 022
export LC_ALL=C

[ $# -le 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

tree=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$tree/target/package}
work=$(mktemp -d /tmp/nexus-tar-XXXXXXXX)
trap 'rm -rf "$work"' EXIT

epoch=${SOURCE_DATE_EPOCH:-$(git -C "$tree" log -1 --format=%ct 2>/dev/null || echo 0)}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$tree/Cargo.toml")
[ -n "$version" ] || { echo 'error: no version in Cargo.toml' >&2; exit 1; }
name="nexus-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)"

"$tree/packaging/stage.sh" "$work/$name"
for file in README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE; do
  install -D -m 644 "$tree/$file" "$work/$name/share/doc/nexus/$file"
done

mkdir -p "$out"
tar -C "$work" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -cf - "$name" |
  gzip -n9 >"$out/$name.tar.gz"
printf '%s\n' "$out/$name.tar.gz"
