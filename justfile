# What CI does, one piece at a time. `just` lists them.

_default:
    @just --list

# everything that CI does
ci:
    bash .ci/run

# run the daemon
run *args:
    cargo run --release --bin nexusd -- {{args}}

# all tests
test *args:
    cargo test --workspace {{args}}

# the daemon's tests against servers of each era and revision; `just eras modern` for one
eras *args:
    bash scripts/eras.sh {{args}}

# the servers that people use, from npm and PyPI
real-servers:
    bash scripts/real-servers.sh

# the conformance suite of MCP, directly and through the daemon; `just conformance 2026-07-28`
conformance *args:
    bash scripts/conformance.sh {{args}}

# the Inspector, fastmcp and Claude Code as clients; `just clients fastmcp`
clients *args:
    bash scripts/clients.sh {{args}}

# look for bytes that break the daemon's promises; `just fuzz 600 connection`
fuzz *args:
    bash scripts/fuzz.sh {{args}}

# formatting and lints
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# the documentation, without warnings
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# what a call costs, beside its floors
bench:
    cargo bench -p nexusd --bench call

# what a hundred servers cost, and one that keeps ending
scale:
    cargo bench -p nexusd --bench scale

# everything goes wrong at once, for minutes; `just chaos --seed N --only kill-daemon`
chaos *args:
    cargo test -p nexusd --release --test chaos -- --long {{args}}

# installed and run for real: systemd in a container, Windows under wine (root, on Debian)
platforms:
    packaging/build-deb.sh
    packaging/build-rpm.sh
    packaging/systemd/in-nspawn.sh target/package/nexus_*.deb target/package/nexus-*.rpm
    packaging/windows/under-wine.sh

# licences, advisories, duplicates (needs cargo-deny)
deny:
    cargo deny check
