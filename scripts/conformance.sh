#!/usr/bin/env bash
# Runs the conformance suite of MCP, for two revisions, against our test server with the suite's fixtures: directly, and
# through the daemon, which has it once as a process and once over HTTP. Whatever passes directly has to pass through
# the daemon, and to be answered the same. One line for each proof; without npm or a network it says so.
#
#   NEXUS_CONFORMANCE=FOLDER scripts/conformance.sh [REVISION...]      another cache folder; some revisions only
#   NEXUS_KEEP=FOLDER scripts/conformance.sh                           keep the last results and records there
set -uo pipefail
cd "$(dirname "$0")/.."

suite=@modelcontextprotocol/conformance@0.2.0-alpha.12
cache=${NEXUS_CONFORMANCE:-${XDG_CACHE_HOME:-$HOME/.cache}/nexus-ci/conformance}
[ $# -gt 0 ] && revisions=("$@") || revisions=(2025-11-25 2026-07-28)

# The suite needs a newer Node than many have, so that comes with it. What was not finished is begun anew.
node=$cache/node_modules/node/bin/node
package=$cache/node_modules/@modelcontextprotocol/conformance
wanted=$cache/whole-${suite##*@}
if [ ! -e "$wanted" ]; then
  if ! command -v npm >/dev/null; then
    echo "skipped: there is no npm here"
    exit 0
  fi
  mkdir -p "$cache"
  if ! timeout 110 npm install --prefix "$cache" --no-audit --no-fund --loglevel=error --foreground-scripts \
    "$suite" node@22 >"$cache/install.log" 2>&1 || ! "$node" --version >/dev/null 2>&1; then
    echo "skipped: npm cannot install the suite: $(tail -n 1 "$cache/install.log")"
    exit 0
  fi
  touch "$wanted"
fi

cargo build --quiet --locked --bin nexusd --bin nexusctl --bin nexus-test-server || exit 1
bin=$(realpath "${CARGO_TARGET_DIR:-target}")/debug

# A home of its own, and nothing of it is left.
home=$(mktemp -d)
started=()
end() {
  local pid
  for pid in "${started[@]}"; do
    kill "$pid" 2>/dev/null
  done
  for pid in "${started[@]}"; do
    wait "$pid" 2>/dev/null
  done
  rm -rf "$home"
}
trap end EXIT
export HOME=$home XDG_CONFIG_HOME=$home/config XDG_RUNTIME_DIR=$home/run XDG_STATE_HOME=$home/state
mkdir -p "$XDG_CONFIG_HOME/nexus" "$XDG_RUNTIME_DIR"

fail() {
  echo "failed: $*"
  exit 1
}

# Waits until a file has a line like this, and prints what it says.
until_says() {
  local pattern=$1 file=$2 _
  for _ in {1..200}; do
    sed -n "s!.*$pattern.*!\1!p" "$file" 2>/dev/null | head -n 1 | grep . && return
    sleep 0.05
  done
  cat "$file" >&2
  return 1
}

# Runs the suite for a revision against what is at an address, with a token or without.
run_suite() {
  local revision=$1 to=$2 base=$3 path=$4 token=${5:-} url
  rm -rf "$to" && mkdir -p "$to"
  "$node" scripts/conformance/forward.mjs "$base" "$to/record.jsonl" "$token" >"$to/forward" </dev/null &
  local forward=$!
  started+=("$forward")
  url=$(until_says '\(http:.*\)' "$to/forward") || fail "nothing listens in front of $base"
  # What it exits with depends on what counts as passed: that is for the comparison to say.
  (cd "$to" && timeout 120 "$node" "$package/dist/index.js" server --url "$url$path" --requirements "$revision" \
    -o "$to/results" >"$to/log" 2>&1)
  kill "$forward"
}

# One for each way: its lists grow as the suite wants them to.
for way in direct remote; do
  "$bin/nexus-test-server" --conformance --http 0 >"$home/$way.log" 2>&1 </dev/null &
  started+=($!)
  address=$(until_says 'listening on \(http:.*\)/mcp' "$home/$way.log") || fail "the test server does not listen"
  declare "$way=$address"
done

cat >"$XDG_CONFIG_HOME/nexus/mcp.json" <<JSON
{"mcpServers": {
  "process": {"command": "$bin/nexus-test-server", "args": ["--conformance"]},
  "http": {"type": "http", "url": "$remote/mcp"}
}}
JSON
"$bin/nexusd" --http 127.0.0.1:0 --log warn >"$home/daemon" 2>&1 </dev/null &
started+=($!)
for _ in {1..200}; do
  door=$("$bin/nexusctl" http --json 2>/dev/null) && break
  sleep 0.05
done
[ -n "$door" ] || fail "the daemon does not listen: $(cat "$home/daemon")"
daemon=$("$node" -p 'new URL(JSON.parse(process.argv[1]).url).origin' "$door")
token=$("$node" -p 'JSON.parse(process.argv[1]).token' "$door")

status=0
for revision in "${revisions[@]}"; do
  run_suite "$revision" "$home/direct" "$direct" /mcp
  for server in process http; do
    run_suite "$revision" "$home/through" "$daemon" "/mcp/$server" "$token"
    compared=$("$node" scripts/conformance/compare.mjs "$package/requirements/$revision.yaml" "$home/direct" "$home/through")
    if [ $? = 0 ]; then
      echo "ok: ${compared/nexusd;/nexusd (the server over ${server/process/stdio});}"
    else
      printf '%s\n' "$compared"
      echo "failed: $revision: through nexusd (the server over ${server/process/stdio})"
      status=1
    fi
  done
done
if [ -n "${NEXUS_KEEP:-}" ]; then
  cp -r "$home" "$NEXUS_KEEP"
fi
exit $status
