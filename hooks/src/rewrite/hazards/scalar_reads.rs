//! Waits for scalar registers that may be read late. What was read any time before counts, so the
//! state of a wave is followed on all ways instead of looking back.
//!
//! Code from a compiler keeps this by itself. Where the program without inserted code would need a
//! wait too, none is put.

use super::PaddingError;
use super::decoder::Decoder;
use super::slot::Slot;
use super::stream::{Item, StreamIndex, Streams};
use crate::dataflow::{LateScalars, leaves};
use crate::flow::{Disassembly, IndexVec, InstIndex};
use flipwave_isa::hazard::{ScalarReads, ScalarWait};
use std::collections::BTreeMap;

/// What is known of scalar registers on the ways through a program.
struct Known<'p> {
    program: &'p Disassembly,
    /// Of a wave that begins.
    begin: ScalarReads,
    /// What the program alone lacks.
    late: LateScalars,
}

impl<'p> Known<'p> {
    fn new(program: &'p Disassembly, begin: ScalarReads) -> Known<'p> {
        let late = LateScalars::of(program, begin, &|index| is_entered(program, index));
        Known { program, begin, late }
    }

    /// What must be put before an item; then executes it.
    fn pass(&self, state: &mut ScalarReads, item: &Item<'_>) -> ScalarWait {
        let inst = item.inst.inst();
        let at = item.slot.at();
        if at.is_some_and(|at| is_entered(self.program, at)) {
            state.join(&self.begin.called());
        }
        let wait = match item.slot {
            Slot::Original(index) => self.late.missing(index, state, inst),
            _ => state.needed(inst),
        };
        *state = state.after(wait);
        state.execute(inst);
        if item.is_original() && leaves(inst) {
            *state = state.after(state.pending());
        }
        wait
    }
}

/// Whether control may come to an instruction from elsewhere: nobody knows where it goes in its function.
fn is_entered(program: &Disassembly, index: InstIndex) -> bool {
    !program.functions[program.function_of(index)].unresolved.is_empty()
}

impl Streams<'_> {
    /// Adds these waits to the padding; `begin` is what is known of a wave that begins.
    pub fn pad_scalar_reads(
        &mut self,
        program: &Disassembly,
        begin: ScalarReads,
        decoder: &mut Decoder<'_>,
        padding: &mut BTreeMap<Slot, Vec<Vec<u8>>>,
    ) -> Result<(), PaddingError> {
        let known = Known::new(program, begin);
        let entries = self.scalar_reads_at_entries(&known);
        for (stream, entry) in entries.enumerated() {
            let Some(entry) = entry else { continue };
            for (at, wait) in self.follow(&known, stream, *entry).1 {
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
        known: &Known<'_>,
    ) -> IndexVec<StreamIndex, Option<ScalarReads>> {
        let (program, begin) = (known.program, known.begin);
        let mut successors = IndexVec::filled(Vec::new(), self.streams.len());
        for (stream, before) in self.predecessors.enumerated() {
            before.iter().for_each(|own| successors[*own].push(stream));
        }
        // Control comes from elsewhere to functions that are called, and to where calls return.
        let mut entries = IndexVec::filled(None, self.streams.len());
        for (stream, before) in self.predecessors.enumerated() {
            if before.is_empty() {
                entries[stream] = Some(begin.called());
            }
        }
        for function in &program.functions {
            let first = StreamIndex::from(function.blocks.start);
            let is_kernel = function.kernel.is_some();
            let own = if is_kernel { begin } else { begin.called() };
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
            let back = begin.called();
            entries[*to].get_or_insert(back).join(&back);
        }
        let mut waiting: Vec<StreamIndex> =
            self.streams.indices().iter().rev().filter(|own| entries[*own].is_some()).collect();
        while let Some(stream) = waiting.pop() {
            let Some(entry) = entries[stream] else { continue };
            let (end, _) = self.follow(known, stream, entry);
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
        known: &Known<'_>,
        stream: StreamIndex,
        entry: ScalarReads,
    ) -> (ScalarReads, Vec<(usize, ScalarWait)>) {
        let (items, jumps) = (&self.streams[stream], &self.jumps[stream]);
        // What comes by branches of inserted code; loops are gone round until nothing changes.
        let mut arriving: BTreeMap<usize, ScalarReads> = BTreeMap::new();
        loop {
            let mut state = entry;
            let mut waits = Vec::new();
            let mut goes_round = false;
            for at in 0..=items.len() {
                if let Some(other) = arriving.get(&at) {
                    state.join(other);
                }
                let Some(item) = items.get(at) else { break };
                let wait = known.pass(&mut state, item);
                if !wait.is_empty() {
                    waits.push((at, wait));
                }
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
