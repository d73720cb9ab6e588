//! Dice that fall the same way again for the same seed. Pure.

use std::{ops::RangeInclusive, time::Duration};

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of one of many who share a seed.
    pub(crate) fn new(seed: u64, whose: u64) -> Self {
        let mut dice = Self(seed ^ whose.wrapping_mul(0xa076_1d64_78bd_642f));
        dice.next();
        dice
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (low, high) = range.into_inner();
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn micros(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_micros(self.within(range))
    }

    pub(crate) fn millis(&mut self, range: RangeInclusive<u64>) -> Duration {
        Duration::from_millis(self.within(range))
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.within(0..=from.len() as u64 - 1) as usize]
    }

    /// One of several, each as likely as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, from: &[(u64, T)]) -> T {
        let all = from.iter().map(|(weight, _)| weight).sum::<u64>();
        let mut left = self.within(0..=all - 1);
        for (weight, what) in from {
            if left < *weight {
                return *what;
            }
            left -= weight;
        }
        from[0].1
    }
}
