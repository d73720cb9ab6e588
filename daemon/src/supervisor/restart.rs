//! When a server that ended is started again. Pure.
//!
//! The first restart after a good run is immediate. Then the delay doubles from 250 ms to a
//! minute, with full jitter. Five ends within a minute are a crash loop: the server is still
//! tried, at the longest delay, and its callers are told at once.

use super::machine::Mono;
use std::{collections::VecDeque, time::Duration};

const FIRST_DELAY: Duration = Duration::from_millis(250);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
const LOOP_FAILURES: usize = 5;
const LOOP_WINDOW: Duration = Duration::from_secs(60);
const GOOD_RUN: Duration = Duration::from_secs(60);

/// What follows an end that nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Start it at once.
    Now,
    /// Start it after this long.
    After(Duration),
    /// It is a crash loop; start it after this long.
    CrashLoop(Duration),
}

/// How a server's process did before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// It never became ready.
    NeverReady,
    /// It was ready, and ended by itself.
    Crashed(Ready),
    /// It was ready, and had to be ended because there was no talking to it.
    Hung(Ready),
}

/// How long a process was good for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// From ready to its end.
    pub uptime: Duration,
    /// From its start to ready.
    pub startup: Duration,
}

/// Keeps count of a server's ends, each kind apart: a server that hangs now and then has not used up
/// what it may crash.
#[derive(Debug, Clone)]
pub struct RestartBudget {
    starts: Tally,
    crashes: Tally,
    hangs: Tally,
    /// It stays one until there was a good run, or somebody asks: ends that are a minute apart are
    /// the work of the delay, not of the server.
    looping: bool,
    dice: u64,
}

#[derive(Debug, Clone, Default)]
struct Tally {
    attempt: u32,
    recent: VecDeque<Mono>,
}

impl Tally {
    /// One more: how many there were before, and whether it was one too many.
    fn add(&mut self, now: Mono) -> (u32, bool) {
        if self.recent.len() == LOOP_FAILURES {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        let first = self.recent.front().copied();
        let too_many = self.recent.len() == LOOP_FAILURES
            && first.is_some_and(|first| now - first <= LOOP_WINDOW);
        self.attempt += 1;
        (self.attempt - 1, too_many)
    }
}

impl RestartBudget {
    /// The seed decides the jitter; different servers have different ones.
    pub fn new(seed: u64) -> Self {
        Self {
            starts: Tally::default(),
            crashes: Tally::default(),
            hangs: Tally::default(),
            looping: false,
            dice: seed | 1,
        }
    }

    /// Whether it keeps ending.
    pub fn is_looping(&self) -> bool {
        self.looping
    }

    /// An end that nobody asked for.
    pub fn ended(&mut self, now: Mono, run: Run) -> Verdict {
        if let Run::Crashed(ready) | Run::Hung(ready) = run
            && ready.uptime >= GOOD_RUN.max(ready.startup * 10)
        {
            self.forgive();
        }
        let tally = match run {
            Run::NeverReady => &mut self.starts,
            Run::Crashed(_) => &mut self.crashes,
            Run::Hung(_) => &mut self.hangs,
        };
        let (attempt, too_many) = tally.add(now);
        self.looping |= too_many;
        if self.looping {
            // Half of the jitter only: a crash loop is not to be tried soon by chance.
            return Verdict::CrashLoop(LONGEST_DELAY / 2 + self.jitter(LONGEST_DELAY / 2));
        }
        if attempt == 0 && run != Run::NeverReady {
            return Verdict::Now;
        }
        let ceiling = FIRST_DELAY
            .saturating_mul(1 << attempt.min(16))
            .min(LONGEST_DELAY);
        Verdict::After(self.jitter(ceiling))
    }

    /// Somebody asked for a start: what was before does not count.
    pub fn forgive(&mut self) {
        for tally in [&mut self.starts, &mut self.crashes, &mut self.hangs] {
            tally.attempt = 0;
            tally.recent.clear();
        }
        self.looping = false;
    }

    fn jitter(&mut self, ceiling: Duration) -> Duration {
        // xorshift64: good enough to keep servers from starting in step.
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let part = (self.dice >> 32) as u32;
        ceiling.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Run = Run::Crashed(Ready {
        uptime: Duration::from_secs(1),
        startup: Duration::from_millis(10),
    });

    fn at(seconds: u64) -> Mono {
        Mono::from_secs(seconds)
    }

    #[test]
    fn the_first_end_of_a_ready_server_costs_nothing() {
        assert_eq!(RestartBudget::new(1).ended(at(0), SHORT), Verdict::Now);
    }

    #[test]
    fn a_server_that_never_was_ready_waits_from_the_first() {
        let verdict = RestartBudget::new(1).ended(at(0), Run::NeverReady);
        assert!(
            matches!(verdict, Verdict::After(d) if d <= FIRST_DELAY),
            "{verdict:?}"
        );
    }

    #[test]
    fn delays_grow_and_stay_below_their_ceiling() {
        for seed in 0..200 {
            let mut budget = RestartBudget::new(seed);
            for attempt in 0..30u32 {
                // Far enough apart not to be a loop.
                let verdict = budget.ended(at(u64::from(attempt) * 100), Run::NeverReady);
                let ceiling = (FIRST_DELAY * (1 << attempt.min(16))).min(LONGEST_DELAY);
                assert!(
                    matches!(verdict, Verdict::After(d) if d <= ceiling),
                    "{verdict:?}"
                );
            }
        }
    }

    #[test]
    fn five_ends_within_a_minute_are_a_loop() {
        let mut budget = RestartBudget::new(7);
        for second in 0..4 {
            assert!(!matches!(
                budget.ended(at(second), SHORT),
                Verdict::CrashLoop(_)
            ));
        }
        let verdict = budget.ended(at(4), SHORT);
        assert!(
            matches!(verdict, Verdict::CrashLoop(d) if d >= LONGEST_DELAY / 2 && d <= LONGEST_DELAY),
            "{verdict:?}"
        );
    }

    #[test]
    fn a_loop_stays_one_however_long_its_delays() {
        let mut budget = RestartBudget::new(7);
        let mut now = Duration::ZERO;
        for end in 0..30 {
            match budget.ended(Mono::new(now), Run::NeverReady) {
                Verdict::CrashLoop(delay) => now += delay,
                Verdict::After(delay) if end < 4 => now += delay,
                verdict => panic!("end {end}: {verdict:?}"),
            }
        }
    }

    #[test]
    fn five_ends_in_five_minutes_are_none() {
        let mut budget = RestartBudget::new(7);
        for minute in 0..5 {
            let verdict = budget.ended(at(minute * 61), SHORT);
            assert!(!matches!(verdict, Verdict::CrashLoop(_)), "{verdict:?}");
        }
    }

    #[test]
    fn a_long_good_run_wipes_the_slate_but_a_slow_starter_has_to_earn_it() {
        let run = |startup| {
            Run::Crashed(Ready {
                uptime: Duration::from_secs(90),
                startup: Duration::from_secs(startup),
            })
        };
        let mut budget = RestartBudget::new(7);
        budget.ended(at(0), SHORT);
        assert_eq!(budget.ended(at(100), run(1)), Verdict::Now);
        let mut budget = RestartBudget::new(7);
        budget.ended(at(0), SHORT);
        assert!(matches!(budget.ended(at(100), run(20)), Verdict::After(_)));
    }

    #[test]
    fn each_kind_of_end_has_a_budget_of_its_own() {
        let Run::Crashed(ready) = SHORT else {
            unreachable!()
        };
        let mut budget = RestartBudget::new(7);
        for second in 0..12 {
            let run = [SHORT, Run::Hung(ready), Run::NeverReady][second as usize % 3];
            let verdict = budget.ended(at(second), run);
            assert!(!matches!(verdict, Verdict::CrashLoop(_)), "{second}");
        }
        let verdict = budget.ended(at(12), Run::Hung(ready));
        assert!(matches!(verdict, Verdict::CrashLoop(_)));
        assert!(budget.is_looping());
    }

    #[test]
    fn forgiving_starts_over() {
        let mut budget = RestartBudget::new(7);
        for second in 0..9 {
            budget.ended(at(second), SHORT);
        }
        budget.forgive();
        assert_eq!(budget.ended(at(10), SHORT), Verdict::Now);
    }
}
