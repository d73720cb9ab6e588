#![no_main]

#[path = "../../daemon/tests/properties/connection.rs"]
mod connection;
#[allow(dead_code)]
#[path = "../../daemon/tests/properties/envelope.rs"]
mod envelope;

libfuzzer_sys::fuzz_target!(|data: &[u8]| connection::check(data));
