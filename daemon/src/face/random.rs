//! What nobody can guess.

use std::fmt::Write as _;

/// So many bytes that nobody can guess, in hexadecimal digits.
pub(super) fn random<const N: usize>() -> String {
    let mut bytes = [0; N];
    // Where a machine has no randomness, nothing that depends on it may go on.
    #[expect(clippy::expect_used)]
    getrandom::fill(&mut bytes).expect("the machine has random numbers");
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
