//! Negative control: errors planted in rewritten code are found.

use super::{Kernel, run};
use crate::choices::{Choices, random_bytes};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::checker;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_hooks::rewrite::Rewritten;
use flipwave_isa::{Inst, Isa, Pc, Register};
use std::time::Instant;

/// A possible error of the rewriter.
#[derive(Clone, Copy, Debug)]
enum Planted {
    /// A wait is missing in inserted code.
    Wait,
    /// A value is not saved, restored, or passed to a hook.
    Move,
    /// EXEC is not changed or not restored.
    Exec,
    /// A branch of the program targets the next word.
    Branch,
}

/// Number of kernels; each kind of error must be found in some of them.
const KERNELS: u64 = 40;

#[test]
fn planted_errors_are_found() {
    for planted in [Planted::Wait, Planted::Move, Planted::Exec, Planted::Branch] {
        let clock = Instant::now();
        let (mut tried, mut found) = (0, 0);
        for number in 0..KERNELS {
            let bytes = random_bytes(number, 3000);
            let Some(is_found) = is_found(planted, &mut Choices::new(&bytes)) else { continue };
            tried += 1;
            found += u32::from(is_found);
            if found == 1 && is_found {
                println!("{planted:?} found after {:?}, kernel {number}", clock.elapsed());
            }
            // Most inserted instructions have no effect, because most hooks do nothing.
            if found == 3 {
                break;
            }
        }
        println!("{planted:?}: {found} of {tried} found");
        assert!(found >= 3, "{planted:?}: {found} of {tried} found");
    }
}

/// Plants an error in a random kernel with random hooks. Returns `true` if it is found, and `None` if there
/// is no instruction for it.
fn is_found(planted: Planted, choices: &mut Choices<'_>) -> Option<bool> {
    let machine = super::machine(choices);
    let kernel = Kernel::new(machine, 40, choices);
    let rewritten = super::rewritten(&kernel, &mut Vec::new(), choices).ok().flatten()?;
    let wrong = damaged(&kernel, &rewritten, planted, choices)?;
    let program = Disassembly::read(&kernel.object).expect("a program");
    let liveness = Liveness::new(&program);
    let proof = checker::check(
        program.rules().expect("rules"),
        &kernel.object,
        &program,
        &|at: InstIndex| liveness.before(at),
        &wrong.object,
        &wrong.claims,
    );
    let is_right = |rewritten| run(&kernel, rewritten, 1 << 20).is_ok();
    Some(proof.is_err() || (is_right(&rewritten) && !is_right(&wrong)))
}

/// Plants an error at a random instruction.
fn damaged(
    kernel: &Kernel,
    rewritten: &Rewritten,
    planted: Planted,
    choices: &mut Choices<'_>,
) -> Option<Rewritten> {
    let object = &rewritten.object;
    let isa = Isa::with_wave_size(&kernel.machine.target(), kernel.machine.lanes as u8).ok()?;
    let mut places = match planted {
        Planted::Branch => originals(rewritten, &isa),
        _ => inserted(rewritten, &isa),
    };
    places.retain(|inst| is_place(inst, planted));
    let inst = (!places.is_empty()).then(|| &places[choices.below(places.len())])?;
    let mut bytes = object.bytes().to_vec();
    let segment = object.segment_at(inst.pc)?;
    let at = (segment.file_offset() + inst.pc.0 - segment.address) as usize;
    if matches!(planted, Planted::Branch) {
        bytes[at] = bytes[at].wrapping_add(1);
    } else {
        let nothing = isa.assemble("s_nop 0").ok()?.repeat(usize::from(inst.size) / 4);
        bytes[at..at + nothing.len()].copy_from_slice(&nothing);
    }
    let object = CodeObject::parse(&bytes).ok()?;
    Some(Rewritten { object, ..rewritten.clone() })
}

/// The branches of the original code at their new addresses.
fn originals(rewritten: &Rewritten, isa: &Isa) -> Vec<Inst> {
    let places = rewritten.claims.instructions.iter().flatten();
    let word = |pc: &Pc| isa.decode(rewritten.object.bytes_at(*pc, 4)?, *pc).ok();
    // Branches are one word.
    places.filter_map(word).collect()
}

fn inserted(rewritten: &Rewritten, isa: &Isa) -> Vec<Inst> {
    let mut all = Vec::new();
    for inserted in &rewritten.claims.inserted {
        let mut pc = inserted.range.start;
        while pc < inserted.range.end {
            let left = (inserted.range.end - pc) as usize;
            let bytes = rewritten.object.bytes_at(Pc(pc), left).unwrap_or_default();
            let Ok(inst) = isa.decode(bytes, Pc(pc)) else { break };
            pc += u64::from(inst.size);
            all.push(inst);
        }
    }
    all
}

fn is_place(inst: &Inst, planted: Planted) -> bool {
    let writes =
        |wanted: fn(Register) -> bool| inst.writes.iter().any(|range| range.iter().any(wanted));
    let name = inst.operation.name();
    match planted {
        Planted::Wait => name == "s_waitcnt",
        Planted::Move => {
            let moves =
                ["v_mov_b32", "s_mov_b32", "s_mov_b64", "v_readlane_b32", "v_writelane_b32"];
            moves.contains(&name) || name.starts_with("v_accvgpr")
        }
        Planted::Exec => writes(|register| matches!(register, Register::ExecLo)),
        Planted::Branch => inst.branch_target.is_some() && inst.size == 4,
    }
}
