//! What decides touches nothing: no files, no processes, no clock, no environment.

use std::{fs, path::Path};

const PURE: &[&str] = &[
    "diagnosis.rs",
    "endpoint.rs",
    "env_file.rs",
    "expand.rs",
    "keyring.rs",
    "keys.rs",
    "mask.rs",
    "model.rs",
    "nearest.rs",
    "node.rs",
    "read.rs",
    "read/fields.rs",
    "read/http.rs",
    "read/server.rs",
    "remedy.rs",
    "render.rs",
    "scope.rs",
    "show.rs",
    "source.rs",
    "syntax.rs",
    "syntax/json.rs",
    "syntax/toml.rs",
    "syntax/yaml.rs",
    "write.rs",
];

#[test]
fn pure_files_are_pure() {
    for name in PURE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for word in [
            "std::fs",
            "fs::",
            "std::process",
            "std::env",
            "env::var",
            "Instant",
            "SystemTime",
            "now()",
            "std::thread",
        ] {
            assert!(!code.contains(word), "{}: {word}", path.display());
        }
    }
}
