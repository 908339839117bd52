//! The execution of compiled blocks.

use super::compiled::{Compiled, Demands, Segment};
use super::frame::{Frame, Return, Room};
use super::workspace::Workspace;
use crate::dispatch::checker::{Checker, Counting};
use crate::execute::control::Step;
use crate::execute::step::step_in_range;
use crate::execute::vector_memory;
use crate::instruction::Op;
use crate::memory::Memory;
use crate::wave::Wave;
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use std::ops::Range;

/// What waves did by compiled code.
#[derive(Default)]
pub struct Outcome {
    /// What it counts as, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub lane_operations: u64,
    /// Why a wave stopped, where an instruction has faulted: its device address, and the cause.
    pub fault: Option<(u64, FaultCause)>,
}

/// How the execution of blocks ended: of the last of them.
#[derive(Clone, Copy)]
pub enum Ending<'a> {
    /// It was executed to its end.
    Done(&'a Compiled),
    /// A segment was left to the interpreter.
    Undone(&'a Compiled),
    /// The same, since it was not known yet where its memory is.
    Begun,
    /// An instruction has faulted.
    Faulted,
}

impl Compiled {
    /// Executes the block, and again where it branches to itself, and those that it goes on to, as long
    /// as the wave has room for that. The wave must be one that has `has` and that the block
    /// [suits](Compiled::suits), and have room for all of its instructions, and the workspace
    /// [follows](Workspace::follow) the memory. Where a checker asks before each block, it executes only
    /// the first.
    pub fn execute<'a, C: Checker>(
        &'a self,
        wave: &mut Wave,
        (memory, lds): (&mut dyn Memory, &mut [u8]),
        (workspace, checker): (&mut Workspace, &mut C),
        (has, room): (Demands, Room),
        outcome: &mut Outcome,
    ) -> Ending<'a> {
        let counts = room.counting != Counting::Nothing;
        let state = (&mut *workspace, &mut *checker);
        let mut frame = Frame::new(self, (&mut *wave, &mut *memory, &mut *lds), state, (has, room));
        // SAFETY: the block was compiled for the level of its program, which the host has; that it suits
        // and that the workspace is prepared is the caller's part, who looks after both.
        let end = unsafe { frame.enter() };
        frame.follow_exec();
        // SAFETY: it was made for this checker.
        let exec = if counts { unsafe { frame.count::<C>() } } else { LaneMask::EMPTY };
        let (last, pc, executed) = (frame.current(), frame.pc, frame.executed);
        outcome.lane_operations += frame.lane_operations;
        if end == Return::Done {
            (wave.executed, wave.pc) = (executed, pc);
            return Ending::Done(last);
        }
        let (index, fault) = (frame.index as usize, frame.fault.take());
        wave.executed = executed;
        let active = wave.active_lanes();
        let is_undone = end != Return::Faulted;
        if end == Return::Unsettled {
            last.block.note_unsettled();
        }
        let reached = if is_undone { last.segments[index].instructions.start } else { index };
        if counts {
            checker.executed_first(wave, last.block.stretch(), reached, exec);
        }
        let count = |index| last.block.lane_operations(index, active);
        if !is_undone {
            (wave.executed, wave.pc) = (executed + index as u64 + 1, pc);
            outcome.lane_operations += count(index + 1);
            outcome.fault = fault.map(|cause| (last.block.source.places[index], cause));
            return Ending::Faulted;
        }
        let segment = &last.segments[index];
        let lanes = usize::from(wave.machine.lanes);
        for (copy, row) in segment.kept.iter().enumerate() {
            let kept = &workspace.kept_row(copy).0[..lanes];
            wave.row_mut(*row).0[..lanes].copy_from_slice(kept);
        }
        wave.executed = executed + reached as u64;
        let state = (workspace, checker);
        let (reached, fault, has_begun) = last.interpret(segment, wave, (memory, lds), state);
        outcome.lane_operations += count(reached);
        outcome.fault = fault;
        match (&outcome.fault, has_begun) {
            (Some(_), _) => Ending::Faulted,
            (None, true) => Ending::Begun,
            (None, false) => Ending::Undone(last),
        }
    }

    /// Executes what a segment does by the interpreter, and finds windows for its accesses; up to which
    /// instruction, the fault with its device address if there is one, and whether there was an access
    /// that had no window yet. Where a flat access leads elsewhere than to device memory, it executes all
    /// but the block's last instruction, to see which others do so, too.
    fn interpret<C: Checker>(
        &self,
        segment: &Segment,
        wave: &mut Wave,
        (memory, lds): (&mut dyn Memory, &mut [u8]),
        (workspace, checker): (&mut Workspace, &mut C),
    ) -> (usize, Option<(u64, FaultCause)>, bool) {
        let mut has_begun = false;
        let source = &self.block.source;
        let Range { start, mut end } = segment.instructions.clone();
        for index in start..source.ops.len() {
            if index == end {
                break;
            }
            let (op, place) = (&source.ops[index], source.places[index]);
            let mut sites = (self.block.first_site..).zip(&self.sites);
            if let Some((number, site)) = sites.find(|(_, site)| site.instruction == index) {
                has_begun |= workspace.find(number, site.access, (wave, op), memory);
                if vector_memory::leads_elsewhere(wave, op) {
                    self.block.note_elsewhere(index);
                    end = end.max(source.ops.len() - 1);
                }
            }
            if let Step::Fault(cause) = interpret(wave, (op, place), memory, lds, checker) {
                return (index + 1, Some((place, cause)), has_begun);
            }
        }
        (end, None, has_begun)
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
