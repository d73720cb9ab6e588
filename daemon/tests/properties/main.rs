//! What holds for every byte that a server may write. `fuzz/` looks for counter-examples to the same with coverage;
//! here there are its seeds, and some random ones at each run.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod connection;
mod envelope;
mod lines;

use proptest::{collection::vec, prelude::*};
use std::{fs, path::Path};

/// Pieces that messages are made of, and what spoils them.
const PIECES: [&str; 44] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\r\n",
    " ",
    "\"",
    "\\",
    "null",
    "{}",
    "7",
    "1e400",
    "\"id\":",
    "\"id\" : ",
    "\"id\":1,",
    "\"id\":2,",
    "\"id\":3",
    "\"id\":6,",
    "\"id\":\"a\",",
    "\"id\":null,",
    "\"jsonrpc\":\"2.0\",",
    "\"method\":",
    "\"method\":\"ping\",",
    "\"method\":\"roots/list\"",
    "\"method\":\"sampling/createMessage\",",
    "\"method\":\"notifications/progress\",",
    "\"method\":\"notifications/message\",",
    "\"method\":\"notifications/cancelled\",",
    "\"params\":",
    "\"params\":{\"requestId\":1}",
    "\"params\":{\"progressToken\":4,\"progress\":1}",
    "\"params\":{\"level\":\"error\",\"data\":[1 ]}",
    "\"result\":",
    "\"result\":{}",
    "\"result\": { \"x\":1 }",
    "\"error\":{\"code\":-1,\"message\":\"m\",\"data\":[ ]}",
    "\"resultType\":\"input_required\"",
    "\"inputRequests\":{\"k\":{\"method\":\"roots/list\"}}",
    "\"requestState\":\"s\"",
    "\"tools\":[{\"name\":\"t\"},7]",
    "\"nextCursor\":\"c\"",
];

/// Something like a message, or several.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => (0..PIECES.len()).prop_map(|n| PIECES[n].as_bytes().to_vec()),
        2 => Just(br#"{"jsonrpc":"2.0","id":2,"result":{"a": 1}}"#.to_vec()),
        1 => vec(any::<u8>(), 0..4),
        1 => (any::<u8>(), 0..400usize).prop_map(|(byte, n)| vec![byte; n]),
    ];
    vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn with_first(first: usize) -> impl Strategy<Value = Vec<u8>> {
    (vec(any::<u8>(), first), text()).prop_map(|(first, text)| [first, text].concat())
}

fn seeds(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    let files = fs::read_dir(folder.join(target)).unwrap();
    let mut count = 0;
    for file in files {
        check(&fs::read(file.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "no seeds for {target}");
}

#[test]
fn the_seeds_hold() {
    seeds("lines", lines::check);
    seeds("envelope", envelope::check);
    seeds("connection", connection::check);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lines_are_the_same_wherever_the_reads_fall(data in with_first(2)) {
        lines::check(&data);
    }

    #[test]
    fn payloads_are_the_bytes_that_came(data in text()) {
        envelope::check(&data);
    }

    #[test]
    fn every_request_has_one_outcome_and_it_is_its_own(data in with_first(1)) {
        connection::check(&data);
    }
}
