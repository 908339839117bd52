//! Reads arbitrary bytes in every way this crate offers.
//!
//! In `hal/codeobj`, with cargo-fuzz installed (`cargo install cargo-fuzz`):
//!
//!     fuzz/seed.sh
//!     RUSTC_BOOTSTRAP=1 cargo fuzz run read -- -max_total_time=600 -max_len=65536
//!
//! `RUSTC_BOOTSTRAP=1` lets the stable compiler take the sanitizer flags. A longer limit than the
//! default for one input (`-timeout=`) hides work that grows faster than the input.
#![no_main]

use flipwave_codeobj::{CodeObject, open_all};
use flipwave_isa::Pc;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(objects) = open_all(bytes, None) {
        objects.iter().for_each(read);
    }
});

fn read(object: &CodeObject) {
    if let Ok(lines) = object.lines() {
        for (code, line) in lines.ranges() {
            assert!(lines.lookup(code.start).is_some(), "{code:?} {line:?}");
        }
    }
    for kernel in object.kernels() {
        let size = usize::try_from(kernel.code_size).expect("code lies in the file");
        assert!(object.bytes_at(kernel.entry(), size).is_some());
    }
    for symbol in object.symbols() {
        let _ = object.function_at(Pc(symbol.address));
    }
    // Allowed sizes go to gigabytes, which only slows the search down.
    let span = object.segments().last().map_or(0, |segment| segment.end());
    if span < 1 << 24 {
        let _ = object.load_image_with(0x7000_0000_0000, |_| Some(0x1234));
    }
}
