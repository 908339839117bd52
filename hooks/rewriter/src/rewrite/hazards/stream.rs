//! Instruction streams of the new code in execution order.

use super::decoder::{Decoder, Inserted};
use super::error::PaddingError;
use super::slot::{CodeOffset, Slot};
use crate::flow::{BlockEnd, BlockIndex, Disassembly, EdgeKind, IndexVec, Key, keys};
use crate::layout::{Edits, InsertedCode, Piece};
use crate::point::{ProgramPoint, When};
use flipwave_isa::Inst;
use flipwave_isa::hazard::{self, HazardRoles, MAX_WAIT_STATES};
use std::collections::BTreeMap;
use std::rc::Rc;

/// An instruction of the new code.
pub(super) struct Item<'a> {
    pub inst: StreamInst<'a>,
    pub roles: Rc<HazardRoles>,
    /// Guaranteed wait states: zero if a branch in the inserted code may skip the instruction.
    pub states: u8,
    pub slot: Slot,
    /// Padding before it.
    pub padding: Vec<Inserted>,
}

/// An original or inserted instruction.
pub(super) enum StreamInst<'a> {
    Original(&'a Inst),
    Inserted(Rc<Inst>),
}

impl Item<'_> {
    pub fn is_original(&self) -> bool {
        matches!(self.slot, Slot::Original(_))
    }
}

impl StreamInst<'_> {
    pub fn inst(&self) -> &Inst {
        match self {
            StreamInst::Original(inst) => inst,
            StreamInst::Inserted(inst) => inst,
        }
    }
}

keys! {
    /// Index of a stream: first those of the blocks, followed by code inserted after calls and prologues.
    StreamIndex;
}

impl From<BlockIndex> for StreamIndex {
    fn from(block: BlockIndex) -> StreamIndex {
        StreamIndex(block.0)
    }
}

/// A sequence of instructions.
#[derive(Default)]
pub(super) struct Stream<'a> {
    /// The instructions.
    pub items: Vec<Item<'a>>,
    /// Branches of inserted code within the stream.
    pub jumps: Vec<Jump>,
    /// Removed original instructions, with the index of the item that followed each.
    pub removed: Vec<(usize, &'a Inst)>,
}

/// A branch within a stream.
#[derive(Clone, Copy)]
pub(super) struct Jump {
    /// Index of the branch.
    pub from: usize,
    /// Index of the target; the number of items for the end.
    pub to: usize,
}

/// The new code as streams: one per block, followed by code inserted after calls and prologues.
pub(super) struct Streams<'a> {
    pub streams: IndexVec<StreamIndex, Stream<'a>>,
    pub predecessors: IndexVec<StreamIndex, Vec<StreamIndex>>,
    /// Streams to which calls return, by the block of the call.
    pub returns: BTreeMap<BlockIndex, StreamIndex>,
    /// Hazards that the last instructions of each stream and its predecessors can trigger.
    pub tails: IndexVec<StreamIndex, HazardRoles>,
    /// Hazards that any instruction can trigger.
    pub all: HazardRoles,
    /// Hazards that inserted code can trigger, or complete between two instructions.
    pub inserted: HazardRoles,
    /// `true` if original instructions are removed.
    pub removes: bool,
}

impl<'a> Streams<'a> {
    /// Reads a program with its edits.
    pub fn read(
        program: &'a Disassembly,
        edits: &Edits,
        decoder: &mut Decoder<'a>,
    ) -> Result<Streams<'a>, PaddingError> {
        let mut streams = IndexVec::new();
        // Code after calls: its predecessor is the callee, not the block of the call.
        let mut after_calls = Vec::new();
        for index in program.blocks.indices().iter() {
            let (stream, after_call) = Stream::read(program, index, edits, decoder)?;
            streams.push(stream);
            after_calls.extend(after_call.map(|stream| (index, stream)));
        }
        let count = streams.len() + after_calls.len() + edits.entries.len();
        let mut predecessors = IndexVec::filled(Vec::new(), count);
        let mut returns = BTreeMap::new();
        for (index, block) in program.blocks.enumerated() {
            for edge in &block.successors {
                if edge.kind == EdgeKind::Return {
                    returns.insert(index, StreamIndex::from(edge.to));
                } else {
                    predecessors[StreamIndex::from(edge.to)].push(index.into());
                }
            }
        }
        for (caller, stream) in after_calls {
            let after = streams.push(stream);
            if let Some(to) = returns.insert(caller, after) {
                predecessors[to].push(after);
            }
        }
        add_call_edges(program, &returns, &mut predecessors);
        for (function, code) in &edits.entries {
            let mut stream = Stream::default();
            stream.append(code, decoder, |offset| Slot::Entry(*function, offset))?;
            let first = StreamIndex::from(program.functions[*function].blocks.start);
            predecessors[first].push(streams.push(stream));
        }
        let removes = edits.code.keys().any(|point| point.when == When::Instead);
        let (mut all, mut inserted) = (HazardRoles::default(), HazardRoles::default());
        for item in streams.iter().flat_map(|stream| &stream.items) {
            all = all.with_triggers(&item.roles);
            if !item.is_original() {
                inserted = inserted.with_triggers(&item.roles).with_intervening(&item.roles);
            }
        }
        let tails = IndexVec::new();
        let mut streams = Streams { streams, predecessors, returns, tails, all, inserted, removes };
        streams.tails = streams.streams.indices().iter().map(|at| streams.tail(at)).collect();
        Ok(streams)
    }

    /// All instructions.
    pub fn items(&self) -> impl Iterator<Item = &Item<'a>> {
        self.streams.iter().flat_map(|stream| &stream.items)
    }

    /// Hazards that can be triggered within the maximum distance before the end of a stream.
    fn tail(&self, stream: StreamIndex) -> HazardRoles {
        let mut all = HazardRoles::default();
        let mut waiting = vec![(stream, 0)];
        let mut nearest = BTreeMap::from([(stream, 0)]);
        while let Some((stream, mut distance)) = waiting.pop() {
            for item in self.streams[stream].items.iter().rev() {
                all = all.with_triggers(&item.roles);
                distance += u32::from(item.states);
                if distance >= u32::from(MAX_WAIT_STATES) {
                    break;
                }
            }
            if distance < u32::from(MAX_WAIT_STATES) {
                for before in &self.predecessors[stream] {
                    if nearest.get(before).is_none_or(|nearest| distance < *nearest) {
                        nearest.insert(*before, distance);
                        waiting.push((*before, distance));
                    }
                }
            }
        }
        all
    }
}

/// Adds predecessors of called functions and of return points.
fn add_call_edges(
    program: &Disassembly,
    returns: &BTreeMap<BlockIndex, StreamIndex>,
    predecessors: &mut IndexVec<StreamIndex, Vec<StreamIndex>>,
) {
    for function in &program.functions {
        for call in &function.calls {
            let Some(callee) = call.callee.map(|callee| &program.functions[callee]) else {
                continue;
            };
            let caller = program.block_of(call.at);
            predecessors[StreamIndex::from(callee.blocks.start)].push(caller.into());
            let is_last = |block: &BlockIndex| program.blocks[*block].successors.is_empty();
            let last = callee.blocks.iter().filter(is_last).map(StreamIndex::from);
            if let Some(to) = returns.get(&caller) {
                predecessors[*to].extend(last);
            }
        }
    }
}

impl<'a> Stream<'a> {
    /// Reads a block with its edits. Code after a call at its end is a separate stream.
    fn read(
        program: &'a Disassembly,
        index: BlockIndex,
        edits: &Edits,
        decoder: &mut Decoder<'a>,
    ) -> Result<(Stream<'a>, Option<Stream<'a>>), PaddingError> {
        let block = &program.blocks[index];
        let call = block.instructions.last().filter(|_| block.end == BlockEnd::Call);
        let items = Vec::with_capacity(8 * block.instructions.len());
        let mut stream = Stream { items, ..Stream::default() };
        let mut after_call = None;
        for (at, inst) in program.insts_of(block.instructions) {
            let [before, instead, after] = [When::Before, When::Instead, When::After].map(|when| {
                let point = ProgramPoint::new(at, when);
                let slot = move |offset| Slot::Inserted(point, offset);
                edits.code.get(&point).map(|code| (code, slot))
            });
            if let Some((code, slot)) = before {
                stream.append(code, decoder, slot)?;
            }
            match instead {
                Some((code, slot)) => {
                    stream.removed.push((stream.items.len(), inst));
                    stream.append(code, decoder, slot)?;
                }
                None => stream.items.push(Item {
                    roles: decoder.roles(inst),
                    states: hazard::wait_states(inst),
                    inst: StreamInst::Original(inst),
                    slot: Slot::Original(at),
                    padding: Vec::new(),
                }),
            }
            let Some((code, slot)) = after else { continue };
            let target =
                if Some(at) == call { after_call.insert(Stream::default()) } else { &mut stream };
            target.append(code, decoder, slot)?;
        }
        Ok((stream, after_call))
    }

    /// Appends inserted code.
    fn append(
        &mut self,
        code: &InsertedCode,
        decoder: &mut Decoder<'_>,
        slot: impl Fn(CodeOffset) -> Slot,
    ) -> Result<(), PaddingError> {
        // Pieces before this index may be skipped by a branch.
        let mut skipped = 0;
        // The first item of each piece, and branches with their target pieces.
        let (mut firsts, mut branches) = (Vec::with_capacity(code.pieces.len() + 1), Vec::new());
        for (number, piece) in code.pieces.iter().enumerate() {
            firsts.push(self.items.len());
            let insts = match piece {
                Piece::Bytes(bytes) => decoder.decode(bytes)?,
                Piece::Branch { word, to } => {
                    if *to > number {
                        skipped = skipped.max(*to);
                    }
                    branches.push((self.items.len(), *to));
                    decoder.decode(&word.to_le_bytes())?
                }
                Piece::Address { destination, .. } => {
                    let (_, insts) = decoder.address_chain(*destination)?;
                    insts
                }
            };
            let mut offset = 0;
            for Inserted { inst, roles } in insts.iter() {
                let states = if number < skipped { 0 } else { hazard::wait_states(inst) };
                // Address chains cannot be split: padding precedes them.
                let before = if matches!(piece, Piece::Bytes(_)) { offset } else { 0 };
                self.items.push(Item {
                    roles: Rc::clone(roles),
                    states,
                    inst: StreamInst::Inserted(Rc::clone(inst)),
                    slot: slot(CodeOffset { piece: number, offset: before }),
                    padding: Vec::new(),
                });
                offset += usize::from(inst.size);
            }
        }
        firsts.push(self.items.len());
        let resolve = |(from, piece): (usize, usize)| Some(Jump { from, to: *firsts.get(piece)? });
        self.jumps.extend(branches.into_iter().filter_map(resolve));
        Ok(())
    }
}
