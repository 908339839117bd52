//! Dispatches with what breaks the rules of the hardware besides.

use super::divided_survey::Division;
use super::{EmbeddedGpu, Notes, Unsupported};
use crate::counts::Counter;
use crate::dispatch::checker::{Both, Checker, Counting};
use crate::dispatch::execution::{Execution, Progress};
use crate::dispatch::launch::{self, Launch};
use crate::dispatch::observer::{Observer, Unobserved};
use crate::fidelity::{self, Fidelity, FidelityCheck};
use crate::instruction::{Op, Stretch, Traits};
use crate::memory::{Footprints, Memory};
use crate::strict::{self, Finding, SegmentBounds, Strict, StrictOptions, Violation};
use crate::translate::program::Program;
use crate::wave::{ScalarIndex, Wave};
use flipwave_codeobj::{CodeObject, InitialValue, SourceLine};
use flipwave_device::{Completion, DeviceError, Dispatch, FaultCause, ModuleId};
use flipwave_isa::{LaneMask, Pc, Target};
use std::sync::Arc;

/// What the strict level has recorded of a dispatch under way, see [`EmbeddedGpu::begin_check`].
pub struct StrictCheck(Strict);

/// What a fault-free run is looked at for, see [`EmbeddedGpu::begin_survey`].
pub struct SurveyCheck {
    pub(super) bounds: SegmentBounds,
    /// What is counted, if anything is.
    pub counter: Option<Counter>,
    /// What several threads have executed.
    pub(super) division: Division,
}

impl SurveyCheck {
    /// A check of other workgroups of the same dispatch, whose code is in these programs.
    pub(super) fn new_part(&self, programs: Vec<Arc<Program>>) -> SurveyCheck {
        let counter = self.counter.as_ref().map(Counter::new_part);
        SurveyCheck { bounds: SegmentBounds::new(programs), counter, division: Division::default() }
    }
}

impl Checker for SurveyCheck {
    const ALLOWS_COMPILED: bool = true;
    const SEES_RESULTS: bool = true;

    #[inline(always)]
    fn counting(&self) -> Counting {
        match self.counter {
            Some(_) => Counting::Rows(Traits::OWN_LANES),
            None => Counting::Nothing,
        }
    }

    #[inline(always)]
    fn allows(&mut self, _: &Wave, stretch: Stretch<'_>) -> u64 {
        if self.counter.is_some() && stretch.has_own_lanes() { 0 } else { u64::MAX }
    }

    fn enters(&mut self, stretch: Stretch<'_>) {
        if let Some(counter) = &mut self.counter {
            counter.enter_stretch(stretch);
        }
    }

    #[inline(always)]
    fn executed(&mut self, wave: &Wave, stretch: Stretch<'_>, times: u64, exec: [LaneMask; 2]) {
        if let Some(counter) = &mut self.counter {
            counter.count_stretch(wave, stretch, times, exec);
        }
    }

    fn executed_first(&mut self, wave: &Wave, stretch: Stretch<'_>, count: usize, exec: LaneMask) {
        if let Some(counter) = &mut self.counter {
            counter.count_first(wave, stretch, count, exec);
        }
    }

    fn starts(&mut self, _: &Wave, _: &Launch) {}

    #[inline(always)]
    fn before(&mut self, wave: &Wave, op: &Op, _: &mut dyn Memory) {
        self.bounds.look(wave, op);
    }

    #[inline(always)]
    fn leaves(&mut self, wave: &Wave, op: &Op) {
        self.bounds.look(wave, op);
    }

    #[inline(always)]
    fn after(&mut self, wave: &Wave, op: &Op, lanes: LaneMask) {
        if let Some(counter) = &mut self.counter {
            counter.count(wave, &op.inst, lanes);
        }
    }

    fn passes_barrier(&mut self, _: &[Wave]) {}

    fn faults(&mut self, _: &FaultCause, _: &[Wave]) {}
}

impl EmbeddedGpu {
    /// Like [`EmbeddedGpu::dispatch_observed`], with what breaks the rules of the hardware in the place
    /// of an observer. Execution is the same, and much slower.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::dispatch_observed`]; [`Unsupported::StrictLevel`](super::Unsupported) for a processor whose
    /// rules are not known here.
    pub fn dispatch_strict_with(
        &mut self,
        dispatch: &Dispatch,
        options: StrictOptions,
    ) -> Result<(Completion, Vec<Violation>), DeviceError> {
        let mut execution = self.begin(dispatch)?;
        let mut check = self.begin_check(&execution, options)?;
        let end = self.finish(&mut execution, &mut Unobserved, &mut check.0)?;
        Ok((end, self.violations(check)))
    }

    /// Like [`EmbeddedGpu::dispatch_strict_with`], without options.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::dispatch_strict_with`].
    pub fn dispatch_strict(
        &mut self,
        dispatch: &Dispatch,
    ) -> Result<(Completion, Vec<Violation>), DeviceError> {
        self.dispatch_strict_with(dispatch, StrictOptions::default())
    }

    /// What finds in an execution, from its beginning on, what breaks the rules of the hardware.
    ///
    /// # Errors
    /// [`Unsupported::StrictLevel`](super::Unsupported) for a processor whose rules are not known here.
    pub fn begin_check(
        &self,
        execution: &Execution,
        options: StrictOptions,
    ) -> Result<StrictCheck, DeviceError> {
        let machine = execution.launch.machine;
        let rules = strict::rules(&self.target, machine.lanes);
        let rules = rules.ok_or_else(|| Unsupported::StrictLevel {
            target: self.target.to_string(),
            known: Target::modelled().filter(|own| has_strict_level(own)).collect(),
        })?;
        let programs = self.programs_of(execution);
        Ok(StrictCheck(Strict::new(rules, &self.target, machine, programs, options)))
    }

    /// Like [`EmbeddedGpu::advance`], checked; and much slower.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_checked(
        &mut self,
        execution: &mut Execution,
        check: &mut StrictCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, &mut Unobserved, &mut check.0, until, Notes::None)
    }

    /// What was found.
    pub fn violations(&self, check: StrictCheck) -> Vec<Violation> {
        self.with_lines(check.0.into_violations())
    }

    /// Has a dispatch of `kernel` followed, from its beginning on, by what follows the fidelity of a
    /// run. The dispatch that it followed before has ended.
    pub fn begin_fidelity(&self, kernel: &str, execution: &Execution, check: &mut FidelityCheck) {
        let launch = &execution.launch;
        let programs = self.programs_of(execution);
        check.begin_kernel(kernel, launch.machine, programs, launch.start, execution.home);
    }

    /// Whether the course of all waves of a dispatch is for sure the same whatever the results are that are
    /// not settled, as far as the code shows: of its own operations, and in memory, if earlier dispatches
    /// may have left some there. It is not where the code is not seen.
    pub fn has_settled_course(&self, dispatch: &Dispatch, memory_may_be_marked: bool) -> bool {
        let module = self.module(dispatch.module).ok();
        let kernels = module.and_then(|own| own.code_object.as_ref()).map(CodeObject::kernels);
        let mut kernels = kernels.into_iter().flatten();
        let Some((module, kernel)) =
            module.zip(kernels.find(|kernel| *kernel.name == *dispatch.kernel))
        else {
            return false;
        };
        let machine = launch::machine(&kernel.descriptor, &self.target);
        let program = self.programs_for(machine.lanes).get(dispatch.module.0 as usize);
        let initial = kernel.descriptor.initial_sgprs(&self.target);
        let pointers = initial.iter().filter(|own| {
            matches!(
                own.value,
                InitialValue::KernargPointer
                    | InitialValue::DispatchPointer
                    | InitialValue::QueuePointer
            )
        });
        let pointers = pointers.flat_map(|own| own.first.0..own.first.0.saturating_add(own.words));
        program.is_some_and(|program| {
            let program = program.of_machine(machine, true);
            let start = module.bias.wrapping_add(kernel.start().0);
            fidelity::is_settled(&program, start, pointers.map(ScalarIndex), memory_may_be_marked)
        })
    }

    /// Like [`EmbeddedGpu::advance`], and follows the fidelity of the run. Execution is the same, and
    /// slower, the more so after the first operation that is not settled.
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_with_fidelity(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        check: &mut FidelityCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, observer, check, until, Notes::None)
    }

    /// What was found of the fidelity of the dispatches followed since this was asked last, all of
    /// which have ended. What is followed in memory goes on to be followed.
    pub fn fidelity(&self, check: &mut FidelityCheck) -> Fidelity {
        let mut fidelity = check.take();
        for decision in &mut fidelity.decisions {
            decision.line = self.line_at(decision.module, decision.pc);
        }
        fidelity
    }

    /// What finds in an execution, from its beginning on, accesses beyond the LDS of a workgroup, where
    /// hardware reads zero and drops what is written, and beyond the private memory of a work-item, where
    /// other work-items have theirs. What waves execute is counted besides, and of the
    /// lanes of each execution those in `counted`, if there are any.
    pub fn begin_survey(&self, execution: &Execution, counted: Option<LaneMask>) -> SurveyCheck {
        let programs = self.programs_of(execution);
        let home = programs.get(execution.home).cloned();
        let counter = counted.zip(home).map(|(lanes, home)| Counter::new(lanes, home));
        SurveyCheck { bounds: SegmentBounds::new(programs), counter, division: Division::default() }
    }

    /// Like [`EmbeddedGpu::advance`], with what [`EmbeddedGpu::begin_survey`] looks for. Execution is the
    /// same, and hardly slower. Besides it follows the fidelity of the run where it is given what does,
    /// as [`EmbeddedGpu::advance_with_fidelity`], and what workgroups touch is added to `footprints`, if
    /// there are any, as by [`EmbeddedGpu::advance_recorded`].
    ///
    /// # Errors
    /// As [`EmbeddedGpu::advance`].
    pub fn advance_surveyed(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        (check, fidelity): (&mut SurveyCheck, Option<&mut FidelityCheck>),
        footprints: Option<&mut Footprints>,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        let notes = footprints.map_or(Notes::None, Notes::Touched);
        match fidelity {
            Some(fidelity) => {
                let mut both = Both(check, fidelity);
                self.advance_with(execution, observer, &mut both, until, notes)
            }
            None => self.advance_with(execution, observer, check, until, notes),
        }
    }

    /// The accesses beyond LDS and private memory that were found.
    pub fn outside_segments(&self, check: SurveyCheck) -> Vec<Violation> {
        self.with_lines(check.bounds.into_violations())
    }

    /// Violations with the source lines of where they are.
    fn with_lines(&self, mut violations: Vec<Violation>) -> Vec<Violation> {
        for violation in &mut violations {
            violation.line = self.line_at(violation.place.module, violation.place.pc);
            if let Finding::Race { other, other_line, .. } = &mut violation.finding {
                *other_line = self.line_at(other.module, other.pc);
            }
        }
        violations
    }

    /// The source line of an address of a code object.
    fn line_at(&self, module: ModuleId, pc: Pc) -> Option<SourceLine> {
        self.modules.get(module.0 as usize).and_then(|module| module.lines.lookup(pc))
    }
}

/// Whether a processor has a strict level.
fn has_strict_level(processor: &str) -> bool {
    let target = processor.parse::<Target>().ok();
    target.is_some_and(|own| strict::rules(&own, own.default_wave_size()).is_some())
}
