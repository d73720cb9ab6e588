//! What a call through the daemon costs, beside the floors that nothing could get under.
//!
//! `cargo bench -p nexusd --bench call` starts the real binaries and prints, from one run: a bare
//! byte relay on a Unix socket in front of the same server, bare tonic on a Unix socket, and the
//! daemon through each of its doors; then the same server over HTTP: called directly, through a bare
//! bridge that posts what comes over a Unix socket, and through the daemon. Rounds alternate between
//! them, and medians of the rounds are printed: on a shared machine only ratios of one run mean
//! something. `-- --only TEXT` measures only what has that text in its name, `-- --quick` three rounds
//! instead of nine, `-- --anywhere` leaves it to the system on which core one call runs.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]
#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod cores;
#[cfg(target_os = "linux")]
mod floors;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod peers;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    match args[..] {
        // The floors are processes of their own, as the daemon is.
        ["relay", socket] => floors::relay(socket),
        ["copier", socket] => floors::copier(socket),
        ["tonic", socket] => floors::tonic(socket),
        ["bridge", socket, url] => floors::bridge(socket, url),
        // `cargo bench` passes `--bench`; `cargo test --benches` does not, and wants no figures.
        _ if args.contains(&"--bench") => {
            let quick = args.contains(&"--quick");
            let only = args.windows(2).filter(|two| two[0] == "--only");
            let only: Vec<&str> = only.map(|two| two[1]).collect();
            let cores = cores::Cores::new(args.contains(&"--anywhere"));
            measure::run(if quick { 3 } else { 9 }, &only, &cores);
        }
        _ => {}
    }
}
