//! The deadline that a gRPC client gives with a request. Pure.

use std::time::Duration;
use tonic::metadata::MetadataMap;

/// How long the client waits, if it said so. What cannot be read is no deadline.
pub(super) fn of(metadata: &MetadataMap) -> Option<Duration> {
    parse(metadata.get("grpc-timeout")?.to_str().ok()?)
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let n: u64 = plain.then(|| digits.parse().ok()).flatten()?;
    Some(match unit {
        "H" => Duration::from_secs(n * 3600),
        "M" => Duration::from_secs(n * 60),
        "S" => Duration::from_secs(n),
        "m" => Duration::from_millis(n),
        "u" => Duration::from_micros(n),
        "n" => Duration::from_nanos(n),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_and_nonsense_is_no_deadline() {
        assert_eq!(parse("2H"), Some(Duration::from_secs(7200)));
        assert_eq!(parse("99999999S"), Some(Duration::from_secs(99_999_999)));
        assert_eq!(parse("250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse("0n"), Some(Duration::ZERO));
        for text in ["", "S", "1", "1x", "-1S", "123456789S", "1é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
