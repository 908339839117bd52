//! Fixups of references to moved code: address chains, and branches in the old text of functions that
//! stay.

use super::LayoutError;
use super::Placement;
use super::chains::{self, Chain, Chains};
use super::encoding::{self, Encoding};
use super::far::{FarJump, JumpAllocator};
use super::finish::Text;
use super::lookup::Lookup;
use super::reach::{Hop, HopLocation, Reach};
use super::stream::{Label, Labels, Location, distance};
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex, Key};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Pc, Sgpr};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Computes the fixups of a layout.
pub(super) struct Fixups<'a> {
    pub object: &'a CodeObject,
    pub program: &'a Disassembly,
    pub lookup: &'a Lookup<'a>,
    pub labels: &'a Labels<'a>,
    pub placements: &'a IndexVec<FunctionIndex, Placement>,
    /// `true` for functions whose trampolines are out of branch range.
    pub is_far: &'a IndexVec<FunctionIndex, bool>,
    /// Displaced instructions that control enters at their old addresses.
    pub entered: &'a BTreeSet<InstIndex>,
}

impl Fixups<'_> {
    /// The instructions of functions that stay.
    fn staying(&self) -> impl Iterator<Item = InstIndex> {
        let functions = self.program.functions.iter().zip(self.placements);
        functions
            .filter(|(_, placement)| **placement == Placement::Trampoline)
            .flat_map(|(function, _)| function.instructions.iter())
    }

    /// Branches from the old addresses of displaced instructions to their new code, and the jumps that
    /// some of them go to first.
    ///
    /// # Errors
    /// [`LayoutError::Sites`] if a jump is needed but not possible.
    pub fn entry_branches(
        &self,
        encoding: &Encoding,
        free_pairs: &BTreeMap<InstIndex, Sgpr>,
        slots: &mut BTreeSet<u64>,
    ) -> Result<(Vec<Hop>, Vec<FarJump>), LayoutError> {
        let mut hops = Vec::new();
        let mut allocator = JumpAllocator::new(slots, &encoding.chain);
        for index in self.staying() {
            let Some(unit) = self.labels.units[index].filter(|_| self.entered.contains(&index))
            else {
                continue;
            };
            let pc = self.labels.old[index];
            let hop = Hop {
                at: HopLocation::Fixed(Location::Address(pc.0)),
                word: encoding.branch,
                to: Location::Position(unit.start),
                via: None,
                site: Some(index),
            };
            if self.is_far[self.lookup.function_of(index)] {
                hops.extend(allocator.redirect(hop, pc, index, free_pairs, slots));
            } else {
                hops.push(hop);
            }
        }
        if allocator.refused.is_empty() {
            Ok((hops, allocator.jumps))
        } else {
            Err(LayoutError::Sites(allocator.refused))
        }
    }

    /// Unused words of the old text, which may hold islands: displaced instructions after their entry
    /// branch, and padding between functions. Functions with unresolved control flow are excluded.
    pub fn unused_words(&self, encoding: &Encoding) -> BTreeSet<u64> {
        let mut slots = BTreeSet::new();
        if self.entered.is_empty() {
            return slots;
        }
        for index in self.staying().filter(|index| self.is_resolved(*index)) {
            if self.labels.units[index].is_some() {
                let inst = &self.program.instructions[index];
                let words = (inst.pc.0..inst.pc.0.saturating_add(inst.size.into())).step_by(4);
                slots.extend(words.skip(usize::from(self.entered.contains(&index))));
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

    /// Ranges of the old text that no longer hold original instructions. Redirected branches are not
    /// included.
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

    fn is_resolved(&self, index: InstIndex) -> bool {
        self.program.functions[self.lookup.function_of(index)].unresolved.is_empty()
    }

    /// Redirects calls and branches of the old text to other functions. Returns those that cannot reach
    /// their new targets.
    pub fn fix_outgoing(
        &self,
        reach: &Reach,
        text: &mut Text,
    ) -> Result<Vec<InstIndex>, LayoutError> {
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
                // The old address of a displaced instruction holds a branch to the new one.
                continue;
            }
            let to = reach.addresses.of(self.labels.location(self.lookup.code_label(to))?);
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

    /// Overwrites invalid hints of the old text with `s_nop`.
    pub fn overwrite_hints(&self, dropped: &BTreeSet<InstIndex>, nop: u32, text: &mut Text) {
        for index in dropped {
            if self.labels.units[*index].is_none() {
                text.put(self.labels.old[*index].0, nop);
            }
        }
    }

    /// Adjusts the constants of address chains. Returns the `s_getpc_b64` of chains in the old text
    /// that refer to moved code but cannot be adjusted.
    pub fn fix_chains(
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
            if members.iter().any(|(member, half)| {
                !self.has_literal(*member) && constants[*half] != before[*half]
            }) {
                stale.push(chain.getpc);
                continue;
            }
            for (member, half) in members {
                let (_, new) = self
                    .moved(member, reach)
                    .ok_or_else(|| wrong("one of its additions was replaced"))?;
                // The literal of a 64-bit addition has both halves.
                let place = if chain.low == chain.high { half } else { 0 };
                if done
                    .insert((member, place), constants[half])
                    .is_some_and(|previous| previous != constants[half])
                {
                    return Err(wrong("it shares an addition with another address"));
                }
                if self.has_literal(member) {
                    text.put(new.wrapping_add(4 + 4 * place as u64), constants[half]);
                }
            }
        }
        Ok(stale)
    }

    /// Returns `true` if an addition of a chain has a literal: all emitted additions, and those of two or
    /// more words in the old text.
    fn has_literal(&self, index: InstIndex) -> bool {
        self.labels.units[index].is_some() || self.program.instructions[index].size >= 8
    }

    /// Old and new address of an instruction; `None` if it was removed.
    fn moved(&self, index: InstIndex, reach: &Reach) -> Option<(u64, u64)> {
        let old = self.labels.old[index].0;
        match self.labels.units[index] {
            Some(unit) => Some((old, reach.addresses.label(unit.inst?))),
            None => Some((old, old)),
        }
    }

    /// The new value of the address `old` with the label `label`. Addresses in functions that stay do not
    /// change, because displaced instructions are entered at their old addresses.
    fn target(&self, label: Label, old: Pc, reach: &Reach) -> Result<u64, &'static str> {
        let stays = match label {
            Label::Inst(index) => self.stays(index),
            _ => false,
        };
        if stays {
            return Ok(old.0);
        }
        let location = self.labels.location(label).map_err(|_| "it refers to unknown code")?;
        let is_code = self.object.segment_at(old).is_some_and(|segment| segment.executable);
        if matches!(label, Label::Location(_))
            && is_code
            && !self.placements.contains(&Placement::Trampoline)
        {
            return Err("it is in code, but not the address of an instruction");
        }
        Ok(reach.addresses.of(location))
    }

    fn stays(&self, index: InstIndex) -> bool {
        self.placements[self.lookup.function_of(index)] == Placement::Trampoline
    }
}
