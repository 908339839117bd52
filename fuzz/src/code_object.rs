//! Fuzzes the reader of code objects, and the disassembly of their programs.

use flipwave_codeobj::{CodeObject, open_all};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::Disassembly;
use flipwave_isa::Pc;

/// Larger code is not decoded, because that would slow down the search.
const MOST_CODE: u64 = 1 << 14;

/// Larger memory images are not created, because valid sizes reach gigabytes.
const MOST_MEMORY: u64 = 1 << 24;

/// Reads bytes as code objects, through every reader.
pub fn code_object(bytes: &[u8]) {
    if let Ok(objects) = open_all(bytes, None) {
        objects.iter().for_each(read);
    }
}

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
    let span = object.segments().last().map_or(0, |segment| segment.end());
    if span < MOST_MEMORY {
        let _ = object.load_image_with(0x7000_0000_0000, |_| Some(0x1234));
    }
    let code: u64 = object.text().map(|section| section.bytes().len() as u64).sum();
    if code < MOST_CODE
        && let Ok(program) = Disassembly::read(object)
    {
        let _ = Liveness::new(&program);
    }
}
