//! Control flow of small programs, compared with the expected graphs.

pub(crate) mod assembled;
pub(crate) mod partial;

use super::{BlockEnd, BlockIndex, Disassembly, FlowError, FunctionIndex};
use assembled::{assemble, descriptor, program, text};
use flipwave_isa::Pc;

const CALL_SECOND: &str = "
    s_getpc_b64 s[4:5]
    s_add_u32 s4, s4, second@rel32@lo+4
    s_addc_u32 s5, s5, second@rel32@hi+12
    s_swappc_b64 s[30:31], s[4:5]
";

#[test]
fn blocks_end_at_branches_and_start_at_branch_targets() {
    let program = program(
        "gfx90a",
        &[(
            "kernel",
            "s_cmp_eq_u32 s0, 0
             s_cbranch_scc1 skip
             again: s_sub_u32 s0, s0, 1
             s_cmp_eq_u32 s0, 0
             s_cbranch_scc0 again
             skip: s_cbranch_execz end
             s_nop 0
             end: s_endpgm",
        )],
        "",
    );
    assert_eq!(program.graph_text("kernel"), "0>1~2, 1>2~1, 2>3~4, 3>4, 4 EndOfProgram");
    let function = program.named("kernel");
    assert!(function.unresolved.is_empty(), "{:?}", function.unresolved);
    assert_eq!(function.loops.len(), 1);
    assert_eq!(function.loops[0].header, BlockIndex(1));
    let predecessors = |block: u32| program.blocks[BlockIndex(block)].predecessors.clone();
    assert_eq!(predecessors(2), [BlockIndex(0), BlockIndex(1)]);
    assert_eq!(program.block_of(program.find("s_nop")), BlockIndex(3));
}

#[test]
fn call_through_computed_address_is_resolved() {
    for processor in ["gfx90a", "gfx942", "gfx1100"] {
        let functions = [
            ("kernel", &format!("{CALL_SECOND} s_endpgm")[..]),
            ("second", "v_mov_b32 v0, 0\n s_setpc_b64 s[30:31]"),
        ];
        let program = program(processor, &functions, "");
        assert_eq!(program.called("kernel"), ["second"], "{processor}");
        assert_eq!(program.graph_text("kernel"), "0^1, 1 EndOfProgram");
        assert_eq!(program.graph_text("second"), "0 Return");
        assert!(!program.named("second").address_taken);
        let [chain] = program.addresses.as_slice() else { panic!("{:?}", program.addresses) };
        let second = program.kernel(0).map(|kernel| kernel.0 + 1).expect("the kernel is first");
        let entry = program.entry(&program.functions[FunctionIndex(second)]);
        assert_eq!(chain.target, entry);
        assert_eq!(program.inst(chain.low).expect("the sum").operation.name(), "s_add_u32");
        assert_eq!(program.inst(chain.high).expect("the sum").operation.name(), "s_addc_u32");
    }
}

/// Addresses pass through moves, lanes of vector registers, and another call.
#[test]
fn addresses_are_tracked_through_copies_and_spills() {
    let kernel = "
        s_getpc_b64 s[4:5]
        s_add_u32 s6, s4, second@rel32@lo+4
        v_mov_b32 v1, 0
        s_mov_b32 s9, 1
        s_addc_u32 s7, s5, second@rel32@hi+16
        v_writelane_b32 v40, s6, 3
        v_writelane_b32 v40, s7, 4
        s_mov_b64 s[34:35], s[6:7]
        s_swappc_b64 s[30:31], s[34:35]
        v_readlane_b32 s11, v40, 4
        v_readlane_b32 s10, v40, 3
        s_or_saveexec_b64 s[20:21], -1
        v_accvgpr_write_b32 a3, v40
        v_mov_b32 v40, 0
        v_accvgpr_read_b32 v2, a3
        s_mov_b64 exec, s[20:21]
        s_swappc_b64 s[30:31], s[10:11]
        v_readlane_b32 s10, v2, 3
        v_readlane_b32 s11, v2, 4
        s_swappc_b64 s[30:31], s[10:11]
        s_swappc_b64 s[30:31], s[34:35]
        s_endpgm";
    let with = |second: &str| program("gfx90a", &[("kernel", kernel), ("second", second)], "");
    let kept = with("s_setpc_b64 s[30:31]");
    assert_eq!(kept.called("kernel"), ["second"; 4]);
    // Negative control: s34 is callee-saved, but v2 is not.
    let lost = with("v_mov_b32 v2, 0\n s_setpc_b64 s[30:31]");
    assert_eq!(lost.called("kernel"), ["second", "second", "?", "second"]);
}

#[test]
fn return_through_spilled_address_is_recognized() {
    let second = format!(
        "v_writelane_b32 v40, s30, 0
         v_writelane_b32 v40, s31, 1
         {}
         v_readlane_b32 s31, v40, 1
         v_readlane_b32 s30, v40, 0
         s_setpc_b64 s[30:31]",
        CALL_SECOND.replace("second", "third")
    );
    let kernel = format!("{CALL_SECOND} s_endpgm");
    let functions =
        |second| [("kernel", &kernel[..]), ("second", second), ("third", "s_setpc_b64 s[30:31]")];
    let right = program("gfx90a", &functions(&second), "");
    assert_eq!(right.graph_text("second"), "0^1, 1 Return");
    // Negative control: the halves are swapped.
    let wrong = second.replace("s31, v40, 1", "s31, v40, 0");
    let wrong = program("gfx90a", &functions(&wrong), "");
    assert_eq!(wrong.named("second").unresolved.len(), 1);
}

#[test]
fn functions_may_return_through_an_unusual_register_pair() {
    let kernel = "s_call_b64 s[50:51], second\n s_endpgm";
    let program = program("gfx90a", &[("kernel", kernel), ("second", "s_setpc_b64 s[50:51]")], "");
    assert_eq!(program.called("kernel"), ["second"]);
    assert_eq!(program.graph_text("second"), "0 Return");
}

#[test]
fn long_branch_is_resolved() {
    let kernel = "
        s_getpc_b64 s[4:5]
        post: s_add_u32 s4, s4, (far-post)&0xffffffff
        s_addc_u32 s5, s5, (far-post)>>32
        s_setpc_b64 s[4:5]
        s_nop 0
        far: s_getpc_b64 s[4:5]
        back: s_sub_u32 s4, s4, back-start
        s_subb_u32 s5, s5, 0
        s_setpc_b64 s[4:5]
        start: s_endpgm";
    let kernel =
        kernel.replace("s_sub_u32 s4, s4, back-start", "s_add_u32 s4, s4, (start-back)&0xffffffff");
    let kernel = kernel.replace("s_subb_u32 s5, s5, 0", "s_addc_u32 s5, s5, (start-back)>>32");
    let program = program("gfx90a", &[("kernel", &kernel)], "");
    assert_eq!(program.graph_text("kernel"), "0~2, 1>2, 2~3, 3 EndOfProgram");
    assert!(program.named("kernel").unresolved.is_empty());
    assert_eq!(program.addresses.len(), 2);
}

#[test]
fn jump_to_another_function_is_a_tail_call() {
    let jump =
        CALL_SECOND.replace("s_swappc_b64 s[30:31],", "s_setpc_b64").replace("second", "third");
    let kernel = format!("{CALL_SECOND} s_endpgm");
    let functions = [("kernel", &kernel[..]), ("second", &jump), ("third", "s_setpc_b64 s[30:31]")];
    let program = program("gfx90a", &functions, "");
    assert_eq!(program.graph_text("second"), "0 TailCall");
    assert_eq!(program.called("second"), ["third"]);
    assert_eq!(program.graph_text("third"), "0 Return");
    let kernel = program.kernel(0).expect("the kernel");
    assert_eq!(program.reachable(kernel).len(), 3);
}

/// An unknown pointer may refer to any function whose address is in data.
#[test]
fn indirect_call_reaches_functions_whose_address_is_taken() {
    let kernel = "s_load_dwordx2 s[4:5], s[0:1], 0x0
        s_waitcnt lgkmcnt(0)
        s_swappc_b64 s[30:31], s[4:5]
        s_endpgm";
    let functions =
        [("kernel", kernel), ("second", "s_setpc_b64 s[30:31]"), ("third", "s_setpc_b64 s[30:31]")];
    let program = program("gfx90a", &functions, ".data\n.quad second\n");
    assert_eq!(program.called("kernel"), ["?"]);
    assert!(program.named("second").address_taken && !program.named("third").address_taken);
    let call = program.named("kernel").calls[0];
    let callees = program.callees(&call);
    assert_eq!(callees.len(), 1);
    assert_eq!(&*program.functions[callees[0]].name, "second");
}

#[test]
fn call_through_global_offset_table_is_resolved() {
    let kernel = "
        s_getpc_b64 s[4:5]
        s_add_u32 s4, s4, second@gotpcrel32@lo+4
        s_addc_u32 s5, s5, second@gotpcrel32@hi+12
        s_load_dwordx2 s[4:5], s[4:5], 0x0
        s_waitcnt lgkmcnt(0)
        s_swappc_b64 s[30:31], s[4:5]
        s_endpgm";
    let text = text(&[("kernel", kernel), ("second", "s_setpc_b64 s[30:31]")])
        .replace(".hidden second", ".protected second");
    let object = assemble("gfx90a", &(text + &descriptor("gfx90a", "kernel")));
    let program = Disassembly::read(&object).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(program.called("kernel"), ["second"]);
    assert!(!program.named("second").address_taken);
}

#[test]
fn unresolved_control_flow_is_reported() {
    for (body, reason) in [
        ("s_getpc_b64 s[4:5]\n v_mov_b32 v0, s4\n s_endpgm", "used other than"),
        (
            "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, 8\n v_mov_b32 v0, s4\n s_endpgm",
            "only the low half",
        ),
        (
            "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, s6\n s_addc_u32 s5, s5, 0\n s_endpgm",
            "used other than",
        ),
        ("s_setpc_b64 s[4:5]", "unknown address"),
        ("s_cbranch_i_fork s[4:5], out\n out: s_endpgm", "fork stack"),
        ("s_nop 0", "reaches bytes"),
        ("s_branch 0x7000", "not an instruction"),
        (".long 0xffffffff\n s_endpgm", "cannot be decoded"),
    ] {
        let name = if body.starts_with(".long") { "second" } else { "kernel" };
        let functions = if name == "kernel" {
            vec![("kernel", body)]
        } else {
            vec![
                ("kernel", "s_endpgm"),
                ("second", "s_branch out\n.long 0xffffffff\n out: s_endpgm"),
            ]
        };
        let program = program("gfx90a", &functions, "");
        let unresolved = &program.named(name).unresolved;
        let [only] = unresolved.as_slice() else { panic!("{body}: {unresolved:?}") };
        assert!(only.reason.contains(reason), "{body}: {}", only.reason);
    }
}

#[test]
fn padding_belongs_to_no_function() {
    for processor in ["gfx90a", "gfx1100"] {
        let functions =
            [("kernel", "s_endpgm"), ("second", "s_setpc_b64 s[30:31]\n s_nop 0\n .fill 8")];
        let program = program(processor, &functions, ".text\n.fill 64, 4, 0xbf9f0000\n");
        assert_eq!(program.named("kernel").instructions.len(), 1, "{processor}");
        assert_eq!(program.named("second").instructions.len(), 1, "{processor}");
    }
}

#[test]
fn functions_without_symbols_are_found_by_calls() {
    let kernel = format!("{CALL_SECOND} s_endpgm");
    let text = text(&[("kernel", &kernel)])
        + ".p2align 8\nsecond: v_mov_b32 v0, 0\n s_setpc_b64 s[30:31]\n"
        + &descriptor("gfx90a", "kernel");
    let program =
        Disassembly::read(&assemble("gfx90a", &text)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(program.functions.len(), 2);
    assert_eq!(program.called("kernel"), [&*program.functions[FunctionIndex(1)].name]);
    assert_eq!(program.blocks.last().map(|block| block.end), Some(BlockEnd::Return));
}

#[test]
fn outer_loops_come_first_and_irreducible_loops_are_left_out() {
    let nested = program(
        "gfx90a",
        &[(
            "kernel",
            "outer: s_sub_u32 s0, s0, 1
             inner: s_sub_u32 s1, s1, 1
             s_cmp_eq_u32 s1, 0
             s_cbranch_scc0 inner
             s_cmp_eq_u32 s0, 0
             s_cbranch_scc0 outer
             s_endpgm",
        )],
        "",
    );
    let loops = &nested.named("kernel").loops;
    let shape: Vec<_> =
        loops.iter().map(|found| (found.header.0, found.blocks.len(), found.depth)).collect();
    assert_eq!(shape, [(0, 3, 1), (1, 1, 2)]);
    let irreducible = program(
        "gfx90a",
        &[(
            "kernel",
            "s_cbranch_scc0 second
             first: s_nop 0
             second: s_nop 1
             s_cbranch_scc1 first
             s_endpgm",
        )],
        "",
    );
    assert!(irreducible.named("kernel").loops.is_empty());
}

#[test]
fn kernels_of_different_wave_sizes_are_rejected() {
    let with_64_lanes = |text: String| {
        text.replace(".amdhsa_next_free_vgpr", ".amdhsa_wavefront_size32 0\n.amdhsa_next_free_vgpr")
    };
    let text = text(&[("kernel", "s_endpgm"), ("second", "s_endpgm")])
        + &descriptor("gfx1100", "kernel")
        + &with_64_lanes(descriptor("gfx1100", "second"));
    let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n{text}");
    let error = Disassembly::read(&assemble("gfx1100", &text)).expect_err("two wave sizes");
    assert!(matches!(error, FlowError::WaveSizes { .. }), "{error}");
    assert!(error.to_string().contains("kernel") && error.to_string().contains("second"));
}

#[test]
fn kernel_that_does_not_start_with_an_instruction_is_rejected() {
    let text = text(&[("kernel", ".long 0xffffffff\n s_endpgm")]) + &descriptor("gfx90a", "kernel");
    let error = Disassembly::read(&assemble("gfx90a", &text)).expect_err("no instruction");
    assert!(
        matches!(&error, FlowError::NoInstruction { kernel, .. } if kernel == "kernel"),
        "{error}"
    );
}

#[test]
fn instructions_are_found_by_address() {
    let program =
        program("gfx90a", &[("kernel", "s_nop 0\n v_add_u32 v0, 0x12345, v1\n s_endpgm")], "");
    for (index, inst) in program.insts() {
        assert_eq!(program.at(inst.pc), Some(index));
        assert_eq!(program.at(Pc(inst.pc.0 + 1)), None);
    }
}
