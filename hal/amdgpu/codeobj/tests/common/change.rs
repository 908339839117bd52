//! A code object with everything changed that can be.

use flipwave_codeobj::{CodeObject, DataSymbol, Editor, MetadataChange, MovedCode};
use flipwave_isa::{Isa, Pc};
use std::ops::Range;

/// Bytes put before each function: as many as keep kernels aligned.
pub const GAP: usize = 256;

/// Where an instruction was and is now.
#[derive(Clone, Debug)]
pub struct Moved {
    pub old: Pc,
    pub new: Range<u64>,
}

/// The same, as an editor wants it.
pub fn moved_code(moved: &[Moved]) -> MovedCode {
    MovedCode {
        places: moved.iter().map(|moved| (moved.old, Pc(moved.new.start))).collect(),
        runs: moved.iter().map(|moved| (moved.new.clone(), moved.old)).collect(),
    }
}

/// The code with no-operations before each function, and where each instruction is now.
pub fn shifted(object: &CodeObject, address: u64) -> (Vec<u8>, Vec<Moved>) {
    let isa = Isa::with_wave_size(object.target(), object.target().default_wave_size()).unwrap();
    let nop = isa.assemble("s_nop 0").unwrap();
    let text = object.text().next().expect("code");
    let starts: Vec<u64> = object
        .symbols()
        .iter()
        .filter(|symbol| object.function_at(Pc(symbol.address)) == Some(symbol))
        .map(|symbol| symbol.address)
        .collect();
    let (mut bytes, mut moved) = (Vec::new(), Vec::new());
    let mut old = text.address;
    while let Some(rest) = text.bytes().get((old - text.address) as usize..)
        && !rest.is_empty()
    {
        let start = address + bytes.len() as u64;
        if starts.contains(&old) {
            bytes.extend(nop.repeat(GAP / nop.len()));
        }
        let length = isa.decode(rest, Pc(old)).map_or(4, |inst| usize::from(inst.size));
        bytes.extend_from_slice(&rest[..length]);
        moved.push(Moved { old: Pc(old), new: start..address + bytes.len() as u64 });
        old += length as u64;
    }
    (bytes, moved)
}

/// A code object moved, with data added, other registers and scratch, and longer metadata.
pub fn change(object: &CodeObject) -> CodeObject {
    let mut editor = Editor::new(object);
    let symbol = |name: &str, offset, size| DataSymbol { name: name.to_owned(), offset, size };
    let data = editor
        .add_data(
            b"hook data".to_vec(),
            1 << 16,
            64,
            vec![symbol("hook_constants", 0, 9), symbol("hook_counters", 16, 4096)],
        )
        .expect("new data");
    assert_eq!(data % 4096, 0);
    let address = editor.free_address();
    let (bytes, moved) = shifted(object, address);
    editor.move_text(address, bytes, moved_code(&moved)).expect("the code moves");
    for (index, kernel) in object.kernels().iter().enumerate() {
        let mut descriptor = kernel.descriptor.clone();
        descriptor.rsrc1.vgprs = 123;
        descriptor.private_segment_fixed_size += 0x1_2340;
        editor.set_descriptor(index, descriptor).expect("a kernel");
        let change = MetadataChange {
            vgpr_count: Some(100_000),
            private_segment_fixed_size: Some(0x1_2340),
            uses_dynamic_stack: Some(true),
            ..MetadataChange::default()
        };
        editor.set_metadata(index, change).expect("a kernel");
    }
    let written = editor.finish().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(written.debug_lost, None);
    written.object
}
