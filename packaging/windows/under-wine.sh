#!/usr/bin/env bash
# Runs the Windows binaries under wine and checks that a server and all that it starts end when they
# should: when it is stopped, and when the daemon is killed. Leaves nothing behind.
#
#   under-wine.sh NEXUSD.EXE NEXUSCTL.EXE
#
# Needs wine; for a wine older than 9 also mingw's gcc, see bcryptprimitives below.
set -euo pipefail

[ $# = 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# Everything runs from here, so that the name is in the command line of each process of this run.
home=$(mktemp -d /tmp/nexus-wine-XXXXXXXX)
export WINEPREFIX="$home/prefix" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe='
NEXUS_SOCKET=$(basename "$home")
export NEXUS_SOCKET

finish() {
  code=$?
  [ "$code" = 0 ] || sed 's/^/  nexusd: /' "$home/nexusd.log" >&2 || true
  # Only what runs in this prefix.
  wineserver -k 2>/dev/null || true
  wineserver -w 2>/dev/null || true
  rm -rf "$home"
  exit "$code"
}
trap finish EXIT

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
checked() { printf 'ok: %s\n' "$*"; }

# The processes of this run whose command line has a word in it.
processes() { pgrep -f "$(basename "$home").*$1" || true; }
count() { processes "$1" | wc -l; }

# until 20 CONDITION...: checks it for so many seconds at most.
until_within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

there_are() { [ "$(count "$2")" = "$1" ]; }
ctl() { timeout 60 wine "$home/nexusctl.exe" "$@" 2>>"$home/ctl.log" | tr -d '\r'; }
answers() { ctl ping >/dev/null; }

prepare() {
  mkdir -p "$home/bin"
  cp "$1" "$home/nexusd.exe"
  cp "$2" "$home/nexusctl.exe"
  timeout 120 wineboot -i >/dev/null 2>&1
  local system="$WINEPREFIX/drive_c/windows/system32"
  if [ ! -e "$system/bcryptprimitives.dll" ]; then
    # Rust's std takes its random numbers from there.
    cat >"$home/random.c" <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) { return SystemFunction036(data, length); }
C
    x86_64-w64-mingw32-gcc -shared -o "$system/bcryptprimitives.dll" "$home/random.c" -ladvapi32
  fi

  # As npm installs a command: a script for a shell, and beside it one for Windows.
  printf '#!/bin/sh\nexit 1\n' >"$home/bin/wrapped"
  # shellcheck disable=SC1003
  printf '@"%%~dp0..\\nexusd.exe" demo-server %%*\r\n' >"$home/bin/wrapped.cmd"
  local path="Z:${home//\//\\\\}\\\\bin;C:\\\\windows\\\\system32"
  cat >"$home/mcp.json" <<JSON
{
  "mcpServers": {
    "kind": {
      "command": "wrapped",
      "args": ["--env-tool", "--tools", "2"],
      "env": { "PATH": "$path" }
    },
    "stubborn": {
      "command": "wrapped",
      "args": ["--fault", "ignore-term", "--fault", "grandchild"],
      "env": { "PATH": "$path" }
    },
    "unfit": {
      "command": "wrapped",
      "args": ["two\nlines"],
      "env": { "PATH": "$path" }
    }
  }
}
JSON
}

start_daemon() {
  wine "$home/nexusd.exe" --config "$home/mcp.json" >>"$home/nexusd.log" 2>&1 &
  disown
  until_within 60 answers || fail 'the daemon does not answer'
  for server in kind stubborn; do
    [ "$(ctl call $server.add --arg a=2 --arg b=3)" = 5 ] || fail "$server.add does not answer 5"
  done
  # For each server the wrapper and the server; one has started another process.
  there_are 2 wrapped.cmd || fail "not two wrappers: $(count wrapped.cmd)"
  there_are 3 demo-server || fail "not three servers: $(count demo-server)"
  ! nothing_is_left || fail 'what runs is not seen'
}

nothing_is_left() { there_are 0 '(wrapped.cmd|demo-server|nexusd.exe)'; }

prepare "$1" "$2"

start_daemon
checked 'a command without ending runs its .cmd, and calls through the wrapper are answered'
ctl servers unfit | grep -q 'argument 1 has a line break' || fail 'the error of a bad argument is not shown'
checked 'an argument that a batch file cannot be given is named'

ctl stop kind >/dev/null
there_are 1 wrapped.cmd && there_are 2 demo-server || fail 'stop left processes of a kind server'
checked 'stop: a wrapper and its server have ended'
before=$SECONDS
ctl stop stubborn >/dev/null
there_are 0 wrapped.cmd && there_are 0 demo-server || fail 'stop left processes of a stubborn server'
checked "stop: a wrapper, a server that does not want to, and what it started have ended ($((SECONDS - before)) s)"
ctl shutdown >/dev/null
until_within 20 nothing_is_left || fail 'shutdown left processes'
checked 'shutdown: the daemon has ended'

start_daemon
kill -9 "$(processes 'nexusd.exe --config')"
until_within 20 nothing_is_left || fail "a killed daemon left $(count .) processes"
checked 'kill -9 of the daemon: wrappers, servers and what they started have ended'

start_daemon
timeout 60 wine taskkill /F /PID "$(ctl status --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)" >/dev/null
until_within 20 nothing_is_left || fail "an ended daemon left $(count .) processes"
checked 'taskkill /F of the daemon: wrappers, servers and what they started have ended'
