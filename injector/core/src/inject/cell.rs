//! Access to the words that faults strike, in the state of a wave.

use crate::site::Place;
use crate::workload::program::Buffer;
use flipwave_arch::{Lane, Pc};
use flipwave_device::Address;
use flipwave_machine::WaveState;

/// Storage that faults can strike: the registers and memory of waves, and the workload's buffers.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    pub buffers: &'a [Buffer],
}

impl Cells<'_> {
    /// Reads one or two words starting at a place, the low word first. Returns `None` if the wave has
    /// no such place.
    pub fn read(
        self,
        state: &mut dyn WaveState,
        place: Place,
        lane: Lane,
        words: u8,
    ) -> Option<u64> {
        let low = self.word(state, place, lane)?;
        if words < 2 {
            return Some(low.into());
        }
        let high = self.word(state, second(place)?, lane)?;
        Some(u64::from(low) | u64::from(high) << 32)
    }

    /// Writes one or two words. Returns `false` if [`Cells::read`] returns `None` or the place is
    /// read-only.
    pub fn write(
        self,
        state: &mut dyn WaveState,
        place: Place,
        lane: Lane,
        words: u8,
        value: u64,
    ) -> bool {
        let is_written = self.write_word(state, place, lane, value as u32);
        let high = (words > 1).then(|| second(place)).flatten();
        is_written && high.is_none_or(|at| self.write_word(state, at, lane, (value >> 32) as u32))
    }

    fn word(self, state: &mut dyn WaveState, place: Place, lane: Lane) -> Option<u32> {
        match place {
            Place::Register(register) | Place::Source(register) => state.read(register, lane),
            Place::Lds(offset) => state.read_lds(offset),
            Place::Scratch(offset) => {
                let address = state.private_address(lane, offset)?;
                state.read_memory(address)
            }
            Place::Memory { buffer, offset } => state.read_memory(self.address(buffer, offset)?),
            Place::ProgramCounter(word) => Some((state.pc().0 >> (32 * word)) as u32),
            Place::Encoding(word) => state.code(word),
            Place::Branch | Place::Destination(_) | Place::Sum(_) => None,
        }
    }

    fn write_word(self, state: &mut dyn WaveState, place: Place, lane: Lane, value: u32) -> bool {
        match place {
            Place::Register(register) | Place::Source(register) => {
                state.write(register, lane, value)
            }
            Place::Lds(offset) => state.write_lds(offset, value),
            Place::Scratch(offset) => state
                .private_address(lane, offset)
                .is_some_and(|address| state.write_memory(address, value)),
            Place::Memory { buffer, offset } => self
                .address(buffer, offset)
                .is_some_and(|address| state.write_memory(address, value)),
            Place::ProgramCounter(word) => {
                let kept_bits = state.pc().0 & !(u64::from(u32::MAX) << (32 * word));
                state.set_pc(Pc(kept_bits | u64::from(value) << (32 * word)));
                true
            }
            Place::Encoding(_) | Place::Branch | Place::Destination(_) | Place::Sum(_) => false,
        }
    }

    fn address(self, buffer: u32, offset: u64) -> Option<Address> {
        let allocation = self.buffers.get(buffer as usize)?;
        (offset < allocation.bytes as u64).then(|| Address(allocation.address.0 + offset))
    }
}

/// The word following a place.
fn second(place: Place) -> Option<Place> {
    Some(match place {
        Place::Register(register) => Place::Register(register.offset(1)?),
        Place::Source(register) => Place::Source(register.offset(1)?),
        _ => return None,
    })
}
