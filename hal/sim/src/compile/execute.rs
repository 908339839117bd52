//! The execution of a compiled block.

use super::block::{Block, Compiled, Plan, Segment};
use super::frame::{Entry, Frame, Return};
use super::workspace::Workspace;
use crate::dispatch::checker::Checker;
use crate::execute::control::Step;
use crate::execute::step::step_in_range;
use crate::instruction::Op;
use crate::memory::Memory;
use crate::wave::Wave;
use flipwave_device::FaultCause;
use std::ptr::NonNull;

/// What a block did.
pub struct Ran {
    /// What it counts as, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub lane_operations: u64,
    /// Whether a segment was left to the interpreter.
    pub is_undone: bool,
    /// Whether a branch was the last that was executed.
    pub has_branched: bool,
    /// Why it stopped, where an instruction has faulted: its device address, and the cause.
    pub fault: Option<(u64, FaultCause)>,
}

impl Block {
    /// Executes the block, and again where it branches to itself, as long as the wave has not executed
    /// more than `until` instructions in all. The wave must be one that it [suits](Block::suits), and
    /// have room for all of its instructions.
    pub fn execute<C: Checker>(
        &self,
        compiled: &Compiled,
        wave: &mut Wave,
        (memory, lds): (&mut dyn Memory, &mut [u8]),
        (workspace, checker): (&mut Workspace, &mut C),
        until: u64,
    ) -> Ran {
        workspace.follow(memory);
        let (before, active, exec) = (wave.executed, wave.active_lanes(), wave.exec());
        let mut frame = Frame::new(
            (self, compiled),
            (&mut *wave, memory, lds),
            (&mut *workspace, &mut *checker),
            until,
        );
        // SAFETY: the block was compiled for the level of its program, which the host has; that it suits
        // and that the workspace is prepared is the caller's part, who looks after both.
        let end = unsafe { frame.enter(compiled.entry()) };
        let (executed, index, pc) = (frame.executed, frame.index as usize, frame.pc);
        let fault = frame.fault.take();
        // Most are executed once, and a division takes as long as some instructions.
        let (own, length) = (executed - before, self.len() as u64);
        let turns = if own == length { 1 } else { own / length };
        let whole = turns * self.lane_operations(self.len(), active);
        let count = |index| whole + self.lane_operations(index, active);
        if self.changes_exec && end == Return::Done {
            // With what follows from it.
            wave.set_exec(wave.exec());
        }
        if turns > 0 {
            checker.executed(wave, self.stretch(), turns, exec);
        }
        match end {
            Return::Done => {
                let has_branched = matches!(self.source.plans.last(), Some(Plan::Branch(_)));
                (wave.executed, wave.pc) = (executed, pc);
                Ran { lane_operations: whole, is_undone: false, has_branched, fault: None }
            }
            Return::Faulted => {
                (wave.executed, wave.pc) = (executed + index as u64 + 1, pc);
                checker.executed_first(wave, self.stretch(), index, exec);
                let fault = fault.map(|cause| (self.source.places[index], cause));
                let lane_operations = count(index + 1);
                Ran { lane_operations, is_undone: false, has_branched: false, fault }
            }
            Return::Undone => {
                let segment = &compiled.segments[index];
                let lanes = usize::from(wave.machine.lanes);
                for (copy, row) in segment.kept.iter().enumerate() {
                    let kept = &workspace.kept_row(copy).0[..lanes];
                    wave.row_mut(*row).0[..lanes].copy_from_slice(kept);
                }
                let start = segment.instructions.start;
                wave.executed = executed + start as u64;
                checker.executed_first(wave, self.stretch(), start, exec);
                let parts = (compiled, segment);
                let state = (workspace, checker);
                let (reached, fault) = self.interpret(parts, wave, (memory, lds), state);
                let lane_operations = count(reached);
                Ran { lane_operations, is_undone: true, has_branched: false, fault }
            }
        }
    }

    /// Executes what a segment does by the interpreter, and finds windows for its accesses; up to which
    /// instruction, and the fault with its device address if there is one.
    fn interpret<C: Checker>(
        &self,
        (compiled, segment): (&Compiled, &Segment),
        wave: &mut Wave,
        (memory, lds): (&mut dyn Memory, &mut [u8]),
        (workspace, checker): (&mut Workspace, &mut C),
    ) -> (usize, Option<(u64, FaultCause)>) {
        for index in segment.instructions.clone() {
            let op = &self.source.ops[index];
            let mut sites = (self.first_site..).zip(&compiled.sites);
            if let Some((number, site)) = sites.find(|(_, site)| site.instruction == index) {
                workspace.find(number, site.access, (wave, op), memory);
            }
            let place = self.source.places[index];
            if let Step::Fault(cause) = interpret(wave, (op, place), memory, lds, checker) {
                return (index + 1, Some((place, cause)));
            }
        }
        (segment.instructions.end, None)
    }
}

/// Executes an instruction at a device address by the interpreter, under a checker's eyes.
pub fn interpret<C: Checker>(
    wave: &mut Wave,
    (op, place): (&Op, u64),
    memory: &mut dyn Memory,
    lds: &mut [u8],
    checker: &mut C,
) -> Step {
    wave.pc = place;
    checker.before(wave, op, memory);
    let exec = wave.exec();
    if C::SEES_RESULTS {
        wave.written_lanes = None;
    }
    wave.pc = place.wrapping_add(op.size.into());
    wave.executed += 1;
    let step = step_in_range(wave, op, memory, lds);
    if C::SEES_RESULTS && !matches!(step, Step::Fault(_)) {
        checker.after(wave, op, wave.written_lanes.unwrap_or(exec));
    }
    step
}

impl Compiled {
    fn entry(&self) -> Entry {
        // SAFETY: the address is that of the function that `emit` has written, which is of this type.
        unsafe { std::mem::transmute::<NonNull<()>, Entry>(self.code.entry()) }
    }
}
