//! How long something is tried again, and with what pauses. PURE, but for the dice.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};
use tokio::time::Instant;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Pauses that double, until a deadline.
#[derive(Debug)]
pub(crate) struct Retry {
    until: Instant,
    pause: Duration,
}

impl Retry {
    pub(crate) fn new(now: Instant, budget: Duration) -> Self {
        Self {
            // A budget that reaches beyond the end of time is a year.
            until: now
                .checked_add(budget)
                .unwrap_or(now + Duration::from_secs(365 * 24 * 3600)),
            pause: FIRST_PAUSE,
        }
    }

    /// The moment after which nothing is tried again.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    /// How long to wait before the next attempt; `None` when time is up. `dice` is in `0.0..1.0`:
    /// clients that lost the same daemon must not come back all at once.
    pub(crate) fn next_pause(&mut self, now: Instant, dice: f64) -> Option<Duration> {
        let left = self.until.saturating_duration_since(now);
        if left.is_zero() {
            return None;
        }
        let pause = self.pause.mul_f64(0.5 + dice / 2.0);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        // The last attempt is made when time is up, not before.
        Some(pause.min(left))
    }

    /// Waits for the next attempt; false when time is up.
    pub(crate) async fn pause(&mut self) -> bool {
        match self.next_pause(Instant::now(), dice()) {
            Some(pause) => {
                tokio::time::sleep(pause).await;
                true
            }
            None => false,
        }
    }
}

/// A number in `0.0..1.0`. The keys of a hasher are random enough to spread clients.
fn dice() -> f64 {
    let bits = RandomState::new().hash_one(0_u8) >> 32;
    bits as f64 / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second_and_end_at_the_deadline() {
        let mut now = Instant::now();
        let mut retry = Retry::new(now, Duration::from_secs(5));
        let mut pauses = Vec::new();
        while let Some(pause) = retry.next_pause(now, 1.0) {
            pauses.push(pause.as_millis());
            now += pause;
        }
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000, 1000, 740]);
    }

    #[test]
    fn without_a_budget_nothing_is_tried_again() {
        let now = Instant::now();
        assert_eq!(Retry::new(now, Duration::ZERO).next_pause(now, 0.5), None);
    }

    #[test]
    fn a_budget_without_end_is_no_overflow() {
        let now = Instant::now();
        assert!(
            Retry::new(now, Duration::MAX)
                .next_pause(now, 0.0)
                .is_some()
        );
    }

    #[test]
    fn the_dice_stay_in_range() {
        assert!((0..1000).all(|_| (0.0..=1.0).contains(&dice())));
    }
}
