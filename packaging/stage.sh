#!/usr/bin/env bash
# Lays out what a package holds: binaries, units, manual pages, completions, examples and licences.
#
#   stage.sh PREFIX      PREFIX is what will be /usr: PREFIX/bin/nexusd, PREFIX/share/man, ...
#
#   NEXUS_BIN=DIR        takes nexusd and nexusctl from there; else they are built
#   NEXUS_ZSH=FOLDER     where zsh looks for completions, below PREFIX (share/zsh/site-functions)
#
# Nothing in the result depends on when or where it was made, but the times of the files.
set -euo pipefail
umask 022
export LC_ALL=C
# The help would show them.
unset NEXUS_CONFIG NEXUS_SOCKET NEXUS_LOG

[ $# = 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }

tree=$(cd "$(dirname "$0")/.." && pwd)
prefix=$1
doc="$prefix/share/doc/nexus"
man="$prefix/share/man/man1"

bin=${NEXUS_BIN:-}
if [ -z "$bin" ]; then
  # Code in C, and all that stands on it, is compiled anew whenever this variable is another.
  (cd "$tree" && env -u SOURCE_DATE_EPOCH cargo build --release --locked -p nexusd -p nexusctl >&2)
  bin=$(cd "$tree" && realpath "${CARGO_TARGET_DIR:-target}")/release
fi
for name in nexusd nexusctl; do
  [ -x "$bin/$name" ] || { printf 'error: %s/%s is not there\n' "$bin" "$name" >&2; exit 1; }
  install -D -m 755 "$bin/$name" "$prefix/bin/$name"
  ! command -v strip >/dev/null || strip --strip-unneeded "$prefix/bin/$name"
done

for kind in user system; do
  for unit in "$tree/systemd/$kind"/*; do
    [ -f "$unit" ] || continue
    install -D -m 644 "$unit" "$prefix/lib/systemd/$kind/$(basename "$unit")"
  done
done

mkdir -p "$man"
"$bin/nexusctl" man "$man" >/dev/null
# The daemon has no option for its page: what it says of itself, in the form of one.
version=$("$bin/nexusd" --version | awk '{ print $2 }')
[ -e "$man/nexusd.1" ] || {
  printf '.TH nexusd 1 "" "nexusd %s"\n.SH NAME\nnexusd \\- one pool of MCP servers for every agent\n' "$version"
  printf '.SH DESCRIPTION\n.nf\n'
  COLUMNS=76 NO_COLOR=1 "$bin/nexusd" --help | sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\\&&/" -e 's/ *$//'
  printf '.fi\n.SH SEE ALSO\n.BR nexusctl (1)\n'
} >"$man/nexusd.1"
gzip -n9 "$man"/*.1

complete() {
  mkdir -p "$(dirname "$prefix/$2")"
  "$bin/nexusctl" completions "$1" >"$prefix/$2"
}
complete bash share/bash-completion/completions/nexusctl
complete zsh "${NEXUS_ZSH:-share/zsh/site-functions}/_nexusctl"
complete fish share/fish/vendor_completions.d/nexusctl.fish
complete powershell share/nexus/nexusctl.ps1

for example in "$tree"/packaging/examples/* "$tree"/systemd/*.conf; do
  [ -f "$example" ] || continue
  install -D -m 644 "$example" "$doc/examples/$(basename "$example")"
done
