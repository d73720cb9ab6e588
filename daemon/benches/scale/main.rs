//! What a hundred servers cost, and what one that keeps ending costs the others.
//!
//! `cargo bench -p nexusd --bench scale` starts real daemons with real servers and prints figures beside
//! what they are meant to stay below. Each is the median of several runs, or a whole distribution. A name after
//! `--` (`hundred`, `crash_loop`, `search`, `bridges`) has only these measured.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr
)]
#![cfg_attr(not(target_os = "linux"), allow(unused))]

#[cfg(target_os = "linux")]
mod bridges;
#[cfg(target_os = "linux")]
mod crash_loop;
#[cfg(target_os = "linux")]
mod hundred;
#[cfg(target_os = "linux")]
mod search;
#[cfg(target_os = "linux")]
#[path = "../../tests/search/corpus.rs"]
mod search_corpus;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "../../tests/it/support.rs"]
mod support;

use std::time::Duration;

fn main() {
    // `cargo test --benches` does not pass this, and wants no figures.
    #[cfg(target_os = "linux")]
    if std::env::args().any(|arg| arg == "--bench") {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let wanted = |name: &str| {
                let mut names = std::env::args()
                    .skip(1)
                    .filter(|arg| !arg.starts_with('-'))
                    .peekable();
                names.peek().is_none() || names.any(|arg| arg == name)
            };
            if wanted("hundred") {
                hundred::run().await;
            }
            if wanted("crash_loop") {
                crash_loop::run().await;
            }
            if wanted("search") {
                search::run().await;
            }
            if wanted("bridges") {
                bridges::run().await;
            }
        });
    }
}

/// One line: what, how much, and what it is meant to be.
fn tell(what: &str, figure: &str, bar: &str) {
    println!("{what:58} {figure:>14}   {bar}");
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The one that so much of a hundred stay below.
fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}
