//! What is printed.

use crate::{
    history::{Entry, Execution, Outcome, Rules, Violation, What, Wrong, check},
    recovery::{Kill, Starts, quantile, recoveries},
    rest::Rest,
};
use std::{collections::BTreeMap, sync::Mutex, time::Duration};

/// How often each fault was injected.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    faults: Mutex<BTreeMap<&'static str, u64>>,
    others: Mutex<BTreeMap<&'static str, u64>>,
}

impl Tally {
    pub(crate) fn count(&self, fault: &'static str) {
        *self.faults.lock().unwrap().entry(fault).or_default() += 1;
    }

    /// What is worth knowing, and no fault.
    pub(crate) fn count_other(&self, what: &'static str) {
        *self.others.lock().unwrap().entry(what).or_default() += 1;
    }

    fn total(&self) -> u64 {
        self.faults.lock().unwrap().values().sum()
    }

    fn print(&self) {
        let line = |name: &str, counts: &Mutex<BTreeMap<&'static str, u64>>| {
            let counts = counts.lock().unwrap();
            let counts: Vec<String> = counts
                .iter()
                .map(|(what, n)| format!("{what} {n}"))
                .collect();
            if !counts.is_empty() {
                println!("  {name}: {}", counts.join(", "));
            }
        };
        line("faults", &self.faults);
        line("besides", &self.others);
    }
}

/// Everything about a run.
pub(crate) struct Report<'a> {
    pub(crate) name: &'a str,
    pub(crate) seed: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) executions: Vec<Execution>,
    pub(crate) rules: Rules,
    pub(crate) tally: &'a Tally,
    pub(crate) kills: Vec<Kill>,
    pub(crate) starts: Option<Starts>,
    pub(crate) rest: Rest,
}

impl Report<'_> {
    /// Checks and prints; what is wrong is returned.
    pub(crate) fn print(self) -> Vec<String> {
        let violations = check(&self.entries, &self.executions, self.rules);
        println!("{}: {}", self.name, self.line(&violations));
        self.tally.print();
        self.print_outcomes();
        self.print_recovery();
        let mut problems = self.rest.problems;
        problems.extend(violations.into_iter().map(|violation| violation.text));
        problems
            .into_iter()
            .map(|problem| format!("{}: {problem}", self.name))
            .collect()
    }

    fn line(&self, violations: &[Violation]) -> String {
        let outcomes = || self.entries.iter().filter_map(Entry::outcome);
        let calls = self.entries.len() - outcomes().count();
        let ok = outcomes().filter(|o| matches!(o, Outcome::Ok(_))).count();
        let left = outcomes()
            .filter(|o| matches!(o, Outcome::Cancelled))
            .count();
        let errors = outcomes().count() - ok - left;
        let of = |wrong: Wrong| violations.iter().filter(|v| v.wrong == wrong).count();
        let ratios = self.ratios();
        let ratio = |part| {
            let ratio = quantile(&mut ratios.clone(), part);
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}x"))
        };
        let rest = &self.rest;
        format!(
            "faults={} calls={calls} ok={ok} errors={errors} left={left} executions={} lost={} dup_outcome={} \
             dup_exec={} misrouted={} damaged={} ghosts={} denied={} unexplained={} in_flight={} uncancelled={} \
             orphans={} zombies={} proc_delta={} fd_delta={} rss_delta_mb={:.1} recovery_p50={} recovery_p99={} seed={}",
            self.tally.total(),
            self.executions.len(),
            of(Wrong::Lost),
            of(Wrong::TwoOutcomes),
            of(Wrong::DupExec),
            of(Wrong::Misrouted),
            of(Wrong::Damaged),
            of(Wrong::Ghost),
            of(Wrong::Denied),
            of(Wrong::Unexplained),
            rest.in_flight,
            rest.uncancelled,
            rest.orphans,
            rest.zombies,
            rest.process_delta,
            rest.fd_delta,
            rest.rss_delta,
            ratio(0.5),
            ratio(0.99),
            self.seed,
        )
    }

    fn print_outcomes(&self) {
        // For each reason: how often, and how often it was said that it may have run.
        let mut reasons: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for outcome in self.entries.iter().filter_map(Entry::outcome) {
            let (reason, maybe) = match outcome {
                Outcome::Ok(_) => ("ok", false),
                Outcome::Cancelled => ("left by its client", false),
                Outcome::Failed(failed) => (failed.reason.as_str(), failed.maybe_executed),
            };
            let counts = reasons.entry(reason).or_default();
            counts.0 += 1;
            counts.1 += u64::from(maybe);
        }
        println!("  {:<22}{:>9}{:>18}", "outcome", "calls", "maybe executed");
        for (reason, (calls, maybe)) in reasons {
            println!("  {reason:<22}{calls:>9}{maybe:>18}");
        }
    }

    fn recoveries(&self) -> Vec<(&str, Duration)> {
        recoveries(&self.kills, &self.entries, &self.executions)
    }

    /// Each recovery as a multiple of the start of that server.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |(server, time): (&str, Duration)| {
            let start = self.starts.as_ref()?.of(server)?;
            Some(time.as_secs_f64() / start.as_secs_f64().max(1e-6))
        };
        self.recoveries().into_iter().filter_map(ratio).collect()
    }

    fn print_recovery(&self) {
        let recoveries = self.recoveries();
        let mut times: Vec<Duration> = recoveries.iter().map(|(_, time)| *time).collect();
        let Some(longest) = quantile(&mut times, 1.0) else {
            return;
        };
        let of = |part| quantile(&mut times.clone(), part).unwrap_or_default();
        let bar = |server| {
            self.starts
                .as_ref()?
                .of(server)
                .map(|start| start.mul_f64(1.2) + SLACK)
        };
        let within = recoveries
            .iter()
            .filter(|(server, time)| bar(server).is_some_and(|bar| *time <= bar));
        println!(
            "  recovery of {} of {} kills: p50 {:.1?}, p99 {:.1?}, max {longest:.1?}; {} within 1.2 × start + {SLACK:?}",
            times.len(),
            self.kills.len(),
            of(0.5),
            of(0.99),
            within.count(),
        );
        let mut servers: Vec<&str> = recoveries.iter().map(|(server, _)| *server).collect();
        servers.sort_unstable();
        servers.dedup();
        if let ([server], Some(starts)) = (&servers[..], &self.starts) {
            let start = starts.of(server).unwrap_or_default();
            println!(
                "  start p50 {start:.1?}, so the bar is {:.1?}",
                bar(server).unwrap_or_default()
            );
        }
    }
}

/// What a recovery may take besides the start.
const SLACK: Duration = Duration::from_millis(50);

impl Entry {
    fn outcome(&self) -> Option<&Outcome> {
        match &self.what {
            What::Ended(outcome) => Some(outcome),
            What::Invoked(_) => None,
        }
    }
}
