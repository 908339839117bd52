//! Original and instrumented code side by side on the embedded GPU.
//!
//! Both run the same dispatch on copies of one device. Each wave executes the same original
//! instructions in the same order on both sides, those left aside that were removed, and before
//! each of them every register that is live there ([`flipwave_hooks::dataflow`]) must hold the
//! same on both, in the lanes in which it is live; at the end, memory must be the same. Addresses
//! in the code object's own image are compared by what they are the address of.
//!
//! Waves are compared one by one, and each runs until it waits for others or ends, so that neither
//! where scratch lies nor what an atomic operation returns depends on how many instructions were
//! inserted. Only where a wave spins on memory until another has written it may the two sides
//! differ with no fault of anybody.

mod addresses;
mod compared;
mod difference;
mod memory;
mod recorder;
mod substituted;

pub use difference::{Difference, LockstepError};

use addresses::AddressMap;
use compared::Compared;
use flipwave_device::{Address, Completion, Dispatch, Statistics, WaveId};
use flipwave_hooks::checker::Claims;
use flipwave_hooks::dataflow::Live;
use flipwave_hooks::flow::{Disassembly, InstIndex};
use flipwave_isa::{Pc, RegisterSet};
use flipwave_sim::strict::Violation;
use flipwave_sim::{EmbeddedGpu, Leads, Policy, Progress};
use recorder::{Recorder, Role};
use std::collections::BTreeSet;
use std::ops::Range;
use substituted::Substituted;

/// What is run side by side.
pub struct Lockstep<'a> {
    /// The original's code.
    pub program: &'a Disassembly,
    /// What is live before each of its instructions.
    pub live: &'a dyn Fn(InstIndex) -> Live,
    /// Where each original instruction is in the instrumented code.
    pub claims: &'a Claims,
    /// A device with both code objects loaded.
    pub gpu: &'a EmbeddedGpu,
    /// The dispatch of the original.
    pub original: &'a Dispatch,
    /// The dispatch of the instrumented code, with the same arguments.
    pub instrumented: &'a Dispatch,
    /// Registers that hooks were asked to change, which are not compared.
    pub changed: RegisterSet,
    /// Instructions that hooks stand in for: their results are whatever the hooks make them.
    pub substituted: BTreeSet<InstIndex>,
    /// Memory that hooks write, which is not compared.
    pub ignored: Vec<Range<Address>>,
    /// Whether both sides run once more on the strict level.
    pub is_strict: bool,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct LockstepReport {
    /// Original instructions that were executed on both sides.
    pub instructions: u64,
    /// 32-bit values that were compared before them, a vector register in all its lanes being one.
    pub registers: u64,
    /// Bytes of memory that were compared at the end.
    pub bytes: u64,
    /// The first difference.
    pub difference: Option<Difference>,
    /// Rules of the hardware that the instrumented code breaks and the original does not.
    pub violations: Vec<Violation>,
    /// What the original executed, where it completed.
    pub original: Option<Statistics>,
    /// What the instrumented code executed, where it completed.
    pub instrumented: Option<Statistics>,
}

impl LockstepReport {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.difference.is_none() && self.violations.is_empty()
    }
}

/// Instructions that each side executes before the two are compared.
const CHUNK: u64 = 1 << 18;

/// Instructions that a wave executes before another has its turn, if it does not wait: so many that
/// only one that spins on memory comes to its end.
const LONG_TURN: u64 = 1 << 24;

impl Lockstep<'_> {
    /// Runs both to their ends, or to the first difference.
    ///
    /// # Errors
    /// [`LockstepError`] where a side cannot be run at all.
    pub fn run(&self) -> Result<LockstepReport, LockstepError> {
        let addresses = AddressMap::new(self)?;
        let compared = Compared::new(self)?;
        let substituted = Substituted::new(self);
        let seen = Seen { addresses: &addresses, compared: &compared, substituted: &substituted };
        let mut report = LockstepReport::default();
        let mut sides = Sides::new(self, seen, None)?;
        if let Some((wave, number)) = sides.run(&mut report)? {
            report.difference = Some(self.look_at(wave, number, seen)?);
            return Ok(report);
        }
        report.difference = match sides.ends() {
            (Some(Completion::Completed(one)), Some(Completion::Completed(two))) => {
                (report.original, report.instrumented) = (Some(*one), Some(*two));
                memory::compare(self, &sides.original.gpu, &sides.new.gpu, &addresses, &mut report)?
            }
            (one, two) if is_same_fault(one, two, &addresses) => None,
            (one, two) => {
                Some(Difference::End { original: one.cloned(), instrumented: two.cloned() })
            }
        };
        if self.is_strict {
            report.violations = self.violations(&addresses)?;
        }
        Ok(report)
    }

    /// Runs up to a difference once more, to see the values.
    fn look_at(
        &self,
        wave: WaveId,
        number: u64,
        seen: Seen<'_>,
    ) -> Result<Difference, LockstepError> {
        let mut sides = Sides::new(self, seen, Some((wave, number)))?;
        sides.run(&mut LockstepReport::default())?;
        let place = |recorder: &Recorder<'_>| recorder.seen.as_ref().map(|(index, _)| *index);
        let (one, two) = (&sides.original.recorder, &sides.new.recorder);
        let (at, other) = (place(one), place(two));
        let pc = |at: Option<InstIndex>| at.map(|at| self.pc(at));
        if at != other {
            let (original, instrumented) = (pc(at), pc(other));
            return Ok(Difference::Path { wave, number, original, instrumented });
        }
        let values = |recorder: &Recorder<'_>| {
            recorder.seen.as_ref().map(|(_, values)| values.clone()).unwrap_or_default()
        };
        let (one, two) = (values(one), values(two));
        let differing = one.iter().zip(&two).find(|(one, two)| one != two);
        Ok(match differing {
            Some((original, instrumented)) => Difference::Register {
                wave,
                number,
                pc: pc(at).unwrap_or(Pc(0)),
                register: original.register,
                lane: original.lane,
                original: original.bits,
                instrumented: instrumented.bits,
            },
            None => Difference::Path { wave, number, original: pc(at), instrumented: pc(other) },
        })
    }

    /// What makes both sides the same in all but the instructions inserted: as much scratch, and
    /// waves in an order that does not depend on how much they execute.
    fn policy(&self) -> Policy {
        let bytes = |dispatch: &Dispatch| {
            let kernels = self.gpu.code_object(dispatch.module)?.kernels();
            let kernel = kernels.iter().find(|kernel| *kernel.name == *dispatch.kernel)?;
            Some(kernel.descriptor.private_segment_fixed_size)
        };
        let private_bytes = bytes(self.original).max(bytes(self.instrumented)).unwrap_or_default();
        Policy { private_bytes, wave_turn: LONG_TURN, leads: Leads::ANY, ..Policy::default() }
    }

    fn pc(&self, index: InstIndex) -> Pc {
        self.program.instructions[index].pc
    }

    /// Violations of the instrumented code at inserted instructions, and at original ones where
    /// the original does not break the same rule.
    fn violations(&self, addresses: &AddressMap) -> Result<Vec<Violation>, LockstepError> {
        // In the same order: what the one that a fault ends has not come to, the other has not either.
        let strict = |dispatch| {
            let mut gpu = self.gpu.clone();
            gpu.set_policy(self.policy());
            gpu.dispatch_strict(dispatch)
        };
        let (_, before) = strict(self.original)?;
        let (_, mut violations) = strict(self.instrumented)?;
        violations.retain(|violation| {
            let old = addresses.old_instruction(violation.place.pc);
            !before.iter().any(|own| own.rule() == violation.rule() && Some(own.place.pc) == old)
        });
        Ok(violations)
    }
}

/// Whether both were stopped by the same fault at the same original instruction.
fn is_same_fault(
    one: Option<&Completion>,
    two: Option<&Completion>,
    addresses: &AddressMap,
) -> bool {
    match (one, two) {
        (Some(Completion::Faulted(one)), Some(Completion::Faulted(two))) => {
            one.cause == two.cause
                && one.place.wave == two.place.wave
                && Some(one.place.pc) == addresses.old_instruction(two.place.pc)
        }
        _ => false,
    }
}

/// The two sides of a run.
struct Sides<'a> {
    original: Side<'a>,
    new: Side<'a>,
}

struct Side<'a> {
    gpu: EmbeddedGpu,
    execution: flipwave_sim::Execution,
    recorder: Recorder<'a>,
    end: Option<Completion>,
    executed: u64,
}

impl<'a> Side<'a> {
    fn new(
        lockstep: &Lockstep<'_>,
        dispatch: &Dispatch,
        recorder: Recorder<'a>,
    ) -> Result<Side<'a>, LockstepError> {
        let mut gpu = lockstep.gpu.clone();
        gpu.set_policy(lockstep.policy());
        let execution = gpu.begin(dispatch)?;
        Ok(Side { gpu, execution, recorder, end: None, executed: 0 })
    }

    /// Executes some more.
    fn advance(&mut self) -> Result<(), LockstepError> {
        if self.end.is_none() {
            self.executed = self.executed.saturating_add(CHUNK);
            let progress =
                self.gpu.advance(&mut self.execution, &mut self.recorder, self.executed)?;
            if let Progress::Ended(end) = progress {
                self.end = Some(end);
            }
        }
        Ok(())
    }
}

/// What both sides look at.
#[derive(Clone, Copy)]
struct Seen<'a> {
    addresses: &'a AddressMap,
    compared: &'a Compared<'a>,
    substituted: &'a Substituted<'a>,
}

impl<'a> Sides<'a> {
    fn new(
        lockstep: &Lockstep<'_>,
        seen: Seen<'a>,
        wanted: Option<(WaveId, u64)>,
    ) -> Result<Sides<'a>, LockstepError> {
        let original = Recorder::new(Role::Original, seen, wanted);
        let new = Recorder::new(Role::Instrumented, seen, wanted);
        Ok(Sides {
            original: Side::new(lockstep, lockstep.original, original)?,
            new: Side::new(lockstep, lockstep.instrumented, new)?,
        })
    }

    fn ends(&self) -> (Option<&Completion>, Option<&Completion>) {
        (self.original.end.as_ref(), self.new.end.as_ref())
    }

    /// Runs to the end; gives the wave and the number of the instruction at which the two first
    /// differ.
    fn run(&mut self, report: &mut LockstepReport) -> Result<Option<(WaveId, u64)>, LockstepError> {
        if self.new.recorder.exports_results() {
            while self.new.end.is_none() {
                self.new.advance()?;
            }
            self.original.recorder.import_results(&mut self.new.recorder);
        }
        loop {
            self.original.advance()?;
            self.new.advance()?;
            let has_ended = self.original.end.is_some() && self.new.end.is_some();
            let (one, two) = (&mut self.original.recorder, &mut self.new.recorder);
            let is_done = |end: &Option<Completion>| matches!(end, Some(Completion::Completed(_)));
            let must_match = is_done(&self.original.end) && is_done(&self.new.end);
            if let Some(difference) = recorder::compare(one, two, must_match, report) {
                return Ok(Some(difference));
            }
            if has_ended || (one.seen.is_some() && two.seen.is_some()) {
                return Ok(None);
            }
        }
    }
}
