//! Backward search for hazards, on all paths to an instruction.

use super::decoder::{Decoder, Inserted};
use super::error::PaddingError;
use super::slot::Slot;
use super::stream::{Item, StreamIndex, Streams};
use flipwave_isa::hazard::{
    self, HazardIndex, HazardRoles, HazardViolation, LOOKBACK_WAIT_STATES, MAX_WAIT_STATES,
    Mitigation, OpenHazards, Preceding,
};
use flipwave_isa::{Inst, Opcode};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of paths followed from one instruction.
const MAX_PATHS: usize = 1024;

/// Maximum number of blocks and branches on a path, because blocks may be empty after removals.
const MAX_TURNS: usize = 256;

impl Streams<'_> {
    /// Computes the padding for each slot.
    pub fn pad(
        &mut self,
        decoder: &mut Decoder<'_>,
    ) -> Result<BTreeMap<Slot, Vec<Vec<u8>>>, PaddingError> {
        let mut padding: BTreeMap<Slot, Vec<Vec<u8>>> = BTreeMap::new();
        for stream in self.streams.indices().iter() {
            for at in 0..self.streams[stream].items.len() {
                if !self.may_have_hazard(&decoder.rows, stream, at) {
                    continue;
                }
                let victim = Victim::of(&self.streams[stream].items[at]);
                let mut texts = Vec::new();
                for text in self.needed(&decoder.rows, stream, at, &victim) {
                    // The padding itself may be the victim of a hazard.
                    let (_, insts) = decoder.assemble(&text)?;
                    for inserted in insts.iter().filter(|inserted| inserted.roles.is_victim()) {
                        let Inserted { inst, roles } = inserted;
                        let victim = Victim { inst, roles, is_original: false };
                        texts.extend(self.needed(&decoder.rows, stream, at, &victim));
                    }
                    texts.push(text);
                }
                for (index, text) in texts.iter().enumerate() {
                    if texts[..index].contains(text) {
                        continue;
                    }
                    let (code, insts) = decoder.assemble(text)?;
                    let item = &mut self.streams[stream].items[at];
                    item.padding.extend(insts.iter().cloned());
                    padding.entry(item.slot).or_default().push(code);
                }
            }
        }
        Ok(padding)
    }

    /// Hazards of unlimited distance that may be open for an instruction. For original instructions, these
    /// are only hazards in which inserted code takes part, unless original instructions are removed.
    fn open(&self, rows: &HazardIndex, victim: &Victim<'_>) -> OpenHazards {
        if victim.is_original && !self.removes {
            rows.open_hazards_from_inserted(victim.roles, &self.all, &self.inserted)
        } else {
            rows.open_hazards(victim.roles, &self.all)
        }
    }

    /// Returns `true` if original instructions before an original instruction cannot have become hazards
    /// for it, so that they can be skipped.
    fn may_skip_originals(&self, rows: &HazardIndex, victim: &Victim<'_>) -> bool {
        victim.is_original && !self.removes && !rows.may_intervene(victim.roles, &self.inserted)
    }

    /// Returns `true` if any instruction in range may trigger a hazard for an instruction.
    fn may_have_hazard(&self, rows: &HazardIndex, stream: StreamIndex, at: usize) -> bool {
        let items = &self.streams[stream].items;
        let victim = Victim::of(&items[at]);
        let roles = victim.roles;
        if !roles.is_victim() {
            return false;
        }
        if !self.open(rows, &victim).is_empty() {
            return true;
        }
        let may_skip_originals = self.may_skip_originals(rows, &victim);
        let mut distance = 0;
        for item in items[..at].iter().rev() {
            let is_skipped = may_skip_originals && item.is_original();
            if !is_skipped && rows.may_conflict(roles, &item.roles, distance) {
                return true;
            }
            distance += u32::from(item.states);
            if distance >= u32::from(MAX_WAIT_STATES) {
                return false;
            }
        }
        let tails = self.predecessors[stream].iter().map(|before| &self.tails[*before]);
        tails.into_iter().any(|tail| rows.may_conflict(roles, tail, distance))
    }

    /// Padding required by an instruction that precedes an item or is the item.
    fn needed(
        &self,
        rows: &HazardIndex,
        stream: StreamIndex,
        at: usize,
        victim: &Victim<'_>,
    ) -> Vec<String> {
        let families = rows.families();
        let inst = victim.inst;
        let open = self.open(rows, victim);
        let paths = PathSearch::paths(self, rows, Lead::new(stream, at, open));
        let mut instructions: Vec<String> = Vec::new();
        let mut states = 0;
        let mut need = |mitigation: Mitigation, distance: u8| match mitigation {
            Mitigation::WaitStates(wanted) => states = wanted.saturating_sub(distance).max(states),
            Mitigation::Instruction(text) if !instructions.contains(&text) => {
                instructions.push(text);
            }
            Mitigation::Instruction(_) => {}
        };
        for path in &paths {
            let history: Vec<Preceding<'_>> =
                path.steps.iter().map(|step| step.preceding).collect();
            for breach in
                families.iter().flat_map(|family| hazard::violations(family, &history, inst))
            {
                let trigger = &path.steps[breach.trigger];
                let are_originals = trigger.is_original && victim.is_original;
                if self.removes || !are_originals || path.has_completed(&breach, inst) {
                    need(breach.needed, trigger.preceding.distance);
                }
            }
            for hazard in rows.hazards(path.open) {
                if let hazard::MitigationRule::Instruction(text) = hazard.mitigation
                    && hazard.may_predate(&history)
                {
                    need(Mitigation::Instruction(text(inst)), 0);
                }
            }
        }
        let nops = (states > 0).then(|| Mitigation::WaitStates(states).text());
        instructions.extend(nops.iter().flat_map(|nops| nops.lines().map(str::to_owned)));
        instructions
    }
}

/// An instruction that may be the victim of a hazard.
struct Victim<'v> {
    inst: &'v Inst,
    roles: &'v HazardRoles,
    /// `true` for original instructions.
    is_original: bool,
}

impl<'v> Victim<'v> {
    fn of(item: &'v Item<'_>) -> Victim<'v> {
        let (inst, roles) = (item.inst.inst(), &*item.roles);
        Victim { inst, roles, is_original: item.is_original() }
    }
}

/// An instruction on a backward path.
#[derive(Clone, Copy)]
struct PathStep<'s> {
    preceding: Preceding<'s>,
    /// `true` for original instructions.
    is_original: bool,
}

/// The instructions on a backward path, the nearest first.
struct Path<'s> {
    steps: Vec<PathStep<'s>>,
    /// Hazards that may have been triggered before these instructions.
    open: OpenHazards,
}

impl Path<'_> {
    /// Returns `true` if inserted code completes a hazard between two original instructions.
    fn has_completed(&self, breach: &HazardViolation, inst: &Inst) -> bool {
        let trigger = self.steps[breach.trigger].preceding.inst;
        let originals = self.steps.iter().filter(|step| step.is_original);
        let originals = originals.map(|step| step.preceding.inst);
        hazard::is_completed_by_insertion(breach, trigger, inst, originals)
    }
}

/// Breadth-first search of backward paths from an instruction.
struct PathSearch<'s, 'a> {
    streams: &'s Streams<'a>,
    rows: &'s HazardIndex,
    paths: Vec<Path<'s>>,
    waiting: VecDeque<Lead<'s>>,
}

/// An unfinished path, to be continued before item `at` of a stream.
#[derive(Clone)]
struct Lead<'s> {
    stream: StreamIndex,
    at: usize,
    /// Number of blocks and branches on the path.
    turns: usize,
    distance: u32,
    /// Hazards of unlimited distance that are still open.
    open: OpenHazards,
    steps: Vec<PathStep<'s>>,
}

impl<'s, 'a> PathSearch<'s, 'a> {
    /// Finds all paths that start with a lead.
    fn paths(streams: &'s Streams<'a>, rows: &'s HazardIndex, lead: Lead<'s>) -> Vec<Path<'s>> {
        let (paths, waiting) = (Vec::new(), VecDeque::from([lead]));
        let mut search = PathSearch { streams, rows, paths, waiting };
        while let Some(lead) = search.waiting.pop_front() {
            search.follow(lead);
        }
        search.paths
    }

    /// Follows a path to the start of its stream, or until it is long enough.
    fn follow(&mut self, mut lead: Lead<'s>) {
        let stream = &self.streams.streams[lead.stream];
        let items = &stream.items;
        loop {
            for jump in stream.jumps.iter().filter(|jump| jump.to == lead.at) {
                let mut lead = Lead { at: jump.from, turns: lead.turns + 1, ..lead.clone() };
                lead.step(self.rows, &items[jump.from]);
                self.continue_later(lead);
            }
            let Some(previous) = lead.at.checked_sub(1) else { break };
            if ends_fallthrough(&items[previous]) {
                return;
            }
            lead.step(self.rows, &items[previous]);
            lead.at = previous;
            if lead.is_long() {
                return self.end(lead);
            }
        }
        let before = &self.streams.predecessors[lead.stream];
        if before.is_empty() {
            return self.end(Lead { open: OpenHazards::default(), ..lead });
        }
        for before in before {
            let at = self.streams.streams[*before].items.len();
            self.continue_later(Lead {
                stream: *before,
                at,
                turns: lead.turns + 1,
                ..lead.clone()
            });
        }
    }

    /// Queues a path, or ends it if it is long enough or a limit is reached.
    fn continue_later(&mut self, lead: Lead<'s>) {
        let is_full = self.paths.len() + self.waiting.len() >= MAX_PATHS;
        if lead.is_long() || is_full || lead.turns >= MAX_TURNS {
            self.end(lead);
        } else {
            self.waiting.push_back(lead);
        }
    }

    fn end(&mut self, lead: Lead<'s>) {
        self.paths.push(Path { steps: lead.steps, open: lead.open });
    }
}

impl<'s> Lead<'s> {
    /// A path that starts before an item, with open hazards.
    fn new(stream: StreamIndex, at: usize, open: OpenHazards) -> Lead<'s> {
        Lead { stream, at, turns: 0, distance: 0, open, steps: Vec::new() }
    }

    /// Returns `true` if earlier instructions do not matter, or the maximum distance is reached.
    fn is_long(&self) -> bool {
        let limit = if self.open.is_empty() { MAX_WAIT_STATES } else { LOOKBACK_WAIT_STATES };
        self.distance >= limit.into()
    }

    /// Adds an item and the padding before it.
    fn step(&mut self, rows: &HazardIndex, item: &'s Item<'_>) {
        let padding = item.padding.iter().rev();
        let padding = padding.map(|inserted| (&*inserted.inst, &*inserted.roles, false));
        let first = (item.inst.inst(), &*item.roles, item.is_original());
        for (inst, roles, is_original) in [first].into_iter().chain(padding) {
            let distance = self.distance.min(u8::MAX.into()) as u8;
            let preceding = Preceding { inst, distance };
            self.steps.push(PathStep { preceding, is_original });
            self.distance += u32::from(hazard::wait_states(inst));
            rows.step_back(&mut self.open, roles);
        }
    }
}

/// Returns `true` if control does not fall through from an item to the next one.
fn ends_fallthrough(item: &Item<'_>) -> bool {
    !item.is_original() && item.inst.inst().operation.opcode() == Opcode::SBranch
}
