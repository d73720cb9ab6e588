//! The units that are written where no package has brought them. PURE.

/// What stands at the top of files that we have written, and may remove.
const MARK: &str =
    "# Written by `nexusctl service install`; `nexusctl service uninstall` removes it.\n";

pub(super) const USER_SERVICE: &str = include_str!("../../../../systemd/user/nexusd.service");
pub(super) const USER_SOCKET: &str = include_str!("../../../../systemd/user/nexusd.socket");
pub(super) const SYSTEM_SERVICE: &str = include_str!("../../../../systemd/system/nexusd@.service");
pub(super) const SYSTEM_SOCKET: &str = include_str!("../../../../systemd/system/nexusd@.socket");

/// A unit as we write it: for the program that is there.
pub(super) fn written(unit: &str, nexusd: &str) -> String {
    let start = format!("ExecStart={}", quoted(nexusd));
    format!("{MARK}{}", unit.replace("ExecStart=nexusd", &start))
}

/// A drop-in that lets servers be found where the user's shell finds them.
pub(super) fn search_path(path: &str) -> String {
    let path = quoted(&format!("PATH={path}"));
    format!("{MARK}[Service]\nEnvironment={path}\n")
}

/// Whether we have written it.
pub(super) fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
}

/// One word, as systemd reads them.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('%', "%%").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_is_there_is_started() {
        let unit = written(USER_SERVICE, "/opt/my tools/100%/nexusd");
        assert!(is_ours(&unit));
        assert!(
            unit.contains("ExecStart=\"/opt/my tools/100%%/nexusd\"\n"),
            "{unit}"
        );
        let unit = written(SYSTEM_SERVICE, "/usr/bin/nexusd");
        let start = "ExecStart=\"/usr/bin/nexusd\" --socket /run/nexus-%i/nexusd.sock\n";
        assert!(unit.contains(start), "{unit}");
        assert!(!is_ours(USER_SERVICE));
    }

    #[test]
    fn what_systemd_would_expand_is_taken_as_it_is() {
        let text = search_path("/a b:/c\"d:$HOME:50%");
        assert!(
            text.ends_with("Environment=\"PATH=/a b:/c\\\"d:$$HOME:50%%\"\n"),
            "{text}"
        );
    }
}
