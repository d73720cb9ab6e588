//! Whether a server that runs is alive. Pure.
//!
//! Only an idle server is asked: whoever works on a call is busy, not hung, and any message is a sign
//! of life. A server that stays silent several times in a row is given up.

use std::time::Duration;

/// How a server is looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthPolicy {
    /// How long it may be silent before it is asked; zero: it is never asked.
    pub interval: Duration,
    /// How long it has for an answer.
    pub timeout: Duration,
    /// How many questions it may leave unanswered.
    pub threshold: u32,
}

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            timeout: Duration::from_secs(10),
            threshold: 3,
        }
    }
}

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// An answer, after this long. Which one does not matter.
    Answered(Duration),
    /// Nothing, after this long.
    Silent(Duration),
}

/// What is thought of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It lives.
    Alive,
    /// It left this many questions unanswered.
    Doubtful(u32),
    /// It is given up.
    Hung,
}

/// What is known of the health of one process.
#[derive(Debug, Clone)]
pub struct Health {
    policy: HealthPolicy,
    silences: u32,
    signs: u64,
}

impl Health {
    /// A process that was just found to be alive.
    pub fn new(policy: HealthPolicy) -> Self {
        Self {
            policy,
            silences: 0,
            signs: 0,
        }
    }

    /// How long to wait before the next look. Whoever is in doubt looks sooner.
    pub fn pause(&self) -> Duration {
        if self.silences == 0 {
            self.policy.interval
        } else {
            self.policy.interval.min(Duration::from_secs(1))
        }
    }

    /// Whether it is to be asked. `signs` counts its messages so far; `busy`: calls wait for it.
    pub fn wants_probe(&mut self, signs: u64, busy: bool) -> bool {
        let spoke = signs != self.signs;
        self.signs = signs;
        if spoke {
            self.silences = 0;
        }
        !spoke && !busy
    }

    /// What an answer, or the lack of one, comes to.
    pub fn judge(&mut self, probe: Probe) -> Verdict {
        match probe {
            Probe::Answered(_) => self.silences = 0,
            // We were not awake to hear it: the machine slept, or had no time for us.
            Probe::Silent(waited) if waited > self.policy.timeout * 2 => {}
            Probe::Silent(_) => self.silences += 1,
        }
        self.verdict()
    }

    /// What is thought of it now.
    pub fn verdict(&self) -> Verdict {
        match self.silences {
            0 => Verdict::Alive,
            n if n < self.policy.threshold => Verdict::Doubtful(n),
            _ => Verdict::Hung,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: Probe = Probe::Silent(Duration::from_secs(10));
    const ANSWERED: Probe = Probe::Answered(Duration::from_millis(1));

    fn health() -> Health {
        Health::new(HealthPolicy::default())
    }

    #[test]
    fn three_silences_in_a_row_are_too_many() {
        let mut health = health();
        assert_eq!(health.judge(SILENT), Verdict::Doubtful(1));
        assert_eq!(health.judge(SILENT), Verdict::Doubtful(2));
        assert_eq!(health.judge(SILENT), Verdict::Hung);
    }

    #[test]
    fn an_answer_wipes_the_slate() {
        let mut health = health();
        health.judge(SILENT);
        health.judge(SILENT);
        assert_eq!(health.judge(ANSWERED), Verdict::Alive);
        assert_eq!(health.judge(SILENT), Verdict::Doubtful(1));
    }

    #[test]
    fn whoever_is_busy_is_not_asked() {
        assert!(!health().wants_probe(0, true));
        assert!(health().wants_probe(0, false));
    }

    #[test]
    fn any_message_is_a_sign_of_life() {
        let mut health = health();
        health.judge(SILENT);
        assert!(!health.wants_probe(5, false));
        assert_eq!(health.verdict(), Verdict::Alive);
        assert!(health.wants_probe(5, false));
    }

    #[test]
    fn a_machine_that_slept_is_no_silence() {
        let mut health = health();
        let asleep = Probe::Silent(Duration::from_secs(3600));
        for _ in 0..10 {
            assert_eq!(health.judge(asleep), Verdict::Alive);
        }
    }

    #[test]
    fn doubt_looks_sooner() {
        let mut health = health();
        let calm = health.pause();
        health.judge(SILENT);
        assert!(health.pause() < calm);
    }
}
