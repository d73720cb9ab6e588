#!/usr/bin/env bash
# Builds for Windows, runs the unit tests under wine, and goes through a day of the daemon there: a pipe,
# calls, servers that die, Ctrl-C, both kinds of service. Prints a line for each thing proven.
#
#   under-wine.sh                            all of it
#   under-wine.sh NEXUSD.EXE NEXUSCTL.EXE    with these binaries, without the unit tests
#
# What it needs is made by toolchain.sh and kept outside of the tree; where that is not possible it says so
# and ends well. Each run has a Windows of its own, and leaves nothing behind.
set -eEuo pipefail
umask 022
export LC_ALL=C

case $# in 0 | 2) ;; *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac

tree=$(cd "$(dirname "$0")/../.." && pwd)
target=x86_64-pc-windows-gnu

# Everything runs from here, so that the name is in the command line of each process of this run.
home=$(mktemp -d /tmp/nexus-wine-XXXXXXXX)
export WINEPREFIX="$home/prefix" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe='
drive="$WINEPREFIX/drive_c"
unset NEXUS_CONFIG NEXUS_SOCKET NEXUS_LOG DISPLAY
told=
at=

finish() {
  code=$?
  trap - EXIT ERR
  [ "$code" = 0 ] || [ -n "$told" ] || printf 'FAILED: %s\n' "$at" >&2
  if [ "$code" != 0 ]; then
    tail -n 60 "$home"/*.log "$drive"/ProgramData/nexus/logs/nexusd.log "$drive"/users/*/AppData/Local/nexus/logs/nexusd.log \
      2>/dev/null | sed 's/^/  /' >&2 || true
  fi
  # Only what runs in this prefix.
  timeout 20 wineserver -k 2>/dev/null || true
  timeout 20 wineserver -w 2>/dev/null || true
  rm -rf "$home"
  exit "$code"
}
trap finish EXIT
trap 'at="line $LINENO: $BASH_COMMAND"' ERR
trap 'at=interrupted; exit 130' INT TERM

skip() { printf 'skipped: %s\n' "$*"; exit 0; }
left_out() { printf 'skip: %s\n' "$*"; }
# grep, to the end: one that stops early breaks the pipe, and that is a failure too.
finds() { grep "$@" >/dev/null; }
fail() { told=yes; printf 'FAILED: %s\n' "$*" >&2; exit 1; }
checked() { printf 'ok: %s\n' "$*"; }

# until_within 20 CONDITION...: checks it for so many seconds at most.
until_within() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# ---- a Windows

toolchain() {
  local folder code=0
  folder=$("$tree/packaging/windows/toolchain.sh" 2>"$home/toolchain.log") || code=$?
  [ "$code" != 3 ] || skip "no Windows here: $(tail -1 "$home/toolchain.log")"
  [ "$code" = 0 ] || fail "toolchain.sh: $(cat "$home/toolchain.log")"
  tools=$folder
  # shellcheck source=/dev/null
  . "$folder/env"
}

boot() {
  timeout 180 wineboot -i >"$home/wineboot.log" 2>&1 || skip "wine does not start: $(tail -1 "$home/wineboot.log")"
  local code=0
  timeout 60 wine cmd /c exit 7 >/dev/null 2>&1 || code=$?
  [ "$code" = 7 ] || skip "wine cannot run a program here (exit code $code)"
  [ -e "$drive/windows/system32/bcryptprimitives.dll" ] || cp "$tools/bcryptprimitives.dll" "$drive/windows/system32/"
  # What ends a process with a code of our choice: taskkill says 0 here, and 1 on Windows.
  cat >"$home/end.c" <<'C'
#include <stdlib.h>
#include <windows.h>
int main(int count, char **words) {
  HANDLE process = OpenProcess(PROCESS_TERMINATE, FALSE, atoi(words[1]));
  return process == NULL || count != 3 || !TerminateProcess(process, atoi(words[2]));
}
C
  x86_64-w64-mingw32-gcc -o "$home/end.exe" "$home/end.c"
}

# Off, and on again, and somebody logs on.
boot_again() {
  timeout 20 wineserver -k 2>/dev/null || true
  timeout 20 wineserver -w 2>/dev/null || true
  timeout 120 wineboot >/dev/null 2>&1 || true
}

build() {
  cd "$tree"
  timeout 600 cargo fetch -q --locked --target "$target" >"$home/fetch.log" 2>&1 ||
    skip "the crates for Windows cannot be downloaded: $(tail -1 "$home/fetch.log")"
  cargo build -q --locked --target "$target" -p nexusd -p nexusctl --bins || fail 'it does not build for Windows'
  checked "builds for $target with $(rustc --version | cut -d' ' -f1,2)"
  built="$CARGO_TARGET_DIR/$target/debug"
}

unit_tests() {
  timeout 900 cargo test -q --locked --target "$target" -p nexus-proto -p nexus-config -p nexusd -p nexusctl -p nexus-client --lib --bins \
    --no-fail-fast >"$home/tests.log" 2>&1 || fail 'unit tests fail under wine'
  checked "unit tests: $(awk '/^test result/ { ok += $4; left += $8 } END { print ok " pass, " left " left out" }' "$home/tests.log")"
}

# ---- what is looked at

# The processes of this run whose command line has a word in it.
processes() { pgrep -f "$(basename "$home").*$1" || true; }
count() { processes "$1" | wc -l; }
there_are() { [ "$(count "$2")" = "$1" ]; }
nothing_is_left() { there_are 0 '(wrapped.cmd|demo-server|nexusd.exe)'; }

ctl() { timeout 60 wine "$home/nexusctl.exe" "$@" 2>>"$home/ctl.log" | tr -d '\r'; }
answers() { ctl ping >/dev/null; }
adds() { [ "$(ctl "${@:2}" call "$1.add" --arg a=2 --arg b=3)" = 5 ]; }
number() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -1; }
pid_of() { ctl servers "$1" --json | number pid; }
# What runs in the key of the user that starts programs at logon.
at_logon() { timeout 60 wine reg query 'HKCU\Software\Microsoft\Windows\CurrentVersion\Run' 2>/dev/null | tr -d '\r' | grep Nexus; }

# ---- the proofs

configure() {
  mkdir -p "$home/bin"
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

family_is_there() {
  for server in kind stubborn; do
    until_within 30 adds $server || fail "$server.add does not answer 5"
  done
  # For each server the wrapper and the server; one has started another process.
  there_are 2 wrapped.cmd || fail "not two wrappers: $(count wrapped.cmd)"
  there_are 3 demo-server || fail "not three servers: $(count demo-server)"
  ! nothing_is_left || fail 'what runs is not seen'
}

start_daemon() {
  wine "$home/nexusd.exe" --config "$home/mcp.json" >>"$home/nexusd.log" 2>&1 &
  disown
  until_within 60 answers || fail 'the daemon does not answer'
  family_is_there
}

serves() {
  start_daemon
  checked 'a command without ending runs its .cmd, and calls through the wrapper are answered'
  ctl servers unfit | finds 'argument 1 has a line break' || fail 'the error of a bad argument is not shown'
  checked 'an argument that a batch file cannot be given is named'
  ctl status | finds 'pipe.nexusd-S-1-' || fail "the pipe is not named after its user: $(ctl status)"
  ctl tools | finds kind.add || fail 'nexusctl tools'
  checked 'nexusctl lists and calls over the pipe, which is named after its user'

  local said
  said=$(timeout 60 wine "$home/nexusd.exe" --config "$home/mcp.json" 2>&1 | tr -d '\r') || fail "a second daemon: $said"
  [[ $said = *'already running'* ]] || fail "a second daemon says: $said"
  checked 'a second daemon learns that one runs'
  left_out 'a second pipe of the same name, and pipes of other users: wine refuses neither'
}

a_server_dies() {
  local before
  before=$(pid_of kind)
  timeout 60 wine "$home/end.exe" "$before" 7 || fail "process $before cannot be ended"
  until_within 20 adds kind || fail 'a server that has died is not back'
  [ "$(pid_of kind)" != "$before" ] || fail 'the server has not died'
  ctl servers kind --json | finds '"restarts": *1' || fail "$(ctl servers kind)"
  ctl servers kind | finds 'exit code 7' || fail "how it ended is not told: $(ctl servers kind)"
  family_is_there
  checked 'a server that dies is back for the next call, its exit code is told, and its wrapper is gone'
}

stops() {
  ctl stop kind >/dev/null
  there_are 1 wrapped.cmd && there_are 2 demo-server || fail 'stop left processes of a kind server'
  checked 'stop: a wrapper and its server have ended'
  local before=$SECONDS
  ctl stop stubborn >/dev/null
  there_are 0 wrapped.cmd && there_are 0 demo-server || fail 'stop left processes of a stubborn server'
  checked "stop: a wrapper, a server that does not want to, and what it started have ended ($((SECONDS - before)) s)"
  ctl shutdown >/dev/null
  until_within 20 nothing_is_left || fail 'shutdown left processes'
  checked 'shutdown: the daemon has ended'
}

is_killed() {
  start_daemon
  kill -9 "$(processes 'nexusd.exe --config')"
  until_within 20 nothing_is_left || fail "a killed daemon left $(count .) processes"
  checked 'kill -9 of the daemon: its job objects have ended wrappers, servers and what they started'

  start_daemon
  timeout 60 wine taskkill /F /PID "$(ctl status --json | number pid)" >/dev/null
  until_within 20 nothing_is_left || fail "an ended daemon left $(count .) processes"
  checked 'taskkill /F of the daemon: the same'
}

# A terminal is a console here, and what is typed there are the console's events.
hears_its_console() {
  if ! command -v script >/dev/null; then
    left_out 'Ctrl-C: there is no program script to make a terminal'
    return
  fi
  mkfifo "$home/typed"
  # exec: a shell in between would end by the Ctrl-C itself.
  timeout 120 script -qec "exec wine '$home/nexusd.exe' --config '$home/mcp.json' --log-file '$home/console.log'" /dev/null \
    <"$home/typed" >/dev/null 2>&1 &
  local terminal=$!
  exec 8>"$home/typed"
  until_within 60 answers || fail 'the daemon does not answer in a terminal'
  family_is_there
  printf '\003' >&8
  until_within 30 nothing_is_left || fail 'Ctrl-C left processes'
  exec 8>&-
  wait "$terminal" || fail "Ctrl-C: exit code $?"
  grep -q 'INFO stopped$' "$home/console.log" || fail 'Ctrl-C was not a stop in order'
  checked 'Ctrl-C in a terminal: stopped in order, with all servers'
  left_out 'Ctrl-Break, close, logoff and shutdown: without a desktop wine sends none of them'
}

# Without any option, as a user has it.
has_its_folders() {
  local roaming local_ user
  user=$(basename "$(dirname "$(dirname "$(find "$drive/users" -maxdepth 3 -path '*/AppData/Roaming')")")")
  roaming="$drive/users/$user/AppData/Roaming/nexus"
  local_="$drive/users/$user/AppData/Local/nexus"
  mkdir -p "$roaming"
  printf '{ "mcpServers": { "mine": { "command": "%s", "args": ["demo-server"] } } }\n' \
    "Z:${home//\//\\\\}\\\\nexusd.exe" >"$roaming/mcp.json"
  wine "$home/nexusd.exe" >>"$home/nexusd.log" 2>&1 &
  disown
  until_within 60 adds mine || fail 'a server in %APPDATA%\nexus\mcp.json does not answer'
  known() { [ -n "$(find "$local_/lists" -type f 2>/dev/null)" ]; }
  until_within 10 known || fail 'no lists in %LOCALAPPDATA%\nexus'
  ctl shutdown >/dev/null
  until_within 20 nothing_is_left || fail 'shutdown left processes'
  checked 'configuration in %APPDATA%\nexus, lists and logs in %LOCALAPPDATA%\nexus'
}

is_a_users_service() {
  ctl service status | finds 'not installed' || fail "before: $(ctl service status)"
  [ -n "$(ctl service install)" ] || fail 'service install'
  ctl service status | finds '^nexusd runs, pid ' || fail "service status: $(ctl service status)"
  adds mine || fail 'installed, and does not answer'
  at_logon | finds 'nexusd.exe" keeper' || fail "the Run key: $(at_logon)"
  checked 'nexusctl service install: runs, and is named in the Run key of the user'

  local before
  before=$(ctl service status --json | number pid)
  timeout 60 wine "$home/end.exe" "$before" 1 || fail 'the daemon cannot be ended'
  until_within 20 adds mine || fail 'a daemon that has crashed is not back'
  [ "$(ctl service status --json | number pid)" != "$before" ] || fail 'the daemon has not died'
  grep -q 'it is started again' "$drive"/users/*/AppData/Local/nexus/logs/nexusd.log || fail 'the crash is not in the log'
  checked 'a daemon that crashes is started again, and its log says so'

  kill -9 "$(processes 'nexusd.exe keeper')"
  until_within 20 nothing_is_left || fail 'the end of the keeper left processes'
  checked 'what starts it again takes it along when it is killed'

  boot_again
  until_within 30 adds mine || fail 'not started at logon'
  ctl service stop | finds 'does not run' || fail "service stop: $(ctl service status)"
  until_within 20 nothing_is_left || fail 'service stop left processes'
  ctl service start | finds '^nexusd runs' || fail 'service start'
  checked 'started at logon; service stop and start'

  ctl service uninstall >/dev/null
  until_within 20 nothing_is_left || fail 'service uninstall left processes'
  ! at_logon || fail 'service uninstall left the Run key'
  checked 'service uninstall: no process and nothing in the Run key left'
}

is_a_systems_service() {
  local data="$drive/ProgramData/nexus" key='HKLM\System\CurrentControlSet\Services\nexusd' said
  boot_again
  at_service() { adds "$1" --socket nexusd-service; }
  registered() { timeout 60 wine reg query "$key" /v "$1" 2>/dev/null | tr -d '\r' | grep "$1"; }
  mkdir -p "$data"
  printf '{ "mcpServers": { "hosts": { "command": "%s", "args": ["demo-server", "--fault", "grandchild"] } } }\n' \
    "Z:${home//\//\\\\}\\\\nexusd.exe" >"$data/mcp.json"
  ctl service install --system | finds '^the service nexusd runs' || fail 'service install --system'
  until_within 20 at_service hosts || fail 'the service does not answer'
  registered ObjectName | finds -F 'NT SERVICE\nexusd' || fail "the account: $(registered ObjectName)"
  checked 'nexusctl service install --system: runs under the service manager, with an account of its own, and serves %ProgramData%\nexus'

  ctl service stop --system | finds 'does not run' || fail "service stop --system: $(ctl service status --system)"
  until_within 20 nothing_is_left || fail 'the stopped service left processes'
  grep -q 'INFO stopped$' "$data/logs/nexusd.log" || fail 'it was not stopped in order'
  ctl service start --system | finds 'nexusd runs, pid ' || fail 'service start --system'
  until_within 20 at_service hosts || fail 'the service does not answer again'
  checked 'service stop and start --system: stopped in order, with all servers, and logged'

  boot_again
  until_within 60 at_service hosts || fail 'the service does not start with the machine'
  checked 'the service starts with the machine'

  ctl service stop --system >/dev/null
  printf '{ "mcpServers": { "hosts": \n' >"$data/mcp.json"
  ! ctl service start --system >/dev/null || fail 'a bad configuration is accepted'
  said=$(ctl service status --system)
  [[ $said = *'exit code 78' ]] || fail "with a bad configuration: $said"
  grep -q '^error: ' "$data/logs/nexusd.log" || fail 'the error is not in the log'
  checked 'a bad configuration: exit code 78, told by the service manager, and the reason in the log'

  ctl service uninstall --system >/dev/null
  ctl service status --system | finds 'not installed' || fail "after uninstall: $(ctl service status --system)"
  ! registered ImagePath || fail 'service uninstall --system left the service'
  nothing_is_left || fail 'service uninstall --system left processes'
  checked 'service uninstall --system: no process and no service left'
  left_out 'the start after a crash, the delayed start and who may use the folders: wine accepts these words and does nothing'
}

toolchain
boot
if [ $# = 0 ]; then
  build
  unit_tests
  set -- "$built/nexusd.exe" "$built/nexusctl.exe"
fi
cp "$1" "$home/nexusd.exe"
cp "$2" "$home/nexusctl.exe"
configure
serves
a_server_dies
stops
is_killed
hears_its_console
has_its_folders
is_a_users_service
is_a_systems_service
