//! Executes old and new code and records events. Conditional branches follow random numbers, which are
//! equal for both. Only values that affect control flow are computed.

use super::sample::{Sample, sgpr};
use crate::flow::{FunctionIndex, InstIndex};
use crate::layout::{CodeLayout, Edits, InsertPurpose, InsertedCode, Piece, Placement};
use crate::point::{ProgramPoint, When};
use flipwave_isa::{Inst, Pc, Role, Sgpr, Value};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// An executed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An original instruction.
    Inst(u32),
    /// Inserted code.
    Marker(u16),
    /// The upper addition of an address chain; the address in new code.
    Address(u64),
    /// The wave ends.
    End,
    /// Control reached an address without code.
    Lost(u64),
}

/// Register that inserted code writes its marker to.
const MARKER: u8 = 90;

/// Code that writes a marker and skips `filling` bytes.
pub fn marking(sample: &Sample, marker: u16, filling: usize) -> InsertedCode {
    let word = |text: &str| sample.isa.assemble(text).expect(text);
    let branch = u32::from_le_bytes(word("s_branch 0").try_into().expect("a word"));
    let mut pieces = vec![Piece::bytes(&word(&format!("s_movk_i32 s{MARKER}, {}", marker as i16)))];
    if filling > 0 {
        pieces.push(Piece::Branch { word: branch, to: 3 });
        pieces.push(Piece::bytes(&word("s_nop 0").repeat(filling / 4)));
    }
    InsertedCode { pieces }
}

/// The marker of code with a purpose.
pub fn marker(purpose: InsertPurpose) -> u16 {
    let (kind, index) = match purpose {
        InsertPurpose::Point(ProgramPoint { at: InstIndex(index), when }) => match when {
            When::Before => (0, index),
            When::After => (1, index),
            When::Instead => (2, index),
        },
        InsertPurpose::Entry(FunctionIndex(index)) => (3, index),
        InsertPurpose::Routine(index) => (4, index as u32),
        InsertPurpose::Island => (5, 0),
    };
    assert!(index < 1 << 13, "index {index} does not fit into a marker");
    kind << 13 | index as u16
}

/// Control flow after an instruction.
enum Successor {
    Next,
    To(u64),
    Returns(u64),
    Calls(u64),
    End,
}

struct Wave {
    sgprs: [u32; 128],
    scc: u64,
    dice: ChaCha8Rng,
}

impl Wave {
    fn new(seed: u64) -> Wave {
        Wave { sgprs: [0; 128], scc: 0, dice: ChaCha8Rng::seed_from_u64(seed) }
    }

    fn pair(&self, number: u8) -> u64 {
        let [low, high] = [number, number + 1].map(|at| u64::from(self.sgprs[usize::from(at)]));
        high << 32 | low
    }

    fn set_pair(&mut self, number: u8, value: u64) {
        self.sgprs[usize::from(number)] = value as u32;
        self.sgprs[usize::from(number) + 1] = (value >> 32) as u32;
    }

    fn execute(&mut self, inst: &Inst) -> Successor {
        let next = inst.pc.0 + u64::from(inst.size);
        let target = inst.branch_target.map(|pc| pc.0);
        let destination = sgpr(inst, Role::Destination);
        match inst.operation.name() {
            "s_branch" => Successor::To(target.expect("a target")),
            name if name.starts_with("s_cbranch") => match self.dice.next_u32() % 2 {
                0 => Successor::Next,
                _ => Successor::To(target.expect("a target")),
            },
            "s_call_b64" => {
                self.set_pair(destination.expect("a pair"), next);
                Successor::Calls(target.expect("a target"))
            }
            "s_swappc_b64" => {
                let to = self.pair(sgpr(inst, Role::Source).expect("a pair"));
                self.set_pair(destination.expect("a pair"), next);
                Successor::Calls(to)
            }
            "s_setpc_b64" => {
                Successor::Returns(self.pair(sgpr(inst, Role::Source).expect("a pair")))
            }
            "s_getpc_b64" => {
                self.set_pair(destination.expect("a pair"), next);
                Successor::Next
            }
            name @ ("s_add_u32" | "s_addc_u32") => {
                let value = |operand: &flipwave_isa::Operand| match operand.value {
                    Value::Literal(value) => value,
                    Value::Integer(value) => value as u32,
                    _ => self.sgprs[usize::from(sgpr(inst, Role::Source).expect("a register"))],
                };
                let carry = if name == "s_addc_u32" { self.scc } else { 0 };
                let sum: u64 = carry + inst.sources().map(|o| u64::from(value(o))).sum::<u64>();
                self.sgprs[usize::from(destination.expect("a register"))] = sum as u32;
                self.scc = sum >> 32;
                Successor::Next
            }
            "s_endpgm" => Successor::End,
            _ => Successor::Next,
        }
    }
}

/// The marker that an instruction writes.
fn marked(inst: &Inst) -> Option<u16> {
    let is_marker =
        inst.operation.name() == "s_movk_i32" && sgpr(inst, Role::Destination) == Some(MARKER);
    inst.immediate.filter(|_| is_marker).map(|value| value as u16)
}

/// The expected events of the edited program from an entry: those of the old code, with the edits.
pub fn expected(
    sample: &Sample,
    edits: &Edits,
    layout: &CodeLayout,
    start: Pc,
    seed: u64,
    length: usize,
) -> Vec<Event> {
    let program = &sample.program;
    let at = |pc: u64| program.at(Pc(pc));
    let function_of = |index: InstIndex| program.function_of(index);
    let highs: BTreeMap<InstIndex, u8> = program
        .addresses
        .iter()
        .map(|chain| match chain.register {
            flipwave_isa::Register::Sgpr(Sgpr(number)) => (chain.high, number),
            register => panic!("{register}"),
        })
        .collect();
    let mut wave = Wave::new(seed);
    let mut events = Vec::new();
    let mut from: Option<InstIndex> = None;
    let mut pc = start.0;
    while events.len() < length {
        let Some(index) = at(pc) else {
            events.push(Event::Lost(pc));
            break;
        };
        let inst = &program.instructions[index];
        let function = function_of(index);
        let first = program.functions[function].instructions.start;
        let runs_once = match from {
            None => index == first,
            Some(from) => {
                let before = &program.instructions[from];
                index == first
                    && (function_of(from) != function
                        || ["s_call_b64", "s_swappc_b64"].contains(&before.operation.name()))
            }
        };
        if runs_once && edits.entries.contains_key(&function) {
            events.push(Event::Marker(marker(InsertPurpose::Entry(function))));
        }
        if edits.code.contains_key(&ProgramPoint::before(index)) {
            events.push(Event::Marker(marker(InsertPurpose::Point(ProgramPoint::before(index)))));
        }
        let successor = if edits.code.contains_key(&ProgramPoint::instead(index)) {
            events.push(Event::Marker(marker(InsertPurpose::Point(ProgramPoint::instead(index)))));
            Successor::Next
        } else {
            if !layout.dropped.contains(&index) {
                events.push(Event::Inst(index.0));
            }
            wave.execute(inst)
        };
        if let Some(pair) =
            highs.get(&index).filter(|_| !edits.code.contains_key(&ProgramPoint::instead(index)))
        {
            let old = wave.pair(*pair);
            let stays = at(old).is_some_and(|index| {
                let function = function_of(index);
                layout.placements[function] == Placement::Trampoline
                    && program.functions[function].instructions.start != index
            });
            let new = layout.new_address(Pc(old)).filter(|_| !stays);
            events.push(Event::Address(new.map_or(old, |new| new.0)));
        }
        let mut after = |index| {
            if edits.code.contains_key(&ProgramPoint::after(index)) {
                events
                    .push(Event::Marker(marker(InsertPurpose::Point(ProgramPoint::after(index)))));
            }
        };
        from = Some(index);
        pc = match successor {
            Successor::Next => {
                after(index);
                pc + u64::from(inst.size)
            }
            Successor::To(to) => {
                after(index);
                to
            }
            Successor::Calls(to) => to,
            Successor::Returns(to) => {
                let call = at(to).and_then(|next| next.0.checked_sub(1)).map(InstIndex);
                from = call.or(from);
                call.into_iter().for_each(after);
                to
            }
            Successor::End => {
                events.push(Event::End);
                break;
            }
        };
    }
    events.truncate(length);
    events
}

/// The events of the new code from an address.
pub fn executed(
    sample: &Sample,
    layout: &CodeLayout,
    start: Pc,
    seed: u64,
    length: usize,
) -> Vec<Event> {
    let program = &sample.program;
    let originals: HashMap<u64, u32> = layout
        .places
        .iter()
        .enumerate()
        .filter_map(|(index, place)| Some((place.inst?.0, index as u32)))
        .collect();
    let stays = layout.keeps_old_text();
    let mut wave = Wave::new(seed);
    let mut events = Vec::new();
    let mut decoded: HashMap<u64, Inst> = HashMap::new();
    let mut pc = start.0;
    let mut steps = 0;
    while events.len() < length {
        steps += 1;
        assert!(steps < 100 * (length + 1000), "endless loop without an event");
        let inst = match decoded.entry(pc) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let Some(bytes) = bytes(sample, layout, pc) else {
                    events.push(Event::Lost(pc));
                    break;
                };
                let inst = sample.isa.decode(&bytes, Pc(pc)).expect("an instruction");
                unknown.insert(inst)
            }
        };
        let original = originals.get(&pc).copied();
        match (original, marked(inst)) {
            (Some(index), _) => events.push(Event::Inst(index)),
            (None, Some(marker)) => events.push(Event::Marker(marker)),
            (None, None) if in_new(layout, pc) => {
                let above = layout.inserted.partition_point(|(range, _)| range.start <= pc);
                assert!(
                    above > 0 && layout.inserted[above - 1].0.contains(&pc),
                    "{pc:#x} `{inst}` is neither original nor inserted"
                );
            }
            (None, None) => assert!(stays && is_patched(layout, pc), "{pc:#x} is old text"),
        }
        let successor = wave.execute(inst);
        if let Some(chain) = original
            .and_then(|index| program.addresses.iter().find(|chain| chain.high == InstIndex(index)))
            && let flipwave_isa::Register::Sgpr(Sgpr(number)) = chain.register
        {
            events.push(Event::Address(wave.pair(number)));
        }
        pc = match successor {
            Successor::Next => pc + u64::from(inst.size),
            Successor::To(to) | Successor::Returns(to) | Successor::Calls(to) => to,
            Successor::End => {
                events.push(Event::End);
                break;
            }
        };
    }
    events.truncate(length);
    events
}

fn in_new(layout: &CodeLayout, pc: u64) -> bool {
    pc.checked_sub(layout.address).is_some_and(|at| at < layout.bytes.len() as u64)
}

fn is_patched(layout: &CodeLayout, pc: u64) -> bool {
    layout.patches.iter().any(|patch| patch.address == pc)
}

/// Up to 20 bytes of the new text, or of the patched old text if it is kept.
fn bytes(sample: &Sample, layout: &CodeLayout, pc: u64) -> Option<Vec<u8>> {
    if in_new(layout, pc) {
        let rest = &layout.bytes[(pc - layout.address) as usize..];
        return Some(rest[..rest.len().min(20)].to_vec());
    }
    if !layout.placements.contains(&Placement::Trampoline) {
        return None;
    }
    let mut bytes =
        (1..=5).rev().find_map(|words| sample.object.bytes_at(Pc(pc), 4 * words))?.to_vec();
    for patch in &layout.patches {
        for (index, byte) in patch.bytes.iter().enumerate() {
            let at = (patch.address + index as u64).checked_sub(pc);
            if let Some(patched) = at.and_then(|at| bytes.get_mut(at as usize)) {
                *patched = *byte;
            }
        }
    }
    Some(bytes)
}
