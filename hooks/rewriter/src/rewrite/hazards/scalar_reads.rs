//! Waits for scalar registers that vector operations may read late. These hazards have unlimited distance,
//! so a forward dataflow analysis tracks the state of waves on all paths.
//!
//! Compilers insert these waits in the program. No wait is inserted for late reads in which inserted code
//! takes no part.

use super::decoder::Decoder;
use super::error::PaddingError;
use super::slot::Slot;
use super::stream::{Item, Jump, Stream, StreamIndex, Streams};
use crate::flow::{Disassembly, IndexVec};
use flipwave_isa::hazard::{InstrumentedSgprState, Origin, SgprHazardState, SgprWait};
use std::collections::BTreeMap;

/// Initial states of the analysis.
struct Origins<'p> {
    program: &'p Disassembly,
    /// State at the start of a wave.
    begin: InstrumentedSgprState,
    /// State on entry from unknown code.
    called: InstrumentedSgprState,
}

impl Origins<'_> {
    /// Returns `true` if unknown code may enter a stream at any item, because its function has unresolved
    /// control flow.
    fn is_entered(&self, stream: &[Item<'_>]) -> bool {
        let at = stream.first().and_then(|item| item.slot.at());
        let function = at.map(|at| self.program.function_of(at));
        function.is_some_and(|index| !self.program.functions[index].unresolved.is_empty())
    }
}

impl Streams<'_> {
    /// Adds the waits to the padding; `begin` is the state at the start of a wave.
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
                let item = &mut self.streams[stream].items[at];
                item.padding.extend(insts.iter().cloned());
                padding.entry(item.slot).or_default().push(code);
            }
        }
        Ok(())
    }

    /// State at the start of each stream.
    fn scalar_reads_at_entries(
        &self,
        origins: &Origins<'_>,
    ) -> IndexVec<StreamIndex, Option<InstrumentedSgprState>> {
        let Origins { program, begin, called } = *origins;
        let mut successors = IndexVec::filled(Vec::new(), self.streams.len());
        for (stream, before) in self.predecessors.enumerated() {
            before.iter().for_each(|previous| successors[*previous].push(stream));
        }
        // Unknown code may enter streams without predecessors, functions, and return points of calls.
        let mut entries = IndexVec::filled(None, self.streams.len());
        for (stream, before) in self.predecessors.enumerated() {
            if before.is_empty() {
                entries[stream] = Some(called);
            }
        }
        for function in &program.functions {
            let first = StreamIndex::from(function.blocks.start);
            let is_kernel = function.kernel.is_some();
            let entry = if is_kernel { begin } else { called };
            entries[first] = Some(entry);
            let prologues = self.predecessors[first]
                .iter()
                .filter(|stream| is_kernel && self.predecessors[**stream].is_empty());
            for prologue in prologues {
                entries[*prologue] = Some(entry);
            }
        }
        // Return points may have other predecessors.
        for to in self.returns.values() {
            entries[*to].get_or_insert(called).join(&called);
        }
        let mut waiting: Vec<StreamIndex> =
            self.streams.indices().iter().rev().filter(|at| entries[*at].is_some()).collect();
        while let Some(stream) = waiting.pop() {
            let Some(entry) = entries[stream] else { continue };
            let (end, _) = self.follow(origins, stream, entry);
            for next in &successors[stream] {
                let has_changed = match &mut entries[*next] {
                    Some(state) => state.join(&end),
                    unknown => {
                        *unknown = Some(end);
                        true
                    }
                };
                if has_changed && !waiting.contains(next) {
                    waiting.push(*next);
                }
            }
        }
        entries
    }

    /// State at the end of a stream, and the waits required before its items.
    fn follow(
        &self,
        origins: &Origins<'_>,
        stream: StreamIndex,
        entry: InstrumentedSgprState,
    ) -> (InstrumentedSgprState, Vec<(usize, SgprWait)>) {
        let Stream { items, jumps, removed } = &self.streams[stream];
        let is_entered = origins.is_entered(items);
        // States on branches of inserted code; loops are repeated until nothing changes.
        let mut arriving: BTreeMap<usize, InstrumentedSgprState> = BTreeMap::new();
        loop {
            let mut state = entry;
            let mut waits = Vec::new();
            let mut repeats = false;
            for at in 0..=items.len() {
                if let Some(branch_state) = arriving.get(&at) {
                    state.join(branch_state);
                }
                let removed = removed.iter().filter(|(before, _)| *before == at);
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
                for Jump { to, .. } in jumps.iter().filter(|jump| jump.from == at) {
                    let has_changed = match arriving.get_mut(to) {
                        Some(branch_state) => branch_state.join(&state),
                        None => arriving.insert(*to, state).is_none(),
                    };
                    repeats |= has_changed && *to <= at;
                }
            }
            if !repeats {
                return (state, waits);
            }
        }
    }
}
