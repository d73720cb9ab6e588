#![no_main]

#[path = "../../daemon/tests/properties/lines.rs"]
mod lines;

libfuzzer_sys::fuzz_target!(|data: &[u8]| lines::check(data));
