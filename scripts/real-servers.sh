#!/usr/bin/env bash
# Installs the servers that people use, from npm and PyPI, into a cache folder, and tries all that each can do through
# the daemon. One line for each proof. Without Node, Python or a network there is less to try, and it says so.
#
#   NEXUS_REAL_SERVERS=FOLDER scripts/real-servers.sh      another cache folder
set -uo pipefail
cd "$(dirname "$0")/.."

folder=${NEXUS_REAL_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/nexus/real-servers}
mkdir -p "$folder"
scope=@modelcontextprotocol/server

# What it needs, where it goes, and what installs it. What was not finished is begun anew.
install() {
  local program=$1 place=$folder/$2
  shift 2
  [ -e "$place/.whole" ] && return
  if ! command -v "$program" >/dev/null; then
    echo "skipped: there is no $program here"
    return
  fi
  rm -rf "$place"
  if timeout 120 "$@" >"$folder/install.log" 2>&1; then
    touch "$place/.whole"
  else
    rm -rf "$place"
    echo "skipped: $program cannot install the servers: $(tail -n 1 "$folder/install.log")"
  fi
}

install npm node_modules npm install --prefix "$folder" --no-audit --no-fund --loglevel=error \
  "$scope-everything" "$scope-filesystem" "$scope-memory" "$scope-sequential-thinking"
install python3 venv bash -c 'python3 -m venv "$1" && "$1/bin/pip" install --quiet mcp-server-time mcp-server-git' \
  - "$folder/venv"

# What is there already can be used without npm, but not without Node.
command -v node >/dev/null || echo "skipped: there is no node here"
NEXUS_REAL_SERVERS=$folder cargo test --quiet --locked -p nexusd --test real || exit 1
