//! The strict level: reports violations of the hardware's rules at the instructions that commit
//! them, without changing execution.

mod allocation;
mod bounds;
mod chip_bug;
mod clause;
mod expert;
mod facts;
mod footprint;
mod lds;
mod races;
mod recent;
mod rule;
mod scalar_reads;
mod segment_bounds;
mod split_barrier;
mod violation;
mod waits;

pub use expert::AluCounter;
pub use rule::Rule;
pub(crate) use segment_bounds::SegmentBounds;
pub use violation::{Finding, Instruction, SharedMemory, Violation};

use crate::dispatch::checker::Checker;
use crate::dispatch::launch::Launch;
use crate::execute::step::is_vector;
use crate::execute::tensor;
use crate::instruction::control::Control;
use crate::instruction::vector_memory::{Space, Transfer, VectorAccess};
use crate::instruction::{Op, Run};
use crate::memory::Memory;
use crate::shadow::vector_memory::{self, Memories};
use crate::shadow::{Decision, MarkedMemory, Shadow, destination_words};
use crate::translate::program::Program;
use crate::wave::private::{Private, stride};
use crate::wave::{Machine, RowIndex, Status, Wave};
use clause::Clause;
use expert::Expert;
use facts::Facts;
use flipwave_device::{Dim3, FaultCause, ModuleId, WaveId};
use flipwave_isa::counter::{Queue, VECTOR_MEMORY};
use flipwave_isa::{ChipBug, LaneMask, Rules, Target};
use lds::{LdsState, Unfinished};
use races::Races;
use recent::Recent;
use rustc_hash::FxHashMap;
use scalar_reads::Scalars;
use split_barrier::{Phase, names_workgroup};
use std::collections::hash_map::Entry;
use std::sync::Arc;
use violation::Report;
use waits::PendingOperations;

/// Rules for waves of `wave_size` lanes; `None` for targets whose tables are missing or incomplete.
pub(crate) fn rules(target: &Target, wave_size: u8) -> Option<Rules> {
    Rules::of(target, wave_size).filter(|rules| rules.are_complete)
}

/// Optional checks of the strict level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrictOptions {
    /// Data races. A run takes twice as long, up to nine times if waves do little but access memory.
    pub races: bool,
}

/// Checker of the strict level for one dispatch.
pub struct Strict {
    target: Target,
    programs: Vec<Arc<Program>>,
    machine: Machine,
    rules: Rules,
    /// Properties of instructions, by device address.
    facts: FxHashMap<u64, Arc<Facts>>,
    /// States of the waves. In boxes, because the state of the current wave is temporarily removed.
    waves: FxHashMap<WaveId, Box<WaveState>>,
    /// LDS states, by position of the workgroup.
    lds: FxHashMap<Dim3, LdsState>,
    /// Bits of private memory that nothing has written.
    private: MarkedMemory,
    /// Access history, if races are checked.
    races: Option<Races>,
    /// A scratch wave for evaluating operations.
    ghost: Wave,
    report: Report,
}

/// Checked state of a wave, in addition to its registers.
struct WaveState {
    pending: PendingOperations,
    recent: Recent,
    shadow: Shadow,
    /// Number of allocated scalar registers.
    sgprs: u16,
    clause: Clause,
    /// `true` if the wave has deallocated its vector registers.
    is_deallocated: bool,
    /// Barrier that the wave reached last.
    barrier: Option<Arc<Facts>>,
    /// Progress at the workgroup's split barrier.
    split_barrier: Phase,
    /// Scalar registers that vector operations may read late.
    scalar_reads: Option<Scalars>,
    expert: Expert,
    /// Bug triggered by the start of the wave; reported at its first instruction.
    bug_at_start: Option<ChipBug>,
}

impl Strict {
    /// Creates a checker for the code of these programs.
    pub(crate) fn new(
        rules: Rules,
        target: &Target,
        machine: Machine,
        programs: Vec<Arc<Program>>,
        options: StrictOptions,
    ) -> Strict {
        let level = programs.first().map_or_else(crate::wave::Level::detect, |p| p.level());
        Strict {
            target: target.clone(),
            programs,
            machine,
            rules,
            facts: FxHashMap::default(),
            waves: FxHashMap::default(),
            lds: FxHashMap::default(),
            private: MarkedMemory::default(),
            races: options.races.then(Races::default),
            ghost: Wave::new(level),
            report: Report::default(),
        }
    }

    /// Returns the violations.
    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.report.into_violations()
    }

    fn facts(&mut self, pc: u64, op: &Op) -> Arc<Facts> {
        let facts = match self.facts.entry(pc) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let module = self.programs.iter().position(|program| program.contains(pc));
                let module = ModuleId(module.unwrap_or_default() as u32);
                let facts = Facts::of(&self.target, &self.rules, &op.inst, module, self.machine);
                unknown.insert(Arc::new(facts))
            }
        };
        Arc::clone(facts)
    }
}

impl Checker for Strict {
    fn starts(&mut self, wave: &Wave, launch: &Launch) {
        let mut shadow = Shadow::marked();
        for row in 0..launch.vgprs_set() {
            shadow.unmark(RowIndex(row), wave.exec_row(), !0);
        }
        for index in launch.scalars_set() {
            shadow.scalars[usize::from(index.0)] = 0;
        }
        let state = WaveState {
            pending: PendingOperations::default(),
            recent: Recent::new(self.rules.hazards),
            shadow,
            sgprs: launch.sgprs(),
            clause: Clause::default(),
            is_deallocated: false,
            barrier: None,
            split_barrier: Phase::default(),
            scalar_reads: self.rules.sgpr_hazards.map(Scalars::new),
            expert: Expert::default(),
            bug_at_start: (ChipBug::UserSgprInit16.affects(&self.target)
                && self.machine.lanes == 32
                && launch.initial_sgprs() < 16)
                .then_some(ChipBug::UserSgprInit16),
        };
        self.forget_private(wave);
        self.waves.insert(wave.id, Box::new(state));
        let lds = || LdsState::new(launch.lds_bytes);
        self.lds.entry(wave.id.workgroup).or_insert_with(lds);
        if let Some(races) = &mut self.races {
            races.start(wave.id);
        }
    }

    fn before(&mut self, wave: &Wave, op: &Op, memory: &mut dyn Memory) {
        if wave.mode.skips_vectors() && is_vector(op.run) {
            return;
        }
        let facts = self.facts(wave.pc, op);
        // Removed temporarily, so that the other waves can be accessed.
        let Some(mut state) = self.waves.remove(&wave.id) else { return };
        let mut found: Vec<(Finding, LaneMask)> = Vec::new();
        found.extend(
            allocation::check(wave, op, &facts, state.sgprs, state.is_deallocated).map(wide),
        );
        let bugs = facts.chip_bug.into_iter().chain(state.bug_at_start.take());
        found.extend(bugs.map(|bug| wide(Finding::ChipBug(bug))));
        found.extend(chip_bug::scratch_swizzle(&self.target, wave, op));
        found.extend(facts.bank_conflict.map(|sources| wide(Finding::SameBank { sources })));
        found.extend(state.clause.follow(&facts).map(wide));
        if facts.deallocates {
            let operation = state.pending.private_store();
            let operation = operation.map(|operation| operation.facts.instruction());
            found.extend(operation.map(|operation| wide(Finding::StorePending { operation })));
            state.is_deallocated = true;
        }
        found.extend(state.pending.check(self.rules.counters, &facts).into_iter().map(wide));
        found.extend(state.expert.check(&facts, &state.pending).map(wide));
        found.extend(state.recent.check(&facts, self.rules.hazards).map(wide));
        found.extend(
            state.scalar_reads.as_ref().and_then(|scalars| scalars.check(&facts)).map(wide),
        );
        found.extend(state.shadow.decision(wave, op).map(undefined));
        found.extend(bounds::check(wave, op, memory));
        if let Some(races) = &mut self.races {
            let program = self.programs.iter().find(|program| program.contains(wave.pc));
            found.extend(races.follow(wave, op, &facts, program.map(|program| &**program)));
        }
        self.follow(&mut state, wave, op, &facts, memory, &mut found);
        for (finding, lanes) in found {
            self.report.add(facts.instruction(), wave.id, lanes, finding);
        }
        if !matches!(op.run, Run::Control(Control::EndProgram)) {
            self.waves.insert(wave.id, state);
        } else if !self.waves.keys().any(|other| other.workgroup == wave.id.workgroup) {
            self.lds.remove(&wave.id.workgroup);
        }
    }

    fn passes_barrier(&mut self, waves: &[Wave]) {
        if let Some(races) = &mut self.races {
            let waiting = waves.iter().filter(|wave| wave.status == Status::AtBarrier);
            races.pass_barrier(waiting.map(|wave| wave.id));
        }
        let waiting: Vec<_> = waves
            .iter()
            .filter(|wave| wave.status == Status::AtBarrier)
            .filter_map(|wave| Some((wave.id, self.waves.get(&wave.id)?)))
            .filter_map(|(id, state)| Some((id, state, state.barrier.as_ref()?)))
            .collect();
        let Some((first, _, barrier)) = waiting.first() else { return };
        let mut unfinished = Vec::new();
        for (id, state, facts) in &waiting {
            if facts.inst.pc != barrier.inst.pc || facts.module != barrier.module {
                let finding =
                    Finding::OtherBarrier { barrier: barrier.instruction(), wave: *first };
                self.report.add(facts.instruction(), *id, LaneMask::EMPTY, finding);
            }
            unfinished
                .extend(state.pending.lds().map(|operation| Unfinished::of(*id, operation, 0)));
        }
        if let Some(lds) = self.lds.get_mut(&first.workgroup) {
            lds.pass_barrier(unfinished);
        }
    }

    fn faults(&mut self, cause: &FaultCause, waves: &[Wave]) {
        if !cause.is_hang() {
            return;
        }
        let waits =
            |wave: &&Wave| matches!(wave.status, Status::AtBarrier | Status::AtSplitBarrier);
        for wave in waves.iter().filter(waits) {
            let barrier = self.waves.get(&wave.id).and_then(|state| state.barrier.as_ref());
            if let Some(barrier) = barrier {
                let finding = Finding::Waiting { wave: wave.id };
                self.report.add(barrier.instruction(), wave.id, LaneMask::EMPTY, finding);
            }
        }
    }
}

/// Finding for a decision that uses undefined values, and its lanes.
fn undefined(Decision { registers, purpose, lanes }: Decision) -> (Finding, LaneMask) {
    (Finding::Undefined { registers, purpose }, lanes)
}

/// Finding that does not concern individual lanes.
fn wide(finding: Finding) -> (Finding, LaneMask) {
    (finding, LaneMask::EMPTY)
}

impl Strict {
    /// Updates the state for the effects of the instruction.
    fn follow(
        &mut self,
        state: &mut WaveState,
        wave: &Wave,
        op: &Op,
        facts: &Arc<Facts>,
        memory: &mut dyn Memory,
        found: &mut Vec<(Finding, LaneMask)>,
    ) {
        let Strict { rules, ghost, lds, private, races, .. } = self;
        let lds = lds.get_mut(&wave.id.workgroup);
        if let Some(counts) = facts.waits {
            state.pending.wait(rules.counters, counts);
        }
        for queue in facts.settles {
            state.pending.settle(*queue);
        }
        state.recent.push(facts);
        if let Some(scalars) = &mut state.scalar_reads {
            scalars.push(facts);
        }
        let mut counted = facts.counted;
        let mut touched = Vec::new();
        match op.run {
            Run::Vector(_)
            | Run::Scalar(_)
            | Run::Whole(_)
            | Run::Dual
            | Run::OnScalars
            | Run::LdsDirect => {
                state.shadow.follow(ghost, wave, op, &facts.named);
                found.extend(state.shadow.decide_exec().map(undefined));
            }
            Run::Control(Control::Barrier) => state.barrier = Some(Arc::clone(facts)),
            Run::Control(control) => {
                state.shadow.unmark_scalars(&facts.named);
                if let Control::SplitBarrier(operation) = control
                    && let Some(lds) = lds
                    && names_workgroup(wave, op, operation)
                {
                    if let Some(races) = races {
                        races.split_barrier(wave.id, operation);
                    }
                    let other = split_barrier::follow(state, lds, wave.id, operation, facts);
                    found.extend(other.map(wide));
                }
            }
            Run::ScalarMemory(access) => {
                state.shadow.unmark_scalars(&facts.named);
                bounds::forget_beyond(&mut state.shadow, wave, op, access, memory);
            }
            Run::VectorMemory(access) => {
                let footprints = footprint::flat_lds(wave, op, access);
                // Since gfx10 the two counters are decremented in order for either memory.
                let is_undecided = counted.iter().any(|(_, queue)| *queue == Queue::Flat);
                if is_undecided && footprints.is_empty() {
                    counted = VECTOR_MEMORY;
                }
                match lds {
                    Some(lds) if may_meet_marks(access, private) => {
                        let memories = Memories { device: private, lds: &mut lds.undefined };
                        vector_memory::follow(&mut state.shadow, ghost, memories, wave, op, access);
                    }
                    _ => define_loaded(&mut state.shadow, wave, op, access.transfer),
                }
            }
            Run::Lds(access) => {
                let footprints = footprint::lds(wave, op, access);
                if let Some(lds) = lds {
                    let waits = state.split_barrier.waits;
                    found.extend(lds.conflict(wave.id, facts, &footprints, waits));
                    lds.undefined.follow(&mut state.shadow, ghost, wave, op, access);
                }
                let range = |access: footprint::Footprint<u32>| {
                    access.address..access.address.saturating_add(access.bytes)
                };
                touched = footprints.into_iter().map(range).collect();
            }
            Run::Tensor(direction) => {
                if let Some(lds) = lds {
                    for bytes in tensor::written_lds(wave, op, direction) {
                        lds.undefined.clear_bytes(bytes);
                    }
                }
            }
            Run::NotCompute(_) | Run::Unspecified(_) | Run::Gap(_) => {}
        }
        let operation = state.pending.issue(rules.counters, facts, counted, touched);
        state.expert.push(wave, op, facts, operation);
    }

    /// Marks the private memory of a starting wave unwritten, regardless of its previous owner.
    fn forget_private(&mut self, wave: &Wave) {
        let Private { base, bytes, launch, launch_bytes, .. } = wave.private;
        if bytes == 0 {
            return;
        }
        if self.private.is_empty() {
            self.private = MarkedMemory::within(launch..launch.saturating_add(launch_bytes));
        }
        let dwords = u64::from(bytes.div_ceil(4));
        self.private.mark(base..base + dwords * u64::from(stride(wave.machine.lanes)));
    }
}

/// Returns `true` if a vector memory instruction may access LDS, or private memory whose marks are
/// tracked.
fn may_meet_marks(access: VectorAccess, private: &MarkedMemory) -> bool {
    let moves_lds = matches!(
        access.transfer,
        Transfer::LoadToLds(_) | Transfer::LoadFormatToLds(_) | Transfer::StoreFromLds(_)
    );
    let is_private =
        matches!(access.space, Space::Scratch | Space::ScaledScratch { .. } | Space::Buffer { .. });
    moves_lds || access.space.is_flat() || is_private && !private.is_empty()
}

/// Marks data loaded from device memory as defined.
fn define_loaded(shadow: &mut Shadow, wave: &Wave, op: &Op, transfer: Transfer) {
    use crate::instruction::{Element, Half};
    let (words, bits) = match transfer {
        Transfer::Load(Element::Part { half: Half::Low, .. }) => (1, 0xffff),
        Transfer::Load(Element::Part { half: Half::High, .. }) => (1, 0xffff_0000),
        Transfer::Load(element) => (element.words(), !0),
        Transfer::Atomic { atomic, returns: true } => (atomic.bytes / 4, !0),
        Transfer::LoadBlock => (32, !0),
        Transfer::LoadFormat(_) => (destination_words(op) as u8, !0),
        Transfer::Store(_)
        | Transfer::StoreBlock
        | Transfer::StoreFormat(_)
        | Transfer::LoadToLds(_)
        | Transfer::LoadFormatToLds(_)
        | Transfer::StoreFromLds(_)
        | Transfer::Atomic { returns: false, .. } => return,
    };
    for word in 0..words {
        shadow.unmark(op.destination.plus(word.into()), wave.exec_row(), bits);
    }
}
