//! Dispatches with checks of the hardware's rules.

use super::divided_survey::Division;
use super::{EmbeddedGpu, Notes, Unsupported};
use crate::counts::Counter;
use crate::dispatch::checker::{Both, Checker, Counting};
use crate::dispatch::execution::Execution;
use crate::dispatch::launch::{self, Launch};
use crate::dispatch::observer::{Observer, Unobserved};
use crate::fidelity::{self, FidelityCheck};
use crate::instruction::{Op, Stretch, Traits};
use crate::memory::Memory;
use crate::strict::{self, Finding, SegmentBounds, Strict, StrictOptions, Violation};
use crate::translate::code::SlotAllocation;
use crate::translate::program::Program;
use crate::wave::{ScalarIndex, Wave};
use flipwave_codeobj::{CodeObject, InitialValue, SourceLine};
use flipwave_device::{Completion, DeviceError, Dispatch, FaultCause, ModuleId};
use flipwave_isa::{LaneMask, Pc, Target};
use flipwave_machine::{Fidelity, Footprints, Progress};
use std::sync::Arc;

/// Strict-level check of a dispatch in progress, see [`EmbeddedGpu::begin_check`].
pub struct StrictCheck(Strict);

/// Survey of a golden run, see [`EmbeddedGpu::begin_survey`].
pub struct SurveyCheck {
    pub(super) bounds: SegmentBounds,
    /// Execution counter, if anything is counted.
    pub counter: Option<Counter>,
    /// Results from several threads.
    pub(super) division: Division,
}

impl SurveyCheck {
    /// Creates a survey of other workgroups of the same dispatch, whose code is in these programs.
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
        self.bounds.check(wave, op);
    }

    #[inline(always)]
    fn leaves(&mut self, wave: &Wave, op: &Op) {
        self.bounds.check(wave, op);
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
    /// Like [`EmbeddedGpu::dispatch_observed`], with strict checks in place of an observer.
    /// Execution is the same, and much slower.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::dispatch_observed`]; [`Unsupported::StrictLevel`](super::Unsupported) for
    /// a processor without known rules.
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
    /// See [`EmbeddedGpu::dispatch_strict_with`].
    pub fn dispatch_strict(
        &mut self,
        dispatch: &Dispatch,
    ) -> Result<(Completion, Vec<Violation>), DeviceError> {
        self.dispatch_strict_with(dispatch, StrictOptions::default())
    }

    /// Creates a strict check for an execution that has not started.
    ///
    /// # Errors
    /// [`Unsupported::StrictLevel`](super::Unsupported) for a processor without known rules.
    pub fn begin_check(
        &self,
        execution: &Execution,
        options: StrictOptions,
    ) -> Result<StrictCheck, DeviceError> {
        let machine = execution.launch.machine;
        let rules = strict::rules(&self.target, machine.lanes);
        let rules = rules.ok_or_else(|| Unsupported::StrictLevel {
            target: self.target.to_string(),
            known: Target::modelled().filter(|processor| has_strict_level(processor)).collect(),
        })?;
        let programs = self.programs_of(execution);
        Ok(StrictCheck(Strict::new(rules, &self.target, machine, programs, options)))
    }

    /// Like [`EmbeddedGpu::advance`] with strict checks; much slower.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn advance_checked(
        &mut self,
        execution: &mut Execution,
        check: &mut StrictCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, &mut Unobserved, &mut check.0, until, Notes::None)
    }

    /// Returns the violations.
    pub fn violations(&self, check: StrictCheck) -> Vec<Violation> {
        self.with_lines(check.0.into_violations())
    }

    /// Attaches a fidelity check to an execution of `kernel` that has not started. The previous
    /// dispatch of the check must have ended.
    pub fn begin_fidelity(&self, kernel: &str, execution: &Execution, check: &mut FidelityCheck) {
        let launch = &execution.launch;
        let programs = self.programs_of(execution);
        check.begin_kernel(kernel, launch.machine, programs, launch.start, execution.home);
    }

    /// Returns `true` if the code shows that unsettled results cannot change the control flow of
    /// any wave of a dispatch: results of its operations, and results in memory, if earlier
    /// dispatches may have left some there. Returns `false` if the code is not available.
    pub fn has_settled_course(&self, dispatch: &Dispatch, memory_may_be_marked: bool) -> bool {
        let module = self.module(dispatch.module).ok();
        let kernels =
            module.and_then(|module| module.code_object.as_ref()).map(CodeObject::kernels);
        let mut kernels = kernels.into_iter().flatten();
        let Some((module, kernel)) =
            module.zip(kernels.find(|kernel| *kernel.name == *dispatch.kernel))
        else {
            return false;
        };
        let machine = launch::machine(&kernel.descriptor, &self.target);
        let program = self.programs_for(machine.lanes).get(dispatch.module.0 as usize);
        let initial = kernel.descriptor.initial_sgprs(&self.target);
        let pointers = initial.iter().filter(|initial_value| {
            matches!(
                initial_value.value,
                InitialValue::KernargPointer
                    | InitialValue::DispatchPointer
                    | InitialValue::QueuePointer
            )
        });
        let pointers = pointers
            .flat_map(|pointer| pointer.first.0..pointer.first.0.saturating_add(pointer.words));
        program.is_some_and(|program| {
            let program = program.of_machine(machine, SlotAllocation::Eager);
            let start = module.bias.wrapping_add(kernel.start().0);
            fidelity::is_settled(&program, start, pointers.map(ScalarIndex), memory_may_be_marked)
        })
    }

    /// Like [`EmbeddedGpu::advance`], with a fidelity check. Execution is the same, and slower,
    /// especially after the first unsettled operation.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn advance_with_fidelity(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        check: &mut FidelityCheck,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        self.advance_with(execution, observer, check, until, Notes::None)
    }

    /// Returns the fidelity of the dispatches since the last call, all of which must have ended.
    /// Marks in device memory are kept.
    pub fn fidelity(&self, check: &mut FidelityCheck) -> Fidelity {
        let mut fidelity = check.take();
        for decision in &mut fidelity.decisions {
            decision.line = self.line_at(decision.module, decision.pc);
        }
        fidelity
    }

    /// Creates a survey for an execution that has not started. It finds accesses beyond the LDS of
    /// a workgroup, where hardware reads zero and drops writes, and beyond the private memory of a
    /// work-item, where other work-items have theirs. If `counted` is given, it also counts the
    /// executions of waves, and of these lanes.
    pub fn begin_survey(&self, execution: &Execution, counted: Option<LaneMask>) -> SurveyCheck {
        let programs = self.programs_of(execution);
        let home = programs.get(execution.home).cloned();
        let counter = counted.zip(home).map(|(lanes, home)| Counter::new(lanes, home));
        SurveyCheck { bounds: SegmentBounds::new(programs), counter, division: Division::default() }
    }

    /// Like [`EmbeddedGpu::advance`], with the survey of [`EmbeddedGpu::begin_survey`]. Execution
    /// is the same, and hardly slower. If a fidelity check is given, it is advanced as by
    /// [`EmbeddedGpu::advance_with_fidelity`]; if `footprints` are given, accesses are added as by
    /// [`EmbeddedGpu::advance_recorded`].
    ///
    /// # Errors
    /// See [`EmbeddedGpu::advance`].
    pub fn advance_surveyed(
        &mut self,
        execution: &mut Execution,
        observer: &mut dyn Observer,
        check: &mut SurveyCheck,
        fidelity: Option<&mut FidelityCheck>,
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

    /// Returns the accesses beyond LDS and private memory.
    pub fn outside_segments(&self, check: SurveyCheck) -> Vec<Violation> {
        self.with_lines(check.bounds.into_violations())
    }

    /// Adds source lines to violations.
    fn with_lines(&self, mut violations: Vec<Violation>) -> Vec<Violation> {
        for violation in &mut violations {
            violation.line = self.line_at(violation.place.module, violation.place.pc);
            if let Finding::Race { earlier, earlier_line, .. } = &mut violation.finding {
                *earlier_line = self.line_at(earlier.module, earlier.pc);
            }
        }
        violations
    }

    /// Source line of an address in a code object.
    fn line_at(&self, module: ModuleId, pc: Pc) -> Option<SourceLine> {
        self.modules.get(module.0 as usize).and_then(|module| module.lines.lookup(pc))
    }
}

/// Returns `true` if a processor has a strict level.
fn has_strict_level(processor: &str) -> bool {
    let target = processor.parse::<Target>().ok();
    target.is_some_and(|target| strict::rules(&target, target.default_wave_size()).is_some())
}
