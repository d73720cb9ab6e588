#!/usr/bin/env bash
# Makes what it takes to build for Windows and to run the result here, and prints the folder that it is in:
# a file `env` to be sourced, Rust's std for Windows, and a DLL that older wines lack.
#
#   toolchain.sh
#
# The compilers and wine are Debian's; where they are missing and apt can install them, it does. All else is
# made once and kept in ${XDG_CACHE_HOME:-~/.cache}/nexus-ci. Ends with 3, and says why, where it cannot be
# made: without root, without apt, or without anything to download from.
set -euo pipefail
umask 022
export LC_ALL=C

target=x86_64-pc-windows-gnu
packages=(gcc-mingw-w64-x86-64 wine wine64)
# Newer systems have a Rust that is new enough; an older one has it under another name.
rusts=('rustc cargo rust-src' 'rustc-web cargo-web rust-web-src')

cannot() { printf '%s\n' "$*" >&2; exit 3; }

log=$(mktemp /tmp/nexus-toolchain-XXXXXXXX)
trap 'rm -f "$log"' EXIT
last() { tail -1 "$log" | cut -c1-200; }

# ---- compilers and wine

# Before all others: a rustup has no std for Windows that fits.
export PATH="/usr/bin:$PATH"
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../../Cargo.toml")
sources() { printf '%s/lib/rustlib/src/rust/library' "$(/usr/bin/rustc --print sysroot)"; }
rust_is_there() {
  [ -x /usr/bin/rustc ] && [ -x /usr/bin/cargo ] && [ -d "$(sources)" ] &&
    printf '%s\n' "$wanted" "$(/usr/bin/rustc --version | cut -d' ' -f2)" | sort -VC
}
all_is_there() {
  rust_is_there && command -v x86_64-w64-mingw32-gcc >/dev/null && command -v wine >/dev/null && command -v wineboot >/dev/null
}
apt() {
  DEBIAN_FRONTEND=noninteractive timeout "$1" apt-get -qq -o Acquire::http::Timeout=20 -o Acquire::Retries=1 \
    -o DPkg::Lock::Timeout=60 "${@:2}" >>"$log" 2>&1
}
new_enough() {
  local version
  version=$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p')
  [ -n "$version" ] && printf '%s\n' "$wanted" "$version" | sort -VC
}
if ! all_is_there; then
  command -v apt-get >/dev/null || cannot 'the compilers for Windows are missing, and there is no apt to install them'
  [ "$(id -u)" = 0 ] || cannot 'the compilers for Windows are missing, and installing them needs root'
  apt 120 update || cannot "apt cannot read its lists: $(last)"
  if ! rust_is_there; then
    for rust in "${rusts[@]}"; do
      if new_enough "${rust%% *}"; then
        # shellcheck disable=SC2206
        packages+=($rust)
        break
      fi
    done
  fi
  apt 600 install -y --no-install-recommends "${packages[@]}" || cannot "apt cannot install ${packages[*]}: $(last)"
  all_is_there || cannot "apt has no Rust $wanted or newer, or no wine"
fi

# ---- std, and the DLL

key=$({ /usr/bin/rustc --version; x86_64-w64-mingw32-gcc --version | head -1; } | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nexus-ci
folder="$cache/windows-$key"
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9
# Those of earlier compilers.
find "$cache" -mindepth 1 -maxdepth 1 -name 'windows-*' ! -name "windows-$key" -exec rm -rf {} +

if [ ! -d "$folder/sysroot" ]; then
  work="$folder/std"
  rm -rf "$work"
  mkdir -p "$work/src"
  printf '[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2024"\n' >"$work/Cargo.toml"
  printf '#![no_std]\n' >"$work/src/lib.rs"
  (cd "$work" && RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$work/target" timeout 600 /usr/bin/cargo build -q --release \
    -Zbuild-std=std,panic_abort,test,proc_macro --target "$target") >>"$log" 2>&1 || cannot "std cannot be built: $(last)"
  lib="$work/sysroot/lib/rustlib/$target/lib"
  mkdir -p "$lib"
  cp "$work/target/$target/release/deps/"*.rlib "$lib/"
  rm -f "$lib"/libempty-*.rlib
  # Whole or not at all.
  mv "$work/sysroot" "$folder/sysroot"
  rm -rf "$work"
fi

if [ ! -e "$folder/bcryptprimitives.dll" ]; then
  # Rust's std takes its random numbers from there; wine has it from version 9 on.
  cat >"$folder/random.c" <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length) { return SystemFunction036(data, length); }
C
  x86_64-w64-mingw32-gcc -shared -o "$folder/draft.dll" "$folder/random.c" -ladvapi32
  mv "$folder/draft.dll" "$folder/bcryptprimitives.dll"
fi

# What is built of many versions of the tree adds up.
[ ! -d "$folder/target" ] || [ "$(du -sm "$folder/target" | cut -f1)" -lt 6000 ] || rm -rf "$folder/target"

cat >"$folder/env" <<ENV
export PATH="/usr/bin:\$PATH"
export CARGO_TARGET_DIR="$folder/target"
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUSTFLAGS="--sysroot=$folder/sysroot"
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=wine
# Nobody debugs these: they link in a fraction of the time.
export CARGO_PROFILE_DEV_DEBUG=none CARGO_INCREMENTAL=0
unset RUSTUP_TOOLCHAIN RUSTC RUSTFLAGS CARGO_BUILD_TARGET
ENV
printf '%s\n' "$folder"
