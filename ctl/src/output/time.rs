//! Times and sizes as people write and read them. PURE.

use nexus_proto::time::Stamp;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reads `30s`, `500ms`, `1.5m`, `2h`; a number alone is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a time such as 30s, 500ms, 2m or 1h".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "expected a number, such as in 30s".to_owned())?;
    let time = Duration::try_from_secs_f64(number * seconds)
        .map_err(|_| "that is too long a time".to_owned())?;
    if time.is_zero() {
        return Err("expected more than no time".to_owned());
    }
    Ok(time)
}

/// A long time, in its two largest units: `3h 2m`.
pub(crate) fn long(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(86400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let Some(first) = units.iter().position(|(size, _)| seconds >= *size) else {
        return "0s".to_owned();
    };
    let (size, unit) = units[first];
    let mut text = format!("{}{unit}", seconds / size);
    if let Some((smaller, unit)) = units.get(first + 1) {
        let rest = seconds % size / smaller;
        if rest > 0 {
            text += &format!(" {rest}{unit}");
        }
    }
    text
}

/// A short time: `850 µs`, `1.25 ms`, `2.50 s`.
pub(crate) fn short(time: Duration) -> String {
    match time.as_micros() {
        us @ 0..1000 => format!("{us} µs"),
        us @ 1000..1_000_000 => format!("{:.2} ms", us as f64 / 1000.0),
        _ => format!("{:.2} s", time.as_secs_f64()),
    }
}

/// A time that somebody has set: `500ms`, `30s`.
pub(crate) fn exact(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        long(time)
    } else {
        format!("{}ms", time.as_millis())
    }
}

/// How long ago that was.
pub(crate) fn since(then: Option<SystemTime>, now: SystemTime) -> Option<Duration> {
    // A clock that was set back is no reason to fail.
    then.map(|then| now.duration_since(then).unwrap_or_default())
}

/// `2026-07-28T09:05:00Z`, as in RFC 3339.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp::new(since).to_string()
}

/// `12.3 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    let mut size = count as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    match unit {
        "B" => format!("{count} B"),
        unit => format!("{size:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_unit() {
        for (text, ms) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("1.5m", 90_000),
            ("2h", 7_200_000),
            ("7", 7000),
        ] {
            let read = parse_duration(text).unwrap();
            assert_eq!(read, Duration::from_millis(ms), "{text}");
        }
        for text in [
            "",
            "s",
            "5 s",
            "-5s",
            "5x",
            "0",
            "1e3s",
            "99999999999999999999h",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn long_times_have_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (125, "2m 5s"),
            (3600 * 3 + 120 + 5, "3h 2m"),
            (86400 * 2 + 59, "2d"),
        ] {
            assert_eq!(long(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn short_times_keep_three_digits_or_so() {
        assert_eq!(short(Duration::from_micros(850)), "850 µs");
        assert_eq!(short(Duration::from_micros(1250)), "1.25 ms");
        assert_eq!(short(Duration::from_millis(2500)), "2.50 s");
        assert_eq!(exact(Duration::from_millis(500)), "500ms");
        assert_eq!(exact(Duration::from_secs(90)), "1m 30s");
    }

    #[test]
    fn a_moment_before_1970_is_no_reason_to_fail() {
        let at = UNIX_EPOCH + Duration::from_secs(1_785_229_500);
        assert_eq!(rfc3339(at), "2026-07-28T09:05:00.000Z");
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(rfc3339(before), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!(bytes(120), "120 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(25 << 20), "25.0 MiB");
    }
}
