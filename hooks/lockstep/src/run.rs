//! Execution of both versions, side by side.

use super::addresses::AddressMap;
use super::compared::Compared;
use super::comparison::{Lockstep, LockstepReport};
use super::difference::{Difference, LockstepError};
use super::memory;
use super::recorder::{self, Context, Leftovers, Position, Recorder, Role};
use super::replaced::ReplacedInsts;
use flipwave_device::{Completion, Dispatch};
use flipwave_hooks::flow::InstIndex;
use flipwave_isa::Pc;
use flipwave_sim::strict::Violation;
use flipwave_sim::{EmbeddedGpu, Leads, Policy, Progress};

/// The number of instructions that each version executes between comparisons.
const CHUNK: u64 = 1 << 18;

/// The number of instructions that a wave executes before the scheduler switches to another wave, large
/// enough that only waves which spin on memory reach it.
const LONG_TURN: u64 = 1 << 24;

impl Lockstep<'_> {
    /// Runs both versions to their ends, or to the first difference.
    ///
    /// # Errors
    /// [`LockstepError`] if a version cannot be run.
    pub fn run(&self) -> Result<LockstepReport, LockstepError> {
        let addresses = AddressMap::new(self)?;
        let compared = Compared::new(self)?;
        let replaced = ReplacedInsts::new(self);
        let context = Context { addresses: &addresses, compared: &compared, replaced: &replaced };
        let mut report = LockstepReport::default();
        let mut versions = Versions::new(self, context, None)?;
        if let Some(position) = versions.run(&mut report)? {
            report.difference = Some(self.difference_at(position, context)?);
            return Ok(report);
        }
        let Versions { original, instrumented } = &versions;
        report.difference = match (&original.end, &instrumented.end) {
            (Some(Completion::Completed(before)), Some(Completion::Completed(after))) => {
                (report.original, report.instrumented) = (Some(*before), Some(*after));
                let (before, after) = (&original.gpu, &instrumented.gpu);
                memory::compare(self, before, after, &addresses, &mut report)?
            }
            (before, after) if is_same_fault(before.as_ref(), after.as_ref(), &addresses) => None,
            (before, after) => {
                Some(Difference::End { original: before.clone(), instrumented: after.clone() })
            }
        };
        if self.is_strict {
            report.violations = self.violations(&addresses)?;
        }
        Ok(report)
    }

    /// Runs both versions again up to a difference and determines the differing values.
    fn difference_at(
        &self,
        position: Position,
        context: Context<'_>,
    ) -> Result<Difference, LockstepError> {
        let mut versions = Versions::new(self, context, Some(position))?;
        versions.run(&mut LockstepReport::default())?;
        let Versions { original, instrumented } = &versions;
        let Position { wave, number } = position;
        let inst = |recorder: &Recorder<'_>| recorder.found.as_ref().map(|(index, _)| *index);
        let insts = (inst(&original.recorder), inst(&instrumented.recorder));
        let pc = |inst: Option<InstIndex>| inst.map(|inst| self.pc(inst));
        let path =
            Difference::Path { wave, number, original: pc(insts.0), instrumented: pc(insts.1) };
        if insts.0 != insts.1 {
            return Ok(path);
        }
        let values = |recorder: &Recorder<'_>| {
            recorder.found.as_ref().map(|(_, values)| values.clone()).unwrap_or_default()
        };
        let (before, after) = (values(&original.recorder), values(&instrumented.recorder));
        let differing = before.iter().zip(&after).find(|(before, after)| before != after);
        Ok(match differing {
            Some((before, after)) => Difference::Register {
                wave,
                number,
                pc: pc(insts.0).unwrap_or(Pc(0)),
                register: before.register,
                lane: before.lane,
                original: before.bits,
                instrumented: after.bits,
            },
            None => path,
        })
    }

    /// The device policy that makes both versions comparable: the same amount of scratch, and an order of
    /// waves that does not depend on the number of executed instructions.
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

    /// The violations of the instrumented code, except those that the original code has at the same
    /// instruction.
    fn violations(&self, addresses: &AddressMap) -> Result<Vec<Violation>, LockstepError> {
        // Both run under the same policy, so that a fault ends both after the same original instructions.
        let strict = |dispatch| {
            let mut gpu = self.gpu.clone();
            gpu.set_policy(self.policy());
            gpu.dispatch_strict(dispatch)
        };
        let (_, before) = strict(self.original)?;
        let (_, mut violations) = strict(self.instrumented)?;
        violations.retain(|violation| {
            let old = addresses.old_instruction(violation.place.pc);
            let is_same = |original: &Violation| {
                original.rule() == violation.rule() && Some(original.place.pc) == old
            };
            !before.iter().any(is_same)
        });
        Ok(violations)
    }
}

/// Returns `true` if both versions were stopped by the same fault at the same original instruction.
fn is_same_fault(
    original: Option<&Completion>,
    instrumented: Option<&Completion>,
    addresses: &AddressMap,
) -> bool {
    match (original, instrumented) {
        (Some(Completion::Faulted(before)), Some(Completion::Faulted(after))) => {
            before.cause == after.cause
                && before.place.wave == after.place.wave
                && Some(before.place.pc) == addresses.old_instruction(after.place.pc)
        }
        _ => false,
    }
}

/// The two versions of a running dispatch.
struct Versions<'a> {
    original: RunningVersion<'a>,
    instrumented: RunningVersion<'a>,
}

struct RunningVersion<'a> {
    gpu: EmbeddedGpu,
    execution: flipwave_sim::Execution,
    recorder: Recorder<'a>,
    end: Option<Completion>,
    executed: u64,
}

impl<'a> RunningVersion<'a> {
    fn new(
        lockstep: &Lockstep<'_>,
        dispatch: &Dispatch,
        recorder: Recorder<'a>,
    ) -> Result<RunningVersion<'a>, LockstepError> {
        let mut gpu = lockstep.gpu.clone();
        gpu.set_policy(lockstep.policy());
        let execution = gpu.begin(dispatch)?;
        Ok(RunningVersion { gpu, execution, recorder, end: None, executed: 0 })
    }

    /// Executes up to [`CHUNK`] instructions.
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

impl<'a> Versions<'a> {
    /// Starts both versions. The recorders keep the register values at `wanted`.
    fn new(
        lockstep: &Lockstep<'_>,
        context: Context<'a>,
        wanted: Option<Position>,
    ) -> Result<Versions<'a>, LockstepError> {
        let original = Recorder::new(Role::Original, context, wanted);
        let instrumented = Recorder::new(Role::Instrumented, context, wanted);
        Ok(Versions {
            original: RunningVersion::new(lockstep, lockstep.original, original)?,
            instrumented: RunningVersion::new(lockstep, lockstep.instrumented, instrumented)?,
        })
    }

    /// Runs to the end, to the first difference, or until both recorders have found the wanted values.
    /// Returns the position of the first difference.
    fn run(&mut self, report: &mut LockstepReport) -> Result<Option<Position>, LockstepError> {
        let Versions { original, instrumented } = self;
        if instrumented.recorder.exports_results() {
            while instrumented.end.is_none() {
                instrumented.advance()?;
            }
            original.recorder.import_results(&mut instrumented.recorder);
        }
        loop {
            original.advance()?;
            instrumented.advance()?;
            let has_ended = original.end.is_some() && instrumented.end.is_some();
            let is_completed =
                |end: &Option<Completion>| matches!(end, Some(Completion::Completed(_)));
            let leftovers = if is_completed(&original.end) && is_completed(&instrumented.end) {
                Leftovers::Differ
            } else {
                Leftovers::Allowed
            };
            let (before, after) = (&mut original.recorder, &mut instrumented.recorder);
            if let Some(position) = recorder::compare(before, after, leftovers, report) {
                return Ok(Some(position));
            }
            if has_ended || (before.found.is_some() && after.found.is_some()) {
                return Ok(None);
            }
        }
    }
}
