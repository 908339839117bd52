//! Trampolines: edited instructions of functions that stay, and branches back.

use super::{EmitSource, LayoutEmitter};
use crate::flow::{Function, FunctionIndex, IndexRange, InstIndex};
use crate::layout::stream::{Address, Label, Location};
use crate::layout::{InsertPurpose, LayoutError, Placement, far, hints, preload};
use flipwave_isa::{Inst, Pc};
use std::collections::BTreeSet;

impl<'a> LayoutEmitter<'a> {
    /// Emits the edited instructions of a function; the others stay. Returns the entry of the function.
    pub(super) fn trampolines(
        &mut self,
        index: FunctionIndex,
        function: &Function,
    ) -> Result<Location, LayoutError> {
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
            Location::Position(entry)
        } else {
            Location::Address(preload::entry(object, program, function).0)
        };
        for run in runs(displaced) {
            self.units(run, Placement::Trampoline)?;
            if let Some(last) = run.last().filter(|_| self.falls_through) {
                let inst = &program.instructions[last];
                let next = Pc(inst.pc.0.saturating_add(inst.size.into()));
                let to = match self.source.lookup.at(next) {
                    Some(next) => self.source.lookup.label_from(last, next),
                    None => Label::address(next.0),
                };
                self.leave(to, Some(last))?;
            }
            self.stubs()?;
        }
        Ok(entry)
    }

    /// Extends runs of displaced instructions that are out of branch range, until an SGPR pair is free at
    /// both ends and the run has space for a jump.
    fn widen(&self, range: IndexRange<InstIndex>, displaced: &mut BTreeSet<InstIndex>) {
        let EmitSource { program, edits, chains, join_points, .. } = self.source;
        let is_join_point = |at: InstIndex| join_points.contains(&at);
        let may_fall_through = |inst: &Inst| program.control(inst).may_fall_through();
        let has_pair = |at: InstIndex| edits.free_pairs.contains_key(&at);
        let is_movable = |at: &InstIndex| {
            range.contains(*at) && {
                let inst = &program.instructions[*at];
                let is_plain = may_fall_through(inst) && inst.branch_target.is_none();
                is_plain
                    && !inst.flags.call
                    && self.fixed_reason(*at, inst).is_none()
                    && !chains.has(*at)
            }
        };
        let size = |run: IndexRange<InstIndex>| -> usize {
            program.instructions[run].iter().map(|inst| usize::from(inst.size)).sum()
        };
        let splits = |at: InstIndex| hints::splits(program, range, self.dropped, at);
        for edited in runs(displaced.clone()) {
            let mut run = edited;
            while let Some(before) = run.start.previous().filter(is_movable)
                && (!has_pair(run.start) || splits(run.start))
                && !is_join_point(run.start)
            {
                run.start = before;
            }
            let last = edited.last().map(|last| &program.instructions[last]);
            let falls_through = last.is_some_and(may_fall_through);
            while falls_through
                && (!has_pair(run.end)
                    || splits(run.end)
                    || size(run) < far::branch_and_jump_size(&self.encoding.chain))
                && !is_join_point(run.end)
                && is_movable(&run.end)
            {
                run.end = run.end.next();
            }
            let start = if splits(run.start) { edited.start } else { run.start };
            let end = if splits(run.end) { edited.end } else { run.end };
            displaced.extend(IndexRange::new(start, end).iter());
        }
    }

    /// Emits a branch or a jump to `to`, which ends the current run.
    pub(super) fn leave(&mut self, to: Label, site: Option<InstIndex>) -> Result<(), LayoutError> {
        let start = self.stream.position();
        match self.far_target(to) {
            None => self.stream.branch(self.encoding.branch, to, site),
            Some(next) => match self.source.edits.free_pairs.get(&next) {
                Some(pair) => {
                    self.stream.addresses.push(Address { at: start, to });
                    self.stream.bytes.extend_from_slice(self.encoding.far_jump(*pair)?);
                }
                None => self.refuse(site.unwrap_or(next), &far::no_pair("back")),
            },
        }
        self.stream.close_inserted(start, InsertPurpose::Island);
        self.falls_through = false;
        Ok(())
    }

    /// The instruction of the old text that a label refers to, if it is out of branch range.
    pub(super) fn far_target(&self, to: Label) -> Option<InstIndex> {
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

/// Splits indices into runs of consecutive ones.
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
