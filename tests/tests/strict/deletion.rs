//! Negative control of waits and hazards: removes each `s_waitcnt` and `s_nop` of a compiled kernel in
//! turn, which the strict level must detect.

use super::hazards;
use flipwave_campaigns::{Campaign, Code, Compiler, prepare};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::flow::Disassembly;
use flipwave_injector::Workload;
use flipwave_injector_amdgpu::golden_strict;
use flipwave_isa::{Generation, Inst, Pc};
use flipwave_sim::strict::{Rule, StrictOptions};
use flipwave_tests::{
    MACHINES, Machine, TestProgram, campaign_target, cases, clean, compile_for, examples_folder,
    kernels, kernels_mut, machines,
};
use std::path::Path;

/// Executable instructions of a code object, by ascending address.
fn instructions(object: &CodeObject) -> Vec<Inst> {
    let program = Disassembly::read(object).unwrap_or_else(|error| panic!("{error}"));
    program.executable_insts().map(|(_, inst)| inst.clone()).collect()
}

/// Replaces bytes at an address.
fn patched(code_object: &[u8], pc: Pc, bytes: &[u8]) -> Vec<u8> {
    let object = CodeObject::parse(code_object).expect("a code object");
    let there = object.bytes_at(pc, bytes.len()).expect("code");
    let offset = there.as_ptr() as usize - object.bytes().as_ptr() as usize;
    let mut patched = code_object.to_vec();
    patched[offset..offset + bytes.len()].copy_from_slice(bytes);
    patched
}

/// `s_nop` with the given number of wait states.
fn nop(wait_states: u8) -> [u8; 4] {
    [wait_states - 1, 0, 0x80, 0xbf]
}

/// Returns `true` if a program violates one of `rules`.
fn breaks(workload: &Workload, rules: &[Rule]) -> bool {
    let (_, violations) =
        golden_strict(workload, StrictOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    violations.iter().any(|violation| rules.contains(&violation.rule()))
}

/// A campaign's program with kernels from another code object.
fn prepared(campaign: &Campaign, code: &Path) -> Workload {
    let mut campaign = campaign.clone();
    for launch in &mut kernels_mut(&mut campaign).launches {
        launch.code = Code::Object { path: code.to_owned() };
    }
    prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload
}

/// Removes each wait of the examples on a machine. Returns the number of detected removals, and the
/// undetected ones, with `true` if a barrier follows.
fn waits_taken_out(machine: Machine, names: &[&str]) -> (usize, Vec<(String, bool)>) {
    let (mut missed, mut not_missed) = (0, Vec::new());
    for name in names {
        let file = examples_folder().join(format!("{name}.yaml"));
        let mut campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        campaign.target = campaign_target(&machine.target());
        let Code::Source { path, options } = &kernels(&campaign).launches[0].code else {
            unreachable!()
        };
        let machine_options = machine.options().iter().map(|&option| option.to_owned());
        let options: Vec<String> = options.iter().cloned().chain(machine_options).collect();
        let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
        let code = compiler
            .compile(path, &options, &machine.target())
            .unwrap_or_else(|error| panic!("{error}"));
        let object = CodeObject::parse(&code).expect("a code object");
        let folder = tempfile::tempdir().expect("a folder");
        let changed = folder.path().join("changed.co");
        for pair in instructions(&object).windows(2) {
            let [wait, next] = pair else { continue };
            let name = wait.operation.name();
            if name != "s_waitcnt" && !(name.starts_with("s_wait_") && name.ends_with("cnt")) {
                continue;
            }
            std::fs::write(&changed, patched(&code, wait.pc, &nop(1))).expect("a file");
            let workload = prepared(&campaign, &changed);
            if breaks(&workload, &[Rule::WaitCounter, Rule::LdsAtBarrier]) {
                missed += 1;
            } else {
                let is_before_barrier = next.operation.name().starts_with("s_barrier");
                not_missed.push((format!("{name} {}: {}", wait.pc, wait.text), is_before_barrier));
            }
        }
    }
    println!("{machine}: {missed} waits are missed, not these: {not_missed:#?}");
    (missed, not_missed)
}

/// Undetected removals are waits before barriers after which no other wave accesses the same LDS, and
/// waits that are redundant on the path taken.
#[test]
fn removed_waits_are_detected_if_needed() {
    let all = ["vector_add", "saxpy", "stencil", "reduction", "scan", "matmul"];
    let (missed, not_missed) = waits_taken_out(MACHINES[0], &all);
    assert!(missed >= 5 * not_missed.len(), "{missed} missed, not {not_missed:#?}");
    let elsewhere = not_missed.iter().filter(|(_, is_before_barrier)| !is_before_barrier);
    assert!(elsewhere.count() <= 2, "{not_missed:#?}");
}

#[test]
fn removed_waits_are_detected_on_other_machines() {
    let strict_machines = machines().skip(1).filter(|machine| machine.has_strict_level());
    for machine in cases(strict_machines, 3) {
        let (missed, not_missed) =
            waits_taken_out(machine, &["vector_add", "stencil", "reduction", "scan"]);
        assert!(missed >= 3 * not_missed.len(), "{machine}: {missed} missed, not {not_missed:#?}");
    }
}

/// From gfx11 on, other instructions than s_nop mitigate hazards.
#[test]
fn removed_mitigations_are_detected() {
    let has_them =
        |machine: &Machine| ["gfx1100", "gfx1201"].contains(&machine.target().processor());
    for machine in MACHINES.into_iter().filter(has_them) {
        let mut taken_out = 0;
        for level in ["-O0", "-O3"] {
            let code = compile_for(machine, "roots.cl", &[level]);
            let object = CodeObject::parse(&code).expect("a code object");
            let workload = |code: &[u8]| {
                let mut program = TestProgram::new(code);
                let out = program.output(&[0u32; 64]);
                program.launch("roots", [64, 1, 1], [64, 1, 1], &[out]);
                program.workload()
            };
            clean(&workload(&code));
            for inst in instructions(&object) {
                if ["s_waitcnt_depctr", "s_wait_alu"].contains(&inst.operation.name()) {
                    let changed = patched(&code, inst.pc, &nop(1));
                    let is_missed = breaks(&workload(&changed), &[Rule::ManualHazard]);
                    // On gfx12, compilers wait for registers that any path to this point may have read.
                    let may_be_spare = machine.target().generation() == Generation::Gfx12;
                    let place = format!("{machine} {level} {}: {}", inst.pc, inst.text);
                    assert!(is_missed || may_be_spare, "{place}");
                    taken_out += usize::from(is_missed);
                }
            }
        }
        assert!(taken_out > 0, "{machine}");
    }
}

/// Shortens each `s_nop` by one wait state; moves an `s_nop` of a single wait state before the preceding
/// instructions.
fn wait_states_taken_out(machine: Machine) {
    /// Maximum distance of hazards.
    const REACH: usize = 19;
    let code = compile_for(machine, "hazards.cl", &["-O3"]);
    assert!(!breaks(&hazards(&code), &[Rule::ManualHazard]));
    let object = CodeObject::parse(&code).expect("a code object");
    let instructions = instructions(&object);
    let targets: Vec<Pc> = instructions.iter().filter_map(|inst| inst.branch_target).collect();
    let (mut missed, mut not_missed) = (0, Vec::new());
    for (index, inst) in instructions.iter().enumerate() {
        if inst.operation.name() != "s_nop" {
            continue;
        }
        let changed = match inst.immediate.unwrap_or_default() as u8 {
            0 => {
                let movable = instructions[..index].iter().rev().take_while(|before| {
                    let name = before.operation.name();
                    let is_start = targets.contains(&before.pc) || before.flags.branch;
                    !is_start && name != "s_endpgm" && name != "s_getpc_b64"
                });
                let Some(first) = movable.take(REACH).last() else { continue };
                let length = (inst.pc.0 - first.pc.0) as usize;
                let bytes = object.bytes_at(first.pc, length + 4).expect("code");
                patched(&code, first.pc, &[&bytes[length..], &bytes[..length]].concat())
            }
            more => patched(&code, inst.pc, &nop(more)),
        };
        if breaks(&hazards(&changed), &[Rule::ManualHazard]) {
            missed += 1;
        } else {
            not_missed.push(format!("{}: {}", inst.pc, inst.text));
        }
    }
    println!("{machine}: {missed} are missed, not {not_missed:#?}");
    assert!(missed > 5 && not_missed.is_empty(), "{missed} missed, not {not_missed:#?}");
}

#[test]
fn removed_wait_states_are_detected() {
    for machine in machines() {
        if ["gfx90a", "gfx942"].contains(&machine.target().processor()) {
            wait_states_taken_out(machine);
        }
    }
}
