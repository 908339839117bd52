//! Padding where inserted code meets the program's, for what the hardware does not keep apart.
//!
//! Code from a compiler keeps the manual hazards by itself, the program's as well as a hook's. Where
//! one stands beside the other nobody has looked yet. Every instruction is held against those that
//! can run before it, on all ways; two of the program's own are passed over, since what is inserted
//! between them only moves them apart.

use crate::flow::{BlockIndex, EdgeKind, FunctionIndex, InstIndex, Program};
use crate::layout::{Code, Edits, Piece};
use flipwave_isa::hazard::{self, MOST_WAIT_STATES, Mitigation, Preceding, Roles, Rows};
use flipwave_isa::{Inst, Isa, Pc, Rules, Value};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Ways back that are followed from one instruction.
const MOST_WAYS: usize = 256;

/// Instructions that are looked back over for hazards that distance does not end.
const FAR: usize = 64;

/// Pads by the target's `rules` the code in `edits` that is inserted into `program`.
///
/// # Errors
/// [`PaddingError`] for pieces that are no instructions of the target.
pub fn pad(
    rules: Rules,
    program: &Program,
    edits: &mut Edits,
    isa: &Isa,
) -> Result<u32, PaddingError> {
    let rows = Rows::new(&rules);
    let mut decoder = Decoder {
        isa,
        rows,
        known: FxHashMap::default(),
        with_literals: FxHashMap::default(),
        roles: FxHashMap::default(),
    };
    let mut streams = Streams::read(program, edits, &mut decoder)?;
    let all = streams.streams.iter().flatten();
    decoder.rows.narrow(all.map(|item| &*item.roles));
    let padding = streams.pad(&mut decoder)?;
    let count = padding.values().map(Vec::len).sum::<usize>() as u32;
    // The last first: those before stay where they are.
    for (slot, bytes) in padding.into_iter().rev() {
        slot.insert(edits, bytes);
    }
    Ok(count)
}

/// Inserted code that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PaddingError {
    /// Bytes that do not decode.
    #[error("inserted code does not decode: {0}")]
    Decode(#[from] flipwave_isa::DecodeError),
    /// Text that does not assemble.
    #[error("padding does not assemble: {0}")]
    Assemble(#[from] flipwave_isa::AssembleError),
}

/// Where an instruction of the new code is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Entry(FunctionIndex, Point),
    Before(InstIndex, Point),
    Original(InstIndex),
    Instead(InstIndex, Point),
    After(InstIndex, Point),
}

/// An instruction of inserted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    /// The piece that it is in.
    piece: usize,
    /// Bytes of the piece before it.
    offset: usize,
}

impl Slot {
    /// Puts `padding` before what is in this slot.
    fn insert(self, edits: &mut Edits, padding: Vec<Vec<u8>>) {
        let (code, at) = match self {
            Slot::Entry(function, at) => (edits.entries.entry(function).or_default(), at),
            Slot::Before(index, at) => (edits.before.entry(index).or_default(), at),
            Slot::Original(index) => {
                let code = edits.before.entry(index).or_default();
                let end = Point { piece: code.pieces.len(), offset: 0 };
                (code, end)
            }
            Slot::Instead(index, at) => (edits.replaced.entry(index).or_default(), at),
            Slot::After(index, at) => (edits.after.entry(index).or_default(), at),
        };
        insert(code, at, padding);
    }
}

/// Puts `padding` before an instruction. What branched to it comes to the padding.
fn insert(code: &mut Code, at: Point, padding: Vec<Vec<u8>>) {
    let Point { piece: mut at, offset } = at;
    let behind = match code.pieces.get_mut(at) {
        Some(Piece::Bytes(bytes)) if offset > 0 => {
            Some(Piece::Bytes(bytes.drain(offset.min(bytes.len())..).collect()))
        }
        _ => None,
    };
    let more = padding.len() + usize::from(behind.is_some());
    for piece in &mut code.pieces {
        if let Piece::Branch { to, .. } = piece
            && *to > at
        {
            *to += more;
        }
    }
    at += usize::from(behind.is_some());
    code.pieces.splice(at..at, padding.iter().map(|bytes| Piece::bytes(bytes)).chain(behind));
}

/// All instructions of a piece.
type Insts = Rc<[Inserted]>;

/// An instruction of inserted code.
#[derive(Clone)]
struct Inserted {
    inst: Rc<Inst>,
    roles: Rc<Roles>,
}

/// Decodes inserted code; the same few instructions come again and again.
struct Decoder<'a> {
    isa: &'a Isa,
    rows: Rows,
    known: FxHashMap<Vec<u8>, Insts>,
    /// Single instructions with a literal, by the word before it: each site has numbers of its
    /// own, and no hazard depends on them.
    with_literals: FxHashMap<[u8; 4], Insts>,
    /// Of the program's own instructions, by their text.
    roles: FxHashMap<&'a str, Rc<Roles>>,
}

impl<'a> Decoder<'a> {
    fn decode(&mut self, bytes: &[u8]) -> Result<Insts, PaddingError> {
        let head = bytes.first_chunk::<4>().filter(|_| bytes.len() == 8);
        let with_literal = head.and_then(|head| self.with_literals.get(head));
        if let Some(insts) = with_literal.or_else(|| self.known.get(bytes)) {
            return Ok(Rc::clone(insts));
        }
        let mut insts = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let inst = self.isa.decode(rest, Pc(0))?;
            rest = rest.get(usize::from(inst.size)..).unwrap_or_default();
            let roles = Rc::new(self.rows.roles(&inst));
            insts.push(Inserted { inst: Rc::new(inst), roles });
        }
        let insts: Insts = insts.into();
        match (head, &*insts) {
            (Some(head), [own]) if has_literal(&own.inst) => {
                self.with_literals.insert(*head, Rc::clone(&insts));
            }
            _ => _ = self.known.insert(bytes.to_vec(), Rc::clone(&insts)),
        }
        Ok(insts)
    }

    fn assemble(&mut self, text: &str) -> Result<(Vec<u8>, Insts), PaddingError> {
        let bytes = self.isa.assemble(text)?;
        let insts = self.decode(&bytes)?;
        Ok((bytes, insts))
    }

    fn roles(&mut self, inst: &'a Inst) -> Rc<Roles> {
        let rows = &self.rows;
        Rc::clone(self.roles.entry(&inst.text).or_insert_with(|| Rc::new(rows.roles(inst))))
    }
}

fn has_literal(inst: &Inst) -> bool {
    inst.operands.iter().any(|operand| matches!(operand.value, Value::Literal(_)))
}

/// An instruction of the new code.
struct Item<'a> {
    inst: Holder<'a>,
    roles: Rc<Roles>,
    /// Wait states that it is sure to take: none where a branch of its hook may pass over it.
    states: u8,
    slot: Slot,
    /// What has been put before it.
    padding: Vec<Rc<Inst>>,
}

enum Holder<'a> {
    Original(&'a Inst),
    Inserted(Rc<Inst>),
}

impl Item<'_> {
    fn is_original(&self) -> bool {
        matches!(self.slot, Slot::Original(_))
    }
}

impl Holder<'_> {
    fn inst(&self) -> &Inst {
        match self {
            Holder::Original(inst) => inst,
            Holder::Inserted(inst) => inst,
        }
    }
}

/// The new code by blocks, entries behind them, and what runs before each.
struct Streams<'a> {
    streams: Vec<Vec<Item<'a>>>,
    predecessors: Vec<Vec<usize>>,
    /// What the last instructions of each stream, and of those before it, can set up.
    tails: Vec<Roles>,
    /// What anything at all can set up, and what inserted code can.
    all: Roles,
    inserted: Roles,
    removes: bool,
}

impl<'a> Streams<'a> {
    fn read(
        program: &'a Program,
        edits: &Edits,
        decoder: &mut Decoder<'a>,
    ) -> Result<Streams<'a>, PaddingError> {
        let mut streams = Vec::new();
        for block in &program.blocks {
            let mut stream = Vec::with_capacity(8 * block.instructions.len());
            for index in block.instructions.clone() {
                let at = InstIndex(index);
                if let Some(code) = edits.before.get(&at) {
                    append(&mut stream, code, decoder, |n| Slot::Before(at, n))?;
                }
                match edits.replaced.get(&at) {
                    Some(code) => {
                        append(&mut stream, code, decoder, |n| Slot::Instead(at, n))?;
                    }
                    None => {
                        let Some(inst) = program.instructions.get(index as usize) else { continue };
                        stream.push(Item {
                            roles: decoder.roles(inst),
                            states: hazard::wait_states(inst),
                            inst: Holder::Original(inst),
                            slot: Slot::Original(at),
                            padding: Vec::new(),
                        });
                    }
                }
                if let Some(code) = edits.after.get(&at) {
                    append(&mut stream, code, decoder, |n| Slot::After(at, n))?;
                }
            }
            streams.push(stream);
        }
        let mut predecessors = vec![Vec::new(); streams.len()];
        for (index, block) in program.blocks.iter().enumerate() {
            for edge in block.successors.iter().filter(|edge| edge.kind != EdgeKind::Return) {
                if let Some(list) = predecessors.get_mut(edge.to.0 as usize) {
                    list.push(index);
                }
            }
        }
        calls(program, &mut predecessors);
        for (function, code) in &edits.entries {
            let mut stream = Vec::new();
            append(&mut stream, code, decoder, |n| Slot::Entry(*function, n))?;
            let first = program.functions.get(function.0 as usize).map(|own| own.blocks.start);
            if let Some(list) = first.and_then(|first| predecessors.get_mut(first as usize)) {
                list.push(streams.len());
            }
            streams.push(stream);
        }
        predecessors.resize(streams.len(), Vec::new());
        let removes = !edits.replaced.is_empty();
        let (mut all, mut inserted) = (Roles::default(), Roles::default());
        for item in streams.iter().flatten() {
            all = all.with_triggers(&item.roles);
            if !item.is_original() {
                inserted = inserted.with_triggers(&item.roles);
            }
        }
        let mut streams =
            Streams { tails: Vec::new(), streams, predecessors, all, inserted, removes };
        streams.tails = (0..streams.streams.len()).map(|at| streams.tail(at)).collect();
        Ok(streams)
    }

    /// What can be set up within the reach of a hazard before the end of a stream.
    fn tail(&self, stream: usize) -> Roles {
        let mut all = Roles::default();
        let mut waiting = vec![(stream, 0)];
        let mut nearest = BTreeMap::from([(stream, 0)]);
        while let Some((stream, mut distance)) = waiting.pop() {
            for item in self.streams[stream].iter().rev() {
                all = all.with_triggers(&item.roles);
                distance += u32::from(item.states);
                if distance >= u32::from(MOST_WAIT_STATES) {
                    break;
                }
            }
            if distance < u32::from(MOST_WAIT_STATES) {
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

    fn pad(
        &mut self,
        decoder: &mut Decoder<'_>,
    ) -> Result<BTreeMap<Slot, Vec<Vec<u8>>>, PaddingError> {
        let mut padding: BTreeMap<Slot, Vec<Vec<u8>>> = BTreeMap::new();
        for stream in 0..self.streams.len() {
            for at in 0..self.streams[stream].len() {
                if !self.may_meet(&decoder.rows, stream, at) {
                    continue;
                }
                for text in self.needed(&decoder.rows, stream, at) {
                    let (code, insts) = decoder.assemble(&text)?;
                    let item = &mut self.streams[stream][at];
                    item.padding.extend(insts.iter().map(|own| Rc::clone(&own.inst)));
                    padding.entry(item.slot).or_default().push(code);
                }
            }
        }
        Ok(padding)
    }

    /// What could have set up a hazard for an instruction from far away: for the program's own,
    /// only what was inserted.
    fn far(&self, item: &Item<'_>) -> &Roles {
        if item.is_original() { &self.inserted } else { &self.all }
    }

    /// Whether anything near enough can set up a hazard for an instruction.
    fn may_meet(&self, rows: &Rows, stream: usize, at: usize) -> bool {
        let items = &self.streams[stream];
        let roles = &items[at].roles;
        if !roles.is_victim() {
            return false;
        }
        if rows.may_meet_far(roles, self.far(&items[at])) {
            return true;
        }
        let is_original = items[at].is_original();
        let mut distance = 0;
        for item in items[..at].iter().rev() {
            let was_apart = is_original && item.is_original() && !self.removes;
            if !was_apart && rows.may_meet(roles, &item.roles, distance) {
                return true;
            }
            distance += u32::from(item.states);
            if distance >= u32::from(MOST_WAIT_STATES) {
                return false;
            }
        }
        let tails = self.predecessors[stream].iter().map(|before| &self.tails[*before]);
        tails.into_iter().any(|tail| rows.may_meet(roles, tail, distance))
    }

    /// What must be put before an instruction.
    fn needed(&self, rows: &Rows, stream: usize, at: usize) -> Vec<String> {
        let families = rows.families();
        let item = &self.streams[stream][at];
        let inst = item.inst.inst();
        let is_far = rows.may_meet_far(&item.roles, self.far(item));
        let mut walk = Walk { streams: self, is_far, ways: Vec::new() };
        walk.back(stream, at, 0, Vec::new());
        let mut instructions: Vec<String> = Vec::new();
        let mut states = 0;
        let mut need = |mitigation: Mitigation, distance: u8| match mitigation {
            Mitigation::WaitStates(wanted) => states = wanted.saturating_sub(distance).max(states),
            Mitigation::Instruction(text) if !instructions.contains(&text) => {
                instructions.push(text);
            }
            Mitigation::Instruction(_) => {}
        };
        for way in &walk.ways {
            let history: Vec<Preceding<'_>> =
                way.steps.iter().map(|(preceding, _)| *preceding).collect();
            for breach in
                families.iter().flat_map(|family| hazard::breaches(family, &history, inst))
            {
                let Some((trigger, is_original)) = way.steps.get(breach.trigger) else { continue };
                if self.removes || !(*is_original && item.is_original()) {
                    need(breach.needed, trigger.distance);
                }
            }
            if way.is_cut && is_far {
                // Nothing was seen that ends it.
                let rows = families.iter().copied().flatten();
                for hazard in rows.filter(|row| row.reach().is_none()) {
                    if hazard.victim.group.contains(inst)
                        && let hazard::Remedy::Instruction(text) = hazard.remedy
                    {
                        need(Mitigation::Instruction(text(inst)), 0);
                    }
                }
            }
        }
        let nops = (states > 0).then(|| Mitigation::WaitStates(states).text());
        instructions.extend(nops.iter().flat_map(|nops| nops.lines().map(str::to_owned)));
        instructions
    }
}

/// The instructions on one way back, the nearest first, and whether each is the program's.
#[derive(Clone)]
struct Way<'s> {
    steps: Vec<(Preceding<'s>, bool)>,
    /// Whether there is more that was not looked at.
    is_cut: bool,
}

/// Goes back from an instruction on all ways.
struct Walk<'s, 'a> {
    streams: &'s Streams<'a>,
    /// Whether distance does not end what is looked for.
    is_far: bool,
    ways: Vec<Way<'s>>,
}

impl<'s> Walk<'s, '_> {
    fn is_done(&self, distance: u32, steps: usize) -> bool {
        distance >= u32::from(MOST_WAIT_STATES) && (!self.is_far || steps >= FAR)
    }

    fn back(
        &mut self,
        stream: usize,
        end: usize,
        mut distance: u32,
        mut steps: Vec<(Preceding<'s>, bool)>,
    ) {
        let streams = self.streams;
        let preceding =
            |inst, distance: u32| Preceding { inst, distance: distance.min(u8::MAX.into()) as u8 };
        for item in streams.streams[stream][..end].iter().rev() {
            steps.push((preceding(item.inst.inst(), distance), item.is_original()));
            distance += u32::from(item.states);
            for inst in item.padding.iter().rev() {
                steps.push((preceding(inst, distance), false));
                distance += u32::from(hazard::wait_states(inst));
            }
            if self.is_done(distance, steps.len()) {
                self.ways.push(Way { steps, is_cut: true });
                return;
            }
        }
        let before = &streams.predecessors[stream];
        // A loop whose instructions take no wait states would be gone round without end.
        if self.ways.len() >= MOST_WAYS || steps.len() > 4 * FAR {
            self.ways.push(Way { steps, is_cut: true });
        } else if before.is_empty() {
            self.ways.push(Way { steps, is_cut: false });
        } else {
            for before in before {
                let end = streams.streams[*before].len();
                self.back(*before, end, distance, steps.clone());
            }
        }
    }
}

/// Adds what runs before the first block of a function that is called, and behind a call.
fn calls(program: &Program, predecessors: &mut [Vec<usize>]) {
    for function in &program.functions {
        for call in &function.calls {
            let Some(caller) = program.block_of(call.at) else { continue };
            let Some(callee) = call.callee.and_then(|callee| program.function(callee)) else {
                continue;
            };
            if let Some(list) = predecessors.get_mut(callee.blocks.start as usize) {
                list.push(caller.0 as usize);
            }
            let BlockIndex(caller) = caller;
            let returns = callee.blocks.clone().filter(|block| {
                program.blocks.get(*block as usize).is_some_and(|own| own.successors.is_empty())
            });
            let returns: Vec<usize> = returns.map(|block| block as usize).collect();
            let Some(caller) = program.blocks.get(caller as usize) else { continue };
            for edge in caller.successors.iter().filter(|edge| edge.kind == EdgeKind::Return) {
                if let Some(list) = predecessors.get_mut(edge.to.0 as usize) {
                    list.extend(&returns);
                }
            }
        }
    }
}

fn append<'a>(
    stream: &mut Vec<Item<'a>>,
    code: &Code,
    decoder: &mut Decoder<'_>,
    slot: impl Fn(Point) -> Slot,
) -> Result<(), PaddingError> {
    // Up to here a branch of the code may go past what follows.
    let mut passed_over = 0;
    for (number, piece) in code.pieces.iter().enumerate() {
        let insts = match piece {
            Piece::Bytes(bytes) => decoder.decode(bytes)?,
            Piece::Branch { word, to } => {
                if *to > number {
                    passed_over = passed_over.max(*to);
                }
                decoder.decode(&word.to_le_bytes())?
            }
            Piece::Address { destination, .. } => {
                let (low, high) = (destination.0, destination.0.saturating_add(1));
                let text = format!(
                    "s_getpc_b64 s[{low}:{high}]\n\
                     s_add_u32 s{low}, s{low}, 0x7fff\n\
                     s_addc_u32 s{high}, s{high}, 0x7fff"
                );
                let (_, insts) = decoder.assemble(&text)?;
                insts
            }
        };
        let mut offset = 0;
        for Inserted { inst, roles } in insts.iter() {
            let states = if number < passed_over { 0 } else { hazard::wait_states(inst) };
            // An address stays in one piece: what must be padded stands before it.
            let before = if matches!(piece, Piece::Bytes(_)) { offset } else { 0 };
            stream.push(Item {
                roles: Rc::clone(roles),
                states,
                inst: Holder::Inserted(Rc::clone(inst)),
                slot: slot(Point { piece: number, offset: before }),
                padding: Vec::new(),
            });
            offset += usize::from(inst.size);
        }
    }
    Ok(())
}
