//! Static instructions that a dispatch executed, numbered in the order of their first execution.

use super::execution_sites::Executor;
use super::words::{Resources, words, words_of_sums};
use super::{Draw, ExecutionSites, Selection, Stratification};
use crate::Workload;
use crate::fault::{Duration, Fault, Scope};
use flipwave_arch::{Architecture, Group, Instruction, Pc, RegisterSpan, SourceLine, SourceLines};
use flipwave_device::Dispatch;
use std::collections::HashMap;

/// Definition of a fault space.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub fault: Fault,
    pub selection: Selection,
    pub stratification: Stratification,
    pub draw: Draw,
    pub known_masked: KnownMasked,
}

impl Frame {
    /// Returns `true` if it suffices to count, for each wave, how often it executes an instruction and
    /// on how many lanes. Otherwise, the time, the lanes or the state of each execution must be
    /// observed.
    pub fn counts_executions(&self) -> bool {
        let Frame { fault, selection, .. } = self;
        let is_seen = matches!(fault.duration, Duration::Permanent(_))
            || self.known_masked == KnownMasked::Counted
            || fault.target.needs_resources()
            || matches!(fault.scope, Scope::LanesEvery(_))
            || selection.occurrences.is_some()
            || selection.window.is_some();
        !is_seen
    }
}

/// Treatment of sites in values that nothing reads. The golden run identifies them; faults in them are
/// masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownMasked {
    /// They are part of the fault space.
    #[default]
    Sampled,
    /// They are counted separately, and faults only strike other sites.
    Counted,
}

/// The instructions of one dispatch.
pub(crate) struct Instructions<'a> {
    frame: &'a Frame,
    architecture: &'a dyn Architecture,
    kernel: &'a str,
    lines: Option<&'a dyn SourceLines>,
    /// The selected registers; `None` for all.
    registers: Option<Vec<RegisterSpan>>,
    resources: Option<Resources>,
    entries: Vec<CountedInstruction>,
    strata: Vec<String>,
    by_pc: HashMap<Pc, usize>,
    /// The instruction executed last; most often, the next new instruction follows it.
    last: usize,
}

/// One static instruction.
pub(crate) struct CountedInstruction {
    pub pc: Pc,
    pub text: String,
    pub opcode: &'static str,
    pub group: Group,
    pub line: Option<SourceLine>,
    /// Index of its stratum in [`Instructions::strata`].
    pub stratum: usize,
    /// Its sites; empty for instructions that are not selected.
    pub sites: ExecutionSites,
    /// Its sites including excluded ones, if any are excluded.
    pub all_places: Option<ExecutionSites>,
}

impl CountedInstruction {
    /// Number of excluded sites; `count` counts the sites of a `ExecutionSites`.
    pub fn left_out(&self, count: impl Fn(&ExecutionSites) -> u64) -> u64 {
        let all = self.all_places.as_ref().map_or(0, &count);
        all.saturating_sub(if self.all_places.is_some() { count(&self.sites) } else { 0 })
    }
}

impl<'a> Instructions<'a> {
    /// Creates an empty table for a dispatch.
    pub fn new(
        frame: &'a Frame,
        workload: &'a Workload,
        dispatch: &'a Dispatch,
    ) -> Instructions<'a> {
        Instructions {
            frame,
            architecture: workload.architecture(),
            kernel: &dispatch.kernel,
            lines: workload.lines(dispatch),
            registers: frame.selection.registers_of(&workload.device, dispatch.module),
            resources: None,
            entries: Vec::new(),
            strata: Vec::new(),
            by_pc: HashMap::new(),
            last: 0,
        }
    }

    /// Sets the resources of waves, unless they are already set.
    pub fn set_resources(&mut self, resources: impl FnOnce() -> Resources) {
        self.resources.get_or_insert_with(resources);
    }

    /// The number of an instruction; assigns a new one at the first execution.
    pub fn number(&mut self, inst: &dyn Instruction) -> usize {
        let successor = self.last + 1;
        let is_successor = self.entries.get(successor).is_some_and(|entry| entry.pc == inst.pc());
        self.last = if is_successor {
            successor
        } else if let Some(&known) = self.by_pc.get(&inst.pc()) {
            known
        } else {
            self.add(inst)
        };
        self.last
    }

    fn add(&mut self, inst: &dyn Instruction) -> usize {
        let Frame { fault, selection, stratification, draw, .. } = self.frame;
        let line = self.lines.and_then(|lines| lines.lookup(inst.pc()));
        let group = inst.primary_group();
        let opcode = inst.operation().name();
        let resources = self.resources.get_or_insert_default();
        let make = |words, fault: &Fault| match draw {
            Draw::Bits => ExecutionSites::new(words, fault),
            Draw::Instructions => {
                let is_per_lane = inst.is_executed_by_lanes();
                let executor = if is_per_lane { Executor::Lanes } else { Executor::Wave };
                ExecutionSites::of_executions(words, fault, executor)
            }
        };
        let mut all_places = None;
        let sites = if selection.has_instruction(inst, line.as_ref()) {
            let fault = Fault { model: fault.model.of_opcode(opcode), ..fault.clone() };
            let mut words = match fault.target.part_of_sum() {
                None => words(inst, &fault, resources, self.registers.as_deref()),
                Some(part) => match self.architecture.matrix_shape(inst) {
                    Some(shape) => words_of_sums(part, &shape, &fault.model),
                    None => Vec::new(),
                },
            };
            let left_out = &selection.unreached;
            if left_out.has_instruction(self.kernel, inst.pc()) {
                all_places = Some(make(words.clone(), &fault));
                words.retain(|words| !left_out.contains(self.kernel, inst.pc(), words.first));
            }
            make(words, &fault)
        } else {
            ExecutionSites::none(fault)
        };
        let stratum = match stratification {
            Stratification::None => String::new(),
            Stratification::Kernel => self.kernel.to_owned(),
            Stratification::Group => group.to_string(),
            Stratification::Opcode => opcode.to_owned(),
        };
        let known = self.strata.iter().position(|name| *name == stratum);
        let stratum = known.unwrap_or_else(|| {
            self.strata.push(stratum);
            self.strata.len() - 1
        });
        let number = self.entries.len();
        self.by_pc.insert(inst.pc(), number);
        self.entries.push(CountedInstruction {
            pc: inst.pc(),
            text: inst.text().to_owned(),
            opcode,
            group,
            line,
            stratum,
            sites,
            all_places,
        });
        number
    }

    /// The instruction with this number.
    pub fn get(&self, number: usize) -> &CountedInstruction {
        &self.entries[number]
    }

    /// Names of the strata.
    pub fn strata(&self) -> &[String] {
        &self.strata
    }

    /// All instructions, in the order of their numbers.
    pub fn into_entries(self) -> Vec<CountedInstruction> {
        self.entries
    }
}
