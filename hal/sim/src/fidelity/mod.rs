//! Fidelity of a run: the exactness of the executed operations, and the decisions that depend on
//! results that no document settles or that have an error.
//!
//! Unsettled results are marked, and the marks tracked through registers, LDS and device memory,
//! from dispatch to dispatch. If a marked value is used as an address, or decides a branch or the
//! active lanes, a processor with other bits may take another path; otherwise it computes other
//! values on the same path. Values computed on a path that marked values chose are not marked.
//!
//! Results within an error are ubiquitous, and therefore only tracked statically ([`course`]): the
//! analysis finds the instructions whose decisions they may affect, and the executions of these are
//! counted.

mod course;
mod executions;
mod follow;
mod report;
mod scalar_memory;

pub use course::is_settled;

use crate::dispatch::checker::{Checker, Counting};
use crate::dispatch::launch::Launch;
use crate::execute::step::is_vector;
use crate::instruction::control::Control;
use crate::instruction::{Op, Run, Stretch, Traits};
use crate::memory::Memory;
use crate::shadow::{LdsMarks, MarkedMemory, Purpose, Shadow};
use crate::translate::program::Program;
use crate::wave::{Level, Machine, Wave};
use course::{Consequences, consequences};
use executions::{Executions, Instruction};
use flipwave_device::{Dim3, FaultCause, ModuleId, WaveId};
use flipwave_isa::LaneMask;
use flipwave_machine::Fidelity;
use report::Findings;
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::Arc;

/// Fidelity check of a run over all its dispatches, see
/// [`EmbeddedGpu::begin_fidelity`](crate::EmbeddedGpu::begin_fidelity).
#[derive(Default)]
pub struct FidelityCheck {
    findings: Findings,
    /// Marks on device memory, kept between dispatches.
    memory: MarkedMemory,
    dispatch: Option<DispatchCheck>,
    /// `true` if marks are no longer tracked.
    only_counts: bool,
    /// Decisions in kernels that results within an error may affect, by start address.
    consequences: FxHashMap<u64, Arc<Consequences>>,
}

/// State of the check for the current dispatch.
struct DispatchCheck {
    kernel: String,
    machine: Machine,
    /// Decisions that results within an error may affect, and the code object with the kernel.
    consequences: Option<(Arc<Consequences>, ModuleId)>,
    executions: Executions,
    /// Counts of other parts that have ended.
    parts: Vec<Executions>,
    /// Marks on registers, for waves with marks.
    shadows: FxHashMap<WaveId, Box<Shadow>>,
    /// Marks on LDS, for workgroups with marks.
    lds: FxHashMap<Dim3, LdsMarks>,
    /// Number of running waves per workgroup.
    waves: FxHashMap<Dim3, u32>,
    /// A wave for evaluating operations.
    ghost: Wave,
    /// Empty marks for the next wave that receives some.
    blank: Option<Box<Shadow>>,
}

impl FidelityCheck {
    /// Creates a check before the first dispatch.
    pub fn new() -> FidelityCheck {
        FidelityCheck::default()
    }

    /// Starts a dispatch of a kernel that starts at a device address, in the program with this
    /// index.
    pub(crate) fn begin_kernel(
        &mut self,
        kernel: &str,
        machine: Machine,
        programs: Vec<Arc<Program>>,
        start: u64,
        home: usize,
    ) {
        let consequences = programs.get(home).map(|program| {
            let known = self.consequences.entry(start);
            Arc::clone(known.or_insert_with(|| Arc::new(consequences(program, start))))
        });
        self.begin(kernel, machine, programs);
        if let Some(dispatch) = &mut self.dispatch {
            dispatch.consequences =
                consequences.map(|consequences| (consequences, ModuleId(home as u32)));
        }
    }

    /// Starts a dispatch of a kernel of these programs.
    fn begin(&mut self, kernel: &str, machine: Machine, programs: Vec<Arc<Program>>) {
        self.end();
        let level = programs.first().map_or_else(Level::detect, |program| program.level());
        self.dispatch = Some(DispatchCheck {
            kernel: kernel.to_owned(),
            machine,
            consequences: None,
            executions: Executions::new(programs),
            parts: Vec::new(),
            shadows: FxHashMap::default(),
            lds: FxHashMap::default(),
            waves: FxHashMap::default(),
            ghost: Wave::new(level),
            blank: None,
        });
    }

    /// Only counts operations from the next dispatch on, without tracking marks: for dispatches
    /// that all have a [settled course](crate::EmbeddedGpu::has_settled_course).
    pub fn only_count(&mut self) {
        self.end();
        self.only_counts = true;
    }

    /// Returns `true` if counting the executions of the current dispatch is sufficient.
    /// `is_settled` says whether all of its operations are settled.
    pub(crate) fn only_counts(&self, is_settled: bool) -> bool {
        let has_no_marks =
            |dispatch: &DispatchCheck| dispatch.shadows.is_empty() && dispatch.lds.is_empty();
        self.only_counts
            || is_settled
                && self.memory.is_empty()
                && self.dispatch.as_ref().is_some_and(has_no_marks)
    }

    /// Creates a check for other waves of the current dispatch, if marks are not tracked.
    pub(crate) fn new_part(&self, programs: Vec<Arc<Program>>) -> FidelityCheck {
        let mut part = FidelityCheck { only_counts: self.only_counts, ..FidelityCheck::default() };
        if let Some(dispatch) = &self.dispatch {
            part.begin(&dispatch.kernel, dispatch.machine, programs);
        }
        part
    }

    /// Adds the counts of a [part](FidelityCheck::new_part).
    pub(crate) fn absorb(&mut self, part: FidelityCheck) {
        if let (Some(dispatch), Some(part)) = (&mut self.dispatch, part.dispatch) {
            dispatch.parts.push(part.executions);
        }
    }

    /// Discards the counts of the current dispatch, in which no marks were tracked, because it is
    /// repeated.
    pub fn forget(&mut self) {
        self.dispatch = None;
    }

    /// Ends the current dispatch, if there is one.
    fn end(&mut self) {
        if let Some(dispatch) = self.dispatch.take() {
            for executions in dispatch.parts.into_iter().chain([dispatch.executions]) {
                let counts: Vec<_> = executions.into_counts(dispatch.machine).collect();
                if let Some((consequences, home)) = &dispatch.consequences {
                    count_consequences(
                        &mut self.findings,
                        &dispatch.kernel,
                        &counts,
                        consequences,
                        *home,
                    );
                }
                self.findings.count(counts.into_iter());
            }
        }
    }

    /// Returns the findings of the dispatches so far, which must have ended. Marks on memory are
    /// kept.
    pub(crate) fn take(&mut self) -> Fidelity {
        self.end();
        mem::take(&mut self.findings).into_fidelity()
    }
}

/// Adds executions of instructions whose decisions results within an error may affect.
fn count_consequences(
    findings: &mut Findings,
    kernel: &str,
    counts: &[(Arc<Instruction>, u64)],
    consequences: &Consequences,
    home: ModuleId,
) {
    for (instruction, executions) in counts.iter().filter(|(counted, _)| counted.module == home) {
        let pc = instruction.pc;
        let affected = consequences.range((pc, Purpose::FIRST)..=(pc, Purpose::LAST));
        for ((_, purpose), registers) in affected {
            findings.may_have_decided(kernel, instruction, *executions, *purpose, registers);
        }
    }
}

impl Checker for FidelityCheck {
    const ALLOWS_COMPILED: bool = true;

    fn counting(&self) -> Counting {
        let FidelityCheck { memory, dispatch: Some(dispatch), only_counts, .. } = self else {
            return Counting::Nothing;
        };
        if *only_counts {
            return Counting::Rows(Traits(0));
        }
        let has_marks =
            !memory.is_empty() || !dispatch.lds.is_empty() || !dispatch.shadows.is_empty();
        if has_marks { Counting::Each } else { Counting::Rows(Traits::UNSETTLED) }
    }

    /// Allows sequences without tracked marks.
    fn allows(&mut self, wave: &Wave, stretch: Stretch<'_>) -> u64 {
        let FidelityCheck { memory, dispatch: Some(dispatch), only_counts: false, .. } = self
        else {
            return u64::MAX;
        };
        let may_load = !memory.is_empty() || !dispatch.lds.is_empty();
        let is_followed = stretch.traits.meets(Traits::UNSETTLED)
            || dispatch.shadows.contains_key(&wave.id)
            || may_load && dispatch.executions.accesses(stretch);
        if is_followed { 0 } else { u64::MAX }
    }

    fn executed(&mut self, _: &Wave, stretch: Stretch<'_>, times: u64, _: [LaneMask; 2]) {
        if let Some(dispatch) = &mut self.dispatch {
            dispatch.executions.execute_stretch(stretch, times);
        }
    }

    fn executed_first(&mut self, _: &Wave, stretch: Stretch<'_>, count: usize, _: LaneMask) {
        if let Some(dispatch) = &mut self.dispatch {
            dispatch.executions.execute_first(stretch, count, dispatch.machine);
        }
    }

    fn starts(&mut self, wave: &Wave, _: &Launch) {
        if let Some(dispatch) = &mut self.dispatch {
            *dispatch.waves.entry(wave.id.workgroup).or_default() += 1;
        }
    }

    fn before(&mut self, wave: &Wave, op: &Op, _: &mut dyn Memory) {
        let FidelityCheck { findings, memory, dispatch: Some(dispatch), only_counts, .. } = self
        else {
            return;
        };
        if wave.mode.skips_vectors() && is_vector(op.run) {
            return;
        }
        let machine = dispatch.machine;
        let instruction = dispatch.executions.execute(wave.pc, op, machine);
        if let Run::Control(Control::EndProgram) = op.run {
            dispatch.end_wave(wave);
            return;
        }
        if *only_counts {
            return;
        }
        let has_marks = dispatch.shadows.contains_key(&wave.id);
        let may_load = match op.run {
            Run::VectorMemory(_) => !memory.is_empty() || !dispatch.lds.is_empty(),
            Run::ScalarMemory(_) => !memory.is_empty(),
            Run::Lds(_) | Run::LdsDirect => dispatch.lds.contains_key(&wave.id.workgroup),
            _ => false,
        };
        if !has_marks && !may_load && instruction.unsettled == 0 {
            return;
        }
        let instruction = Arc::clone(instruction);
        let shadow = dispatch.shadows.remove(&wave.id).or_else(|| dispatch.blank.take());
        let mut shadow = shadow.unwrap_or_else(|| Box::new(Shadow::clear()));
        let before = shadow.decision(wave, op);
        let followed = dispatch.follow(&mut shadow, memory, wave, op, &instruction);
        for decision in before.into_iter().chain(followed.decision) {
            findings.decide(&dispatch.kernel, &instruction, wave.id, decision);
        }
        if has_marks || followed.marks {
            _ = dispatch.shadows.insert(wave.id, shadow)
        } else {
            dispatch.blank = Some(shadow)
        }
    }

    fn passes_barrier(&mut self, _: &[Wave]) {}

    fn faults(&mut self, _: &FaultCause, _: &[Wave]) {}
}

impl DispatchCheck {
    /// Ends a wave, and its LDS with the last wave of the workgroup.
    fn end_wave(&mut self, wave: &Wave) {
        self.shadows.remove(&wave.id);
        let workgroup = wave.id.workgroup;
        if let Some(waves) = self.waves.get_mut(&workgroup) {
            *waves -= 1;
            if *waves == 0 {
                self.waves.remove(&workgroup);
                self.lds.remove(&workgroup);
            }
        }
    }
}
