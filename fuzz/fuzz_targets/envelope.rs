#![no_main]

#[path = "../../daemon/tests/properties/envelope.rs"]
mod envelope;

libfuzzer_sys::fuzz_target!(|data: &[u8]| envelope::check(data));
