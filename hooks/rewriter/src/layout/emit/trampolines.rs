//! Functions that stay: their edited instructions, and the ways back.

use super::{EmitSource, LayoutEmitter};
use crate::flow::{Function, FunctionIndex, IndexRange, InstIndex};
use crate::layout::stream::{Address, Label, Spot};
use crate::layout::{InsertPurpose, LayoutError, far, hints, preload};
use flipwave_isa::{Inst, Pc};
use std::collections::BTreeSet;

impl<'a> LayoutEmitter<'a> {
    /// The instructions of a function that are edited; the others stay where they are.
    pub(super) fn trampolines(
        &mut self,
        index: FunctionIndex,
        function: &Function,
    ) -> Result<Spot, LayoutError> {
        let range = function.instructions;
        let mut displaced: BTreeSet<InstIndex> =
            range.iter().filter(|at| self.source.edits.touches(*at)).collect();
        for chain in self.source.chains.within(range) {
            if displaced.contains(&chain.chain.getpc) {
                displaced.extend(chain.without_literal(self.source.program));
            }
        }
        let is_far = self.source.is_far[index];
        if is_far && function.unresolved.is_empty() {
            self.widen(range, &mut displaced);
        }
        self.far = is_far.then(|| displaced.clone());
        let EmitSource { object, program, edits, .. } = self.source;
        let entry = if edits.entries.contains_key(&index) {
            let entry = self.entry(index, function)?;
            self.leave(Label::Inst(range.start), Some(range.start))?;
            Spot::Position(entry)
        } else {
            Spot::Address(preload::entry(object, program, function).0)
        };
        for run in runs(displaced) {
            self.units(run, true)?;
            if let Some(last) = run.last().filter(|_| self.falls) {
                let inst = &program.instructions[last];
                let next = Pc(inst.pc.0.saturating_add(inst.size.into()));
                let to = match self.source.lookup.at(next) {
                    Some(next) => self.source.lookup.way(last, next),
                    None => Label::address(next.0),
                };
                self.leave(to, Some(last))?;
            }
            self.stubs()?;
        }
        Ok(entry)
    }

    /// Displaces instructions beside those that are displaced: where no pair is free for a jump,
    /// up to where one is, and enough of them for a jump to stand where they stood.
    fn widen(&self, range: IndexRange<InstIndex>, displaced: &mut BTreeSet<InstIndex>) {
        let EmitSource { program, edits, chains, joined, .. } = self.source;
        let is_joined = |at: InstIndex| joined.contains(&at);
        let may_go_on = |inst: &Inst| program.control(inst).may_fall_through();
        let has_pair = |at: InstIndex| edits.free_pairs.contains_key(&at);
        let goes_along = |at: &InstIndex| {
            range.contains(*at) && {
                let inst = &program.instructions[*at];
                let is_plain = may_go_on(inst) && inst.branch_target.is_none();
                is_plain && !inst.flags.call && self.tie(*at, inst).is_none() && !chains.has(*at)
            }
        };
        let size = |run: IndexRange<InstIndex>| -> usize {
            program.instructions[run].iter().map(|inst| usize::from(inst.size)).sum()
        };
        let splits = |at: InstIndex| hints::splits(program, range, self.dropped, at);
        for edited in runs(displaced.clone()) {
            let mut run = edited;
            while let Some(before) = run.start.previous().filter(goes_along)
                && (!has_pair(run.start) || splits(run.start))
                && !is_joined(run.start)
            {
                run.start = before;
            }
            let falls = edited.last().is_some_and(|last| may_go_on(&program.instructions[last]));
            while falls
                && (!has_pair(run.end)
                    || splits(run.end)
                    || size(run) < far::room(&self.encoding.chain))
                && !is_joined(run.end)
                && goes_along(&run.end)
            {
                run.end = run.end.next();
            }
            let start = if splits(run.start) { edited.start } else { run.start };
            let end = if splits(run.end) { edited.end } else { run.end };
            displaced.extend(IndexRange::new(start, end).iter());
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
        self.stream.close_inserted(start, InsertPurpose::Island);
        self.falls = false;
        Ok(())
    }

    /// The instruction of old text that a label leads to, if it is out of a branch's reach.
    pub(super) fn far_way(&self, to: Label) -> Option<InstIndex> {
        let displaced = self.far.as_ref()?;
        match to {
            Label::Inst(index) if !displaced.contains(&index) => Some(index),
            _ => None,
        }
    }

    pub(super) fn refuse(&mut self, site: InstIndex, reason: &str) {
        self.refused.push((self.source.program.instructions[site].pc, reason.to_owned()));
    }
}

/// Runs of neighbours.
fn runs(indices: BTreeSet<InstIndex>) -> Vec<IndexRange<InstIndex>> {
    let mut runs: Vec<IndexRange<InstIndex>> = Vec::new();
    for index in indices {
        match runs.last_mut().filter(|run| run.end == index) {
            Some(run) => run.end = index.next(),
            None => runs.push(IndexRange::new(index, index.next())),
        }
    }
    runs
}
