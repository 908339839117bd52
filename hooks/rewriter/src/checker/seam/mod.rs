//! Rules 2 and 3: from each original instruction, and from each entry, control comes through
//! inserted code to where it came before, and finds what it found there.

mod content;
mod execute;
mod index;
mod scalar;
mod state;
mod vector;
mod walk;

pub use content::Content;
pub use state::{PreloadedArguments, SymbolicState};

use super::Question;
use super::code::{ClaimedCode, Owner};
use super::entry;
use super::finding::{CheckRule, Finding, Proof};
use super::originals::{Seam, SeamOrigin};
use crate::dataflow::initialised;
use crate::flow::{FunctionIndex, InstIndex};
use flipwave_isa::{Register, RegisterSet};
use state::{Location, Plane};
use std::collections::{BTreeSet, HashMap};

/// Checks all seams.
pub fn check(
    question: &Question<'_>,
    code: &ClaimedCode,
    seams: &BTreeSet<Seam>,
    findings: &mut Vec<Finding>,
) -> (Proof, Vec<ComputedJump>) {
    let modes = index::modes(question.program);
    let mut proof = Proof::default();
    let mut copies = Copies::default();
    let mut jumps = BTreeSet::new();
    for seam in seams {
        let ends = ends(question, seam.to);
        // Nothing lies between.
        if !matches!(seam.from, SeamOrigin::Kernel(_))
            && ends.iter().any(|end| end.pc == seam.start)
        {
            continue;
        }
        if code.at(seam.start).is_none() && copies.is_untouched(question, code, seam) {
            continue;
        }
        proof.seams += 1;
        let mut state = SymbolicState::new(question.program.wave_size, modes[seam.to]);
        if let SeamOrigin::Kernel(kernel) = seam.from {
            entry::initialize(question, kernel, &mut state);
        }
        let walk = walk::SeamWalk { question, code, seam: *seam, ends: &ends };
        let found = findings.len();
        let reached = walk.run(state, &mut jumps, findings);
        if reached.is_empty() && findings.len() == found {
            let what = "control never comes back to the original code";
            let finding = Finding::at(CheckRule::Control, seam.start, what);
            findings.push(finding.of(question.old(seam.to)));
        }
        for (end, state) in reached {
            proof.registers += compare(question, seam, end, &state, findings);
        }
    }
    (proof, jumps.into_iter().collect())
}

/// Where inserted code jumps by an address in registers: from and to, in the new code.
pub type ComputedJump = (u64, u64);

/// An original instruction at which a seam may end.
#[derive(Clone, Debug)]
pub struct End {
    /// The instruction.
    index: InstIndex,
    /// Its new address.
    pc: u64,
    /// What instructions wrote that are no longer on the way to it.
    not_written: RegisterSet,
}

/// Where control goes that went to an original instruction: to itself or, where it was removed,
/// to where control went from it.
fn ends(question: &Question<'_>, to: InstIndex) -> Vec<End> {
    let mut ends = Vec::new();
    let mut waiting = vec![(to, RegisterSet::EMPTY)];
    let mut seen = BTreeSet::new();
    while let Some((index, not_written)) = waiting.pop() {
        if !seen.insert(index) {
            continue;
        }
        if let Some(pc) = question.place(index) {
            ends.push(End { index, pc: pc.0, not_written });
            continue;
        }
        let inst = &question.program.instructions[index];
        let not_written = not_written.union(inst.writes.iter().copied().collect());
        let after = inst.pc.0.wrapping_add(inst.size.into());
        let next = [Some(after), inst.branch_target.map(|target| target.0)];
        let next = next.into_iter().flatten().filter_map(|pc| question.original_at(pc));
        waiting.extend(next.map(|next| (next, not_written)));
    }
    ends
}

/// Compares what is at the end of a seam with what was at its beginning, as far as it is live;
/// gives the number of registers that are.
fn compare(
    question: &Question<'_>,
    seam: &Seam,
    end: &End,
    state: &SymbolicState,
    findings: &mut Vec<Finding>,
) -> usize {
    let live = (question.live)(end.index);
    let mut active = live.active;
    let mut masked = live.masked;
    if let SeamOrigin::Kernel(index) = seam.from {
        // What the hardware does not set holds nothing yet, whatever may be read of it.
        let kernel = &question.original.kernels()[index];
        let set = initialised(kernel, question.original.target());
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
    let mut report = |register: Register, what: &str| {
        let finding = Finding::at(CheckRule::Registers, seam.start, what);
        findings.push(finding.of(question.old(end.index)).on(register));
    };
    for location in state.changed() {
        match location {
            Location::Scalar(register) if active.contains(register) => {
                report(register, "it does not hold what it held");
            }
            Location::Scalar(register @ Register::Ttmp(_)) => {
                report(register, "it belongs to the trap handler");
            }
            Location::Vector(Plane::Active, register) if active.contains(register) => {
                report(register, "its active lanes do not hold what they held");
            }
            Location::Vector(Plane::Masked, register) if masked.contains(register) => {
                report(register, "its masked lanes do not hold what they held");
            }
            _ => {}
        }
    }
    if state.mode_changed != 0 && active.contains(Register::Mode) {
        let what = format!("the bits {:#x} of it may have changed", state.mode_changed);
        report(Register::Mode, &what);
    }
    let vectors = masked.intersection(RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS));
    (active.len() + vectors.len()) as usize
}

/// Functions whose old code is still there, byte for byte: code that was left in place may go on
/// to them.
#[derive(Default)]
struct Copies {
    known: HashMap<FunctionIndex, bool>,
}

impl Copies {
    /// Whether a seam leads to the original instruction at its original address, in a function
    /// that is as it was and leads nowhere else.
    fn is_untouched(&mut self, question: &Question<'_>, code: &ClaimedCode, seam: &Seam) -> bool {
        seam.start == question.old(seam.to).0 && self.function_of(question, code, seam.to)
    }

    fn function_of(
        &mut self,
        question: &Question<'_>,
        code: &ClaimedCode,
        index: InstIndex,
    ) -> bool {
        let function = question.program.function_of(index);
        if let Some(known) = self.known.get(&function) {
            return *known;
        }
        // Functions that call each other are untouched unless one of them is not.
        self.known.insert(function, true);
        let is_untouched = self.is_same(question, code, function);
        self.known.insert(function, is_untouched);
        is_untouched
    }

    fn is_same(
        &mut self,
        question: &Question<'_>,
        code: &ClaimedCode,
        function: FunctionIndex,
    ) -> bool {
        let range = question.program.functions[function].instructions;
        let is_same = question.program.instructions[range].iter().all(|inst| {
            let size = inst.size.into();
            code.at(inst.pc.0).is_none()
                && question.original.bytes_at(inst.pc, size) == question.new.bytes_at(inst.pc, size)
        });
        let own = |index: InstIndex| range.contains(index);
        let chains = question.program.addresses.iter().filter(|chain| own(chain.getpc));
        let mut targets = chains.filter_map(|chain| question.original_at(chain.target.0));
        is_same && targets.all(|target| own(target) || self.function_of(question, code, target))
    }
}

/// Whether an instruction of the new code is inserted.
fn range_of(owner: Owner) -> Option<usize> {
    match owner {
        Owner::Original(_) => None,
        Owner::Inserted(range) => Some(range),
    }
}
