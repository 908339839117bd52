//! Findings of one step of the comparison.

use super::bytes::{Change, Memory, WrongByte};
use super::{What, Wrong};
use crate::Buffer;
use crate::site::Place;
use flipwave_device::Address;
use flipwave_machine::WrittenByte;

/// Differences after an instruction that did not exist before it.
#[derive(Debug, Default)]
pub struct Found {
    /// The first register.
    pub register: Option<Wrong>,
    /// The diverging path.
    pub path: Option<What>,
    lds: Option<Wrong>,
    /// The first byte of any memory.
    memory: Option<Wrong>,
    /// The first byte of lasting memory that the faulty run wrote, and the number of such bytes.
    escape: Option<(Wrong, u64)>,
    /// The first byte that only the golden run wrote.
    missing: Option<Wrong>,
    output: Option<What>,
    /// `true` if any written value is wrong, whether new or not.
    pub is_wrong: bool,
}

impl Found {
    /// Adds the differences in LDS.
    pub fn add_lds(&mut self, change: &Change) {
        self.is_wrong |= change.is_wrong;
        if let Some(WrongByte { place, golden, faulty }) = change.new.first().copied() {
            self.lds = Some(Wrong::Lds { offset: place as u32, golden, faulty });
        }
    }

    /// Adds the differences in device memory, where the faulty run wrote `written`.
    pub fn add_memory(
        &mut self,
        change: &Change,
        written: &[WrittenByte],
        memory: &Memory,
        outputs: &[Buffer],
    ) {
        self.is_wrong |= change.is_wrong;
        for byte in &change.new {
            let wrong = wrong(byte);
            self.memory.get_or_insert(wrong);
            if !memory.lasts(byte.place) {
                continue;
            }
            if written.iter().any(|byte_written| byte_written.address.0 == byte.place) {
                let (_, bytes) = self.escape.get_or_insert((wrong, 0));
                *bytes += 1;
            } else {
                self.missing.get_or_insert(wrong);
            }
            if self.output.is_none() {
                self.output = output_at(byte.place, outputs);
            }
        }
    }

    /// Events to record, in order. The value that the fault itself struck is not an instruction's
    /// result.
    pub fn happened(&self, is_struck: bool, place: Place) -> Vec<What> {
        let value = self.register.or(self.lds).or(self.memory);
        let is_left = matches!(
            place,
            Place::Register(_)
                | Place::Destination(_)
                | Place::Lds(_)
                | Place::Scratch(_)
                | Place::Memory { .. }
        );
        let mut happened = Vec::new();
        match (is_struck, is_left) {
            (true, true) => happened.push(What::Fault(value)),
            (true, false) => {
                happened.push(What::Fault(None));
                happened.extend(value.map(What::Value));
            }
            (false, _) => happened.extend(value.map(What::Value)),
        }
        happened.extend(self.path);
        happened.extend(self.lds.map(What::Lds));
        let is_store = !(is_struck && is_left);
        let escape = self.escape.map(|(wrong, bytes)| What::Escape { wrong, bytes });
        happened.extend(escape.filter(|_| is_store));
        happened.extend(self.missing.map(What::Missing));
        happened.extend(self.output);
        happened
    }
}

/// Converts a wrong byte of device memory.
pub fn wrong(byte: &WrongByte) -> Wrong {
    let WrongByte { place, golden, faulty } = *byte;
    Wrong::Memory { address: Address(place), golden, faulty }
}

/// The output that contains the byte at this address.
pub fn output_at(place: u64, outputs: &[Buffer]) -> Option<What> {
    let offset = |buffer: &Buffer| {
        let offset = place.checked_sub(buffer.address.0)?;
        (offset < buffer.bytes as u64).then_some(offset)
    };
    let mut found =
        (0..).zip(outputs).filter_map(|(output, buffer)| Some((output, offset(buffer)?)));
    found.next().map(|(output, offset)| What::Output { output, offset })
}
