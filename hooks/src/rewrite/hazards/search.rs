//! What must be put before an instruction, by what can run before it.

use super::PaddingError;
use super::decoder::Decoder;
use super::slot::Slot;
use super::stream::{Item, StreamIndex, Streams};
use flipwave_isa::hazard::{self, MOST_WAIT_STATES, Mitigation, Preceding, Roles, Rows};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Paths back that are followed from one instruction.
const MOST_PATHS: usize = 256;

/// Instructions that are looked back over for hazards that distance does not end.
const FAR: usize = 64;

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
                for text in self.needed(&decoder.rows, stream, at) {
                    let (code, insts) = decoder.assemble(&text)?;
                    let item = &mut self.streams[stream][at];
                    item.padding.extend(insts.iter().map(|own| Rc::clone(&own.inst)));
                    padding.entry(item.slot).or_default().push(code);
                }
            }
        }
        Ok(padding)
    }

    /// What could have set up a hazard for an instruction from far away: for the program's own,
    /// only what was inserted.
    fn far(&self, item: &Item<'_>) -> &Roles {
        if item.is_original() { &self.inserted } else { &self.all }
    }

    /// Whether anything near enough can set up a hazard for an instruction.
    fn may_meet(&self, rows: &Rows, stream: StreamIndex, at: usize) -> bool {
        let items = &self.streams[stream];
        let roles = &items[at].roles;
        if !roles.is_victim() {
            return false;
        }
        if rows.may_meet_far(roles, self.far(&items[at])) {
            return true;
        }
        let is_original = items[at].is_original();
        let mut distance = 0;
        for item in items[..at].iter().rev() {
            let was_apart = is_original && item.is_original() && !self.removes;
            if !was_apart && rows.may_meet(roles, &item.roles, distance) {
                return true;
            }
            distance += u32::from(item.states);
            if distance >= u32::from(MOST_WAIT_STATES) {
                return false;
            }
        }
        let tails = self.predecessors[stream].iter().map(|before| &self.tails[*before]);
        tails.into_iter().any(|tail| rows.may_meet(roles, tail, distance))
    }

    /// What must be put before an instruction.
    fn needed(&self, rows: &Rows, stream: StreamIndex, at: usize) -> Vec<String> {
        let families = rows.families();
        let item = &self.streams[stream][at];
        let inst = item.inst.inst();
        let is_far = rows.may_meet_far(&item.roles, self.far(item));
        let mut search = PathSearch { streams: self, is_far, paths: Vec::new() };
        search.back(stream, at, 0, Vec::new());
        let mut instructions: Vec<String> = Vec::new();
        let mut states = 0;
        let mut need = |mitigation: Mitigation, distance: u8| match mitigation {
            Mitigation::WaitStates(wanted) => states = wanted.saturating_sub(distance).max(states),
            Mitigation::Instruction(text) if !instructions.contains(&text) => {
                instructions.push(text);
            }
            Mitigation::Instruction(_) => {}
        };
        for path in &search.paths {
            let history: Vec<Preceding<'_>> =
                path.steps.iter().map(|(preceding, _)| *preceding).collect();
            for breach in
                families.iter().flat_map(|family| hazard::breaches(family, &history, inst))
            {
                let (trigger, is_original) = &path.steps[breach.trigger];
                if self.removes || !(*is_original && item.is_original()) {
                    need(breach.needed, trigger.distance);
                }
            }
            if path.is_cut && is_far {
                // Nothing was seen that ends it.
                let rows = families.iter().copied().flatten();
                for hazard in rows.filter(|row| row.reach().is_none()) {
                    if hazard.victim.group.contains(inst)
                        && let hazard::Remedy::Instruction(text) = hazard.remedy
                    {
                        need(Mitigation::Instruction(text(inst)), 0);
                    }
                }
            }
        }
        let nops = (states > 0).then(|| Mitigation::WaitStates(states).text());
        instructions.extend(nops.iter().flat_map(|nops| nops.lines().map(str::to_owned)));
        instructions
    }
}

/// The instructions on one path back, the nearest first, and whether each is the program's.
#[derive(Clone)]
struct Path<'s> {
    steps: Vec<(Preceding<'s>, bool)>,
    /// Whether there is more that was not looked at.
    is_cut: bool,
}

/// Goes back from an instruction on all paths.
struct PathSearch<'s, 'a> {
    streams: &'s Streams<'a>,
    /// Whether distance does not end what is looked for.
    is_far: bool,
    paths: Vec<Path<'s>>,
}

impl<'s> PathSearch<'s, '_> {
    fn is_done(&self, distance: u32, steps: usize) -> bool {
        distance >= u32::from(MOST_WAIT_STATES) && (!self.is_far || steps >= FAR)
    }

    fn back(
        &mut self,
        stream: StreamIndex,
        end: usize,
        mut distance: u32,
        mut steps: Vec<(Preceding<'s>, bool)>,
    ) {
        let streams = self.streams;
        let preceding =
            |inst, distance: u32| Preceding { inst, distance: distance.min(u8::MAX.into()) as u8 };
        for item in streams.streams[stream][..end].iter().rev() {
            steps.push((preceding(item.inst.inst(), distance), item.is_original()));
            distance += u32::from(item.states);
            for inst in item.padding.iter().rev() {
                steps.push((preceding(inst, distance), false));
                distance += u32::from(hazard::wait_states(inst));
            }
            if self.is_done(distance, steps.len()) {
                self.paths.push(Path { steps, is_cut: true });
                return;
            }
        }
        let before = &streams.predecessors[stream];
        // A loop whose instructions take no wait states would be gone round without end.
        if self.paths.len() >= MOST_PATHS || steps.len() > 4 * FAR {
            self.paths.push(Path { steps, is_cut: true });
        } else if before.is_empty() {
            self.paths.push(Path { steps, is_cut: false });
        } else {
            for before in before {
                let end = streams.streams[*before].len();
                self.back(*before, end, distance, steps.clone());
            }
        }
    }
}
