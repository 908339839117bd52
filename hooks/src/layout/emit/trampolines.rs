//! Functions that stay: their edited instructions, and the ways back.

use super::{Emitter, Source};
use crate::flow::{Function, FunctionIndex, InstIndex};
use crate::layout::stream::{Address, Label, Spot};
use crate::layout::{LayoutError, Purpose, far, hints, preload};
use flipwave_isa::{Inst, Pc};
use std::collections::BTreeSet;
use std::ops::Range;

impl<'a> Emitter<'a> {
    /// The instructions of a function that are edited; the others stay where they are.
    pub(super) fn trampolines(
        &mut self,
        index: FunctionIndex,
        function: &Function,
    ) -> Result<Spot, LayoutError> {
        let range = function.instructions.clone();
        let mut displaced: BTreeSet<u32> =
            range.clone().filter(|at| self.source.edits.touches(InstIndex(*at))).collect();
        for chain in self.source.chains.within(&range) {
            if displaced.contains(&chain.chain.getpc.0) {
                displaced.extend(chain.without_literal(self.source.program).map(|at| at.0));
            }
        }
        let is_far = self.source.is_far.get(index.0 as usize) == Some(&true);
        if is_far && function.unresolved.is_empty() {
            self.widen(&range, &mut displaced);
        }
        self.far = is_far.then(|| displaced.clone());
        let Source { object, program, edits, .. } = self.source;
        let entry = if edits.entries.contains_key(&index) {
            let entry = self.entry(index, function)?;
            let first = InstIndex(range.start);
            self.leave(Label::Inst(first), Some(first))?;
            Spot::Position(entry)
        } else {
            Spot::Address(preload::entry(object, program, function).map_or(0, |pc| pc.0))
        };
        for run in runs(displaced) {
            let last = run.end - 1;
            self.units(run, true)?;
            if self.falls {
                let inst = self.inst(last)?;
                let next = Pc(inst.pc.0.saturating_add(inst.size.into()));
                let to = match self.source.lookup.at(next) {
                    Some(next) => self.source.lookup.way(InstIndex(last), next),
                    None => Label::address(next.0),
                };
                self.leave(to, Some(InstIndex(last)))?;
            }
            self.stubs()?;
        }
        Ok(entry)
    }

    /// Displaces instructions beside those that are displaced: where no pair is free for a jump,
    /// up to where one is, and enough of them for a jump to stand where they stood.
    fn widen(&self, range: &Range<u32>, displaced: &mut BTreeSet<u32>) {
        let Source { program, edits, chains, joined, .. } = self.source;
        let is_joined = |at: u32| joined.contains(&InstIndex(at));
        let may_go_on = |inst: &Inst| program.control(inst).may_go_on();
        let has_pair = |at: u32| edits.free_pairs.contains_key(&InstIndex(at));
        let goes_along = |at: u32| {
            range.contains(&at)
                && program.inst(InstIndex(at)).is_some_and(|inst| {
                    let is_plain = may_go_on(inst) && inst.branch_target.is_none();
                    is_plain
                        && !inst.flags.call
                        && self.tie(InstIndex(at), inst).is_none()
                        && !chains.has(InstIndex(at))
                })
        };
        let size = |run: &Range<u32>| -> usize {
            program.insts_of(run).map(|(_, inst)| usize::from(inst.size)).sum()
        };
        let splits = |at: u32| hints::splits(program, range, self.dropped, at);
        for edited in runs(displaced.clone()) {
            let mut run = edited.clone();
            while (!has_pair(run.start) || splits(run.start))
                && !is_joined(run.start)
                && run.start.checked_sub(1).is_some_and(goes_along)
            {
                run.start -= 1;
            }
            let falls = run.end.checked_sub(1).and_then(|last| program.inst(InstIndex(last)));
            while falls.is_some_and(may_go_on)
                && (!has_pair(run.end) || splits(run.end) || size(&run) < far::ROOM)
                && !is_joined(run.end)
                && goes_along(run.end)
            {
                run.end += 1;
            }
            let start = if splits(run.start) { edited.start } else { run.start };
            let end = if splits(run.end) { edited.end } else { run.end };
            displaced.extend(start..end);
        }
    }

    /// A branch or a jump to elsewhere, where control would go on.
    pub(super) fn leave(&mut self, to: Label, site: Option<InstIndex>) -> Result<(), LayoutError> {
        let start = self.stream.position();
        match self.far_way(to) {
            None => self.stream.branch(self.encoding.branch, to, site),
            Some(next) => match self.source.edits.free_pairs.get(&next) {
                Some(pair) => {
                    self.stream.addresses.push(Address { at: start, of: to });
                    self.stream.bytes.extend_from_slice(self.encoding.far_jump(*pair)?);
                }
                None => self.refuse(site.unwrap_or(next), &far::no_pair("back")),
            },
        }
        self.stream.close_inserted(start, Purpose::Island);
        self.falls = false;
        Ok(())
    }

    /// The instruction of old text that a label leads to, if it is out of a branch's reach.
    pub(super) fn far_way(&self, to: Label) -> Option<InstIndex> {
        let displaced = self.far.as_ref()?;
        match to {
            Label::Inst(index) if !displaced.contains(&index.0) => Some(index),
            _ => None,
        }
    }

    pub(super) fn refuse(&mut self, site: InstIndex, reason: &str) {
        let pc = self.source.program.instructions.get(site.0 as usize).map(|inst| inst.pc);
        self.refused.extend(pc.map(|pc| (pc, reason.to_owned())));
    }
}

/// Runs of neighbours.
fn runs(indices: BTreeSet<u32>) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for index in indices {
        match runs.last_mut().filter(|run| run.end == index) {
            Some(run) => run.end += 1,
            None => runs.push(index..index + 1),
        }
    }
    runs
}
