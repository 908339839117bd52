//! Programs whose flow is known by hand.

pub(crate) mod assembled;
pub(crate) mod lazily;

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
fn blocks_end_at_branches_and_begin_at_their_targets() {
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
    assert_eq!(program.drawn("kernel"), "0>1~2, 1>2~1, 2>3~4, 3>4, 4 EndOfProgram");
    let function = program.named("kernel");
    assert!(function.unresolved.is_empty(), "{:?}", function.unresolved);
    assert_eq!(function.loops.len(), 1);
    assert_eq!(function.loops[0].header, BlockIndex(1));
    let predecessors = |block: u32| program.blocks[BlockIndex(block)].predecessors.clone();
    assert_eq!(predecessors(2), [BlockIndex(0), BlockIndex(1)]);
    assert_eq!(program.block_of(program.find("s_nop")), BlockIndex(3));
}

#[test]
fn a_call_through_a_computed_address_has_its_callee() {
    for processor in ["gfx90a", "gfx942", "gfx1100"] {
        let functions = [
            ("kernel", &format!("{CALL_SECOND} s_endpgm")[..]),
            ("second", "v_mov_b32 v0, 0\n s_setpc_b64 s[30:31]"),
        ];
        let program = program(processor, &functions, "");
        assert_eq!(program.called("kernel"), ["second"], "{processor}");
        assert_eq!(program.drawn("kernel"), "0^1, 1 EndOfProgram");
        assert_eq!(program.drawn("second"), "0 Return");
        assert!(!program.named("second").address_taken);
        let [chain] = program.addresses.as_slice() else { panic!("{:?}", program.addresses) };
        let second = program.kernel(0).map(|own| own.0 + 1).expect("the kernel is first");
        let entry = program.entry(&program.functions[FunctionIndex(second)]);
        assert_eq!(chain.target, entry);
        assert_eq!(program.inst(chain.low).expect("the sum").operation.name(), "s_add_u32");
        assert_eq!(program.inst(chain.high).expect("the sum").operation.name(), "s_addc_u32");
    }
}

/// Values pass through moves, lanes of vector registers, and another call.
#[test]
fn an_address_is_followed_through_copies_and_spills() {
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
    // The negative control: v2 belongs to the callee, and s34 does not.
    let lost = with("v_mov_b32 v2, 0\n s_setpc_b64 s[30:31]");
    assert_eq!(lost.called("kernel"), ["second", "second", "?", "second"]);
}

#[test]
fn a_return_address_that_was_spilled_is_a_return() {
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
    assert_eq!(right.drawn("second"), "0^1, 1 Return");
    // The negative control: the halves exchanged.
    let wrong = second.replace("s31, v40, 1", "s31, v40, 0");
    let wrong = program("gfx90a", &functions(&wrong), "");
    assert_eq!(wrong.named("second").unresolved.len(), 1);
}

#[test]
fn a_function_may_return_by_another_pair_than_usual() {
    let kernel = "s_call_b64 s[50:51], second\n s_endpgm";
    let program = program("gfx90a", &[("kernel", kernel), ("second", "s_setpc_b64 s[50:51]")], "");
    assert_eq!(program.called("kernel"), ["second"]);
    assert_eq!(program.drawn("second"), "0 Return");
}

#[test]
fn a_long_branch_is_a_branch() {
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
    assert_eq!(program.drawn("kernel"), "0~2, 1>2, 2~3, 3 EndOfProgram");
    assert!(program.named("kernel").unresolved.is_empty());
    assert_eq!(program.addresses.len(), 2);
}

#[test]
fn a_jump_into_another_function_is_a_tail_call() {
    let jump =
        CALL_SECOND.replace("s_swappc_b64 s[30:31],", "s_setpc_b64").replace("second", "third");
    let kernel = format!("{CALL_SECOND} s_endpgm");
    let functions = [("kernel", &kernel[..]), ("second", &jump), ("third", "s_setpc_b64 s[30:31]")];
    let program = program("gfx90a", &functions, "");
    assert_eq!(program.drawn("second"), "0 TailCall");
    assert_eq!(program.called("second"), ["third"]);
    assert_eq!(program.drawn("third"), "0 Return");
    let kernel = program.kernel(0).expect("the kernel");
    assert_eq!(program.reachable(kernel).len(), 3);
}

/// Of a pointer in memory nobody knows where it leads; it is one of the functions whose address
/// data have.
#[test]
fn a_pointer_may_be_any_function_whose_address_is_taken() {
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
fn a_pointer_from_the_global_offset_table_has_its_callee() {
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
fn what_is_not_understood_is_said() {
    for (body, reason) in [
        ("s_getpc_b64 s[4:5]\n v_mov_b32 v0, s4\n s_endpgm", "used other than"),
        (
            "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, 8\n v_mov_b32 v0, s4\n s_endpgm",
            "low half alone",
        ),
        (
            "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, s6\n s_addc_u32 s5, s5, 0\n s_endpgm",
            "used other than",
        ),
        ("s_setpc_b64 s[4:5]", "not known"),
        ("s_cbranch_i_fork s[4:5], out\n out: s_endpgm", "fork stack"),
        ("s_nop 0", "runs on"),
        ("s_branch 0x7000", "no instruction"),
        (".long 0xffffffff\n s_endpgm", "no instruction"),
    ] {
        let name = if body.starts_with(".long") { "second" } else { "kernel" };
        let functions = match name {
            "kernel" => vec![("kernel", body)],
            _ => vec![
                ("kernel", "s_endpgm"),
                ("second", "s_branch out\n.long 0xffffffff\n out: s_endpgm"),
            ],
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
fn functions_without_symbols_are_found_by_their_calls() {
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
fn nested_loops_come_outer_first_and_a_loop_with_two_ways_in_is_none() {
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
        loops.iter().map(|own| (own.header.0, own.blocks.len(), own.depth)).collect();
    assert_eq!(shape, [(0, 3, 1), (1, 1, 2)]);
    let two_ways = program(
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
    assert!(two_ways.named("kernel").loops.is_empty());
}

#[test]
fn kernels_of_different_wave_sizes_are_refused() {
    let other = |text: String| {
        text.replace(".amdhsa_next_free_vgpr", ".amdhsa_wavefront_size32 0\n.amdhsa_next_free_vgpr")
    };
    let text = text(&[("kernel", "s_endpgm"), ("second", "s_endpgm")])
        + &descriptor("gfx1100", "kernel")
        + &other(descriptor("gfx1100", "second"));
    let text = format!(".amdgcn_target \"amdgcn-amd-amdhsa--gfx1100\"\n{text}");
    let error = Disassembly::read(&assemble("gfx1100", &text)).expect_err("two wave sizes");
    assert!(matches!(error, FlowError::WaveSizes { .. }), "{error}");
    assert!(error.to_string().contains("kernel") && error.to_string().contains("second"));
}

#[test]
fn a_kernel_that_begins_with_no_instruction_is_refused() {
    let text = text(&[("kernel", ".long 0xffffffff\n s_endpgm")]) + &descriptor("gfx90a", "kernel");
    let error = Disassembly::read(&assemble("gfx90a", &text)).expect_err("no instruction");
    assert!(
        matches!(&error, FlowError::NoInstruction { kernel, .. } if kernel == "kernel"),
        "{error}"
    );
}

#[test]
fn instructions_are_found_by_their_address() {
    let program =
        program("gfx90a", &[("kernel", "s_nop 0\n v_add_u32 v0, 0x12345, v1\n s_endpgm")], "");
    for (index, inst) in program.insts() {
        assert_eq!(program.at(inst.pc), Some(index));
        assert_eq!(program.at(Pc(inst.pc.0 + 1)), None);
    }
}
