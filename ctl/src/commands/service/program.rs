//! Where the daemon's program is.

use crate::exit::Error;
use std::{env, path::PathBuf};

/// As a file is called.
const NEXUSD: &str = if cfg!(windows) {
    "nexusd.exe"
} else {
    "nexusd"
};

/// Where it was said to be, beside us, or on the PATH.
pub(super) fn find_nexusd(asked: Option<PathBuf>) -> Result<PathBuf, Error> {
    let beside = env::current_exe().ok().map(|us| us.with_file_name(NEXUSD));
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join(NEXUSD));
    let found = match asked {
        Some(asked) => Some(asked).filter(|path| path.is_file()),
        None => beside
            .into_iter()
            .chain(on_path)
            .find(|path| path.is_file()),
    };
    found
        .and_then(|path| path.canonicalize().ok())
        .map(plain)
        .ok_or_else(|| Error::Usage {
            message: "the program nexusd is not there".to_owned(),
            hint: Some("say where it is with --nexusd PATH".to_owned()),
        })
}

/// Without the prefix that Rust gives to full paths on Windows, which other programs do not understand.
fn plain(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|path| path.strip_prefix(r"\\?\")) {
        Some(plain) => plain.into(),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_people_write_them() {
        for path in [r"C:\Program Files\nexusd.exe", "/usr/bin/nexusd"] {
            assert_eq!(plain(path.into()), PathBuf::from(path));
        }
        let long = r"\\?\C:\Program Files\nexusd.exe";
        assert_eq!(plain(long.into()), PathBuf::from(&long[4..]));
    }
}
