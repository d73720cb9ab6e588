//! How often something may be done: the generic cell rate algorithm. Pure.
//!
//! It is a few lines of our own because a call has several limits (its server's, its tool's, its agent's), and either
//! all of them let it through and are charged, or none is: a call that one limit refuses costs the others nothing.

use nexus_config::policy::Rate;
use std::time::Duration;

/// What one limit has let through: the time by which all of it would have come at an even pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    paid_until: Duration,
}

/// A limit that has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// Which of them.
    pub limit: usize,
    /// How long.
    pub wait: Duration,
}

/// Lets something through that is charged to all of these limits, or to none. The one that has to wait longest is
/// told. `now` is any clock that does not go back.
pub fn take_all(limits: &mut [(Rate, &mut Bucket)], now: Duration) -> Result<(), Refused> {
    for (rate, bucket) in &mut *limits {
        bucket.settle(*rate, now);
    }
    let waits = limits.iter().enumerate().filter_map(|(limit, it)| {
        let wait = it.1.wait(it.0, now)?;
        Some(Refused { limit, wait })
    });
    if let Some(refused) = waits.max_by_key(|refused| refused.wait) {
        return Err(refused);
    }
    for (rate, bucket) in limits {
        bucket.take(*rate, now);
    }
    Ok(())
}

impl Bucket {
    /// How long to wait for the next one; `None` for not at all.
    fn wait(&self, rate: Rate, now: Duration) -> Option<Duration> {
        let ahead = rate.pace().saturating_mul(rate.burst - 1);
        let wait = self.paid_until.saturating_sub(now + ahead);
        (!wait.is_zero()).then_some(wait)
    }

    fn take(&mut self, rate: Rate, now: Duration) {
        self.paid_until = self.paid_until.max(now) + rate.pace();
    }

    /// As if the rate had always been this one: nobody waits an hour because the limit was one an hour before. From
    /// then on it is so: what is put off with every look never comes.
    fn settle(&mut self, rate: Rate, now: Duration) {
        let most = rate.pace().saturating_mul(rate.burst);
        self.paid_until = self.paid_until.min(now.saturating_add(most));
    }
}

trait Pace {
    /// The time between two, rounded up: never more often than is said.
    fn pace(&self) -> Duration;
}

impl Pace for Rate {
    fn pace(&self) -> Duration {
        let nanos = self.per.as_nanos().div_ceil(u128::from(self.count));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate() -> impl Strategy<Value = Rate> {
        (1u32..50, 1u64..100, 1u32..20).prop_map(|(count, seconds, burst)| Rate {
            count,
            per: Duration::from_secs(seconds),
            burst,
        })
    }

    fn steps() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(0u64..3_000, 1..300)
    }

    /// The times at which something is let through.
    fn through(rate: Rate, steps: &[u64]) -> Vec<Duration> {
        let (mut bucket, mut now) = (Bucket::default(), Duration::from_secs(1));
        let mut times = Vec::new();
        for step in steps {
            now += Duration::from_millis(*step);
            if take_all(&mut [(rate, &mut bucket)], now).is_ok() {
                times.push(now);
            }
        }
        times
    }

    proptest! {
        #[test]
        fn no_stretch_of_time_has_more_than_the_limit_allows(rate in rate(), steps in steps()) {
            let times = through(rate, &steps);
            for (first, from) in times.iter().enumerate() {
                for (last, to) in times.iter().enumerate().skip(first) {
                    let stretch = (*to - *from).as_secs_f64();
                    let allowed = f64::from(rate.burst)
                        + stretch * f64::from(rate.count) / rate.per.as_secs_f64();
                    prop_assert!((last - first + 1) as f64 <= allowed + 1e-6);
                }
            }
        }

        #[test]
        fn whoever_waits_as_long_as_told_is_let_through_and_not_a_moment_earlier(
            rate in rate(),
            steps in steps(),
        ) {
            let (mut bucket, mut now) = (Bucket::default(), Duration::ZERO);
            for step in steps {
                now += Duration::from_millis(step);
                let Err(refused) = take_all(&mut [(rate, &mut bucket)], now) else { continue };
                let before = now + refused.wait - Duration::from_nanos(1);
                prop_assert!(take_all(&mut [(rate, &mut bucket.clone())], before).is_err());
                now += refused.wait;
                prop_assert!(take_all(&mut [(rate, &mut bucket)], now).is_ok());
            }
        }

        #[test]
        fn whoever_keeps_the_pace_is_never_refused(rate in rate(), count in 1u32..200) {
            let mut bucket = Bucket::default();
            for n in 0..count {
                let now = rate.pace() * n;
                prop_assert!(take_all(&mut [(rate, &mut bucket)], now).is_ok());
            }
        }

        #[test]
        fn what_one_limit_refuses_costs_the_others_nothing(
            rates in (rate(), rate()),
            steps in steps(),
        ) {
            let (mut one, mut two, mut now) = (Bucket::default(), Bucket::default(), Duration::ZERO);
            for step in steps {
                now += Duration::from_millis(step);
                let before = (one, two);
                let waits = (one.wait(rates.0, now), two.wait(rates.1, now));
                let taken = take_all(&mut [(rates.0, &mut one), (rates.1, &mut two)], now);
                match taken {
                    Ok(()) => {
                        prop_assert_eq!(waits, (None, None));
                        prop_assert!(one != before.0 && two != before.1);
                    }
                    Err(refused) => {
                        prop_assert_eq!(before, (one, two));
                        prop_assert_eq!(Some(refused.wait), waits.0.max(waits.1));
                    }
                }
            }
        }

        #[test]
        fn another_rate_makes_nobody_wait_longer_than_it_would_itself(
            rates in (rate(), rate()),
            steps in steps(),
        ) {
            let (mut bucket, mut now) = (Bucket::default(), Duration::ZERO);
            for step in steps {
                now += Duration::from_millis(step);
                let _ = take_all(&mut [(rates.0, &mut bucket)], now);
            }
            if let Err(refused) = take_all(&mut [(rates.1, &mut bucket)], now) {
                prop_assert!(refused.wait <= rates.1.pace());
                now += refused.wait;
                prop_assert!(take_all(&mut [(rates.1, &mut bucket)], now).is_ok());
            }
        }
    }

    #[test]
    fn a_burst_is_let_through_at_once_and_the_next_waits_for_its_turn() {
        let rate = Rate::parse("60/min burst 3").unwrap();
        let mut bucket = Bucket::default();
        let now = Duration::from_secs(100);
        for _ in 0..3 {
            take_all(&mut [(rate, &mut bucket)], now).unwrap();
        }
        let refused = take_all(&mut [(rate, &mut bucket)], now).unwrap_err();
        assert_eq!(refused.wait, Duration::from_secs(1));
    }
}
