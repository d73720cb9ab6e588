//! The command line: our own words, and those that test runners say.

/// What is to be done.
pub(crate) enum Asked {
    /// Tell which tests there are.
    List,
    /// The filter names other tests.
    Nothing,
    Run(Options),
}

pub(crate) struct Options {
    /// The full size.
    pub(crate) long: bool,
    pub(crate) seed: u64,
    only: Option<String>,
}

const RUNS: &[&str] = &["chaos", "kill-server", "kill-daemon"];

/// What `cargo test` and `cargo nextest` pass on, with a value that is not a filter.
const WITH_VALUE: &[&str] = &[
    "--test-threads",
    "--format",
    "--skip",
    "--color",
    "--logfile",
    "--shuffle-seed",
    "-Z",
];

impl Options {
    pub(crate) fn wants(&self, run: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == run)
    }
}

pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut options = Options {
        long: false,
        seed: std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(1, |now| now.as_millis() as u64),
        only: None,
    };
    let (mut list, mut ignored) = (false, false);
    let mut filters = Vec::new();
    while let Some(word) = words.next() {
        let mut value = |what: &str| words.next().ok_or_else(|| format!("{word} needs {what}"));
        match word.as_str() {
            "--long" => options.long = true,
            "--seed" => {
                let seed = value("a number")?;
                options.seed = seed.parse().map_err(|_| format!("{seed} is no number"))?;
            }
            "--only" => {
                let run = value("the name of a run")?;
                if !RUNS.contains(&run.as_str()) {
                    return Err(format!("there is no run {run}: {}", RUNS.join(", ")));
                }
                options.only = Some(run);
            }
            "--list" => list = true,
            "--ignored" => ignored = true,
            other if WITH_VALUE.contains(&other) => drop(value("a value")?),
            other if other.starts_with('-') => {}
            _ => filters.push(word),
        }
    }
    let meant = filters.is_empty() || filters.iter().any(|filter| "chaos".contains(&**filter));
    Ok(match (ignored || !meant, list) {
        (true, _) => Asked::Nothing,
        (false, true) => Asked::List,
        (false, false) => Asked::Run(options),
    })
}
