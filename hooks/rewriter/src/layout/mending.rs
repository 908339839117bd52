//! What refers to code that moved: addresses computed from the PC, and the old text where it
//! stays.

use super::LayoutError;
use super::Placement;
use super::chains::{self, Chain, Chains};
use super::encoding::{self, Encoding};
use super::far::{FarJump, Room};
use super::finish::Text;
use super::lookup::Lookup;
use super::reach::{At, Hop, Reach};
use super::stream::{Label, Labels, Spot, distance};
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex, Key};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, Sgpr};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Mends references.
pub(super) struct Mending<'a> {
    pub object: &'a CodeObject,
    pub program: &'a Disassembly,
    pub lookup: &'a Lookup<'a>,
    pub labels: &'a Labels<'a>,
    pub placements: &'a IndexVec<FunctionIndex, Placement>,
    /// Whether trampolines are out of a branch's reach.
    pub is_far: &'a IndexVec<FunctionIndex, bool>,
    /// Displaced instructions that control comes to by their old addresses.
    pub awaited: &'a BTreeSet<InstIndex>,
}

impl Mending<'_> {
    /// Instructions of functions that stay.
    fn staying(&self) -> impl Iterator<Item = InstIndex> {
        let functions = self.program.functions.iter().zip(self.placements);
        functions
            .filter(|(_, placement)| **placement == Placement::Trampoline)
            .flat_map(|(function, _)| function.instructions.iter())
    }

    /// The branches in old text that lead to instructions that were displaced, and the jumps that
    /// some lead to first.
    ///
    /// # Errors
    /// [`LayoutError::Sites`] where there is no way.
    pub fn ways_in(
        &self,
        encoding: &Encoding,
        free_pairs: &BTreeMap<InstIndex, Sgpr>,
        slots: &mut BTreeSet<u64>,
    ) -> Result<(Vec<Hop>, Vec<FarJump>), LayoutError> {
        let mut hops = Vec::new();
        let mut room = Room::new(slots, &encoding.chain);
        for index in self.staying() {
            let Some(unit) = self.labels.units[index].filter(|_| self.awaited.contains(&index))
            else {
                continue;
            };
            let pc = self.labels.old[index];
            let hop = Hop {
                at: At::Spot(Spot::Address(pc.0)),
                word: encoding.branch,
                to: Spot::Position(unit.start),
                via: None,
                site: Some(index),
            };
            if self.is_far[self.lookup.function_of(index)] {
                hops.extend(room.way_in(hop, pc, index, free_pairs, slots));
            } else {
                hops.push(hop);
            }
        }
        if room.refused.is_empty() {
            Ok((hops, room.jumps))
        } else {
            Err(LayoutError::Sites(room.refused))
        }
    }

    /// Words of old text that nobody executes any more, or ever did, so that islands may take
    /// them: displaced instructions but for the branches that lead to them, and padding between
    /// functions. Of a function that is not understood, anything may be executed.
    pub fn slots(&self, encoding: &Encoding) -> BTreeSet<u64> {
        let mut slots = BTreeSet::new();
        if self.awaited.is_empty() {
            return slots;
        }
        for index in self.staying().filter(|index| self.is_understood(*index)) {
            if self.labels.units[index].is_some() {
                let inst = &self.program.instructions[index];
                let words = (inst.pc.0..inst.pc.0.saturating_add(inst.size.into())).step_by(4);
                slots.extend(words.skip(usize::from(self.awaited.contains(&index))));
            }
        }
        let padding = [encoding.nop, encoding.end.word];
        for function in &self.program.functions {
            let Some(last) = self.program.instructions[function.instructions].last() else {
                continue;
            };
            if self.program.control(last).may_fall_through() {
                continue;
            }
            let mut pc = last.pc.0.saturating_add(last.size.into());
            let is_padding = |pc| {
                let word = self.object.bytes_at(Pc(pc), 4).and_then(encoding::first_word);
                word.is_some_and(|word| padding.contains(&word)) && self.lookup.at(Pc(pc)).is_none()
            };
            while is_padding(pc) && slots.insert(pc) {
                pc += 4;
            }
        }
        slots
    }

    /// Ranges of old text that are no longer what they were, original instructions that only lead
    /// elsewhere left aside.
    pub fn overwritten(&self, dropped: &BTreeSet<InstIndex>, text: &Text) -> Vec<Range<u64>> {
        let is_original = |address: u64| {
            let above = self.lookup.addresses.partition_point(|pc| pc.0 <= address);
            above.checked_sub(1).map(InstIndex::new).is_some_and(|at| {
                let inst = &self.program.instructions[at];
                self.labels.units[at].is_none()
                    && !dropped.contains(&at)
                    && address - inst.pc.0 < inst.size.into()
            })
        };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for address in text.patched().filter(|address| !is_original(*address)) {
            match ranges.last_mut().filter(|last| last.end == address) {
                Some(last) => last.end += 4,
                None => ranges.push(address..address + 4),
            }
        }
        ranges
    }

    fn is_understood(&self, index: InstIndex) -> bool {
        self.program.functions[self.lookup.function_of(index)].unresolved.is_empty()
    }

    /// Calls and branches of old text that stay where they are and lead into other functions.
    /// Gives those that cannot be mended.
    pub fn ways_out(&self, reach: &Reach, text: &mut Text) -> Result<Vec<InstIndex>, LayoutError> {
        let mut stale = Vec::new();
        for index in self.staying() {
            if self.labels.units[index].is_some() {
                continue;
            }
            let inst = &self.program.instructions[index];
            let Some(to) = inst.branch_target.and_then(|target| self.lookup.at(target)) else {
                continue;
            };
            if self.lookup.function_of(to) == self.lookup.function_of(index) && !inst.flags.call {
                // The old place of a displaced instruction leads to its new one.
                continue;
            }
            let to = reach.addresses.of(self.labels.spot(self.lookup.code_label(to))?);
            let word = self.object.bytes_at(inst.pc, 4).and_then(encoding::first_word);
            match word.zip(distance(inst.pc.0, to)) {
                Some((word, distance)) => {
                    let new = encoding::with_distance(word, distance);
                    if new != word {
                        text.put(inst.pc.0, new);
                    }
                }
                None => stale.push(index),
            }
        }
        Ok(stale)
    }

    /// Hints of old text that do not hold any more.
    pub fn hints(&self, dropped: &BTreeSet<InstIndex>, nop: u32, text: &mut Text) {
        for index in dropped {
            if self.labels.units[*index].is_none() {
                text.put(self.labels.old[*index].0, nop);
            }
        }
    }

    /// Addresses computed from the PC. Gives the `s_getpc_b64`s of old text whose addresses lead
    /// into moved code and cannot be mended.
    pub fn chains(
        &self,
        chains: &Chains,
        reach: &Reach,
        text: &mut Text,
    ) -> Result<Vec<InstIndex>, LayoutError> {
        let mut stale = Vec::new();
        let mut done = BTreeMap::new();
        for known in chains.iter() {
            let Chain { chain, to, .. } = known;
            let wrong = |reason| chains::error(self.program, chain, reason);
            let Some((old, new)) = self.moved(chain.getpc, reach) else { continue };
            let target = self.target(*to, chain.target, reach).map_err(wrong)?;
            let constants =
                known.constants(new.wrapping_sub(old), target.wrapping_sub(chain.target.0));
            let before = known.constants(0, 0);
            let members = [(chain.low, 0), (chain.high, 1)];
            if members
                .iter()
                .any(|(member, half)| !self.has_room(*member) && constants[*half] != before[*half])
            {
                stale.push(chain.getpc);
                continue;
            }
            for (member, half) in members {
                let (_, new) = self
                    .moved(member, reach)
                    .ok_or_else(|| wrong("one of its additions was replaced"))?;
                if done
                    .insert(member, constants[half])
                    .is_some_and(|other| other != constants[half])
                {
                    return Err(wrong("it shares an addition with another address"));
                }
                if self.has_room(member) {
                    text.put(new.wrapping_add(4), constants[half]);
                }
            }
        }
        Ok(stale)
    }

    /// Whether an addition has a literal: all that were emitted, and those of old text that are
    /// two words long.
    fn has_room(&self, index: InstIndex) -> bool {
        self.labels.units[index].is_some() || self.program.instructions[index].size == 8
    }

    /// Old and new address of an instruction; nothing where it is not there any more.
    fn moved(&self, index: InstIndex, reach: &Reach) -> Option<(u64, u64)> {
        let old = self.labels.old[index].0;
        match self.labels.units[index] {
            Some(unit) => Some((old, reach.addresses.label(unit.inst?))),
            None => Some((old, old)),
        }
    }

    /// The new address that stands for an old one. Within functions that stay it is the same:
    /// where instructions were displaced, branches lead on.
    fn target(&self, label: Label, old: Pc, reach: &Reach) -> Result<u64, &'static str> {
        let stays = match label {
            Label::Inst(index) => self.stays(index),
            _ => false,
        };
        if stays {
            return Ok(old.0);
        }
        let spot = self.labels.spot(label).map_err(|_| "it is of no known code")?;
        let is_code = self.object.segment_at(old).is_some_and(|segment| segment.executable);
        if matches!(label, Label::Spot(_))
            && is_code
            && !self.placements.contains(&Placement::Trampoline)
        {
            return Err("it is in code, but of no instruction");
        }
        Ok(reach.addresses.of(spot))
    }

    fn stays(&self, index: InstIndex) -> bool {
        self.placements[self.lookup.function_of(index)] == Placement::Trampoline
    }
}
