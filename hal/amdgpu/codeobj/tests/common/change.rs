//! A code object with all kinds of changes.

use flipwave_codeobj::{CodeObject, DataSymbol, Editor, MetadataChange, MovedCode};
use flipwave_isa::{Isa, Pc};
use std::ops::Range;

/// Bytes inserted before each function; preserves the alignment of kernels.
pub const GAP: usize = 256;

/// Old and new address of an instruction. The new range includes inserted code.
#[derive(Clone, Debug)]
pub struct Moved {
    pub old: Pc,
    pub new: Range<u64>,
}

/// Converts to the editor's type.
pub fn moved_code(moved: &[Moved]) -> MovedCode {
    MovedCode {
        new_addresses: moved.iter().map(|moved| (moved.old, Pc(moved.new.start))).collect(),
        runs: moved.iter().map(|moved| (moved.new.clone(), moved.old)).collect(),
    }
}

/// Returns the code with no-operations inserted before each function, and the new addresses of its
/// instructions.
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
    while let Some(remaining) = text.bytes().get((old - text.address) as usize..)
        && !remaining.is_empty()
    {
        let start = address + bytes.len() as u64;
        if starts.contains(&old) {
            bytes.extend(nop.repeat(GAP / nop.len()));
        }
        let length = isa.decode(remaining, Pc(old)).map_or(4, |inst| usize::from(inst.size));
        bytes.extend_from_slice(&remaining[..length]);
        moved.push(Moved { old: Pc(old), new: start..address + bytes.len() as u64 });
        old += length as u64;
    }
    (bytes, moved)
}

/// Moves the code, adds data, and changes register counts, scratch size and metadata.
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
