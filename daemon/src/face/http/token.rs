//! The token that a client over TCP must have. It is in a file that only the user can read.

use super::super::random::random;
use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

/// As many bytes as nobody guesses.
const LENGTH: usize = 32;

/// A token. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Token {
    /// A new one.
    pub fn new() -> Self {
        Self(random::<LENGTH>())
    }

    /// The one in this file; a new one if there is no file.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) if text.trim().len() >= LENGTH && is_private(path)? => {
                return Ok(Self(text.trim().to_owned()));
            }
            // Too short, or others may have read it.
            Ok(_) => fs::remove_file(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let token = Self::new();
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        writeln!(file, "{}", token.0)?;
        Ok(token)
    }

    /// Whether this is it, alone or as `Bearer TOKEN`. It takes as long for every wrong one.
    pub(super) fn is(&self, shown: &[u8]) -> bool {
        let shown = match shown.split_at_checked(7) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(b"bearer ") => rest,
            _ => shown,
        };
        let own = self.0.as_bytes();
        let differences = own.iter().zip(shown).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == shown.len() && differences == 0
    }

    /// For whoever may know it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(unix)]
fn is_private(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 == 0)
}

/// Folders of a user are private there.
#[cfg(not(unix))]
fn is_private(_path: &Path) -> io::Result<bool> {
    Ok(true)
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let token = Token::of_file(&path).unwrap();
        assert!(Token::of_file(&path).unwrap() == token);
        assert!(token.reveal().len() >= 2 * LENGTH);
        assert!(!format!("{token:?}").contains(token.reveal()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            // One that others could read is no secret any more.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(Token::of_file(&path).unwrap() != token);
        }
        fs::write(&path, "short").unwrap();
        assert!(Token::of_file(&path).unwrap() != token);
    }
}
