#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flipwave_fuzz::fat_binary(bytes));
