//! Moments as the audit and `--json` write them. Pure.

use std::{fmt, time::Duration};

/// A moment as RFC 3339 has it, in UTC with milliseconds: `2026-07-28T09:05:00.123Z`. Always as long, so that two can
/// be compared as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp([u8; 24]);

impl Stamp {
    /// This long after 1970 began.
    pub fn new(since_1970: Duration) -> Self {
        let (days, seconds) = (since_1970.as_secs() / 86400, since_1970.as_secs() % 86400);
        let (year, month, day) = civil(days);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        // By hand: this is written for every call, and `format!` takes longer than all else of it.
        for (place, number) in [
            (0..4, year),
            (5..7, month),
            (8..10, day),
            (11..13, seconds / 3600),
            (14..16, seconds / 60 % 60),
            (17..19, seconds % 60),
            (20..23, since_1970.subsec_millis().into()),
        ] {
            let mut left = number;
            for digit in text[place].iter_mut().rev() {
                *digit += (left % 10) as u8;
                left /= 10;
            }
        }
        Self(text)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        // Digits are text.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The date of a day since 1970, by Howard Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = (shifted + 2) % 12 + 1;
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        let at = |seconds| Stamp::new(Duration::from_secs(seconds)).to_string();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
        assert_eq!(at(1_767_225_599), "2025-12-31T23:59:59.000Z");
        let precise = Stamp::new(Duration::from_millis(1_785_229_500_042));
        assert_eq!(precise.as_str(), "2026-07-28T09:05:00.042Z");
    }
}
