//! What must be put before an instruction, by what can run before it.

use super::PaddingError;
use super::decoder::Decoder;
use super::slot::Slot;
use super::stream::{Item, StreamIndex, Streams};
use flipwave_isa::hazard::{
    self, HazardIndex, HazardRoles, HazardViolation, LOOKBACK_WAIT_STATES, MAX_WAIT_STATES,
    Mitigation, OpenHazards, Preceding,
};
use flipwave_isa::{Inst, Opcode};
use std::collections::{BTreeMap, VecDeque};

/// Paths back that are followed from one instruction.
const MOST_PATHS: usize = 1024;

/// Blocks and branches that a path goes back over at most: of blocks everything may have been removed.
const MOST_TURNS: usize = 256;

impl Streams<'_> {
    /// The padding for each slot.
    pub fn pad(
        &mut self,
        decoder: &mut Decoder<'_>,
    ) -> Result<BTreeMap<Slot, Vec<Vec<u8>>>, PaddingError> {
        let mut padding: BTreeMap<Slot, Vec<Vec<u8>>> = BTreeMap::new();
        for stream in self.streams.indices().iter() {
            for at in 0..self.streams[stream].len() {
                if !self.may_meet(&decoder.rows, stream, at) {
                    continue;
                }
                let victim = Victim::of(&self.streams[stream][at]);
                let mut texts = Vec::new();
                for text in self.needed(&decoder.rows, stream, at, &victim) {
                    // What is put there must itself not follow what is before it too closely.
                    let (_, insts) = decoder.assemble(&text)?;
                    for own in insts.iter().filter(|own| own.roles.is_victim()) {
                        let victim =
                            Victim { inst: &own.inst, roles: &own.roles, is_original: false };
                        texts.extend(self.needed(&decoder.rows, stream, at, &victim));
                    }
                    texts.push(text);
                }
                for (index, text) in texts.iter().enumerate() {
                    if texts[..index].contains(text) {
                        continue;
                    }
                    let (code, insts) = decoder.assemble(text)?;
                    let item = &mut self.streams[stream][at];
                    item.padding.extend(insts.iter().cloned());
                    padding.entry(item.slot).or_default().push(code);
                }
            }
        }
        Ok(padding)
    }

    /// What can have been set up for an instruction however far before it: for the program's own only what
    /// inserted code has a part in, unless what kept two of them apart is gone.
    fn open(&self, rows: &HazardIndex, victim: &Victim<'_>) -> OpenHazards {
        match victim.is_original && !self.removes {
            true => rows.open_hazards_from_inserted(victim.roles, &self.all, &self.inserted),
            false => rows.open_hazards(victim.roles, &self.all),
        }
    }

    /// Whether an instruction is the program's, and what the program has before it cannot have become
    /// a hazard for it.
    fn may_pass_over(&self, rows: &HazardIndex, victim: &Victim<'_>) -> bool {
        victim.is_original && !self.removes && !rows.may_intervene(victim.roles, &self.inserted)
    }

    /// Whether anything near enough can set up a hazard for an instruction.
    fn may_meet(&self, rows: &HazardIndex, stream: StreamIndex, at: usize) -> bool {
        let items = &self.streams[stream];
        let victim = Victim::of(&items[at]);
        let roles = victim.roles;
        if !roles.is_victim() {
            return false;
        }
        if !self.open(rows, &victim).is_empty() {
            return true;
        }
        let may_pass_over = self.may_pass_over(rows, &victim);
        let mut distance = 0;
        for item in items[..at].iter().rev() {
            let was_apart = may_pass_over && item.is_original();
            if !was_apart && rows.may_conflict(roles, &item.roles, distance) {
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

    /// What must be put before an instruction that stands before an item, or is it.
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
        let paths = PathSearch::paths(self, rows, open, (stream, at));
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
            let history: Vec<Preceding<'_>> = path.steps.iter().map(|own| own.preceding).collect();
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

/// An instruction that must keep its distance from what runs before it.
struct Victim<'v> {
    inst: &'v Inst,
    roles: &'v HazardRoles,
    /// Whether it is the program's.
    is_original: bool,
}

impl<'v> Victim<'v> {
    fn of(item: &'v Item<'_>) -> Victim<'v> {
        let (inst, roles) = (item.inst.inst(), &*item.roles);
        Victim { inst, roles, is_original: item.is_original() }
    }
}

/// An instruction on a path back.
#[derive(Clone, Copy)]
struct PathStep<'s> {
    preceding: Preceding<'s>,
    /// Whether it is the program's.
    is_original: bool,
}

/// The instructions on one path back, the nearest first.
struct Path<'s> {
    steps: Vec<PathStep<'s>>,
    /// What may have begun before them.
    open: OpenHazards,
}

impl Path<'_> {
    /// Whether inserted code has made a hazard of two instructions of the program, which it has not
    /// without it.
    fn has_completed(&self, breach: &HazardViolation, inst: &Inst) -> bool {
        let trigger = self.steps[breach.trigger].preceding.inst;
        let own = self.steps.iter().filter(|own| own.is_original).map(|own| own.preceding.inst);
        hazard::is_completed_by_insertion(breach, trigger, inst, own)
    }
}

/// Goes back from an instruction on all paths, as far on one as on another.
struct PathSearch<'s, 'a> {
    streams: &'s Streams<'a>,
    rows: &'s HazardIndex,
    paths: Vec<Path<'s>>,
    waiting: VecDeque<Lead<'s>>,
}

/// A path that is to be followed on, from before an item of a stream, or from the end of the stream.
#[derive(Clone)]
struct Lead<'s> {
    stream: StreamIndex,
    at: usize,
    /// Blocks and branches that it has gone back over.
    turns: usize,
    distance: u32,
    /// Hazards that distance does not end, and nothing yet has.
    open: OpenHazards,
    steps: Vec<PathStep<'s>>,
}

impl<'s, 'a> PathSearch<'s, 'a> {
    /// The paths back from an item of a stream.
    fn paths(
        streams: &'s Streams<'a>,
        rows: &'s HazardIndex,
        open: OpenHazards,
        (stream, at): (StreamIndex, usize),
    ) -> Vec<Path<'s>> {
        let lead = Lead { stream, at, turns: 0, distance: 0, open, steps: Vec::new() };
        let (paths, waiting) = (Vec::new(), VecDeque::from([lead]));
        let mut search = PathSearch { streams, rows, paths, waiting };
        while let Some(lead) = search.waiting.pop_front() {
            search.follow(lead);
        }
        search.paths
    }

    /// Follows a path to the beginning of its stream, or to where it is long enough.
    fn follow(&mut self, mut lead: Lead<'s>) {
        let items = &self.streams.streams[lead.stream];
        loop {
            let jumps = self.streams.jumps[lead.stream].iter();
            for (from, _) in jumps.filter(|(_, to)| *to == lead.at) {
                let mut lead = Lead { at: *from, turns: lead.turns + 1, ..lead.clone() };
                lead.step(self.rows, &items[*from]);
                self.put_off(lead);
            }
            let Some(previous) = lead.at.checked_sub(1) else { break };
            if goes_elsewhere(&items[previous]) {
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
            let at = self.streams.streams[*before].len();
            self.put_off(Lead { stream: *before, at, turns: lead.turns + 1, ..lead.clone() });
        }
    }

    /// A path is followed on after the others, unless it is long enough, or too many are.
    fn put_off(&mut self, lead: Lead<'s>) {
        let are_many = self.paths.len() + self.waiting.len() >= MOST_PATHS;
        match lead.is_long() || are_many || lead.turns >= MOST_TURNS {
            true => self.end(lead),
            false => self.waiting.push_back(lead),
        }
    }

    fn end(&mut self, lead: Lead<'s>) {
        self.paths.push(Path { steps: lead.steps, open: lead.open });
    }
}

impl<'s> Lead<'s> {
    /// Whether nothing further back matters, or it is too far.
    fn is_long(&self) -> bool {
        let most = if self.open.is_empty() { MAX_WAIT_STATES } else { LOOKBACK_WAIT_STATES };
        self.distance >= most.into()
    }

    /// Adds an item, and what has been put before it.
    fn step(&mut self, rows: &HazardIndex, item: &'s Item<'_>) {
        let inserted = item.padding.iter().rev().map(|own| (&*own.inst, &*own.roles, false));
        let own = (item.inst.inst(), &*item.roles, item.is_original());
        for (inst, roles, is_original) in [own].into_iter().chain(inserted) {
            let distance = self.distance.min(u8::MAX.into()) as u8;
            let preceding = Preceding { inst, distance };
            self.steps.push(PathStep { preceding, is_original });
            self.distance += u32::from(hazard::wait_states(inst));
            rows.step_back(&mut self.open, roles);
        }
    }
}

/// Whether control does not go on from an item to the next one of its stream.
fn goes_elsewhere(item: &Item<'_>) -> bool {
    !item.is_original() && item.inst.inst().operation.opcode() == Opcode::SBranch
}
