//! Damaged files: reading and editing never panic.

use crate::common::{compile, llvm, run};
use flipwave_codeobj::{
    CodeObject, DataSymbol, Editor, MetadataChange, MovedCode, entries, open_all,
    replace_code_objects,
};
use flipwave_isa::Pc;

/// Reads all parts of a code object, to detect panics. Returns `true` if the bytes are a code object.
fn read_all(bytes: &[u8]) -> bool {
    let _ = open_all(bytes, None);
    let Ok(object) = CodeObject::parse(bytes) else { return false };
    let _ = object.lines().map(|lines| lines.ranges().count());
    let span = object.segments().last().map_or(0, |segment| segment.end());
    // A damaged size may be valid but huge; an image of gigabytes of zeros tests nothing.
    if span < 1 << 24 {
        let _ = object.load_image(0x1000);
    }
    for pc in [0, 0x1f00, 0x2000, u64::MAX] {
        let _ = object.function_at(Pc(pc));
        let _ = object.bytes_at(Pc(pc), 64);
    }
    true
}

/// Deterministic random numbers (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }
}

fn object() -> Vec<u8> {
    compile("kernels.cl", "gfx90a", &["-gdwarf-4"]).bytes
}

#[test]
fn truncated_files_are_rejected() {
    let bytes = object();
    let whole = (0..=bytes.len()).filter(|length| read_all(&bytes[..*length])).count();
    assert_eq!(whole, 1, "only the whole file is a code object");
}

#[test]
fn flipped_bits_do_not_panic() {
    let bytes = object();
    let mut random = Random(0x5eed);
    let mut readable = 0;
    for _ in 0..4000 {
        let mut damaged = bytes.clone();
        for _ in 0..=random.below(3) {
            let place = random.below(damaged.len());
            damaged[place] ^= 1 << random.below(8);
        }
        readable += usize::from(read_all(&damaged));
    }
    assert!((1000..4000).contains(&readable), "{readable} of 4000 are still code objects");
}

/// Replaces aligned 4-byte and 8-byte fields of the headers and tables with extreme values.
#[test]
fn extreme_sizes_do_not_panic() {
    let bytes = object();
    const EXTREMES: [u64; 8] =
        [0, 1, 0x7fff_ffff, 0xffff_ffff, 1 << 32, i64::MAX as u64, u64::MAX - 7, u64::MAX];
    let mut random = Random(0x512e);
    let tables = bytes.len().saturating_sub(0x900)..bytes.len();
    let places = (0..0x400).chain(tables).step_by(4).chain((0..1000).map(|_| random.below(9000)));
    for place in places {
        for extreme in EXTREMES {
            for width in [4, 8] {
                let mut damaged = bytes.clone();
                if let Some(field) = damaged.get_mut(place..place + width) {
                    field.copy_from_slice(&extreme.to_le_bytes()[..width]);
                    read_all(&damaged);
                }
            }
        }
    }
}

#[test]
fn damaged_bundles_do_not_panic() {
    let compiled = compile("kernels.cl", "gfx1030", &[]);
    for options in [&[][..], &["-compress"]] {
        let path = compiled.sibling("bundle");
        run(llvm("clang-offload-bundler")
            .args(["-type=o", "-input=/dev/null"])
            .arg("-targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx1030")
            .arg(format!("-input={}", compiled.path().display()))
            .arg(format!("-output={}", path.display()))
            .args(options));
        let bytes = std::fs::read(path).unwrap();
        for length in (0..bytes.len()).step_by(13) {
            assert!(entries(&bytes[..length]).is_err() || length == 0, "{length} bytes");
        }
        let mut random = Random(0xb0d1e);
        for _ in 0..1000 {
            let mut damaged = bytes.clone();
            // Half of the damage goes to the header.
            let reach = if random.below(2) == 0 { 160 } else { damaged.len() };
            let place = random.below(reach);
            damaged[place] = random.below(256) as u8;
            let _ = open_all(&damaged, None);
            let _ = replace_code_objects(&damaged, |entry| Some(entry.id.clone().into_bytes()));
        }
    }
}

/// Applies all kinds of changes, to detect panics. Returns `true` if editing succeeds.
fn edit_all(bytes: &[u8]) -> bool {
    let Ok(object) = CodeObject::parse(bytes) else { return false };
    let mut editor = Editor::new(&object);
    let symbols = vec![DataSymbol { name: "new".to_owned(), offset: 0, size: 8 }];
    let _ = editor.add_data(vec![1; 64], 64, 64, symbols);
    for kernel in 0..object.kernels().len() {
        let mut descriptor = object.kernels()[kernel].descriptor.clone();
        descriptor.rsrc1.vgprs = 64;
        let _ = editor.set_descriptor(kernel, descriptor);
        let change = MetadataChange { vgpr_count: Some(1000), ..MetadataChange::default() };
        let _ = editor.set_metadata(kernel, change);
    }
    let mut kept = editor.clone();
    let _ = kept.add_text(kept.free_address(), vec![0; 256], MovedCode::default());
    if let Some(text) = object.text().next() {
        let _ = kept.patch(text.address, vec![0; 4]);
        // The size in a damaged header may be huge, so the number of bytes counts.
        let size = text.bytes().len();
        let address = editor.free_address();
        let old = |offset| Pc(text.address.wrapping_add(offset));
        let new = |offset| address.saturating_add(offset);
        let offsets = || (0..size as u64 & !3).step_by(4);
        let moved = MovedCode {
            new_addresses: offsets().map(|offset| (old(offset), Pc(new(offset)))).collect(),
            runs: offsets().map(|offset| (new(offset)..new(offset + 4), old(offset))).collect(),
        };
        let _ = editor.move_text(address, text.bytes().to_vec(), moved);
    }
    let edited = [editor.finish(), kept.finish()];
    edited.iter().all(Result::is_ok)
}

#[test]
fn editing_damaged_code_objects_does_not_panic() {
    for options in [&["-g", "-gdwarf-4"][..], &["-g"]] {
        let bytes = compile("kernels.cl", "gfx90a", options).bytes;
        let mut random = Random(0xed17);
        let mut edited = 0;
        assert!(edit_all(&bytes));
        for _ in 0..1500 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(3) {
                let place = random.below(damaged.len());
                damaged[place] ^= 1 << random.below(8);
            }
            edited += usize::from(edit_all(&damaged));
        }
        assert!((300..1500).contains(&edited), "{edited} of 1500 edits succeeded");
    }
}

/// Replaces fields of headers, notes, tables and debug information with extreme values.
#[test]
fn editing_extreme_sizes_does_not_panic() {
    let bytes = compile("kernels.cl", "gfx90a", &["-g"]).bytes;
    const EXTREMES: [u64; 6] = [0, 1, 0xffff_ffff, 1 << 32, i64::MAX as u64, u64::MAX];
    let mut random = Random(0x512f);
    let headers = CodeObject::parse(&bytes).unwrap().section(".note").unwrap().file_offset();
    let sections = bytes.len().saturating_sub(0x700)..bytes.len();
    let places = (0..headers as usize).chain(sections).step_by(8);
    for place in places.chain((0..200).map(|_| random.below(bytes.len()))) {
        for extreme in EXTREMES {
            for width in [4, 8] {
                let mut damaged = bytes.clone();
                if let Some(field) = damaged.get_mut(place..place + width) {
                    field.copy_from_slice(&extreme.to_le_bytes()[..width]);
                    edit_all(&damaged);
                }
            }
        }
    }
}
