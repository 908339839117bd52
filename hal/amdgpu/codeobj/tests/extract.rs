//! Extraction of kernels.

use crate::common::{assemble, llvm, run_without_warnings};
use flipwave_codeobj::{CodeObject, Editor, MetadataChange, WriteError};
use flipwave_isa::Pc;

/// A code object with three kernels, a constant, and additional assembly.
fn library(additional: &str) -> CodeObject {
    let mut text = String::from(".text\n");
    for name in ["first", "second", "third"] {
        text += &format!(
            ".globl {name}\n.protected {name}\n.p2align 8\n.type {name},@function\n{name}:\n\
             v_mov_b32 v0, 7\n.Llabel_{name}: s_endpgm\n.size {name}, .-{name}\n"
        );
    }
    text += ".section .rodata\nconstant: .quad 42\n";
    for name in ["first", "second", "third"] {
        text += &format!(
            ".p2align 6\n.amdhsa_kernel {name}\n.amdhsa_next_free_vgpr 8\n\
             .amdhsa_next_free_sgpr 8\n.amdhsa_accum_offset 8\n.end_amdhsa_kernel\n"
        );
    }
    let kernels = ["first", "second", "third"].map(|name| {
        format!(
            "  - .name: {name}\n    .symbol: {name}.kd\n    .kernarg_segment_size: 8\n    \
             .kernarg_segment_align: 8\n    .group_segment_fixed_size: 0\n    \
             .private_segment_fixed_size: 0\n    .wavefront_size: 64\n    .sgpr_count: 8\n    \
             .vgpr_count: 8\n    .max_flat_workgroup_size: 256\n"
        )
    });
    text += &format!(
        ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.target: \
         amdgcn-amd-amdhsa--gfx90a\namdhsa.kernels:\n{}...\n.end_amdgpu_metadata\n{additional}",
        kernels.concat()
    );
    CodeObject::parse(&assemble(&text, "gfx90a").bytes).expect("a code object")
}

#[test]
fn extracted_kernel_equals_the_original() {
    let library = library("");
    assert!(library.can_extract_kernels());
    let second = library.kernel("second").expect("a kernel");
    let index = library.kernels().iter().position(|kernel| kernel == second).expect("its index");
    let code = second.entry().0..second.entry().0 + second.code_size;
    let extracted =
        library.extract_kernels(&[index], std::slice::from_ref(&code)).expect("a code object");
    assert_eq!(extracted.kernels(), std::slice::from_ref(second));
    assert_eq!(extracted.target(), library.target());
    assert_eq!(extracted.metadata(), library.metadata());
    let length = (code.end - code.start) as usize;
    let bytes = |object: &CodeObject| object.bytes_at(second.entry(), length).map(<[u8]>::to_vec);
    assert_eq!(bytes(&extracted), bytes(&library));
    // Constants are present; code of other kernels is not.
    let rodata = library.section(".rodata").expect("constants");
    assert_eq!(extracted.bytes_at(Pc(rodata.address), 8), library.bytes_at(Pc(rodata.address), 8));
    let first = library.kernel("first").expect("a kernel").entry();
    assert!(library.bytes_at(first, 4).is_some() && extracted.bytes_at(first, 4).is_none());
    assert!(extracted.symbols().iter().all(|symbol| !symbol.name.contains("first")));
    let lowest = extracted.segments().first().map(|segment| segment.address);
    assert_eq!(lowest, Some(0), "AMD's loader requires contents at address 0");
    // LLVM reads the file without warnings.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("extracted.co");
    std::fs::write(&file, extracted.bytes()).expect("a writable folder");
    let text = run_without_warnings(llvm("llvm-readelf").arg("-aW").arg(&file));
    assert_eq!(text.matches("second.kd").count(), 3, "two symbol tables and the note:\n{text}");
    run_without_warnings(llvm("llvm-objdump").arg("-d").arg(&file));
    // The result can be edited.
    let mut editor = Editor::new(&extracted);
    let change = MetadataChange { vgpr_count: Some(16), ..MetadataChange::default() };
    editor.set_metadata(0, change).expect("a kernel");
    let written = editor.finish().expect("a code object").object;
    assert_eq!(written.kernels()[0].metadata.vgpr_count, Some(16));
    assert_eq!(bytes(&written), bytes(&library));
}

/// A second copy would have its own variables, and addresses in data refer to one copy only.
#[test]
fn code_with_variables_or_addresses_in_data_cannot_be_extracted() {
    for additional in [
        ".data\n.globl variable\nvariable: .quad 1\n",
        ".bss\n.globl variable\nvariable: .zero 8\n",
        ".section .data.rel.ro,\"aw\"\n.globl table\ntable: .quad first\n",
    ] {
        let library = library(additional);
        assert!(!library.can_extract_kernels(), "{additional}");
        let result = library.extract_kernels(&[0], &[]);
        assert!(matches!(result, Err(WriteError::Unsupported { .. })), "{additional}");
    }
    // The compilation unit ID of HIP is not a variable.
    let unit_id = ".bss\n.globl __hip_cuid_1\n.type __hip_cuid_1,@object\n.size __hip_cuid_1, 1\n\
                 __hip_cuid_1: .zero 1\n";
    assert!(library(unit_id).can_extract_kernels());
}
