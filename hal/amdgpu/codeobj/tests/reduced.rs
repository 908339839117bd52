//! Parts of code objects.

use crate::common::assemble;
use flipwave_codeobj::{CodeObject, Editor, MetadataChange, WriteError};
use flipwave_isa::Pc;

/// Three kernels with a constant, and what else is said.
fn library(more: &str) -> CodeObject {
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
         amdgcn-amd-amdhsa--gfx90a\namdhsa.kernels:\n{}...\n.end_amdgpu_metadata\n{more}",
        kernels.concat()
    );
    CodeObject::parse(&assemble(&text, "gfx90a").bytes).expect("a code object")
}

#[test]
fn a_kernel_by_itself_is_what_it_is_among_others() {
    let library = library("");
    assert!(library.can_be_reduced());
    let second = library.kernel("second").expect("a kernel");
    let index = library.kernels().iter().position(|own| own == second).expect("its index");
    let code = second.entry().0..second.entry().0 + second.code_size;
    let small = library.reduced(&[index], std::slice::from_ref(&code)).expect("a code object");
    assert_eq!(small.kernels(), std::slice::from_ref(second));
    assert_eq!(small.target(), library.target());
    assert_eq!(small.metadata(), library.metadata());
    let length = (code.end - code.start) as usize;
    let bytes = |object: &CodeObject| object.bytes_at(second.entry(), length).map(<[u8]>::to_vec);
    assert_eq!(bytes(&small), bytes(&library));
    // What is read of data is there, and code of others is not.
    let rodata = library.section(".rodata").expect("constants");
    assert_eq!(small.bytes_at(Pc(rodata.address), 8), library.bytes_at(Pc(rodata.address), 8));
    let first = library.kernel("first").expect("a kernel").entry();
    assert!(library.bytes_at(first, 4).is_some() && small.bytes_at(first, 4).is_none());
    assert!(small.symbols().iter().all(|own| !own.name.contains("first")));
    assert_eq!(small.segments().first().map(|own| own.address), Some(0), "AMD's loader wants it");
    // It can be written again.
    let mut editor = Editor::new(&small);
    let change = MetadataChange { vgpr_count: Some(16), ..MetadataChange::default() };
    editor.set_metadata(0, change).expect("a kernel");
    let written = editor.finish().expect("a code object").object;
    assert_eq!(written.kernels()[0].metadata.vgpr_count, Some(16));
    assert_eq!(bytes(&written), bytes(&library));
}

/// Variables would be there twice, and addresses in data are those of one place.
#[test]
fn code_with_variables_or_addresses_in_data_stays_whole() {
    for more in [
        ".data\n.globl variable\nvariable: .quad 1\n",
        ".bss\n.globl variable\nvariable: .zero 8\n",
        ".section .data.rel.ro,\"aw\"\n.globl table\ntable: .quad first\n",
    ] {
        let library = library(more);
        assert!(!library.can_be_reduced(), "{more}");
        let refused = library.reduced(&[0], &[]);
        assert!(matches!(refused, Err(WriteError::Unsupported { .. })), "{more}");
    }
    let named = ".bss\n.globl __hip_cuid_1\n.type __hip_cuid_1,@object\n.size __hip_cuid_1, 1\n\
                 __hip_cuid_1: .zero 1\n";
    assert!(library(named).can_be_reduced());
}
