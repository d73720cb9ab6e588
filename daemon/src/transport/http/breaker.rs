//! When a server that answers with errors is left alone, and how often it may be asked again. Pure.

use std::{collections::VecDeque, time::Duration};

/// What is older does not count.
const WINDOW: Duration = Duration::from_secs(10);

/// Fewer answers say nothing.
const ENOUGH: usize = 10;

/// However many there are, no more are counted.
const MOST: usize = 10_000;

/// So many may be repeated in any case.
const FREE_RETRIES: usize = 3;

/// Of more requests, one in so many may be repeated.
const RETRY_SHARE: usize = 10;

/// A request is not repeated more often.
pub const MAX_RETRIES: u32 = 2;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What became of the last requests. Times are counted from any beginning.
#[derive(Debug)]
pub struct Breaker {
    answers: VecDeque<(Duration, bool)>,
    /// How many of them were errors.
    errors: usize,
    retries: VecDeque<Duration>,
    dice: u64,
}

impl Breaker {
    /// The seed decides the jitter.
    pub fn new(seed: u64) -> Self {
        Self {
            answers: VecDeque::new(),
            errors: 0,
            retries: VecDeque::new(),
            dice: seed | 1,
        }
    }

    /// A request was answered, well or with an error of the server's. True if it is to be left alone: half
    /// of what it answered lately were errors.
    pub fn answered(&mut self, now: Duration, well: bool) -> bool {
        self.forget(now);
        if self.answers.len() == MOST {
            self.forget_one();
        }
        self.answers.push_back((now, well));
        self.errors += usize::from(!well);
        !well && self.answers.len() >= ENOUGH && self.errors * 2 >= self.answers.len()
    }

    /// Whether one more request may be repeated, which counts as done.
    pub fn may_retry(&mut self, now: Duration) -> bool {
        self.forget(now);
        let limit = FREE_RETRIES.max(self.answers.len() / RETRY_SHARE);
        let may = self.retries.len() < limit;
        if may {
            self.retries.push_back(now);
        }
        may
    }

    /// How long to wait before the next try, of which there have been so many.
    pub fn pause(&mut self, tries: u32) -> Duration {
        let ceiling = FIRST_PAUSE
            .saturating_mul(1 << tries.min(8))
            .min(LONGEST_PAUSE);
        ceiling / 2 + self.jitter(ceiling / 2)
    }

    /// Some part of this long.
    pub fn jitter(&mut self, most: Duration) -> Duration {
        // xorshift64: good enough to keep requests from coming in step.
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        let part = (self.dice >> 32) as u32;
        most.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }

    fn forget_one(&mut self) {
        if let Some((_, false)) = self.answers.pop_front() {
            self.errors -= 1;
        }
    }

    fn forget(&mut self, now: Duration) {
        let is_old = |at: Duration| now.saturating_sub(at) > WINDOW;
        while self.answers.front().is_some_and(|(at, _)| is_old(*at)) {
            self.forget_one();
        }
        while self.retries.front().is_some_and(|at| is_old(*at)) {
            self.retries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn half_of_ten_answers_in_ten_seconds_are_too_many_errors() {
        let mut breaker = Breaker::new(1);
        for n in 0..5 {
            assert!(!breaker.answered(at(n), true));
        }
        for n in 5..9 {
            assert!(!breaker.answered(at(n), false));
        }
        assert!(breaker.answered(at(9), false));
    }

    #[test]
    fn few_or_old_errors_are_none() {
        let mut breaker = Breaker::new(1);
        for n in 0..9 {
            assert!(!breaker.answered(at(n), false));
        }
        for n in 0..100 {
            assert!(!breaker.answered(at(11_000 + n), n % 3 > 0), "{n}");
        }
    }

    #[test]
    fn a_tenth_of_the_traffic_may_be_repeated() {
        let mut breaker = Breaker::new(1);
        let allowed =
            |breaker: &mut Breaker, now| (0..100).filter(|_| breaker.may_retry(now)).count();
        assert_eq!(allowed(&mut breaker, at(0)), FREE_RETRIES);
        assert_eq!(allowed(&mut breaker, at(1)), 0);
        for _ in 0..200 {
            breaker.answered(at(20_000), true);
        }
        assert_eq!(allowed(&mut breaker, at(20_000)), 20);
    }

    #[test]
    fn pauses_grow_and_stay_in_bounds() {
        for seed in 0..100 {
            let mut breaker = Breaker::new(seed);
            for tries in 0..20 {
                let pause = breaker.pause(tries);
                assert!(
                    pause >= FIRST_PAUSE / 2 && pause <= LONGEST_PAUSE,
                    "{pause:?}"
                );
            }
        }
    }
}
