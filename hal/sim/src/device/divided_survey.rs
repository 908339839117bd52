//! Surveys of golden runs on several threads.

use super::checks::SurveyCheck;
use super::parallel::{Pieces, add, workgroups_at_once};
use super::{EmbeddedGpu, Notes};
use crate::dispatch::checker::Both;
use crate::dispatch::execution::Execution;
use crate::dispatch::observer::Unobserved;
use crate::dispatch::schedule::Scheduler;
use crate::dispatch::slots::Slots;
use crate::fidelity::FidelityCheck;
use flipwave_device::{Address, Completion, DeviceError, Statistics};
use flipwave_machine::{FootprintUnion, Footprints, Progress, Stalls};
use std::mem;
use std::num::NonZeroUsize;

/// Wave instructions that a dispatch executes on one thread before it is divided: by then,
/// dependencies between workgroups have usually appeared, and discarded work of threads must be
/// repeated.
const ALONE: u64 = 1 << 16;

/// Maximum number of wave instructions per thread between two checks for dependencies between
/// workgroups.
const MOST: u64 = 1 << 22;

/// Factor by which a piece may exceed the instructions executed so far before its workgroups are
/// assumed to wait for others.
const PATIENCE: u64 = 16;

/// Results of several threads for a dispatch.
#[derive(Default)]
pub(super) struct Division {
    /// Footprints of the workgroups.
    footprints: Footprints,
    /// Union of the footprints.
    union: FootprintUnion,
    /// `true` if a division has failed, so that one thread executes the remaining workgroups.
    is_over: bool,
}

/// Results of a thread for some workgroups.
struct Part {
    /// The device after executing them, without the effects of other threads.
    device: EmbeddedGpu,
    statistics: Statistics,
    check: SurveyCheck,
    fidelity: FidelityCheck,
    footprints: Footprints,
}

impl SurveyCheck {
    /// Ends a dispatch whose single-threaded workgroups have these `footprints`, and adds the
    /// footprints from other threads. Returns `true` if all results equal those of one thread,
    /// which requires that no workgroup of a thread depends on others.
    #[must_use]
    pub fn end_division(&mut self, footprints: &mut Footprints) -> bool {
        let Division { footprints: divided, mut union, .. } = mem::take(&mut self.division);
        if divided.iter().next().is_none() {
            return true;
        }
        union.add(footprints);
        let is_independent = footprints.dependent_in(&union).is_empty();
        footprints.absorb(divided);
        is_independent
    }
}

impl EmbeddedGpu {
    /// Like [`EmbeddedGpu::advance_surveyed`] without an observer, on at most this number of
    /// threads. The dispatch pauses at the end of workgroups, possibly some way beyond `until`.
    ///
    /// Threads execute workgroups on separate devices and record their accesses; `footprints`
    /// receives them when the dispatch has ended, from [`SurveyCheck::end_division`], which also
    /// returns whether the survey and the effects of the dispatch equal those of one thread.
    /// Otherwise the dispatch must be executed again.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn advance_surveyed_divided(
        &mut self,
        execution: &mut Execution,
        check: &mut SurveyCheck,
        fidelity: &mut FidelityCheck,
        footprints: &mut Footprints,
        threads: NonZeroUsize,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let executed = execution.statistics.wave_instructions;
        let may_divide = threads > NonZeroUsize::MIN && !check.division.is_over;
        if may_divide && executed >= ALONE {
            if self.survey_at_once(execution, check, fidelity, threads)? {
                return Ok(Progress::Paused);
            }
            check.division.is_over = true;
        }
        let until = if may_divide && executed < ALONE { until.min(ALONE) } else { until };
        let mut both = Both(check, fidelity);
        let notes = Notes::Touched(footprints);
        self.advance_with(execution, &mut Unobserved, &mut both, until, notes)
    }

    /// Executes unstarted workgroups of a dispatch on several threads. Returns `true` if that was
    /// possible and they were independent; otherwise without effect.
    fn survey_at_once(
        &mut self,
        execution: &mut Execution,
        check: &mut SurveyCheck,
        fidelity: &mut FidelityCheck,
        threads: NonZeroUsize,
    ) -> Result<bool, DeviceError> {
        let Some(length) = execution.instructions_of_workgroup() else { return Ok(false) };
        // No more than the dispatch has executed so far: the remaining workgroups may be longer
        // than those that have ended.
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
        let (device, shared) = (&*self, &*execution);
        let (shared_check, shared_fidelity) = (&*check, &*fidelity);
        // Threads take the pieces dynamically.
        let shares = vec![(); threads.get()];
        let survey = |_: &()| device.survey_pieces(shared, shared_check, shared_fidelity, &pieces);
        let parts = self.helpers.share(threads, &shares, survey);
        let Some(mut parts) = parts.into_iter().collect::<Result<Option<Vec<_>>, _>>()? else {
            return Ok(false);
        };
        let (mut new, mut written) = (Footprints::default(), Vec::new());
        let mut statistics = execution.statistics;
        for part in &mut parts {
            add(&mut statistics, part.statistics);
            let part_footprints = mem::take(&mut part.footprints);
            let runs = part_footprints.iter().flat_map(|(_, footprint)| footprint.written.runs());
            written.push(runs.collect::<Vec<(Address, u64)>>());
            new.absorb(part_footprints);
        }
        if statistics.wave_instructions >= execution.limit {
            return Ok(false);
        }
        let Division { footprints, union, .. } = &mut check.division;
        union.add(&new);
        if !new.dependent_in(union).is_empty() {
            // These workgroups are executed and counted again.
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
            if let (Some(counter), Some(part_counter)) = (&mut check.counter, part.check.counter) {
                counter.absorb(part_counter);
            }
            fidelity.absorb(part.fidelity);
        }
        check.division.footprints.absorb(new);
        execution.statistics = statistics;
        execution.waiting.start += count;
        Ok(true)
    }

    /// Returns `true` if the order of a dispatch's workgroups can only be observed through memory.
    /// Otherwise the assignment of private memory to workgroups would be observable, and for
    /// unsettled results the first workgroup that uses one.
    fn can_be_divided(&self, execution: &Execution, fidelity: &FidelityCheck) -> bool {
        let programs = self.programs_of(execution);
        let home = programs.get(execution.home);
        let reached =
            home.map(|program| program.reached(execution.launch.start)).unwrap_or_default();
        reached.is_order_free
            && fidelity.only_counts(reached.is_settled)
            && execution.launch.all_private_memory().is_empty()
    }

    /// Executes pieces of a dispatch until none remain, on a clone of the device; `None` if one of
    /// them does not complete or breaks a rule, which is then reported by single-threaded
    /// execution.
    fn survey_pieces(
        &self,
        execution: &Execution,
        check: &SurveyCheck,
        fidelity: &FidelityCheck,
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
            // Writes of other threads are not visible here.
            part.policy.stalls = Stalls::Ignore;
            let most = execution.statistics.wave_instructions.saturating_mul(PATIENCE);
            part.limit = part.limit.min(most);
            match scheduler.run(&mut part, &mut device.space, Some(&mut footprints)) {
                Progress::Ended(Completion::Completed(piece_statistics)) => {
                    add(&mut statistics, piece_statistics)
                }
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
