//! Requests that are refused, and requests with special cases.

use super::{add, call, compiler};
use crate::flow::{Disassembly, InstIndex};
use crate::hook::Argument;
use crate::layout::Placement;
use crate::layout::tests::sample::Sample;
use crate::registers::RegisterRun;
use crate::rewrite::{HookCall, Instrumentation, Report, RewriteError, SourceIndex, When};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Register, RegisterRange, RegisterSet};

const KERNEL: &str = "s_mov_b32 s4, 3\nv_mov_b32 v1, v0\ns_endpgm\n";

fn sample(processor: &str, body: &str) -> CodeObject {
    Sample::new(processor, &[("k", body.to_owned())], "", "").object
}

/// Rewrites a kernel with a hook call before its second instruction.
fn attempt(
    processor: &str,
    hooks: &str,
    make: impl FnOnce(SourceIndex) -> HookCall,
) -> Result<Report, String> {
    let object = sample(processor, KERNEL);
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    let source = add(&mut instrumentation, hooks);
    instrumentation.call(InstIndex(1), When::Before, make(source));
    let new = instrumentation.rewrite(compiler()).map_err(|error| error.to_string())?;
    Ok(new.report)
}

fn register(name: &str) -> RegisterRange {
    RegisterRange::new(name.parse().expect("a register"), 1)
}

/// The reason why the only call was refused.
#[track_caller]
fn reason(report: Result<Report, String>) -> String {
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.placed, report.refused.len()), (0, 1));
    report.refused[0].reason.clone()
}

/// Without rules, nothing would be padded, and the checker would prove nothing.
#[test]
fn targets_without_rules_are_read_but_not_rewritten() {
    let processor = "gfx803";
    let object = sample(processor, KERNEL);
    assert_eq!(Disassembly::read(&object).expect("code").instructions.len(), 3);
    let error = Instrumentation::new(&object).err().expect("refused");
    assert!(matches!(error, RewriteError::NoRules(_)), "{error}");
    for words in [processor, "of 64 lanes", "cannot rewrite", "gfx9 to gfx12"] {
        assert!(error.to_string().contains(words), "`{words}`: {error}");
    }
}

/// Hooks would have to preserve registers that their own code cannot name.
#[test]
fn code_with_registers_above_v255_is_refused() {
    let object = sample("gfx1250", "s_set_vgpr_msb 1\nv_mov_b32 v0, v1\ns_endpgm\n");
    let error = Instrumentation::new(&object).err().expect("refused");
    assert!(matches!(error, RewriteError::VgprBanks { .. }), "{error}");
    assert!(error.to_string().contains("above v255"), "{error}");
    // Selecting the first 256 registers changes nothing.
    let object = sample("gfx1250", "s_set_vgpr_msb 0\nv_mov_b32 v0, v1\ns_endpgm\n");
    assert!(Instrumentation::new(&object).is_ok());
}

#[test]
fn unallocated_registers_are_refused_by_name() {
    let hooks = "uint32_t f(uint32_t a) { return a; }";
    let read = |processor, name: &str| {
        let arguments = vec![Argument::Register(register(name))];
        attempt(processor, hooks, |source| call(source, "f", arguments, vec![register("v1")]))
    };
    assert_eq!(read("gfx90a", "v0").expect("rewritten").placed, 1);
    assert_eq!(read("gfx90a", "s4").expect("rewritten").placed, 1);
    assert_eq!(
        reason(read("gfx90a", "v200")),
        "no register v200: the kernel has 32 VGPRs, 0 AccVGPRs and 102 SGPRs"
    );
    assert!(reason(read("gfx1100", "a0")).starts_with("no register a0: the kernel has 32 VGPRs"));
    let write = attempt("gfx90a", hooks, |source| {
        call(source, "f", vec![Argument::Constant(1)], vec![register("v100")])
    });
    assert!(reason(write).starts_with("no register v100: "));
}

#[test]
fn invalid_register_names_are_reported_with_examples() {
    for name in ["s200", "v1024", "foo", "v-1", ""] {
        let error = name.parse::<Register>().expect_err(name).to_string();
        let expected = format!("`{name}` is not a register; expected a name like v3, a0, s12");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn variable_initialized_with_an_address_is_refused_by_name() {
    let hooks = "uint32_t numbers[3] = { 7, 8, 9 };\nuint32_t *second = &numbers[1];\n\
                 uint32_t f(void) { return *second; }";
    let error = attempt("gfx90a", hooks, |source| call(source, "f", vec![], vec![register("v1")]));
    let error = error.expect_err("an error");
    assert!(error.starts_with("hook variable `second` is initialized with an address"), "{error}");
}

#[test]
fn missing_items_are_reported_by_name() {
    let hooks = "void count(void) {}";
    let error = attempt("gfx90a", hooks, |source| call(source, "trace", vec![], vec![]));
    assert_eq!(error.expect_err("no hook"), "hook.c has no function `trace`; it has count");
    let error = attempt("gfx90a", hooks, |_| call(SourceIndex(7), "count", vec![], vec![]));
    assert_eq!(error.expect_err("no source"), "unknown hook source 7; add the source first");
    let object = sample("gfx90a", KERNEL);
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    let error = instrumentation.place("h", Placement::Trampoline).expect_err("no function");
    assert_eq!(error.to_string(), "no function `h`; available functions: k");
    let source = add(&mut instrumentation, hooks);
    instrumentation.call(InstIndex(99), When::Before, call(source, "count", vec![], vec![]));
    let error = instrumentation.rewrite(compiler()).expect_err("no instruction");
    assert_eq!(error.to_string(), "request at instruction 99, but the code has 3 instructions");
}

#[test]
fn wrong_argument_count_is_an_error_and_wrong_size_refuses_the_call() {
    let hooks = "void f(uint32_t a) {}";
    let error = attempt("gfx90a", hooks, |source| call(source, "f", vec![], vec![]));
    let expected = "hook `void f(uint32_t a)` has 1 parameters, but the call passes 0 arguments";
    assert_eq!(error.expect_err("an error"), expected);
    let wide = vec![Argument::Constant(1 << 40)];
    let found = reason(attempt("gfx90a", hooks, |source| call(source, "f", wide, vec![])));
    assert!(found.contains("takes 4 bytes"), "{found}");
}

#[test]
fn invalid_replacement_text_is_reported() {
    let object = sample("gfx90a", KERNEL);
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    instrumentation.replace(InstIndex(1), "v_mov_b32 v1, s200");
    let error = instrumentation.rewrite(compiler()).expect_err("an error").to_string();
    assert!(error.starts_with("`v_mov_b32 v1, s200` does not assemble: "), "{error}");
}

#[test]
fn unmovable_function_stays_unless_moving_is_requested() {
    let object = sample("gfx90a", "s_nop 0\nv_mov_b32 v1, v0\ns_setpc_b64 s[10:11]\n");
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    let source = add(&mut instrumentation, "void f(void) {}");
    instrumentation.call(InstIndex(1), When::Before, call(source, "f", vec![], vec![]));
    let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((new.report.placed, new.report.kernels.len()), (1, 1));
    assert_eq!(new.report.kernels[0].placement, Placement::Trampoline);
    instrumentation.place("k", Placement::Inline).expect("a function");
    let error = instrumentation.rewrite(compiler()).expect_err("an error").to_string();
    assert!(error.starts_with("k: cannot be moved because of"), "{error}");
    assert!(error.contains("use trampolines"), "{error}");
}

#[test]
fn requested_placements_are_used() {
    let object = sample("gfx90a", KERNEL);
    for (requested, expected) in [
        (None, Placement::Inline),
        (Some(Placement::Inline), Placement::Inline),
        (Some(Placement::Trampoline), Placement::Trampoline),
    ] {
        let mut instrumentation = Instrumentation::new(&object).expect("code");
        let source = add(&mut instrumentation, "void f(void) {}");
        instrumentation.call(InstIndex(1), When::Before, call(source, "f", vec![], vec![]));
        if let Some(requested) = requested {
            instrumentation.place("k", requested).expect("a function");
        }
        let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(new.report.kernels[0].placement, expected);
        assert_eq!(new.layout.keeps_old_text(), expected == Placement::Trampoline);
    }
}

#[test]
fn hooks_are_refused_only_if_gpr_index_mode_is_unknown() {
    let indexed = "s_mov_b32 s4, 1\ns_set_gpr_idx_on s4, gpr_idx(SRC0)\n{}v_mov_b32 v1, v2\n\
                   s_set_gpr_idx_off\nv_add_f32 v1, v1, v3\ns_endpgm\n";
    for (between, placed) in [("", 6), ("s_cbranch_scc0 L\ns_set_gpr_idx_off\nL: ", 6)] {
        let object = sample("gfx90a", &indexed.replace("{}", between));
        let mut instrumentation = Instrumentation::new(&object).expect("code");
        let source =
            add(&mut instrumentation, "void f(uint32_t a) { asm volatile(\"\" ::\"v\"(a)); }");
        let count = instrumentation.program().instructions.len() as u32;
        for at in (0..count).map(InstIndex) {
            let arguments = vec![Argument::Constant(1)];
            instrumentation.call(at, When::Before, call(source, "f", arguments, vec![]));
        }
        let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(new.report.placed, placed, "{between}");
        for refused in &new.report.refused {
            assert_eq!(refused.reason, "it is unknown whether GPR-index mode is on here");
        }
        assert_eq!(new.report.refused.len() as u32, count - placed as u32);
    }
}

/// Values that are live only in masked lanes are live in all lanes, because another hook changes EXEC.
#[test]
fn hooks_next_to_a_change_of_exec_preserve_masked_lanes() {
    let masked = "v_mov_b32 v1, 7\ns_mov_b64 s[4:5], exec\ns_mov_b64 exec, 3\ns_nop 0\n\
                  v_mov_b32 v1, 9\ns_mov_b64 exec, s[4:5]\nv_readlane_b32 s6, v1, 5\n\
                  s_store_dword s6, s[0:1], 0x0\ns_endpgm\n";
    for order in [["spread", "same"], ["same", "spread"]] {
        let object = sample("gfx90a", masked);
        let mut instrumentation = Instrumentation::new(&object).expect("code");
        let text = "uint32_t same(uint32_t a) { return a; }\n\
                    void spread(uint32_t a) { asm volatile(\"\" :: \"v\"(a), \"v\"(a + 1), \"v\"(a + 2)); }";
        let source = add(&mut instrumentation, text);
        for function in order {
            let call = match function {
                "same" => {
                    let exec = register("exec_lo");
                    call(source, "same", vec![Argument::Register(exec)], vec![exec])
                }
                _ => call(source, "spread", vec![Argument::Constant(3)], vec![]),
            };
            instrumentation.call(InstIndex(3), When::Before, call);
        }
        let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((new.report.placed, new.report.refused), (2, vec![]));
    }
}

#[test]
fn kernels_that_resize_their_allocation_are_refused() {
    let kernel = |more: &str| format!("v_mov_b32 v1, v0\n{more}v_add_f32 v1, v1, v2\ns_endpgm\n");
    for (more, placed) in [("", true), ("s_alloc_vgpr 24\n", false)] {
        let object = sample("gfx1201", &kernel(more));
        let mut instrumentation = Instrumentation::new(&object).expect("code");
        let source = add(&mut instrumentation, "uint32_t f(uint32_t a) { return a; }");
        let arguments = vec![Argument::Constant(1)];
        instrumentation.call(InstIndex(1), When::Before, call(source, "f", arguments, vec![]));
        let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(new.report.placed, u32::from(placed) as usize, "{more}");
        let mut refused = new.report.refused.iter();
        assert_eq!(refused.any(|refused| refused.reason.contains("s_alloc_vgpr")), !placed);
    }
}

#[test]
fn inserted_text_is_adjacent_and_waits_for_its_registers() {
    let kernel = "global_load_dword v1, v[2:3], off\ns_nop 0\ns_waitcnt vmcnt(0)\nv_mov_b32 v4, v1\ns_endpgm\n";
    let object = sample("gfx90a", kernel);
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    let run = RegisterRun { file: RegisterSet::VGPRS, words: 1, alignment: 1 };
    let reserved = instrumentation.reserve(InstIndex(0), run).expect("free registers");
    let source = add(&mut instrumentation, "void f(uint32_t a) {}");
    let hook = call(source, "f", vec![Argument::Register(reserved)], vec![]);
    instrumentation.call(InstIndex(1), When::Before, hook);
    instrumentation.insert(
        InstIndex(1),
        When::Before,
        &format!("v_mov_b32 {}, v1", reserved.first),
    );
    instrumentation.insert(InstIndex(3), When::After, &format!("v_mov_b32 {}, v4", reserved.first));
    let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(new.report.refused, []);
    let text: Vec<String> = Disassembly::read(&new.object)
        .expect("code")
        .instructions
        .iter()
        .map(|inst| inst.text.trim().to_owned())
        .filter(|text| text != "s_nop 0")
        .collect();
    let expected = [
        "global_load_dword v1, v[2:3], off",
        "s_waitcnt vmcnt(0)",
        &format!("v_mov_b32_e32 {}, v1", reserved.first),
        "s_waitcnt vmcnt(0)",
        "v_mov_b32_e32 v4, v1",
        &format!("v_mov_b32_e32 {}, v4", reserved.first),
        "s_endpgm",
    ];
    assert!(text.starts_with(&expected.map(str::to_owned)), "{text:#?}");
}

/// The code of a kernel after removing its third instruction.
fn without_third(processor: &str, kernel: &str) -> Vec<String> {
    let object = sample(processor, kernel);
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    instrumentation.remove(InstIndex(2));
    let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
    let program = Disassembly::read(&new.object).expect("code");
    program.instructions.iter().map(|inst| inst.text.trim().to_owned()).collect()
}

#[test]
fn removing_a_mitigation_reopens_distant_hazard() {
    let kernel = |between: &str| {
        let far = "s_nop 0\n".repeat(25);
        format!(
            "v_mov_b32 v3, v0\nv_cmpx_gt_u32 v1, v0\n{between}\n{far}\
             v_permlane16_b32 v3, v3, s0, s0\ns_endpgm\n"
        )
    };
    let mitigations = |between: &str| {
        without_third("gfx1100", &kernel(between))
            .iter()
            .filter(|text| *text == "v_mov_b32_e32 v3, v3")
            .count()
    };
    assert_eq!(mitigations("v_mov_b32 v4, v0"), 1);
    assert_eq!(mitigations("v_mov_b32 v4, v0\nv_mov_b32 v4, v0"), 0);
}

#[test]
fn removed_wait_for_late_scalar_read_is_inserted_again() {
    let wait = "s_wait_alu depctr_sa_sdst(0)";
    let kernel = |third: &str, fourth: &str| {
        format!(
            "v_mov_b32 v3, s4\ns_mov_b32 s4, 1\n{third}\n{fourth}\nv_mov_b32 v4, s4\ns_endpgm\n"
        )
    };
    let waits = |third: &str, fourth: &str| {
        let text = without_third("gfx1201", &kernel(third, fourth));
        text.iter().filter(|line| *line == wait).count()
    };
    assert_eq!(waits(wait, "s_nop 0"), 1);
    assert_eq!(waits("s_nop 0", wait), 1);
    // Hazards of the original program are not repaired.
    assert_eq!(waits("s_nop 0", "s_nop 0"), 0);
}

#[test]
fn search_ends_in_an_empty_loop() {
    let kernel = "v_mov_b32 v3, v0\ns_branch start\nround: s_cbranch_scc0 round\n\
                  v_permlane16_b32 v3, v3, s0, s0\ns_endpgm\n\
                  start: v_cmpx_gt_u32 v1, v0\ns_branch round\n";
    let text = without_third("gfx1100", kernel);
    assert!(text.iter().any(|line| line == "v_mov_b32_e32 v3, v3"), "{text:#?}");
}

#[test]
fn mitigation_waits_for_its_operands() {
    let kernel = "v_rcp_f32 v3, v0\nv_cmpx_gt_u32 v1, v0\nv_mov_b32 v4, v0\n\
                  v_permlane16_b32 v3, v3, s0, s0\ns_endpgm\n";
    let expected = [
        "v_rcp_f32_e32 v3, v0",
        "v_cmpx_gt_u32_e32 v1, v0",
        "s_waitcnt_depctr depctr_va_vdst(0)",
        "v_mov_b32_e32 v3, v3",
    ];
    let text = without_third("gfx1100", kernel);
    assert!(text.starts_with(&expected.map(str::to_owned)), "{text:#?}");
}

/// Negative control of the check of inserted text.
#[test]
fn checker_rejects_inserted_text_that_writes_live_registers() {
    let object = sample("gfx90a", "v_mov_b32 v1, v0\nv_mov_b32 v4, v1\ns_endpgm\n");
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    instrumentation.insert(InstIndex(1), When::Before, "v_mov_b32 v1, 0");
    let error = instrumentation.rewrite(compiler()).expect_err("an error").to_string();
    assert!(error.contains("v1"), "{error}");
}

#[test]
fn hooks_do_not_use_reserved_registers() {
    let object = sample("gfx90a", KERNEL);
    let mut instrumentation = Instrumentation::new(&object).expect("code");
    let one = RegisterRun { file: RegisterSet::VGPRS, words: 1, alignment: 1 };
    let mut reserved = Vec::new();
    for _ in 0..20 {
        reserved.extend(instrumentation.reserve(InstIndex(0), one));
    }
    let source =
        add(&mut instrumentation, "uint32_t n;\nvoid f(uint32_t *n) { *n = flipwave_lane(); }");
    let data = Argument::Data { symbol: "n".into(), offset: 0 };
    instrumentation.call(InstIndex(1), When::Before, call(source, "f", vec![data], vec![]));
    let new = instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
    let named: RegisterSet = Disassembly::read(&new.object)
        .expect("code")
        .instructions
        .iter()
        .flat_map(|inst| inst.reads.iter().chain(&inst.writes).copied().collect::<Vec<_>>())
        .collect();
    assert_eq!(reserved.len(), 20);
    assert!(reserved.iter().all(|range| !named.intersects(*range)), "{reserved:?}");
}

#[test]
fn code_in_expert_scheduling_mode_is_refused() {
    let with = |value: u32| {
        let mode = format!("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), {value}\n");
        sample("gfx1201", &format!("{mode}{KERNEL}"))
    };
    let error = Instrumentation::new(&with(2)).err().map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.contains("expert scheduling mode")));
    assert!(Instrumentation::new(&with(0)).is_ok());
}
