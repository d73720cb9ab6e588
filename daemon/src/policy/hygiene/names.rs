//! Names that look like others. Pure.

use crate::mcp::lists::Definition;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization as _;
use unicode_security::confusable_detection::skeleton;

/// Those that look like another of the same list, by their places, the first first; and which.
///
/// Two names in ASCII are never taken for each other: programs have both `l1` and `ll`. Of a pair with other letters
/// the one in ASCII stays, wherever it stands; else the first.
pub(super) fn impostors(list: &[Definition]) -> Vec<(usize, String)> {
    // Nearly all names are in ASCII, and of those no skeleton is wanted.
    if list.iter().all(|entry| entry.key.is_ascii()) {
        return Vec::new();
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    let (plain, other): (Vec<usize>, Vec<usize>) =
        (0..list.len()).partition(|at| list[*at].key.is_ascii());
    for at in plain {
        seen.entry(look(&list[at].key)).or_insert(at);
    }
    let mut found = Vec::new();
    for at in other {
        match seen.get(&look(&list[at].key)) {
            Some(first) => found.push((at, list[*first].key.clone())),
            None => {
                seen.insert(look(&list[at].key), at);
            }
        }
    }
    found
}

/// What a name looks like: the same for all that look alike.
fn look(name: &str) -> String {
    let composed: String = name.nfc().collect();
    skeleton(&composed).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn found(names: &[&str]) -> Vec<(usize, String)> {
        let list = names.iter().map(|name| Definition {
            key: (*name).to_owned(),
            json: Bytes::new(),
        });
        impostors(&list.collect::<Vec<_>>())
    }

    #[test]
    fn the_one_with_foreign_letters_is_the_impostor() {
        let expected = [(0, "read_file".to_owned())];
        assert_eq!(found(&["re\u{430}d_file", "read_file", "x"]), expected);
        assert_eq!(
            found(&["cafe\u{301}", "caf\u{e9}"]),
            [(1, "cafe\u{301}".to_owned())]
        );
    }

    #[test]
    fn ordinary_names_look_like_nothing_but_themselves() {
        assert_eq!(found(&["l1", "ll", "I1", "rn", "m", "O0", "00"]), []);
        assert_eq!(found(&["größe", "grosse", "größer", "数据", "данные"]), []);
    }
}
