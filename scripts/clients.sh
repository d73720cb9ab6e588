#!/usr/bin/env bash
# Has clients that people use list and call the pool's tools: the Inspector in each era that it knows, fastmcp and
# Claude Code, over `nexusctl mcp` and over HTTP with the token. One line for each proof; what npm and pip cannot install
# is skipped, with a word.
#
#   NEXUS_CLIENTS=FOLDER scripts/clients.sh [inspector|claude|fastmcp...]      another cache folder; some clients only
set -uo pipefail
cd "$(dirname "$0")/.."

cache=${NEXUS_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/nexus-ci/clients}
mkdir -p "$cache"
[ $# -gt 0 ] && clients=" $* " || clients=' inspector claude fastmcp '
wanted() { [[ $clients = *" $1 "* ]]; }

# What it needs, where it goes, and what installs it. What was not finished is begun anew.
install() {
  local program=$1 name=$2 place=$cache/$2
  shift 2
  [ -e "$place/.whole" ] && return
  if ! command -v "$program" >/dev/null; then
    echo "skipped: $name: there is no $program here"
    return 1
  fi
  rm -rf "$place" && mkdir -p "$place"
  if timeout 110 "$@" >"$cache/$name.log" 2>&1 </dev/null; then
    touch "$place/.whole"
  else
    rm -rf "$place"
    echo "skipped: $name: $program cannot install it: $(tail -n 1 "$cache/$name.log")"
    return 1
  fi
}
npm_into() {
  local place=$1
  shift
  npm install --prefix "$place" --no-audit --no-fund --loglevel=error --foreground-scripts "$@"
}
export -f npm_into

# The Inspector needs a newer Node than many have, and npm gives an older Inspector to an older Node.
{ wanted inspector || wanted claude; } && install npm node bash -c 'npm_into "$1" node@22 && "$1/node_modules/node/bin/node" --version' - "$cache/node"
PATH=$cache/node/node_modules/node/bin:$PATH
inspector='' fastmcp='' claude=''
wanted inspector && install npm inspector bash -c 'npm_into "$1" @modelcontextprotocol/inspector@2.12.0' - "$cache/inspector" &&
  inspector=$cache/inspector/node_modules/.bin/mcp-inspector
wanted claude && install npm claude bash -c 'npm_into "$1" @anthropic-ai/claude-code@2.1.197 && "$1/node_modules/.bin/claude" --version' - "$cache/claude" &&
  claude=$cache/claude/node_modules/.bin/claude
wanted fastmcp && install python3 fastmcp bash -c 'python3 -m venv "$1" && "$1/bin/pip" install --quiet fastmcp==4.1.2' - "$cache/fastmcp" &&
  fastmcp=$cache/fastmcp/bin/fastmcp

cargo build --quiet --locked --bin nexusd --bin nexusctl --bin nexus-test-server || exit 1
bin=$(realpath "${CARGO_TARGET_DIR:-target}")/debug

# A home of its own, and nothing of it is left. Clients hand on little of their environment: the socket is named.
home=$(mktemp -d)
socket=$home/n.sock
daemon=
end() {
  if [ -n "$daemon" ]; then
    kill "$daemon" 2>/dev/null
    wait "$daemon" 2>/dev/null
  fi
  rm -rf "$home"
}
trap end EXIT
export HOME=$home XDG_CONFIG_HOME=$home/.config XDG_STATE_HOME=$home/.local/state XDG_RUNTIME_DIR=$home/run
export DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 FASTMCP_CHECK_FOR_UPDATES=off
mkdir -p "$XDG_CONFIG_HOME/nexus" "$XDG_RUNTIME_DIR"
cat >"$XDG_CONFIG_HOME/nexus/mcp.json" <<JSON
{"mcpServers": {
  "new": {"command": "$bin/nexus-test-server", "args": ["--era", "modern"]},
  "old": {"command": "$bin/nexus-test-server", "args": ["--era", "legacy"]}
}}
JSON
"$bin/nexusd" --socket "$socket" --http 127.0.0.1:0 --log warn >"$home/daemon" 2>&1 </dev/null &
daemon=$!
door=
for _ in {1..200}; do
  door=$("$bin/nexusctl" --socket "$socket" http --json 2>/dev/null) && break
  sleep 0.05
done
if [ -z "$door" ]; then
  echo "failed: the daemon does not listen: $(cat "$home/daemon")"
  exit 1
fi
url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' <<<"$door")
token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' <<<"$door")
bridge=("$bin/nexusctl" --socket "$socket" mcp --no-start)

# Runs a client and looks for what it must have said: proof NAME PATTERN... -- COMMAND
proof() {
  local name=$1 patterns=() pattern said
  shift
  while [ "$1" != -- ]; do
    patterns+=("$1")
    shift
  done
  shift
  said=$(cd "$home" && timeout 100 "$@" 2>&1 </dev/null)
  local code=$?
  for pattern in "${patterns[@]}"; do
    if [ $code != 0 ] || ! grep -q -e "$pattern" <<<"$said"; then
      printf 'failed: %s: it ended with %s and said no %s:\n%s\n' "$name" "$code" "$pattern" "$said"
      return 1
    fi
  done
  echo "ok: $name"
}

try_inspector() {
  local era status=0 list=(--method tools/list) call=(--method tools/call --tool-name)
  for era in legacy auto modern; do
    local cli=("$inspector" --cli --protocol-era "$era")
    local http=("${cli[@]}" --header "Authorization: Bearer $token")
    proof "Inspector, $era, nexusctl mcp: tools are listed" '"new__echo"' '"old__slow_operation"' -- \
      "${cli[@]}" "${list[@]}" -- "${bridge[@]}" || status=1
    proof "Inspector, $era, nexusctl mcp: a tool is called" '"sum": 5' -- \
      "${cli[@]}" "${call[@]}" old__add --tool-arg a=2 b=3 -- "${bridge[@]}" || status=1
    proof "Inspector, $era, HTTP: tools are listed" '"new__echo"' '"old__slow_operation"' -- \
      "${http[@]}" --server-url "$url" "${list[@]}" || status=1
    proof "Inspector, $era, HTTP: a tool is called" '"sum": 5' -- \
      "${http[@]}" --server-url "$url" "${call[@]}" new__add --tool-arg a=2 b=3 || status=1
  done
  return $status
}

try_fastmcp() {
  local status=0
  proof 'fastmcp, nexusctl mcp: tools are listed' new__echo old__add -- \
    "$fastmcp" list --command "${bridge[*]}" || status=1
  proof 'fastmcp, nexusctl mcp: a tool is called' 'fastmcp says hi' -- \
    "$fastmcp" call --command "${bridge[*]}" --target old__echo --input-json '{"message": "fastmcp says hi"}' || status=1
  proof 'fastmcp, HTTP: tools are listed' new__echo old__add -- \
    "$fastmcp" list "$url" --auth "$token" || status=1
  proof 'fastmcp, HTTP: a tool is called' 'fastmcp says hi' -- \
    "$fastmcp" call "$url" new__echo 'message=fastmcp says hi' --auth "$token" || status=1
  return $status
}

# It has no way to call a tool without an account: that it is connected is what it can say.
try_claude() {
  (cd "$home" && "$claude" mcp add --scope user by-bridge -- "${bridge[@]}" &&
    "$claude" mcp add --scope user --transport http by-http "$url" --header "Authorization: Bearer $token") \
    >"$home/claude" 2>&1 </dev/null || {
    echo "failed: claude mcp add: $(cat "$home/claude")"
    return 1
  }
  proof 'claude mcp list: nexusctl mcp and HTTP are connected' 'by-bridge: .*Connected' 'by-http: .*Connected' -- \
    "$claude" mcp list
}

# Each takes its time to start, most of it waiting.
running=()
[ -n "$inspector" ] && { try_inspector >"$home/1" & running+=($!); }
[ -n "$fastmcp" ] && { try_fastmcp >"$home/2" & running+=($!); }
[ -n "$claude" ] && { try_claude >"$home/3" & running+=($!); }
status=0
for pid in "${running[@]}"; do
  wait "$pid" || status=1
done
cat "$home"/[123] 2>/dev/null
exit $status
