//! The strict level: reports what PTX's manual leaves undefined and the simulator tolerates.
//!
//! [`StrictCheck::before`] sees each instruction before a wave executes it. What is checked per rule is described at
//! [`PtxRule`]. Undefined values are tracked by lane and word through registers and shared memory; all other memory
//! counts as defined.

mod lanes;
mod memory;
mod rule;
mod shadow;
mod shared;
mod values;
mod violation;
mod warpgroup;

pub use rule::PtxRule;
pub use violation::PtxViolation;

use crate::execute::Reach;
use crate::program::Op;
use flipwave_arch::{LaneMask, RegisterId, SourceLines};
use flipwave_device::Dim3;
use flipwave_ptx::{Argument, CARRY, Inst, PREDICATES, WORDS};
use shadow::Shadow;
use shared::SharedFacts;
use std::collections::HashMap;
use violation::Report;
use warpgroup::Products;

/// Checks of a dispatch on the strict level.
#[derive(Default)]
pub struct StrictCheck {
    report: Report,
    /// Facts about the workgroups that have started and not ended.
    groups: HashMap<Dim3, GroupFacts>,
}

/// Facts about a workgroup.
#[derive(Default)]
struct GroupFacts {
    shared: SharedFacts,
    waves: HashMap<u32, WaveFacts>,
}

/// Facts about a wave.
#[derive(Default)]
struct WaveFacts {
    shadow: Shadow,
    products: Products,
}

/// An instruction that a wave is about to execute.
struct Checked<'a, 'r> {
    reach: &'a Reach<'r>,
    inst: &'a Inst,
    op: &'a Op,
    /// Lanes that execute it.
    lanes: u32,
    report: &'a mut Report,
}

impl StrictCheck {
    /// Checks the instruction with a number before its wave executes it in `lanes`.
    pub(crate) fn before(&mut self, reach: &Reach<'_>, number: usize, lanes: u32) {
        let id = reach.wave.id;
        let new =
            || GroupFacts { shared: SharedFacts::new(reach.shared.len()), waves: HashMap::new() };
        let group = self.groups.entry(id.workgroup).or_insert_with(new);
        let wave = group.waves.entry(id.wave).or_default();
        let step = &reach.program.steps[number];
        let report = &mut self.report;
        let mut checked = Checked { reach, inst: &step.inst, op: &step.op, lanes, report };
        checked.guard(&wave.shadow);
        if lanes == 0 {
            return;
        }
        checked.aligned();
        checked.masks();
        checked.uses(&wave.shadow);
        checked.division();
        checked.products(&mut wave.products);
        checked.memory(&mut group.shared);
        checked.define(&mut wave.shadow, &mut group.shared);
    }

    /// Ends a workgroup.
    pub(crate) fn end(&mut self, workgroup: Dim3) {
        self.groups.remove(&workgroup);
    }

    /// The violations, one per rule and instruction.
    pub fn into_violations(self) -> Vec<PtxViolation> {
        self.report.violations
    }
}

impl Checked<'_, '_> {
    /// Reports a violation in some lanes.
    fn report(&mut self, rule: PtxRule, lanes: u32, found: impl FnOnce() -> String) {
        let program = self.reach.program;
        let original = program.original.as_ref();
        let pc = original.map_or(self.inst.pc, |original| original.pc(self.inst.pc));
        let code = original.map_or(&program.code, |original| &original.code);
        let seen = code.at(pc).unwrap_or(self.inst);
        self.report.add(rule, pc, || PtxViolation {
            rule,
            pc,
            text: seen.text().to_owned(),
            function: code.functions[seen.function].name.to_string(),
            line: code.lookup(pc),
            found: found(),
            wave: self.reach.wave.id,
            lanes: LaneMask(lanes.into()),
            count: 1,
        });
    }

    /// Lanes of the wave that have not ended.
    fn living(&self) -> u32 {
        let kernel = self.reach.wave.frames.first();
        let paths = kernel.map_or(&[][..], |frame| &frame.paths[..]);
        paths.iter().fold(0, |lanes, path| lanes | path.lanes)
    }

    /// Name of a register as the module declares it.
    fn name(&self, register: RegisterId) -> String {
        let functions = &self.reach.program.code.functions;
        let function = functions.get(self.inst.function);
        let found = function.and_then(|function| function.register_name(register));
        found.map_or_else(|| register.to_string(), |(name, _)| name.to_owned())
    }

    /// Name of a word.
    fn word_name(&self, number: u16) -> String {
        self.name(RegisterId { class: &WORDS, number })
    }

    /// Reports an asynchronous product without a fence before it, and accesses to registers of pending products.
    fn products(&mut self, products: &mut Products) {
        let name = self.inst.form.name();
        if name.starts_with("wgmma.mma_async") {
            let all = self.inst.accesses();
            let accumulators = &all.destinations;
            let is_left = |register: &&RegisterId| {
                register.class.rank == WORDS.rank && !accumulators.contains(register)
            };
            // A descriptor is no fragment.
            let has_fragment = matches!(self.inst.operands.get(1), Some(Argument::Vector(_)));
            let left: Vec<RegisterId> = match has_fragment {
                true => all.sources.iter().filter(is_left).copied().collect(),
                false => Vec::new(),
            };
            let used: Vec<RegisterId> = accumulators.iter().chain(&left).copied().collect();
            if let Some(word) = products.unfenced(&used) {
                let (register, lanes) = (self.word_name(word), self.lanes);
                self.report(PtxRule::WarpgroupFence, lanes, || {
                    format!("{register} was accessed after the last wgmma.fence, or there was none")
                });
            }
            products.add(accumulators, &left);
            return;
        }
        match name.split('.').nth(1) {
            Some("fence") if name.starts_with("wgmma") => products.fence(),
            Some("commit_group") if name.starts_with("wgmma") => products.commit(),
            Some("wait_group") if name.starts_with("wgmma") => {
                products.wait(self.constant(0).unwrap_or(0));
            }
            _ if products.is_unused() => {}
            _ => {
                let all = self.inst.accesses();
                if let Some(word) = products.access(&all.sources, &all.destinations) {
                    let (register, lanes) = (self.word_name(word), self.lanes);
                    self.report(PtxRule::WarpgroupWait, lanes, || {
                        format!("{register} is accessed while a wgmma.mma_async may be using it")
                    });
                }
            }
        }
    }

    /// The constant that is the operand with a number.
    fn constant(&self, number: usize) -> Option<u64> {
        match self.inst.operands.get(number)? {
            Argument::Constant(value) => value.integer(),
            _ => None,
        }
    }

    /// Returns `true` for a register that the strict level tracks.
    fn is_tracked(register: RegisterId) -> bool {
        [WORDS.rank, PREDICATES.rank, CARRY.rank].contains(&register.class.rank)
    }
}
