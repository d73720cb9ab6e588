#![no_main]

#[path = "../../config/tests/it/property.rs"]
mod property;

libfuzzer_sys::fuzz_target!(|data: &[u8]| property::check(data));
