//! The name that somebody probably meant. Pure.

/// The nearest of `names` to what was written, if one is near.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = written.to_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&lower, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_forgiven() {
        let names = ["demo.add", "demo.echo", "demo.get_time"];
        assert_eq!(nearest("demo.ad", names), Some("demo.add"));
        assert_eq!(nearest("Demo.gettime", names), Some("demo.get_time"));
        assert_eq!(nearest("xyz", names), None);
    }
}
