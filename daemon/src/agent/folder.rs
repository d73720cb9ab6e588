//! The folder that an agent works in. Pure.

use std::path::{Component, Path, PathBuf};

/// The longest path that is taken for one.
const MAX_PATH: usize = 4096;

/// The same folder under one name: without `.`, `..` and doubled slashes. `None` if it cannot be one.
pub fn folder(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() || path.as_os_str().len() > MAX_PATH {
        return None;
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn one_folder_has_one_name() {
        for path in ["/a/b", "/a//b/", "/a/./b", "/a/c/../b", "/../a/b"] {
            assert_eq!(folder(Path::new(path)), Some("/a/b".into()), "{path}");
        }
    }

    #[test]
    fn what_is_relative_or_endless_is_no_folder() {
        assert_eq!(folder(Path::new("a/b")), None);
        let endless = format!(
            "{}{}",
            std::env::temp_dir().display(),
            "/a".repeat(MAX_PATH)
        );
        assert_eq!(folder(Path::new(&endless)), None);
    }
}
