//! Waits for scalar registers that may be read late. What was read any time before counts, so the
//! state of a wave is followed on all ways instead of looking back.
//!
//! Code from a compiler keeps this by itself. Where the program without inserted code would need a
//! wait too, none is put.

use super::PaddingError;
use super::decoder::Decoder;
use super::slot::Slot;
use super::stream::{Item, StreamIndex, Streams};
use crate::dataflow::{missing_waits, needed_by_program};
use crate::flow::{Disassembly, IndexVec};
use flipwave_isa::hazard::{ScalarReads, ScalarWait};
use std::collections::BTreeMap;

/// What an item needs before it; then executes it.
fn pass(known: &mut ScalarReads, item: &Item<'_>) -> ScalarWait {
    let inst = item.inst.inst();
    let wait = if item.is_original() { needed_by_program(known, inst) } else { known.needed(inst) };
    *known = known.after(wait);
    known.execute(inst);
    wait
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
        let by_itself = missing_waits(program, begin);
        let entries = self.scalar_reads_at_entries(program, begin);
        for (stream, entry) in entries.enumerated() {
            let Some(entry) = entry else { continue };
            for (at, mut wait) in self.follow(stream, *entry).1 {
                let item = &mut self.streams[stream][at];
                if let Slot::Original(index) = item.slot
                    && let Some(own) = by_itself.get(&index)
                {
                    wait = wait.without(*own);
                }
                if wait.is_empty() {
                    continue;
                }
                let (code, insts) = decoder.assemble(&begin.mitigation(wait).text())?;
                item.padding.extend(insts.iter().cloned());
                padding.entry(item.slot).or_default().push(code);
            }
        }
        Ok(())
    }

    /// What is known at the beginning of each stream.
    fn scalar_reads_at_entries(
        &self,
        program: &Disassembly,
        begin: ScalarReads,
    ) -> IndexVec<StreamIndex, Option<ScalarReads>> {
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
            let (end, _) = self.follow(stream, entry);
            for next in &successors[stream] {
                let is_more = match &mut entries[*next] {
                    Some(known) => known.join(&end),
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
        stream: StreamIndex,
        entry: ScalarReads,
    ) -> (ScalarReads, Vec<(usize, ScalarWait)>) {
        let (items, jumps) = (&self.streams[stream], &self.jumps[stream]);
        // What comes by branches of inserted code; loops are gone round until nothing changes.
        let mut arriving: BTreeMap<usize, ScalarReads> = BTreeMap::new();
        loop {
            let mut known = entry;
            let mut waits = Vec::new();
            let mut goes_round = false;
            for at in 0..=items.len() {
                if let Some(other) = arriving.get(&at) {
                    known.join(other);
                }
                let Some(item) = items.get(at) else { break };
                let wait = pass(&mut known, item);
                if !wait.is_empty() {
                    waits.push((at, wait));
                }
                for (_, to) in jumps.iter().filter(|(from, _)| *from == at) {
                    let is_more = match arriving.get_mut(to) {
                        Some(other) => other.join(&known),
                        None => arriving.insert(*to, known).is_none(),
                    };
                    goes_round |= is_more && *to <= at;
                }
            }
            if !goes_round {
                return (known, waits);
            }
        }
    }
}
