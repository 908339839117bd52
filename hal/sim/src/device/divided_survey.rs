//! What is learnt of a dispatch without a fault, on several threads.

use super::checks::SurveyCheck;
use super::parallel::{Pieces, add, workgroups_at_once};
use super::{EmbeddedGpu, Notes};
use crate::dispatch::checker::Both;
use crate::dispatch::execution::{Execution, Progress};
use crate::dispatch::observer::Unobserved;
use crate::dispatch::policy::Stalls;
use crate::dispatch::schedule::Scheduler;
use crate::dispatch::slots::Slots;
use crate::fidelity::FidelityCheck;
use crate::memory::{FootprintUnion, Footprints};
use flipwave_device::{Address, Completion, DeviceError, Statistics};
use std::mem;
use std::num::NonZeroUsize;

/// Wave instructions that a dispatch executes on one thread before it is divided: what its workgroups have
/// to do with one another is mostly seen by then, and what threads have executed in vain is executed anew.
const ALONE: u64 = 1 << 16;

/// Wave instructions that a thread executes at most before it is looked whether workgroups have had to do
/// with one another.
const MOST: u64 = 1 << 22;

/// A piece may execute so many times what the dispatch has executed so far, before its workgroups are taken
/// for ones that wait for others.
const PATIENCE: u64 = 16;

/// What several threads have executed of a dispatch.
#[derive(Default)]
pub(super) struct Division {
    /// What their workgroups touch.
    footprints: Footprints,
    /// The same of all of them together.
    union: FootprintUnion,
    /// Whether it was tried in vain: one thread executes the rest.
    is_over: bool,
}

/// What a thread has learnt of workgroups.
struct Part {
    /// The device after them, without what other threads have done.
    device: EmbeddedGpu,
    statistics: Statistics,
    check: SurveyCheck,
    fidelity: FidelityCheck,
    footprints: Footprints,
}

impl SurveyCheck {
    /// The dispatch has ended, and `footprints` have what the workgroups touch that were executed by one
    /// thread: adds the others'. Whether it was all as one thread would have executed it: not if workgroups
    /// that threads have executed have had to do with others.
    #[must_use]
    pub fn end_division(&mut self, footprints: &mut Footprints) -> bool {
        let Division { footprints: own, mut union, .. } = mem::take(&mut self.division);
        if own.iter().next().is_none() {
            return true;
        }
        union.add(footprints);
        let is_independent = footprints.dependent_in(&union).is_empty();
        footprints.absorb(own);
        is_independent
    }
}

impl EmbeddedGpu {
    /// Like [`EmbeddedGpu::advance_surveyed`] with no observer, on so many threads at most. The dispatch
    /// pauses where workgroups have ended, which may be some way beyond `until`.
    ///
    /// Threads execute workgroups on devices of their own, and record what these touch; `footprints` get it
    /// when the dispatch has ended, by [`SurveyCheck::end_division`]. That says, too, whether what was
    /// learnt, and what the dispatch has left, is what one thread would have learnt and left: else it is to
    /// be executed anew.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_surveyed_divided(
        &mut self,
        execution: &mut Execution,
        (check, fidelity): (&mut SurveyCheck, &mut FidelityCheck),
        footprints: &mut Footprints,
        threads: NonZeroUsize,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let executed = execution.statistics.wave_instructions;
        let may_divide = threads > NonZeroUsize::MIN && !check.division.is_over;
        if may_divide && executed >= ALONE {
            if self.survey_at_once(execution, (check, fidelity), threads)? {
                return Ok(Progress::Paused);
            }
            check.division.is_over = true;
        }
        let until = if may_divide && executed < ALONE { until.min(ALONE) } else { until };
        let mut both = Both(check, fidelity);
        let notes = Notes::Touched(footprints);
        self.advance_with(execution, &mut Unobserved, &mut both, until, notes)
    }

    /// Has threads execute workgroups of a dispatch that have not started; whether that was possible, and
    /// these have had nothing to do with one another. Else nothing has happened.
    fn survey_at_once(
        &mut self,
        execution: &mut Execution,
        (check, fidelity): (&mut SurveyCheck, &mut FidelityCheck),
        threads: NonZeroUsize,
    ) -> Result<bool, DeviceError> {
        let Some(length) = execution.instructions_of_workgroup() else { return Ok(false) };
        // No more than it has executed so far: others may be longer than those that have ended.
        let of_thread = MOST.min(execution.statistics.wave_instructions);
        let Some((count, threads)) = workgroups_at_once(execution, threads, length, of_thread)
        else {
            return Ok(false);
        };
        if !self.can_be_divided(execution, fidelity) {
            return Ok(false);
        }
        let pieces = Pieces::new(execution.waiting.start, count, threads.get());
        self.share_memory();
        let (own, shared, checks) = (&*self, &*execution, (&*check, &*fidelity));
        // Pieces are taken by whatever threads there are.
        let shares = vec![(); threads.get()];
        let survey = |_: &()| own.survey_pieces(shared, checks, &pieces);
        let parts = self.helpers.share(threads, &shares, survey);
        let Some(mut parts) = parts.into_iter().collect::<Result<Option<Vec<_>>, _>>()? else {
            return Ok(false);
        };
        let (mut new, mut written) = (Footprints::default(), Vec::new());
        let mut statistics = execution.statistics;
        for part in &mut parts {
            add(&mut statistics, part.statistics);
            let own = mem::take(&mut part.footprints);
            let runs = own.iter().flat_map(|(_, own)| own.written.runs());
            written.push(runs.collect::<Vec<(Address, u64)>>());
            new.absorb(own);
        }
        if statistics.wave_instructions >= execution.limit {
            return Ok(false);
        }
        let Division { footprints, union, .. } = &mut check.division;
        union.add(&new);
        if !new.dependent_in(union).is_empty() {
            // These are executed once more, and count then.
            *union = footprints.union();
            return Ok(false);
        }
        let mut bytes = Vec::new();
        for (part, written) in parts.into_iter().zip(written) {
            for (start, count) in written {
                bytes.resize(count as usize, 0);
                part.device.read_pages(start, &mut bytes)?;
                self.write_pages(start, &bytes)?;
            }
            if let (Some(counter), Some(own)) = (&mut check.counter, part.check.counter) {
                counter.absorb(own);
            }
            fidelity.absorb(part.fidelity);
        }
        check.division.footprints.absorb(new);
        execution.statistics = statistics;
        execution.waiting.start += count;
        Ok(true)
    }

    /// Whether nothing but what they touch in memory can tell in which order workgroups of a dispatch are
    /// executed: which of them have the same private memory would, and where the results of operations are
    /// not settled, which of them is the first that uses one.
    fn can_be_divided(&self, execution: &Execution, fidelity: &FidelityCheck) -> bool {
        let programs = self.programs_of(execution);
        let home = programs.get(execution.home);
        let reached = home.map(|own| own.reached(execution.launch.start)).unwrap_or_default();
        reached.is_order_free
            && fidelity.only_counts(reached.is_settled)
            && execution.launch.all_private_memory().is_empty()
    }

    /// Executes pieces of a dispatch until there are no more, on a clone of the device; nothing if one of
    /// them does not complete, or breaks a rule: it is one thread that sees how.
    fn survey_pieces(
        &self,
        execution: &Execution,
        (check, fidelity): (&SurveyCheck, &FidelityCheck),
        pieces: &Pieces,
    ) -> Option<Part> {
        let mut device = self.clone();
        let programs = device.programs_of(execution);
        let mut check = check.new_part(programs.clone());
        let mut fidelity = fidelity.new_part(programs.clone());
        let (mut statistics, mut footprints) = (Statistics::default(), Footprints::default());
        let mut both = Both(&mut check, &mut fidelity);
        let (observer, spare) = (&mut Unobserved, device.spare.take());
        let mut scheduler = Scheduler::new(&programs, observer, &mut both, u64::MAX, spare);
        while let Some(piece) = pieces.take() {
            let mut part = execution.part(piece, Slots::one(0));
            // What other threads write is not seen here.
            part.policy.stalls = Stalls::Ignore;
            let most = execution.statistics.wave_instructions.saturating_mul(PATIENCE);
            part.limit = part.limit.min(most);
            match scheduler.run(&mut part, &mut device.space, Some(&mut footprints)) {
                Progress::Ended(Completion::Completed(own)) => add(&mut statistics, own),
                _ => {
                    pieces.stop();
                    return None;
                }
            }
        }
        device.spare.give(scheduler.into_spare());
        let is_clean = check.bounds.is_clean();
        is_clean.then_some(Part { device, statistics, check, fidelity, footprints })
    }
}
