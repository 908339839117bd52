//! What must be put before an instruction, by what can run before it.

use super::PaddingError;
use super::decoder::Decoder;
use super::slot::Slot;
use super::stream::{Item, StreamIndex, Streams};
use flipwave_isa::Inst;
use flipwave_isa::hazard::{self, Breach, MOST_WAIT_STATES, Mitigation, Preceding, Roles, Rows};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Paths back that are followed from one instruction.
const MOST_PATHS: usize = 256;

/// Wait states that are looked back over for hazards that distance does not end.
const FAR: u32 = 64;

/// Instructions that are looked back over at most: those of which it is not sure that they are executed
/// take no wait states.
const MOST_STEPS: usize = 256;

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
                    item.padding.extend(insts.iter().map(|own| Rc::clone(&own.inst)));
                    padding.entry(item.slot).or_default().push(code);
                }
            }
        }
        Ok(padding)
    }

    /// What could have set up a hazard for an instruction from far away: for the program's own, only
    /// what was inserted, unless what kept it away from another one is gone, or what completes a
    /// hazard of the two has come in between.
    fn far(&self, rows: &Rows, victim: &Victim<'_>) -> &Roles {
        if self.may_pass_over(rows, victim) { &self.inserted } else { &self.all }
    }

    /// Whether an instruction is the program's, and what the program has before it cannot have become
    /// a hazard for it.
    fn may_pass_over(&self, rows: &Rows, victim: &Victim<'_>) -> bool {
        victim.is_original && !self.removes && !rows.may_lie_across(victim.roles, &self.inserted)
    }

    /// Whether anything near enough can set up a hazard for an instruction.
    fn may_meet(&self, rows: &Rows, stream: StreamIndex, at: usize) -> bool {
        let items = &self.streams[stream];
        let victim = Victim::of(&items[at]);
        let roles = victim.roles;
        if !roles.is_victim() {
            return false;
        }
        if rows.may_meet_far(roles, self.far(rows, &victim)) {
            return true;
        }
        let may_pass_over = self.may_pass_over(rows, &victim);
        let mut distance = 0;
        for item in items[..at].iter().rev() {
            let was_apart = may_pass_over && item.is_original();
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

    /// What must be put before an instruction that stands before an item, or is it.
    fn needed(
        &self,
        rows: &Rows,
        stream: StreamIndex,
        at: usize,
        victim: &Victim<'_>,
    ) -> Vec<String> {
        let families = rows.families();
        let inst = victim.inst;
        let is_far = rows.may_meet_far(victim.roles, self.far(rows, victim));
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
        // What may have set one up further back than is looked.
        let distant = if victim.is_original { &self.inserted } else { &self.all };
        let may_be_distant = rows.may_meet_far(victim.roles, distant);
        for path in &search.paths {
            let history: Vec<Preceding<'_>> =
                path.steps.iter().map(|(preceding, _)| *preceding).collect();
            for breach in
                families.iter().flat_map(|family| hazard::breaches(family, &history, inst))
            {
                let (trigger, is_original) = &path.steps[breach.trigger];
                let are_originals = *is_original && victim.is_original;
                if self.removes || !are_originals || path.has_completed(&breach, inst) {
                    need(breach.needed, trigger.distance);
                }
            }
            if path.is_cut && may_be_distant {
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

/// An instruction that must keep its distance from what runs before it.
struct Victim<'v> {
    inst: &'v Inst,
    roles: &'v Roles,
    /// Whether it is the program's.
    is_original: bool,
}

impl<'v> Victim<'v> {
    fn of(item: &'v Item<'_>) -> Victim<'v> {
        let (inst, roles) = (item.inst.inst(), &*item.roles);
        Victim { inst, roles, is_original: item.is_original() }
    }
}

/// The instructions on one path back, the nearest first, and whether each is the program's.
#[derive(Clone)]
struct Path<'s> {
    steps: Vec<(Preceding<'s>, bool)>,
    /// Whether there is more that was not looked at.
    is_cut: bool,
}

impl Path<'_> {
    /// Whether inserted code has made a hazard of two instructions of the program, which it has not
    /// without it.
    fn has_completed(&self, breach: &Breach, inst: &Inst) -> bool {
        let (trigger, _) = &self.steps[breach.trigger];
        hazard::is_completed(breach, trigger.inst, inst, || {
            let own = self.steps.iter().filter(|(_, is_original)| *is_original);
            own.map(|(preceding, _)| preceding.inst)
        })
    }
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
        let far = if self.is_far { FAR } else { MOST_WAIT_STATES.into() };
        distance >= far || steps >= MOST_STEPS
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
        if self.paths.len() >= MOST_PATHS {
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
