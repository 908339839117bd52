//! Fidelity: which of the operations that a run executes are exact, and what results decide in it that no
//! document settles, or that are within an error.
//!
//! The results of operations that are not settled are marked, and the marks followed through
//! registers, LDS and device memory, from dispatch to dispatch. Where a marked value is used as an
//! address, or decides a branch or which lanes are active, a processor whose bits are others may
//! run another course; elsewhere it computes other values on the same course. Marks are not put on
//! what was computed on a course that marked values chose.
//!
//! Results within an error are everywhere, and so are followed in the code alone ([`course`]): it says
//! which instructions they may decide, and executions of these are counted.

mod course;
mod executions;
mod follow;
mod report;
mod scalar_memory;

pub use report::{DoubtfulDecision, Fidelity, OperationFidelity};

pub use course::{Doubt, is_settled};

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
use report::Findings;
use rustc_hash::FxHashMap;
use std::mem;
use std::sync::Arc;

/// Follows a run, dispatch after dispatch, see [`EmbeddedGpu::begin_fidelity`](crate::EmbeddedGpu::begin_fidelity).
#[derive(Default)]
pub struct FidelityCheck {
    findings: Findings,
    /// Marks on device memory, from dispatch to dispatch.
    memory: MarkedMemory,
    dispatch: Option<DispatchCheck>,
    /// Whether nothing is followed any more.
    only_counts: bool,
    /// What results within an error may decide in kernels, by where they start.
    consequences: FxHashMap<u64, Arc<Consequences>>,
}

/// What is followed of a dispatch under way.
struct DispatchCheck {
    kernel: String,
    machine: Machine,
    /// What results within an error may decide, and the code object that has the kernel.
    consequences: Option<(Arc<Consequences>, ModuleId)>,
    executions: Executions,
    /// What others have counted that have ended.
    parts: Vec<Executions>,
    /// Marks on the registers of waves that have any.
    shadows: FxHashMap<WaveId, Box<Shadow>>,
    /// Marks on the LDS of workgroups that have any.
    lds: FxHashMap<Dim3, LdsMarks>,
    /// Waves of a workgroup that have not ended.
    waves: FxHashMap<Dim3, u32>,
    /// A wave on which operations are tried.
    ghost: Wave,
    /// Marks for a wave that may get its first ones.
    blank: Option<Box<Shadow>>,
}

impl FidelityCheck {
    /// Nothing executed yet.
    pub fn new() -> FidelityCheck {
        FidelityCheck::default()
    }

    /// A dispatch begins of a kernel that starts at a device address, in the program of this index.
    pub(crate) fn begin_kernel(
        &mut self,
        kernel: &str,
        machine: Machine,
        programs: Vec<Arc<Program>>,
        start: u64,
        home: usize,
    ) {
        let own = programs.get(home).map(|program| {
            let known = self.consequences.entry(start);
            Arc::clone(known.or_insert_with(|| Arc::new(consequences(program, start))))
        });
        self.begin(kernel, machine, programs);
        if let Some(dispatch) = &mut self.dispatch {
            dispatch.consequences = own.map(|own| (own, ModuleId(home as u32)));
        }
    }

    /// A dispatch of a kernel of these programs begins.
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

    /// From the next dispatch on counts operations, and follows nothing: for dispatches that all have a
    /// [settled course](crate::EmbeddedGpu::has_settled_course).
    pub fn only_count(&mut self) {
        self.end();
        self.only_counts = true;
    }

    /// Whether it is enough to count what waves execute of the dispatch under way. `is_settled` says whether
    /// all of its operations are.
    pub(crate) fn only_counts(&self, is_settled: bool) -> bool {
        let has_no_marks = |own: &DispatchCheck| own.shadows.is_empty() && own.lds.is_empty();
        self.only_counts
            || is_settled
                && self.memory.is_empty()
                && self.dispatch.as_ref().is_some_and(has_no_marks)
    }

    /// A check of other waves of the dispatch under way, where there is nothing to follow.
    pub(crate) fn new_part(&self, programs: Vec<Arc<Program>>) -> FidelityCheck {
        let mut part = FidelityCheck { only_counts: self.only_counts, ..FidelityCheck::default() };
        if let Some(own) = &self.dispatch {
            part.begin(&own.kernel, own.machine, programs);
        }
        part
    }

    /// Adds what a [part](FidelityCheck::new_part) has counted.
    pub(crate) fn absorb(&mut self, part: FidelityCheck) {
        if let (Some(own), Some(part)) = (&mut self.dispatch, part.dispatch) {
            own.parts.push(part.executions);
        }
    }

    /// Forgets what was counted of the dispatch under way, in which there was nothing to follow: it
    /// begins anew.
    pub fn forget(&mut self) {
        self.dispatch = None;
    }

    /// The dispatch under way, if there is one, has ended.
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

    /// Takes out what was found of the dispatches so far, which have ended. Marks on memory stay.
    pub(crate) fn take(&mut self) -> Fidelity {
        self.end();
        mem::take(&mut self.findings).into_fidelity()
    }
}

/// Adds executions of instructions that results within an error may decide.
fn count_consequences(
    findings: &mut Findings,
    kernel: &str,
    counts: &[(Arc<Instruction>, u64)],
    consequences: &Consequences,
    home: ModuleId,
) {
    for (instruction, executions) in counts.iter().filter(|(own, _)| own.module == home) {
        let pc = instruction.pc;
        let own = consequences.range((pc, Purpose::FIRST)..=(pc, Purpose::LAST));
        for ((_, purpose), registers) in own {
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

    /// Where there is nothing to follow.
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
        match has_marks || followed.marks {
            true => _ = dispatch.shadows.insert(wave.id, shadow),
            false => dispatch.blank = Some(shadow),
        }
    }

    fn passes_barrier(&mut self, _: &[Wave]) {}

    fn faults(&mut self, _: &FaultCause, _: &[Wave]) {}
}

impl DispatchCheck {
    /// A wave ends, and with the last one of a workgroup its LDS.
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
