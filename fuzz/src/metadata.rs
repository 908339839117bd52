//! Fuzzes the metadata note of code objects.

use flipwave_codeobj::{CodeObject, Editor, MetadataChange};
use flipwave_tests::Once;
use std::process::Command;
use std::sync::Arc;

/// Maximum size of a note in bytes.
const ROOM: usize = 4096;

/// Reads bytes as the metadata note of a code object, and writes the note with a change.
pub fn metadata(bytes: &[u8]) {
    let frame = frame();
    let mut file = frame.file.clone();
    let note = &bytes[..bytes.len().min(ROOM)];
    file[frame.note - 12..][..4].copy_from_slice(&(note.len() as u32).to_le_bytes());
    file[frame.note..][..note.len()].copy_from_slice(note);
    let Ok(object) = CodeObject::parse(&file) else { return };
    let known = object.metadata().cloned();
    let mut editor = Editor::new(&object);
    let change = MetadataChange { vgpr_count: Some(77), ..MetadataChange::default() };
    if editor.set_metadata(0, change).is_err() {
        return;
    }
    let Ok(written) = editor.finish() else { return };
    let again = CodeObject::parse(written.object.bytes()).expect("the written object is valid");
    let kernels = |object: &CodeObject| {
        let names = object.kernels().iter().map(|kernel| kernel.name.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(kernels(&again), kernels(&object));
    let about = |metadata: Option<&flipwave_codeobj::Metadata>| {
        metadata
            .map(|metadata| (metadata.version, metadata.target.clone(), metadata.printf.clone()))
    };
    assert_eq!(about(again.metadata()), about(known.as_ref()));
}

/// The note of a kernel, as a compiler writes it.
#[cfg(test)]
pub fn note() -> Vec<u8> {
    let frame = frame();
    frame.file[frame.note..][..frame.bytes].to_vec()
}

/// A code object with space for a note.
struct Frame {
    file: Vec<u8>,
    /// Offset of the note's content.
    note: usize,
    /// Size of the compiler's note.
    #[cfg(test)]
    bytes: usize,
}

fn frame() -> Arc<Frame> {
    static FRAME: Once<(), Arc<Frame>> = Once::new();
    FRAME.get((), || {
        // A long format string, which the compiler writes at the end, reserves the space.
        let text = format!(
            ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\ns_endpgm\n.size k, .-k\n\
             .rodata\n.p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 8\n\
             .amdhsa_next_free_sgpr 8\n.amdhsa_accum_offset 8\n.end_amdhsa_kernel\n\
             .amdgpu_metadata\n---\namdhsa.version: [1, 2]\n\
             amdhsa.target: amdgcn-amd-amdhsa--gfx90a\namdhsa.kernels:\n  - .name: k\n    \
             .symbol: k.kd\n    .kernarg_segment_size: 16\n    .kernarg_segment_align: 8\n    \
             .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    \
             .wavefront_size: 64\n    .sgpr_count: 8\n    .vgpr_count: 8\n    \
             .max_flat_workgroup_size: 256\n    .args:\n      - .offset: 0\n        .size: 8\n        \
             .value_kind: global_buffer\n        .address_space: global\n      - .offset: 8\n        \
             .size: 4\n        .value_kind: by_value\namdhsa.printf: ['{}']\n...\n\
             .end_amdgpu_metadata\n",
            "1:0:".repeat(ROOM / 4)
        );
        let folder = tempfile::tempdir().expect("a folder");
        let [source, object] = ["note.s", "note.co"].map(|name| folder.path().join(name));
        std::fs::write(&source, &text).expect("the source written");
        let output = Command::new("clang-22")
            .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-mcpu=gfx90a"])
            .args([&source, std::path::Path::new("-o"), &object])
            .output()
            .expect("clang-22 (Debian's packages clang-22 and lld-22) is needed");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{messages}\n{text}");
        let file = std::fs::read(object).expect("the output of clang");
        let owner = b"AMDGPU\0\0";
        let found = file.windows(owner.len()).position(|window| window == owner);
        let note = found.expect("a note") + owner.len();
        let size = file[note - 16..][..4].first_chunk().expect("four bytes");
        let bytes = u32::from_le_bytes(*size) as usize;
        assert!(bytes >= ROOM, "{bytes}");
        Arc::new(Frame {
            file,
            note,
            #[cfg(test)]
            bytes,
        })
    })
}
