//! How long the calls of a server take: counts in buckets that grow with the time, so that a figure is
//! known to an eighth of itself and all of them take half a kilobyte. Pure.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// Four to the octave, from a microsecond to an hour and more.
const BUCKETS: usize = 4 * 32;

/// How long the calls of a server take.
#[derive(Debug)]
pub struct Timings {
    counts: [AtomicU32; BUCKETS],
}

impl Timings {
    /// None yet.
    pub fn new() -> Self {
        Self {
            counts: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }

    /// One more call.
    pub fn add(&self, took: Duration) {
        self.counts[bucket(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// What so much of a hundred calls stay below; `None` before the first one.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        let count = |bucket: &AtomicU32| u64::from(bucket.load(Ordering::Relaxed));
        let all: u64 = self.counts.iter().map(count).sum();
        let rank = (all * u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|bucket| {
            seen += count(bucket);
            seen >= rank
        })?;
        Some(middle(found))
    }
}

impl Default for Timings {
    fn default() -> Self {
        Self::new()
    }
}

fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    let octave = micros.ilog2() as usize;
    // The two bits after the first one.
    let quarter = if octave >= 2 {
        (micros >> (octave - 2)) & 3
    } else {
        (micros << (2 - octave)) & 3
    };
    (octave * 4 + quarter as usize).min(BUCKETS - 1)
}

fn middle(bucket: usize) -> Duration {
    let octave = (1u64 << (bucket / 4)) as f64;
    let quarter = (bucket % 4) as f64;
    Duration::from_secs_f64(octave * (1.0 + (quarter + 0.5) / 4.0) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_good_to_an_eighth() {
        for micros in [4, 7, 120, 999, 54_321, 3_600_000_000u64] {
            let timings = Timings::new();
            timings.add(Duration::from_micros(micros));
            let told = timings.percentile(50).unwrap().as_secs_f64() * 1e6;
            let off = (told - micros as f64).abs() / micros as f64;
            assert!(off <= 0.126, "{micros}: {told}");
        }
    }

    #[test]
    fn percentiles_are_in_order() {
        let timings = Timings::new();
        assert_eq!(timings.percentile(50), None);
        for _ in 0..98 {
            timings.add(Duration::from_micros(100));
        }
        timings.add(Duration::from_millis(50));
        timings.add(Duration::from_secs(5));
        let [half, most, all] = [50, 99, 100].map(|p| timings.percentile(p).unwrap());
        assert!(half < Duration::from_micros(120), "{half:?}");
        assert!(most > Duration::from_millis(40) && most < Duration::from_millis(60));
        assert!(all > Duration::from_secs(4));
    }

    #[test]
    fn what_is_out_of_range_is_counted_at_the_end() {
        let timings = Timings::new();
        timings.add(Duration::ZERO);
        timings.add(Duration::MAX);
        assert!(timings.percentile(1).unwrap() < Duration::from_micros(2));
        assert!(timings.percentile(99).unwrap() > Duration::from_secs(3600));
    }
}
