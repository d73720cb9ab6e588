#!/usr/bin/env bash
# The daemon's tests, with every test server pinned to one era or revision at a time. One line for each.
#
#   scripts/eras.sh                          all of them
#   scripts/eras.sh legacy 2024-11-05        these
#   ERAS_TESTS="calls faults" scripts/eras.sh legacy     only tests whose names have one of these in them
set -uo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- dual legacy modern 2024-11-05 2025-03-26 2025-06-18 2025-11-25
# The examples too: they are servers to test against.
cargo build --quiet --locked -p nexusd --examples || exit 1
cargo test --quiet --locked -p nexusd --test it --no-run || exit 1

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
for era in "$@"; do
  started=$SECONDS
  # shellcheck disable=SC2086  # several names
  if NEXUS_TEST_ERA=$era cargo test --quiet --locked -p nexusd --test it -- ${ERAS_TESTS:-} >"$log" 2>&1; then
    printf 'ok: %s: %s tests in %s s\n' "$era" "$(sed -n 's/.*ok\. \([0-9]*\) passed.*/\1/p' "$log")" "$((SECONDS - started))"
  else
    printf 'FAILED: %s, after %s s\n' "$era" "$((SECONDS - started))"
    cat "$log"
    failed=1
  fi
done
exit "$failed"
