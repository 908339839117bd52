//! The negative control of waits and hazards: each `s_waitcnt` and `s_nop` that a compiler put
//! into a kernel is taken out in turn, and the strict level must miss it.

use crate::hazards;
use flipwave_campaigns::{Campaign, Code, Compiler, prepare};
use flipwave_codeobj::CodeObject;
use flipwave_injector::Workload;
use flipwave_isa::{Inst, Isa, Pc};
use flipwave_sim::strict::Rule;
use flipwave_tests::{compile, examples_folder, gfx90a};
use std::path::Path;

/// The instructions of a code object's functions, without the padding between them.
fn instructions(object: &CodeObject) -> Vec<Inst> {
    let isa = Isa::new(&gfx90a()).expect("an ISA");
    let mut instructions = Vec::new();
    for section in object.text() {
        let (mut pc, end) = (section.address, section.address + section.size);
        while pc < end {
            let bytes = object.bytes_at(Pc(pc), (end - pc) as usize).expect("code");
            let inst = isa.decode(bytes, Pc(pc)).ok();
            let inst = inst.filter(|_| object.function_at(Pc(pc)).is_some());
            pc += inst.as_ref().map_or(4, |inst| u64::from(inst.size));
            instructions.extend(inst);
        }
    }
    instructions
}

/// The code object with other bytes at an address.
fn patched(code_object: &[u8], pc: Pc, bytes: &[u8]) -> Vec<u8> {
    let object = CodeObject::parse(code_object).expect("a code object");
    let there = object.bytes_at(pc, bytes.len()).expect("code");
    let offset = there.as_ptr() as usize - object.bytes().as_ptr() as usize;
    let mut patched = code_object.to_vec();
    patched[offset..offset + bytes.len()].copy_from_slice(bytes);
    patched
}

/// `s_nop` of so many wait states.
fn nop(wait_states: u8) -> [u8; 4] {
    [wait_states - 1, 0, 0x80, 0xbf]
}

/// Whether a program breaks one of these rules.
fn breaks(workload: &Workload, rules: &[Rule]) -> bool {
    let (_, violations) = workload.golden_strict().unwrap_or_else(|error| panic!("{error}"));
    violations.iter().any(|violation| rules.contains(&violation.rule()))
}

/// A campaign's program with its kernels from another code object.
fn prepared(campaign: &Campaign, code: &Path) -> Workload {
    let mut campaign = campaign.clone();
    for launch in &mut campaign.launches {
        launch.code = Code::Object { path: code.to_owned() };
    }
    prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload
}

/// What is not missed are waits before barriers behind which no other wave touches the same LDS,
/// and waits for what has arrived on the way that this run takes.
#[test]
fn every_wait_that_is_taken_out_is_missed_if_the_run_needs_it() {
    let (mut missed, mut not_missed) = (0, Vec::new());
    for name in ["vector_add", "saxpy", "stencil", "reduction", "scan", "matmul"] {
        let file = examples_folder().join(format!("{name}.yaml"));
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let Code::Source { path, options } = &campaign.launches[0].code else { unreachable!() };
        let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
        let code =
            compiler.compile(path, options, &gfx90a()).unwrap_or_else(|error| panic!("{error}"));
        let object = CodeObject::parse(&code).expect("a code object");
        let folder = tempfile::tempdir().expect("a folder");
        let changed = folder.path().join("changed.co");
        for pair in instructions(&object).windows(2) {
            let [wait, next] = pair else { continue };
            if wait.operation.name() != "s_waitcnt" {
                continue;
            }
            std::fs::write(&changed, patched(&code, wait.pc, &nop(1))).expect("a file");
            let workload = prepared(&campaign, &changed);
            if breaks(&workload, &[Rule::WaitCounter, Rule::LdsAtBarrier]) {
                missed += 1;
            } else {
                let is_before_barrier = next.operation.name() == "s_barrier";
                not_missed.push((format!("{name} {}: {}", wait.pc, wait.text), is_before_barrier));
            }
        }
    }
    println!("{missed} waits are missed, not these: {not_missed:#?}");
    assert!(missed >= 5 * not_missed.len(), "{missed} missed, not {not_missed:#?}");
    let elsewhere = not_missed.iter().filter(|(_, is_before_barrier)| !is_before_barrier);
    assert!(elsewhere.count() <= 1, "{not_missed:#?}");
}

/// A longer `s_nop` is made shorter by one wait state; one of a single wait state is moved before
/// the instructions that it stands behind.
#[test]
fn every_wait_state_that_is_taken_out_is_missed() {
    /// How far back hazards reach.
    const REACH: usize = 19;
    let code = compile("hazards.cl", &["-O3"]);
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
    println!("{missed} are missed, not {not_missed:#?}");
    assert!(missed > 5 && not_missed.is_empty(), "{missed} missed, not {not_missed:#?}");
}
