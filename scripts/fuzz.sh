#!/usr/bin/env bash
# Looks for bytes that break what `daemon/tests/properties` and `config/tests/it/property.rs` say, with coverage as
# the guide.
#
#   scripts/fuzz.sh [SECONDS [TARGET…]]      20 s each, all targets
#
# It is libFuzzer, built with the compiler that is there: what it needs is stable. `cargo +nightly fuzz run TARGET` in
# `fuzz/` works too, and has the address sanitizer.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

seconds=${1:-20}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- lines envelope connection config

if ! command -v c++ >/dev/null; then
  echo "skipped: fuzzing needs a C++ compiler (the same properties are in cargo test)"
  exit 0
fi

target=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
flags="--cfg fuzzing -Cpasses=sancov-module"
for flag in -sanitizer-coverage-level=4 -sanitizer-coverage-inline-8bit-counters \
  -sanitizer-coverage-pc-table -sanitizer-coverage-trace-compares; do
  flags+=" -Cllvm-args=$flag"
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086  # several flags
if ! rustc --crate-type=lib --emit=obj $flags -o "$log" - </dev/null 2>/dev/null; then
  echo "skipped: this compiler cannot measure coverage (the same properties are in cargo test)"
  exit 0
fi
# With a target named, build scripts and macros are built without these flags.
host=$(rustc -vV | sed -n 's/^host: //p')
CARGO_TARGET_DIR=$target RUSTFLAGS=$flags cargo build --quiet --release --target "$host"

# Long enough for lines of which only the ends are kept; else short ones, of which there are more in a second.
for name in "$@"; do
  [ "$name" = lines ] && length=16384 || length=2048
  mkdir -p "corpus/$name" "artifacts/$name"
  if ! "$target/$host/release/$name" "corpus/$name" "seeds/$name" -max_total_time="$seconds" -max_len="$length" \
    -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="artifacts/$name/" >"$log" 2>&1; then
    cat "$log"
    echo "FAILED: $name; the bytes are in fuzz/artifacts/$name"
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  echo "ok: $name: $runs inputs in $seconds s, $covered edges covered"
done
