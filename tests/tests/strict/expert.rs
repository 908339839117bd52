//! gfx12's expert scheduling mode.

use super::planted::{breaks, keeps};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::Disassembly;
use flipwave_injector::Workload;
use flipwave_injector_amdgpu::golden_strict;
use flipwave_isa::counter::expert::AluWait;
use flipwave_sim::strict::{Finding, Rule, StrictOptions};
use flipwave_tests::{MACHINES, Machine, TestProgram, clean, compile_for, scalar};

const ON: &str = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2";
const OFF: &str = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 0";

fn gfx1201() -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(|machine| machine.target().processor() == "gfx1201")
}

/// Setup, an insufficient wait, a sufficient wait, and the access to the register.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("v_mov_b32 v5, v0", "vm_vsrc(0)", "va_vdst(0)", "global_store_b32 v1, v5, s[2:3]"),
    ("v_mov_b32 v5, v0", "va_vdst(1)", "va_vdst(0)", "ds_store_b32 v1, v5"),
    ("v_mov_b32 v5, v0", "va_vdst(1)", "va_vdst(0)", "global_load_b32 v5, v1, s[2:3]"),
    (
        "v_mov_b32 v5, v0\n v_mov_b32 v6, v0",
        "va_vdst(2)",
        "va_vdst(1)",
        "global_store_b32 v1, v5, s[2:3]",
    ),
    // Units complete out of order with respect to each other.
    (
        "v_rcp_f32 v5, v0\n v_mov_b32 v6, v0",
        "va_vdst(1)",
        "va_vdst(0)",
        "global_store_b32 v1, v5, s[2:3]",
    ),
    // Sources that memory instructions have not yet read.
    ("global_store_b32 v1, v0, s[2:3]", "va_vdst(0)", "vm_vsrc(0)", "v_mov_b32 v0, 0"),
    ("ds_store_b32 v1, v0", "vm_vsrc(1)", "vm_vsrc(0)", "v_mov_b32 v1, 0"),
    ("ds_store_b32 v1, v0\n ds_store_b32 v1, v2", "vm_vsrc(2)", "vm_vsrc(1)", "v_mov_b32 v0, 0"),
    (
        "ds_store_b32 v1, v0\n global_store_b32 v1, v2, s[2:3]",
        "vm_vsrc(1)",
        "vm_vsrc(0)",
        "v_mov_b32 v0, 0",
    ),
];

#[test]
fn missing_s_wait_alu_is_reported_in_expert_mode_only() {
    for machine in gfx1201() {
        for (before, too_little, enough, after) in CASES {
            let with = |mode: &str, wait: &str| {
                format!(
                    ".set lds_bytes, 256\n v_mov_b32 v2, 0\n {mode}\n {before}\n \
                     s_wait_alu depctr_{wait}\nwrong: {after}\n"
                )
            };
            let (wrong, right) = (with(ON, too_little), with(ON, enough));
            let violation = breaks(machine, Rule::WaitCounter, 64, &wrong, &right);
            assert!(matches!(violation.finding, Finding::NotWaitedByExpert { .. }));
            let number = enough.trim_start_matches(|c: char| !c.is_ascii_digit());
            assert!(violation.to_string().contains(&number[..1]), "{violation}");
            // In other modes, the hardware waits.
            keeps(machine, 64, &with(OFF, too_little));
            keeps(machine, 64, &with(&format!("{ON}\n{OFF}"), too_little));
        }
        // Vector operations wait for each other, and completed memory operations have read their sources.
        keeps(machine, 64, &format!("{ON}\n v_rcp_f32 v5, v0\n v_mov_b32 v6, v5\n"));
        keeps(
            machine,
            64,
            &format!(
                "{ON}\n global_load_b32 v5, v1, s[2:3]\n s_wait_loadcnt 0x0\n v_mov_b32 v1, 0\n"
            ),
        );
    }
}

/// Runs the kernel of `expert.cl`.
fn mixed(code: &[u8]) -> Workload {
    let mut program = TestProgram::new(code);
    let out = program.output(&[0f32; 64]);
    let values = program.input(&[1f32; 64]);
    program.launch("mixed", [64, 1, 1], [64, 1, 1], &[out, values, scalar(5u32)]);
    program.workload()
}

fn has_findings(code: &[u8]) -> bool {
    let (_, found) = golden_strict(&mixed(code), StrictOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    found.iter().any(|violation| matches!(violation.finding, Finding::NotWaitedByExpert { .. }))
}

/// Code compiled for the mode violates no rule, but does without its waits. At other optimisation levels,
/// LLVM 22 omits a wait, see docs/strict.md.
#[test]
fn removed_waits_of_compiled_expert_code_are_detected() {
    for machine in gfx1201() {
        let mut missed = 0;
        for level in ["-O2", "-O3"] {
            let options = [level, "-mllvm", "-amdgpu-expert-scheduling-mode"];
            let code = compile_for(machine, "expert.cl", &options);
            clean(&mixed(&code));
            let object = CodeObject::parse(&code).expect("a code object");
            let program = Disassembly::read(&object).expect("code");
            for (_, inst) in program.executable_insts() {
                let Some(wait) = AluWait::of(inst) else { continue };
                if wait.va_vdst.or(wait.vm_vsrc).is_none() {
                    continue;
                }
                let there = object.bytes_at(inst.pc, 4).expect("code");
                let offset = there.as_ptr() as usize - object.bytes().as_ptr() as usize;
                let mut changed = code.clone();
                changed[offset..offset + 4].copy_from_slice(&[0, 0, 0x80, 0xbf]);
                missed += usize::from(has_findings(&changed));
            }
        }
        println!("{machine}: {missed} waits are missed");
        assert!(missed >= 5, "{machine}");
    }
}
