#!/usr/bin/env bash
# Builds the rpm of packaging/nexus.spec and prints its path.
#
#   build-rpm.sh [FOLDER]      where the package goes (target/package)
#
#   NEXUS_BIN=DIR              takes nexusd and nexusctl from there; else they are built
#
# Needs rpmbuild (rpm-build on Fedora, rpm on Debian).
set -euo pipefail
umask 022
export LC_ALL=C

[ $# -le 1 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

tree=$(cd "$(dirname "$0")/.." && pwd)
out=${1:-$tree/target/package}
work=$(mktemp -d /tmp/nexus-rpm-XXXXXXXX)
trap 'rm -rf "$work"' EXIT

bin=${NEXUS_BIN:-}
if [ -z "$bin" ]; then
  (cd "$tree" && cargo build --release --locked -p nexusd -p nexusctl >&2)
  bin=$(cd "$tree" && realpath "${CARGO_TARGET_DIR:-target}")/release
fi
(cd "$tree" && rpmbuild -bb --quiet --build-in-place --define "_topdir $work" --define "nexus_bin $(realpath "$bin")" \
  packaging/nexus.spec) >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mkdir -p "$out"
for rpm in "$work"/RPMS/*/nexus-*.rpm; do
  cp "$rpm" "$out/"
  printf '%s\n' "$out/$(basename "$rpm")"
done
