//! Rules 2 and 3: after each original instruction and from each entry, control passes through
//! inserted code to the original successor, with the original values in all live registers.

mod content;
mod definition;
mod execute;
mod index_mode;
mod scalar;
mod state;
mod vector;
mod walk;

pub use content::Content;
pub use definition::{ComputedJump, Splice, SpliceOrigin};
pub use state::{LaneContents, PreloadedArguments, SymbolicState};

use super::code::ClaimedCode;
use super::context::CheckContext;
use super::entry;
use super::finding::{CheckRule, Finding, Proof};
use crate::dataflow::initialised;
use crate::flow::{FunctionIndex, InstIndex};
use definition::SpliceEnd;
use flipwave_isa::{Register, RegisterSet};
use state::{LaneSet, Location};
use std::collections::{BTreeSet, HashMap};

/// Checks all splices. Returns the counts of the proof, and the indirect jumps in inserted code.
pub fn check(
    context: &CheckContext<'_>,
    code: &ClaimedCode,
    splices: &BTreeSet<Splice>,
    findings: &mut Vec<Finding>,
) -> (Proof, Vec<ComputedJump>) {
    let modes = index_mode::modes(context.program);
    let mut proof = Proof::default();
    let mut untouched = UntouchedFunctions::default();
    let mut jumps = BTreeSet::new();
    for splice in splices {
        let ends = splice_ends(context, splice.to);
        let is_empty = ends.iter().any(|end| end.pc == splice.start);
        if is_empty && !matches!(splice.from, SpliceOrigin::Kernel(_)) {
            continue;
        }
        if code.at(splice.start).is_none() && untouched.contains_target(context, code, splice) {
            continue;
        }
        proof.splices += 1;
        let mut state = SymbolicState::new(context.program.wave_size, modes[splice.to]);
        if let SpliceOrigin::Kernel(kernel) = splice.from {
            entry::initialize(context, kernel, &mut state);
        }
        let walk = walk::SpliceWalk { context, code, splice: *splice, ends: &ends };
        let findings_before = findings.len();
        let reached = walk.run(state, &mut jumps, findings);
        if reached.is_empty() && findings.len() == findings_before {
            let message = "control never returns to the original code";
            let finding = Finding::at(CheckRule::Control, splice.start, message);
            findings.push(finding.for_original(context.old_pc(splice.to)));
        }
        for (end, state) in reached {
            proof.registers += check_registers(context, splice, end, &state, findings);
        }
    }
    (proof, jumps.into_iter().collect())
}

/// The instructions at which a splice to `to` may end: `to` itself or, if it was removed, its
/// original successors.
fn splice_ends(context: &CheckContext<'_>, to: InstIndex) -> Vec<SpliceEnd> {
    let mut ends = Vec::new();
    let mut waiting = vec![(to, RegisterSet::EMPTY)];
    let mut seen = BTreeSet::new();
    while let Some((index, not_written)) = waiting.pop() {
        if !seen.insert(index) {
            continue;
        }
        if let Some(pc) = context.new_pc(index) {
            ends.push(SpliceEnd { index, pc: pc.0, not_written });
            continue;
        }
        let inst = &context.program.instructions[index];
        let not_written = not_written.union(inst.writes.iter().copied().collect());
        let after = inst.pc.0.wrapping_add(inst.size.into());
        let next = [Some(after), inst.branch_target.map(|target| target.0)];
        let next = next.into_iter().flatten().filter_map(|pc| context.original_at(pc));
        waiting.extend(next.map(|next| (next, not_written)));
    }
    ends
}

/// Checks that the live registers have their initial values at the end of a splice. Returns the
/// number of live registers.
fn check_registers(
    context: &CheckContext<'_>,
    splice: &Splice,
    end: &SpliceEnd,
    state: &SymbolicState,
    findings: &mut Vec<Finding>,
) -> usize {
    let live = (context.live)(end.index);
    let mut active = live.active;
    let mut masked = live.masked;
    if let SpliceOrigin::Kernel(index) = splice.from {
        // Other registers are undefined when the kernel starts, even if they are read.
        let kernel = &context.original.kernels()[index];
        let set = initialised(kernel, context.original.target());
        active = active.intersection(set);
        masked = masked.intersection(set);
    }
    if state.exec_changed() {
        active = active.union(masked);
        masked = active;
    }
    for half in [Register::ExecLo, Register::ExecHi].into_iter().take(state.mask_words()) {
        active.insert(half);
    }
    let active = active.difference(end.not_written);
    let masked = masked.difference(end.not_written);
    let mut report = |register: Register, message: &str| {
        let finding = Finding::at(CheckRule::Registers, splice.start, message);
        findings.push(finding.for_original(context.old_pc(end.index)).with_register(register));
    };
    for location in state.changed() {
        match location {
            Location::Scalar(register) if active.contains(register) => {
                report(register, "value not preserved");
            }
            Location::Scalar(register @ Register::Ttmp(_)) => {
                report(register, "inserted code changes a register of the trap handler");
            }
            Location::Vector(LaneSet::Active, register) if active.contains(register) => {
                report(register, "value not preserved in active lanes");
            }
            Location::Vector(LaneSet::Masked, register) if masked.contains(register) => {
                report(register, "value not preserved in masked lanes");
            }
            _ => {}
        }
    }
    if state.mode_changed != 0 && active.contains(Register::Mode) {
        let message = format!("bits {:#x} not preserved", state.mode_changed);
        report(Register::Mode, &message);
    }
    let vectors = masked.intersection(RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS));
    (active.len() + vectors.len()) as usize
}

/// Cache of the functions whose original code is still present, byte for byte. Code that remains in
/// place may transfer control to them.
#[derive(Default)]
struct UntouchedFunctions {
    known: HashMap<FunctionIndex, bool>,
}

impl UntouchedFunctions {
    /// Returns `true` if a splice leads to the original address of its target, in an untouched
    /// function that only refers to untouched functions.
    fn contains_target(
        &mut self,
        context: &CheckContext<'_>,
        code: &ClaimedCode,
        splice: &Splice,
    ) -> bool {
        splice.start == context.old_pc(splice.to).0 && self.contains(context, code, splice.to)
    }

    fn contains(
        &mut self,
        context: &CheckContext<'_>,
        code: &ClaimedCode,
        index: InstIndex,
    ) -> bool {
        let function = context.program.function_of(index);
        if let Some(known) = self.known.get(&function) {
            return *known;
        }
        // Recursive functions are untouched unless proven otherwise.
        self.known.insert(function, true);
        let is_untouched = self.compare(context, code, function);
        self.known.insert(function, is_untouched);
        is_untouched
    }

    fn compare(
        &mut self,
        context: &CheckContext<'_>,
        code: &ClaimedCode,
        function: FunctionIndex,
    ) -> bool {
        let range = context.program.functions[function].instructions;
        let is_same = context.program.instructions[range].iter().all(|inst| {
            let size = inst.size.into();
            code.at(inst.pc.0).is_none()
                && context.original.bytes_at(inst.pc, size) == context.new.bytes_at(inst.pc, size)
        });
        let is_inside = |index: InstIndex| range.contains(index);
        let chains = context.program.addresses.iter().filter(|chain| is_inside(chain.getpc));
        let mut targets = chains.filter_map(|chain| context.original_at(chain.target.0));
        is_same && targets.all(|target| is_inside(target) || self.contains(context, code, target))
    }
}
