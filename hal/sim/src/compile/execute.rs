//! Execution of compiled blocks.

use super::compiled::{BailoutRegion, Compiled, Resources};
use super::frame::{Frame, Limits, Return};
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

/// A wave, and the memory that it accesses.
pub struct WaveContext<'a> {
    pub wave: &'a mut Wave,
    pub memory: &'a mut dyn Memory,
    pub lds: &'a mut [u8],
}

impl WaveContext<'_> {
    /// Borrows the context for a shorter time.
    #[inline(always)]
    pub fn reborrow(&mut self) -> WaveContext<'_> {
        WaveContext { wave: self.wave, memory: self.memory, lds: self.lds }
    }
}

/// Results of compiled code.
#[derive(Default)]
pub struct Outcome {
    /// Lane operations executed, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub lane_operations: u64,
    /// Device address of the instruction that faulted, if one did, and the cause.
    pub fault: Option<(u64, FaultCause)>,
}

/// Reason why compiled code returned, with the last block that it executed.
#[derive(Clone, Copy)]
pub enum Ending<'a> {
    /// The last block was executed to its end.
    Completed(&'a Compiled),
    /// The interpreter executed a region of the last block.
    BailedOut(&'a Compiled),
    /// The interpreter executed a region because a window of memory was not known yet.
    WindowMissed,
    /// An instruction faulted.
    Faulted,
}

/// Result of interpreting a region.
struct Interpreted {
    /// Number of the block's instructions executed so far.
    reached: usize,
    /// Device address of the instruction that faulted, if one did, and the cause.
    fault: Option<(u64, FaultCause)>,
    /// `true` if an access had no window before.
    window_missed: bool,
}

impl Compiled {
    /// Executes the block, repeatedly if it branches to itself, and the blocks linked to it, within
    /// `limits`. The caller has checked that the block [accepts](Compiled::accepts) the wave, whose
    /// resources are `resources`, that the limits allow all instructions of the block, and that the
    /// workspace has checked the [generation](Workspace::check_generation) of the memory. With
    /// [`Counting::Each`], only this block is executed.
    pub fn execute<'a, C: Checker>(
        &'a self,
        mut context: WaveContext<'_>,
        workspace: &mut Workspace,
        checker: &mut C,
        resources: Resources,
        limits: Limits,
        outcome: &mut Outcome,
    ) -> Ending<'a> {
        let counts = limits.counting != Counting::Nothing;
        let mut frame = Frame::new(self, context.reborrow(), workspace, checker, resources, limits);
        // SAFETY: the block was compiled for the level of its program, which the host supports; the
        // caller has checked that the block accepts the wave and has prepared the workspace.
        let end = unsafe { frame.enter() };
        frame.update_exec_row();
        // SAFETY: the frame was made for this checker.
        let exec = if counts { unsafe { frame.count::<C>() } } else { LaneMask::EMPTY };
        let (last, pc, executed) = (frame.current(), frame.pc, frame.executed);
        outcome.lane_operations += frame.lane_operations;
        if end == Return::Completed {
            (context.wave.executed, context.wave.pc) = (executed, pc);
            return Ending::Completed(last);
        }
        let (index, fault) = (frame.index as usize, frame.fault.take());
        let wave = &mut *context.wave;
        wave.executed = executed;
        let active = wave.active_lanes();
        let bails_out = end != Return::Faulted;
        if end == Return::NanBailout {
            last.block.record_nan_bailout();
        }
        let reached = if bails_out { last.regions[index].instructions.start } else { index };
        if counts {
            checker.executed_first(wave, last.block.stretch(), reached, exec);
        }
        let lane_operations = |index| last.block.lane_operations(index, active);
        if !bails_out {
            (wave.executed, wave.pc) = (executed + index as u64 + 1, pc);
            outcome.lane_operations += lane_operations(index + 1);
            outcome.fault = fault.map(|cause| (last.block.source.addresses[index], cause));
            return Ending::Faulted;
        }
        let region = &last.regions[index];
        let lanes = usize::from(wave.machine.lanes);
        for (copy, row) in region.saved.iter().enumerate() {
            let saved = &workspace.saved_row(copy).0[..lanes];
            wave.row_mut(*row).0[..lanes].copy_from_slice(saved);
        }
        wave.executed = executed + reached as u64;
        let interpreted = last.interpret_region(region, context, workspace, checker);
        outcome.lane_operations += lane_operations(interpreted.reached);
        outcome.fault = interpreted.fault;
        if outcome.fault.is_some() {
            Ending::Faulted
        } else if interpreted.window_missed {
            Ending::WindowMissed
        } else {
            Ending::BailedOut(last)
        }
    }

    /// Executes a region with the interpreter, and finds windows for its accesses. If a flat access
    /// resolves to non-global memory, executes all but the block's last instruction, to see which other
    /// accesses do, too.
    fn interpret_region<C: Checker>(
        &self,
        region: &BailoutRegion,
        context: WaveContext<'_>,
        workspace: &mut Workspace,
        checker: &mut C,
    ) -> Interpreted {
        let WaveContext { wave, memory, lds } = context;
        let mut window_missed = false;
        let source = &self.block.source;
        let Range { start, mut end } = region.instructions.clone();
        for index in start..source.ops.len() {
            if index == end {
                break;
            }
            let (op, address) = (&source.ops[index], source.addresses[index]);
            let mut sites = (self.block.first_site..).zip(&self.sites);
            if let Some((number, site)) = sites.find(|(_, site)| site.instruction == index) {
                window_missed |= workspace.find_window(number, site.access, wave, op, memory);
                if vector_memory::leads_elsewhere(wave, op) {
                    self.block.record_non_global(index);
                    end = end.max(source.ops.len() - 1);
                }
            }
            if let Step::Fault(cause) = interpret(wave, op, address, memory, lds, checker) {
                let fault = Some((address, cause));
                return Interpreted { reached: index + 1, fault, window_missed };
            }
        }
        Interpreted { reached: end, fault: None, window_missed }
    }
}

/// Executes the instruction at a device address with the interpreter, and shows it to the checker.
pub fn interpret<C: Checker>(
    wave: &mut Wave,
    op: &Op,
    address: u64,
    memory: &mut dyn Memory,
    lds: &mut [u8],
    checker: &mut C,
) -> Step {
    wave.pc = address;
    checker.before(wave, op, memory);
    let exec = wave.exec();
    if C::SEES_RESULTS {
        wave.written_lanes = None;
    }
    wave.pc = address.wrapping_add(op.size.into());
    wave.executed += 1;
    let step = step_in_range(wave, op, memory, lds);
    if C::SEES_RESULTS && !matches!(step, Step::Fault(_)) {
        checker.after(wave, op, wave.written_lanes.unwrap_or(exec));
    }
    step
}
