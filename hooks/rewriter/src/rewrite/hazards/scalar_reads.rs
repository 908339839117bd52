//! Waits for scalar registers that may be read late. What was read any time before counts, so the
//! state of a wave is followed on all ways instead of looking back.
//!
//! Code from a compiler keeps this by itself. Where inserted code has no part in what the program reads
//! late, no wait is put.

use super::PaddingError;
use super::decoder::Decoder;
use super::slot::Slot;
use super::stream::{Item, StreamIndex, Streams};
use crate::flow::{Disassembly, IndexVec};
use flipwave_isa::hazard::{InstrumentedSgprState, Origin, SgprHazardState, SgprWait};
use std::collections::BTreeMap;

/// What waves know of scalar registers where they come from outside of what is followed.
struct Origins<'p> {
    program: &'p Disassembly,
    /// Where a wave begins.
    begin: InstrumentedSgprState,
    /// Where control comes from elsewhere.
    called: InstrumentedSgprState,
}

impl Origins<'_> {
    /// Whether control may come to any item of a stream from elsewhere: nobody knows where it goes in the
    /// stream's function.
    fn is_entered(&self, stream: &[Item<'_>]) -> bool {
        let at = stream.first().and_then(|item| item.slot.at());
        let function = at.map(|at| self.program.function_of(at));
        function.is_some_and(|own| !self.program.functions[own].unresolved.is_empty())
    }
}

impl Streams<'_> {
    /// Adds these waits to the padding; `begin` is what is known of a wave that begins.
    pub fn pad_scalar_reads(
        &mut self,
        program: &Disassembly,
        begin: SgprHazardState,
        decoder: &mut Decoder<'_>,
        padding: &mut BTreeMap<Slot, Vec<Vec<u8>>>,
    ) -> Result<(), PaddingError> {
        let inserted = self.items().filter(|item| !item.is_original());
        let called = InstrumentedSgprState::entered(begin, inserted.map(|item| item.inst.inst()));
        let origins = Origins { program, begin: InstrumentedSgprState::new(begin), called };
        let entries = self.scalar_reads_at_entries(&origins);
        for (stream, entry) in entries.enumerated() {
            let Some(entry) = entry else { continue };
            for (at, wait) in self.follow(&origins, stream, *entry).1 {
                let (code, insts) = decoder.assemble(&begin.mitigation(wait).text())?;
                let item = &mut self.streams[stream][at];
                item.padding.extend(insts.iter().cloned());
                padding.entry(item.slot).or_default().push(code);
            }
        }
        Ok(())
    }

    /// What is known at the beginning of each stream.
    fn scalar_reads_at_entries(
        &self,
        origins: &Origins<'_>,
    ) -> IndexVec<StreamIndex, Option<InstrumentedSgprState>> {
        let Origins { program, begin, called } = *origins;
        let mut successors = IndexVec::filled(Vec::new(), self.streams.len());
        for (stream, before) in self.predecessors.enumerated() {
            before.iter().for_each(|own| successors[*own].push(stream));
        }
        // Control comes from elsewhere to functions that are called, and to where calls return.
        let mut entries = IndexVec::filled(None, self.streams.len());
        for (stream, before) in self.predecessors.enumerated() {
            if before.is_empty() {
                entries[stream] = Some(called);
            }
        }
        for function in &program.functions {
            let first = StreamIndex::from(function.blocks.start);
            let is_kernel = function.kernel.is_some();
            let own = if is_kernel { begin } else { called };
            entries[first] = Some(own);
            let prologues = self.predecessors[first]
                .iter()
                .filter(|own| is_kernel && self.predecessors[**own].is_empty());
            for prologue in prologues {
                entries[*prologue] = Some(own);
            }
        }
        // Where a call comes back to may have other ways to it.
        for to in self.returns.values() {
            entries[*to].get_or_insert(called).join(&called);
        }
        let mut waiting: Vec<StreamIndex> =
            self.streams.indices().iter().rev().filter(|own| entries[*own].is_some()).collect();
        while let Some(stream) = waiting.pop() {
            let Some(entry) = entries[stream] else { continue };
            let (end, _) = self.follow(origins, stream, entry);
            for next in &successors[stream] {
                let is_more = match &mut entries[*next] {
                    Some(own) => own.join(&end),
                    unknown => {
                        *unknown = Some(end);
                        true
                    }
                };
                if is_more && !waiting.contains(next) {
                    waiting.push(*next);
                }
            }
        }
        entries
    }

    /// What is known at the end of a stream, and the waits that its items need before them.
    fn follow(
        &self,
        origins: &Origins<'_>,
        stream: StreamIndex,
        entry: InstrumentedSgprState,
    ) -> (InstrumentedSgprState, Vec<(usize, SgprWait)>) {
        let (items, jumps) = (&self.streams[stream], &self.jumps[stream]);
        let is_entered = origins.is_entered(items);
        // What comes by branches of inserted code; loops are gone round until nothing changes.
        let mut arriving: BTreeMap<usize, InstrumentedSgprState> = BTreeMap::new();
        loop {
            let mut state = entry;
            let mut waits = Vec::new();
            let mut goes_round = false;
            for at in 0..=items.len() {
                if let Some(other) = arriving.get(&at) {
                    state.join(other);
                }
                let removed = self.removed[stream].iter().filter(|(before, _)| *before == at);
                removed.for_each(|(_, inst)| state.skip_removed(inst));
                let Some(item) = items.get(at) else { break };
                if is_entered {
                    state.join(&origins.called);
                }
                let inst = item.inst.inst();
                let author = if item.is_original() { Origin::Original } else { Origin::Inserted };
                let wait = state.required_wait(inst, author);
                if !wait.is_empty() {
                    waits.push((at, wait));
                }
                state = state.after_wait(wait);
                state.execute(inst, author);
                for (_, to) in jumps.iter().filter(|(from, _)| *from == at) {
                    let is_more = match arriving.get_mut(to) {
                        Some(other) => other.join(&state),
                        None => arriving.insert(*to, state).is_none(),
                    };
                    goes_round |= is_more && *to <= at;
                }
            }
            if !goes_round {
                return (state, waits);
            }
        }
    }
}
