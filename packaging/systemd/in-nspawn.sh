#!/usr/bin/env bash
# Boots a real systemd in a container, installs the Debian package and checks that it serves a user:
# started, called, killed, hung, reloaded, upgraded, removed. Prints a line for each thing proven.
#
#   in-nspawn.sh NEXUS.DEB [NEXUS.RPM]      the rpm is installed, used and removed after that
#
# Needs root, apt, mmdebstrap and systemd-nspawn (the last two are installed if they can be); without
# them it says so and ends well. The system that is booted is kept as an archive in
# ${XDG_CACHE_HOME:-~/.cache}/nexus-ci, made of the package sources of this machine; each run unpacks
# it anew and leaves nothing else behind. The container has no network.
set -eEuo pipefail
umask 022
export LC_ALL=C

if [ $# = 0 ] || [ $# -gt 2 ] || [ ! -f "$1" ] || [ ! -f "${2:-$1}" ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
deb=$(realpath "$1")
rpm=${2:+$(realpath "$2")}
servers=$(cd "$(dirname "$0")" && pwd)/servers

# The last three are for servers that are written for them, and for the other kind of package.
packages=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,procps,nodejs,python3,rpm
user=someone
uid=1234

home=$(mktemp -d /tmp/nexus-nspawn-XXXXXXXX)
machine=$(basename "$home")
root="$home/root"
nspawn=
init=
told=
skipped=
at=

finish() {
  code=$?
  trap - EXIT ERR
  [ "$code" = 0 ] || [ -n "$told" ] || printf 'FAILED: %s\n' "$at" >&2
  if [ "$code" != 0 ] && [ -n "$init" ]; then
    inside journalctl --no-pager --no-hostname -b -n 150 2>&1 | sed 's/^/  journal: /' >&2 || true
  fi
  power_off || [ -n "$skipped" ] || code=1
  until_within 5 remove_groups || true
  # Where /run is no tmpfs, nspawn does not dare to remove this.
  rmdir "/run/systemd/nspawn/propagate/$machine" 2>/dev/null || true
  rm -rf --one-file-system "$home"
  exit "$code"
}
trap finish EXIT
trap 'at="line $LINENO: $BASH_COMMAND"' ERR
trap 'at=interrupted; exit 130' INT TERM

skip() { skipped=yes; printf 'skipped: %s\n' "$*"; exit 0; }
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

# ---- the container

tools() {
  local tool
  for tool in mmdebstrap systemd-nspawn nsenter dpkg-deb; do
    command -v "$tool" >/dev/null || return 1
  done
}

# The archive to boot from: made once for a release and its sources.
archive() {
  local cache=${XDG_CACHE_HOME:-$HOME/.cache}/nexus-ci sources=() file suite
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ ! -s "$file" ] || sources+=("$file")
  done
  [ -n "$suite" ] && [ "${#sources[@]}" != 0 ] || return 1
  local key
  key=$({ printf '%s\n' "$suite" "$packages"; cat "${sources[@]}"; } | sha256sum | cut -c1-12)
  local made="$cache/systemd-$suite-$key.tar"
  if [ ! -s "$made" ]; then
    mkdir -p "$cache"
    # Those that nobody has made use of for a while.
    find "$cache" -maxdepth 1 -name 'systemd-*.tar' -mtime +14 -delete
    timeout 400 mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
      "$suite" "$home/root.tar" "${sources[@]}" >"$home/mmdebstrap.log" 2>&1 || return 1
    # Two runs may do this at once: whole or not at all.
    mv "$home/root.tar" "$made.$$"
    mv "$made.$$" "$made"
  fi
  printf '%s\n' "$made"
}

inside() { timeout --foreground "${limit:-60}" nsenter -t "$init" -m -u -i -n -p -C -- "$@"; }
as_user() {
  inside setpriv --reuid "$uid" --regid "$uid" --init-groups --reset-env -- \
    env "XDG_RUNTIME_DIR=/run/user/$uid" LANG=C.UTF-8 "$@"
}
ctl() { as_user nexusctl --timeout 30s "$@"; }
service() { as_user systemctl --user --no-pager "$@"; }
property() { service show nexusd.service -P "$1"; }

runs() { kill -0 "$nspawn" 2>/dev/null; }
booted() {
  runs || return 0
  local outer
  outer=$(pgrep -P "$nspawn" || true)
  init=$([ -z "$outer" ] || pgrep -P "$outer" | head -1)
  [ -n "$init" ] && limit=10 inside systemctl is-system-running 2>/dev/null | finds -E 'running|degraded'
}

# Of each hierarchy that systemd uses: the second version, and in front of it the first.
groups_of_ours() {
  awk -v name="$machine" '$3 == "cgroup2" || ($3 == "cgroup" && $4 ~ /name=systemd/) { print $2 "/" name }' /proc/mounts
}
remove_groups() {
  local group
  for group in $(groups_of_ours); do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || return 1
  done
}

boot() {
  mkdir "$root"
  tar -C "$root" --numeric-owner -xf "$1"
  (
    # Where no systemd gives it a cgroup it gets one of its own, so that two runs do not share one.
    keep=()
    if [ ! -d /run/systemd/system ]; then
      keep=(--keep-unit)
      for group in $(groups_of_ours); do
        mkdir "$group" && echo "$BASHPID" >"$group/cgroup.procs"
      done
    fi
    export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
    exec timeout -k 20 900 systemd-nspawn -D "$root" --machine="$machine" "${keep[@]}" \
      --hostname=nexus --register=no --private-network --console=read-only -b
  ) </dev/null >"$home/console.log" 2>&1 &
  nspawn=$!
  # Nothing of ours is in it yet: where it does not boot, that is the machine's doing.
  until_within 60 booted || skip "systemd does not boot in a container here: $(tail -1 "$home/console.log")"
  if ! runs; then
    init=
    skip "systemd-nspawn cannot be used here: $(tail -1 "$home/console.log")"
  fi
}

power_off() {
  [ -n "$nspawn" ] && runs || return 0
  [ -z "$init" ] || limit=10 inside systemctl --no-block poweroff >/dev/null 2>&1 || true
  # One that never booted has nobody to wait for.
  if [ -n "$skipped" ] || ! until_within 40 ended; then
    [ -n "$skipped" ] || printf 'the container does not power off; it is ended\n' >&2
    # nspawn gets it from its timeout, and the container ends with nspawn.
    kill -TERM "$nspawn" 2>/dev/null || true
    until_within 30 ended || true
    return 1
  fi
}
ended() { ! runs; }

# ---- what is looked at

processes() { inside ps -u "$user" -o pid=,comm= | awk '$2 !~ /^(systemd|\(sd-pam\)|dbus-daemon|ps|nexusctl)$/ { print $1 }'; }
none_of() {
  local pid
  for pid in "$@"; do
    [ ! -d "/proc/$init/root/proc/$pid" ] || return 1
  done
}
nothing_runs() { [ -z "$(processes)" ]; }
adds() { [ "$(ctl call "$1.add" --arg a=2 --arg b=3 2>/dev/null)" = 5 ]; }
serve() { adds "$1" && adds "$2"; }
is() { [ "$(property ActiveState)" = "$1" ]; }
other_process() {
  local now
  now=$(property MainPID)
  [ "$now" != "$1" ] && [ "$now" != 0 ] && is active
}
held() { inside test -e "$1"; }
packaged() { inside dpkg -L nexus | finds "$1"; }

# What the user configures, and a drop-in for the unit; both from standard input.
configure() { inside sh -c "cat >/home/$user/.config/nexus/mcp.json"; }
override() {
  inside sh -c "mkdir -p /run/systemd/user/nexusd.service.d && cat >/run/systemd/user/nexusd.service.d/test.conf"
  service daemon-reload
}
# servers [MORE]: the demo, and one more.
servers() {
  printf '{ "mcpServers": {\n  "demo": { "command": "nexusd", "args": ["demo-server"] }'
  [ $# = 0 ] || printf ',\n  %s' "$1"
  printf '\n} }\n'
}

# ---- the proofs

installed() {
  cp "$deb" "$root/opt/nexus.deb"
  inside dpkg -i /opt/nexus.deb >"$home/dpkg.log" 2>&1 || fail "dpkg -i: $(cat "$home/dpkg.log")"
  inside useradd --create-home --uid "$uid" --shell /bin/bash "$user"
  inside install -d -o "$user" -g "$user" "/home/$user/.config" "/home/$user/.config/nexus"
  inside loginctl enable-linger "$user"
  until_within 20 held "/run/user/$uid/bus" || fail 'no systemd runs for the user'
  is inactive || fail "after the installation nexusd is $(property ActiveState)"
  nothing_runs || fail 'the installation starts processes'
  checked 'installed: nothing runs until a user asks for it'
}

units_are_good() {
  local found said
  found=$(inside dpkg -L nexus | grep -E '/systemd/user/.*\.(service|socket)$')
  # shellcheck disable=SC2086
  said=$(as_user systemd-analyze --user verify --man=no --recursive-errors=no $found 2>&1) || said+=' (failed)'
  [ -z "$said" ] || fail "systemd-analyze --user verify: $said"
  local all=$found
  if found=$(inside dpkg -L nexus | grep -E '/systemd/system/.*\.(service|socket)$'); then
    # shellcheck disable=SC2086
    said=$(inside systemd-analyze verify --man=no --recursive-errors=no $found 2>&1) || said+=' (failed)'
    [ -z "$said" ] || fail "systemd-analyze verify: $said"
    all+=" $found"
  fi
  # shellcheck disable=SC2086
  checked "systemd-analyze verify finds nothing in $(basename -a $all | paste -sd ' ')"

  local strict template
  strict=$(inside dpkg -L nexus | grep '/strict\.conf$' || true)
  template=$(inside dpkg -L nexus | grep '/systemd/system/nexusd@\.service$' || true)
  if [ -z "$strict" ] || [ -z "$template" ]; then
    printf 'skipped: the strict variant (not in the package)\n'
    return
  fi
  inside sh -c "mkdir /run/strict && cat $template $strict >/run/strict/nexusd@strict.service"
  said=$(inside systemd-analyze security --no-pager --offline=yes --threshold=30 /run/strict/nexusd@strict.service 2>&1) ||
    fail "systemd-analyze security: $said"
  checked "strict: $(printf '%s\n' "$said" | tail -1 | sed 's/^[^A-Za-z]*//')"
}

starts() {
  service enable --quiet --now nexusd || fail 'systemctl --user enable --now nexusd'
  is active || fail "nexusd is $(property ActiveState)"
  [ "$(property Type)" = notify ] || [ "$(property Type)" = notify-reload ] || fail "Type=$(property Type)"
  status_is_told() { [ -n "$(property StatusText)" ]; }
  until_within 10 status_is_told || fail 'no STATUS'
  checked "systemctl --user enable --now nexusd: active, Type=$(property Type), \"$(property StatusText)\""

  ctl status >"$home/status" || fail 'nexusctl status'
  grep -q "$(property MainPID)" "$home/status" || fail "nexusctl status does not name the process: $(cat "$home/status")"
  until_within 10 adds demo || fail 'demo.add does not answer 5'
  checked 'nexusctl status and call demo.add, as the user'
}

has_a_family() {
  # One that does not want to end, with a process of its own.
  servers '"family": { "command": "nexusd", "args": ["demo-server", "--fault", "ignore-term", "--fault", "grandchild"] }' | configure
  until_within 20 serve demo family || fail 'the two servers do not answer 5'
}

survives_kill() {
  local before main
  main=$(property MainPID)
  # shellcheck disable=SC2207
  before=($(processes))
  # The daemon, its guardian, two servers, and what one of them started.
  [ "${#before[@]}" -ge 5 ] || fail "only ${#before[@]} processes run"
  inside kill -9 "$main"
  until_within 20 other_process "$main" || fail 'not started again after kill -9'
  until_within 10 none_of "${before[@]}" || fail 'kill -9 left processes'
  [ "$(property NRestarts)" = 1 ] || fail "NRestarts=$(property NRestarts)"
  until_within 10 serve demo family || fail 'no calls after kill -9'
  checked "kill -9: started again by systemd, none of its ${#before[@]} processes left, calls are answered"
}

survives_a_hang() {
  local shipped before main began
  shipped=$(property WatchdogUSec)
  case $shipped in '' | 0 | infinity) fail 'the unit has no watchdog' ;; esac
  # The same with less waiting.
  printf '[Service]\nWatchdogSec=3\n' | override
  service restart nexusd
  until_within 10 adds family || fail 'no calls after a restart'
  main=$(property MainPID)
  # shellcheck disable=SC2207
  before=($(processes))
  sleep 4
  [ "$(property MainPID)" = "$main" ] || fail 'a healthy daemon missed its watchdog'
  began=$SECONDS
  inside kill -STOP "$main"
  until_within 40 other_process "$main" || fail 'a stopped daemon is not ended by the watchdog'
  inside journalctl -b --no-pager | finds 'nexusd.service: Watchdog timeout' || fail 'it was not the watchdog'
  until_within 10 none_of "${before[@]}" || fail 'the watchdog left processes'
  until_within 10 serve demo family || fail 'no calls after the watchdog'
  checked "SIGSTOP: ended by the watchdog and started again after $((SECONDS - began)) s (limit 3 s; $shipped as shipped)"
}

reloads() {
  servers | configure
  # What the daemon would see by itself it is not to see here.
  printf '[Service]\nExecStart=\nExecStart=nexusd --no-watch\n' | override
  service restart nexusd
  until_within 10 adds demo || fail 'no calls after a restart'
  local main
  main=$(property MainPID)
  servers '"added": { "command": "nexusd", "args": ["demo-server"] }' | configure
  sleep 1
  ! adds added || fail 'the file is read without being asked'
  service reload nexusd || fail 'systemctl --user reload nexusd'
  until_within 10 adds added || fail 'a server that came with the reload does not answer'
  [ "$(property MainPID)" = "$main" ] || fail 'the reload was a restart'
  checked 'systemctl --user reload nexusd: the configuration is read, the daemon stays'
  inside rm -r /run/systemd/user/nexusd.service.d
  service daemon-reload
  servers | configure
  service restart nexusd
}

is_started_by_its_socket() {
  if ! packaged '/systemd/user/nexusd\.socket$'; then
    printf 'skipped: socket activation (no nexusd.socket in the package)\n'
    return
  fi
  service stop nexusd.service || fail 'systemctl --user stop nexusd'
  service start nexusd.socket || fail 'systemctl --user start nexusd.socket'
  is inactive || fail "beside its socket nexusd is $(property ActiveState)"
  nothing_runs || fail 'the socket alone has processes'
  ctl tools >"$home/tools" || fail 'nexusctl tools at the socket'
  grep -q demo.add "$home/tools" || fail "no demo.add in $(cat "$home/tools")"
  is active || fail 'nexusctl tools did not start nexusd'
  checked 'nexusd.socket: nexusctl tools starts nexusd and is answered'

  local main
  main=$(property MainPID)
  inside kill -9 "$main"
  until_within 20 adds demo || fail 'no calls after kill -9 behind the socket'
  service stop nexusd.service 2>/dev/null
  until_within 20 adds demo || fail 'a stopped daemon is not started by the next call'
  checked 'nexusd.socket: after kill -9 and after a stop the next call is answered'
  service stop nexusd.socket nexusd.service
  until_within 20 nothing_runs || fail 'stopping socket and service left processes'
  service start nexusd.service || fail 'nexusd does not start without its socket'
  until_within 10 adds demo || fail 'no calls without the socket'
}

serves_a_host() {
  if ! packaged '/systemd/system/nexusd@\.service$'; then
    printf 'skipped: the template for hosts (no nexusd@.service in the package)\n'
    return
  fi
  local unit="nexusd@$user.service" socket="/run/nexus-$user/nexusd.sock" strict
  at_host() { [ "$(ctl --socket "$socket" call demo.add --arg a=2 --arg b=3 2>"$home/error")" = 5 ]; }
  service stop nexusd.service
  inside systemctl start "$unit" || fail "systemctl start $unit"
  until_within 10 at_host || fail "no calls at $socket: $(cat "$home/error")"
  checked "systemctl start $unit: serves at $socket"

  if packaged '/systemd/system/nexusd@\.socket$'; then
    inside systemctl stop "$unit"
    inside systemctl start "nexusd@$user.socket" || fail "systemctl start nexusd@$user.socket"
    until_within 20 at_host || fail "no calls at the socket of the host: $(cat "$home/error")"
    inside systemctl --quiet is-active "$unit" || fail 'the call did not start the daemon'
    checked "nexusd@$user.socket: a call starts $unit and is answered"
    inside systemctl stop "nexusd@$user.socket" "$unit"
  fi

  strict=$(inside dpkg -L nexus | grep '/strict\.conf$' || true)
  if [ -n "$strict" ]; then
    inside install -D -m 644 "$strict" "/run/systemd/system/nexusd@.service.d/strict.conf"
    inside systemctl daemon-reload
    inside systemctl stop "$unit"
    inside rm -rf "/home/$user/.local/state/nexus"
    inside systemctl start "$unit" || fail "systemctl start $unit, strict"
    [ "$(inside systemctl show "$unit" -P ProtectSystem)" = strict ] || fail 'strict.conf is not used'
    until_within 10 at_host || fail "no calls at the strict variant: $(cat "$home/error")"
    known() { [ -n "$(inside find "/home/$user/.local/state/nexus/lists" -type f 2>/dev/null)" ]; }
    until_within 10 known || fail "the strict variant cannot write to the user's state"
    checked "$unit with strict.conf: serves, and keeps what it knows in the user's home"

    # All that servers inherit, they have to live with.
    install -m 644 "$servers/add.js" "$servers/add.py" "$root/opt/"
    servers '"js": { "command": "node", "args": ["/opt/add.js"] }, "py": { "command": "python3", "args": ["/opt/add.py"] }' | configure
    at_server() { [ "$(ctl --socket "$socket" call "$1.add" --arg a=2 --arg b=3 2>"$home/error")" = 5 ]; }
    until_within 20 at_server js || fail "no calls to a server in Node at the strict variant: $(cat "$home/error")"
    until_within 20 at_server py || fail "no calls to a server in Python at the strict variant: $(cat "$home/error")"
    checked "$unit with strict.conf: servers in Node $(inside node --version) and $(inside python3 --version) are answered"
    servers | configure
    inside rm -r "/run/systemd/system/nexusd@.service.d"
    inside systemctl daemon-reload
  fi
  inside systemctl stop "$unit"
  until_within 20 nothing_runs || fail "stopping $unit left processes"
  service start nexusd.service
}

refuses_a_bad_configuration() {
  service stop nexusd
  until_within 10 nothing_runs || fail 'stop left processes'
  printf '{ "mcpServers": { "demo": \n' | configure
  ! service start nexusd 2>/dev/null || fail 'a bad configuration is accepted'
  # Longer than the pause before a restart.
  sleep 2
  is failed || fail "with a bad configuration nexusd is $(property ActiveState)"
  [ "$(property ExecMainStatus)" = 78 ] || fail "exit code $(property ExecMainStatus)"
  [ "$(property NRestarts)" = 0 ] || fail "started again $(property NRestarts) times"
  checked 'a bad configuration: exit code 78, not started again'
  servers | configure
  service start nexusd || fail 'nexusd does not start with a good configuration'
  until_within 10 adds demo || fail 'no calls with a good configuration'
}

is_upgraded() {
  local main call began
  dpkg-deb -R "$deb" "$home/next"
  sed -i 's/^Version: .*/&+next/' "$home/next/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone -b "$home/next" "$root/opt/next.deb" >/dev/null

  main=$(property MainPID)
  began=$SECONDS
  (ctl call demo.slow_operation --arg duration=6) >"$home/slow" 2>&1 &
  call=$!
  busy() { ctl servers demo --json | finds '"in_flight": *1'; }
  until_within 5 busy || fail "no call is under way: $(cat "$home/slow")"
  inside dpkg -i /opt/next.deb >"$home/dpkg.log" 2>&1 || fail "dpkg -i: $(cat "$home/dpkg.log")"
  busy || fail "the call is not under way any more after $((SECONDS - began)) s: $(cat "$home/slow")"
  inside readlink "/proc/$main/exe" | finds deleted || fail 'the binary was not replaced'
  wait "$call" || fail "the call that was under way: $(cat "$home/slow")"
  is active || fail "after the upgrade nexusd is $(property ActiveState)"
  [ "$(property MainPID)" = "$main" ] || fail 'the upgrade ended the daemon'
  adds demo || fail 'no calls after the upgrade'
  checked 'upgrade: a call that was under way ends well, the daemon serves on'

  inside kill -9 "$(ctl servers demo --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)"
  until_within 10 adds demo || fail 'a server is not back after the upgrade'
  checked 'upgrade: a server that dies afterwards is back'
  service restart nexusd || fail 'restart after the upgrade'
  until_within 10 adds demo || fail 'no calls after the restart'
  ! inside readlink "/proc/$(property MainPID)/exe" | finds deleted || fail 'the old binary was started'
  checked 'upgrade: after systemctl --user restart nexusd the new binary serves'
}

comes_back_with_the_user() {
  inside systemctl restart "user@$uid.service"
  until_within 20 held "/run/user/$uid/bus" || fail 'no systemd runs for the user'
  until_within 20 adds demo || fail 'an enabled nexusd does not start with its user'
  checked 'enabled: starts with its user'
}

# nexusctl does all of it, with the package's units and with a binary that lies elsewhere.
is_managed_by_nexusctl() {
  local units="/home/$user/.config/systemd/user"
  ctl -q service uninstall >/dev/null || fail 'service uninstall'
  is inactive || fail "after service uninstall it is $(property ActiveState)"
  ! held "$units/nexusd.service.d" || fail 'service uninstall left its drop-in'
  ctl -q service install >/dev/null || fail 'service install'
  ctl service status | finds ' runs, pid ' || fail "service status: $(ctl service status)"
  until_within 10 adds demo || fail 'installed, and does not answer'
  held "$units/nexusd.service.d/path.conf" || fail 'the search path was not written'
  ctl -q service stop >/dev/null || fail 'service stop'
  is inactive || fail 'service stop did not stop it'
  ctl -q service start >/dev/null || fail 'service start'
  is active || fail 'service start did not start it'
  ctl -q service uninstall >/dev/null || fail 'service uninstall'
  inside install -D /usr/bin/nexusd "/home/$user/my tools/nexusd"
  ctl -q service install --nexusd "/home/$user/my tools/nexusd" >/dev/null || fail 'service install of another binary'
  [ "$(inside readlink "/proc/$(property MainPID)/exe")" = "/home/$user/my tools/nexusd" ] || fail 'another binary runs'
  ctl -q service uninstall >/dev/null || fail 'service uninstall'
  [ -z "$(inside find "$units" -name '*nexusd*' 2>/dev/null)" ] || fail 'service uninstall left units'
  inside rm -r "/home/$user/my tools"
  checked 'nexusctl service install, status, stop, start, uninstall: with the units of the package, and its own'
}

is_removed() {
  local list
  list=$(inside dpkg -L nexus)
  [ "$(printf '%s\n' "$list" | wc -l)" -gt 20 ] || fail "the package has few files: $list"
  # All that can run at once.
  if packaged '/systemd/user/nexusd\.socket$'; then
    service stop nexusd.service
    service start nexusd.socket nexusd.service
  fi
  ! packaged '/systemd/system/nexusd@\.service$' || inside systemctl start "nexusd@$user.service"
  inside dpkg -P nexus >"$home/dpkg.log" 2>&1 || fail "dpkg -P: $(cat "$home/dpkg.log")"
  ! grep -i warning "$home/dpkg.log" || fail 'dpkg -P warns'
  until_within 10 nothing_runs || fail "removal left processes: $(inside ps -u "$user" -o args)"
  # A folder may stay if another package has it, too.
  printf '%s\n' "$list" | grep -vx '/\.' >"$root/opt/list"
  # shellcheck disable=SC2016
  inside bash -c 'while read -r path; do
      if [ -d "$path" ]; then dpkg -S "$path" >/dev/null 2>&1 || echo "$path"
      elif [ -e "$path" ] || [ -L "$path" ]; then echo "$path"; fi
    done </opt/list' >"$home/left"
  [ ! -s "$home/left" ] || fail "removal left $(cat "$home/left")"
  ! inside dpkg -s nexus >/dev/null 2>&1 || fail 'dpkg still knows the package'
  inside sh -c '! find / -xdev -name "*nexusd*" -path "*systemd*" ! -path "/home/*" | grep .' || fail 'units are left'
  checked "dpkg -P: no process and none of $(printf '%s\n' "$list" | wc -l) paths left"
}

# The same with the rpm. Its dependencies are Debian's here, which rpm knows nothing of.
is_an_rpm() {
  if [ -z "$rpm" ]; then
    printf 'skip: the rpm (none was given)\n'
    return
  fi
  cp "$rpm" "$root/opt/nexus.rpm"
  local list
  inside rpm --force-debian --nodeps -i /opt/nexus.rpm >"$home/rpm.log" 2>&1 || fail "rpm -i: $(cat "$home/rpm.log")"
  list=$(inside rpm -ql nexus)
  [ "$(printf '%s\n' "$list" | wc -l)" -gt 20 ] || fail "the rpm has few files: $list"
  is inactive || fail "after rpm -i nexusd is $(property ActiveState)"
  service daemon-reload
  service enable --quiet --now nexusd.socket nexusd.service || fail 'systemctl --user enable --now nexusd'
  until_within 10 adds demo || fail 'no calls with the rpm'
  inside systemctl start "nexusd@$user.service" || fail "systemctl start nexusd@$user.service"
  inside rpm --force-debian -e nexus >"$home/rpm.log" 2>&1 || fail "rpm -e: $(cat "$home/rpm.log")"
  [ ! -s "$home/rpm.log" ] || fail "rpm -e says: $(cat "$home/rpm.log")"
  until_within 10 nothing_runs || fail "rpm -e left processes: $(inside ps -u "$user" -o args)"
  local path
  for path in $list; do
    ! held "$path" || inside dpkg -S "$path" >/dev/null 2>&1 || fail "rpm -e left $path"
  done
  checked "rpm -i and -e: serves, and no process and none of $(printf '%s\n' "$list" | wc -l) paths left"
}

[ "$(id -u)" = 0 ] || skip 'booting a container needs root'
command -v apt-get >/dev/null || skip 'this machine has no apt'
tools || {
  { timeout 120 apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 300 \
    apt-get install -y -qq --no-install-recommends mmdebstrap systemd-container; } >"$home/apt.log" 2>&1 || true
  tools || skip "mmdebstrap and systemd-container cannot be installed: $(tail -1 "$home/apt.log")"
}
from=$(archive) || skip "a system to boot cannot be made: $(tail -1 "$home/mmdebstrap.log" 2>/dev/null)"
boot "$from"
installed
units_are_good
starts
has_a_family
survives_kill
survives_a_hang
reloads
is_started_by_its_socket
serves_a_host
refuses_a_bad_configuration
is_upgraded
comes_back_with_the_user
is_managed_by_nexusctl
is_removed
is_an_rpm
power_off || fail 'the container does not power off'
