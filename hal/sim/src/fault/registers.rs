//! Registers of the callers of a function, as they are when it returns.

use super::function::{EntryValue, FunctionCode, Location, StackSlot};
use crate::execute::buffer::Buffer;
use crate::execute::vector_memory::{BufferOperands, private_offsets};
use crate::instruction::vector_memory::Space;
use crate::instruction::{Op, Run};
use crate::memory::{Memory, read_bytes};
use crate::wave::{Wave, private};
use flipwave_device::AccessKind;
use flipwave_isa::{Lane, Register, RegisterRange};

/// A function that is being executed.
pub struct Activation<'a> {
    /// The function.
    pub function: FunctionCode<'a>,
    /// Index of its next instruction.
    pub index: usize,
}

/// The registers of a wave in each function of its call chain.
pub struct Registers<'a> {
    wave: &'a Wave,
    memory: &'a mut dyn Memory,
    /// The functions entered so far, innermost first.
    activations: Vec<Activation<'a>>,
}

impl<'a> Registers<'a> {
    /// The registers of a wave that executes an unknown function.
    pub fn new(wave: &'a Wave, memory: &'a mut dyn Memory) -> Registers<'a> {
        Registers { wave, memory, activations: Vec::new() }
    }

    /// Continues with the caller of the functions entered so far: `activation`.
    pub fn enter(&mut self, activation: Activation<'a>) {
        self.activations.push(activation);
    }

    /// Two scalar registers in the caller of the functions entered so far, before it calls: the values at
    /// the entry of the outermost of them.
    pub fn caller_pair(&mut self, pair: RegisterRange) -> Option<u64> {
        let level = self.activations.len();
        let mut word = |index| self.scalar(level, pair.first.offset(index)?);
        Some(u64::from(word(0)?) | u64::from(word(1)?) << 32)
    }

    /// A scalar register in the function that has called `level` functions of the chain.
    fn scalar(&mut self, level: usize, register: Register) -> Option<u32> {
        let Some(inner) = level.checked_sub(1) else {
            return self.wave.read_register(register, Lane(0));
        };
        match self.entry_value(inner, register)? {
            EntryValue::Kept => self.scalar(inner, register),
            EntryValue::Saved(Location::Scalar(copy)) => self.scalar(inner, copy),
            EntryValue::Saved(Location::Lane { register, lane }) => {
                self.lane(inner, register, lane)
            }
            EntryValue::Saved(Location::Stack(_)) => None,
        }
    }

    /// A lane of a vector register in the function that has called `level` functions of the chain.
    fn lane(&mut self, level: usize, register: Register, lane: Lane) -> Option<u32> {
        let Some(inner) = level.checked_sub(1) else {
            return self.wave.read_register(register, lane);
        };
        match self.entry_value(inner, register)? {
            EntryValue::Kept => self.lane(inner, register, lane),
            EntryValue::Saved(Location::Stack(slot)) => self.stack(level, slot, lane),
            EntryValue::Saved(Location::Scalar(_) | Location::Lane { .. }) => None,
        }
    }

    fn entry_value(&self, index: usize, register: Register) -> Option<EntryValue<'a>> {
        let Activation { function, index } = self.activations.get(index)?;
        function.entry_value(register, *index)
    }

    /// The word of a lane in a stack slot of the innermost function called by the function that has
    /// called `level` functions of the chain.
    fn stack(&mut self, level: usize, slot: StackSlot<'_>, lane: Lane) -> Option<u32> {
        let mut wave = self.wave.clone();
        wave.write_register(slot.base, Lane(0), self.scalar(level, slot.origin)?);
        let address = private_address(&wave, slot.store, lane)?;
        let mut bytes = [0; 4];
        read_bytes(self.memory, address, &mut bytes, AccessKind::Read, None).ok()?;
        Some(u32::from_le_bytes(bytes))
    }
}

/// Device address that a store to private memory accesses in a lane.
fn private_address(wave: &Wave, store: &Op, lane: Lane) -> Option<u64> {
    let Run::VectorMemory(access) = store.run else { return None };
    match access.space {
        Space::Scratch | Space::ScaledScratch { .. } => {
            let base = wave.scalar_pair(wave.machine.flat_scratch);
            let offset = private_offsets(wave, store, access.space).0[usize::from(lane.0)];
            Some(private::address(base, wave.machine.lanes, lane, offset))
        }
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, store, access.transfer, index);
            let operands = BufferOperands::of(wave, store, offset, index);
            let (record, offset) = operands.of_lane(&buffer, lane);
            Some(buffer.address(lane, record, offset))
        }
        _ => None,
    }
}
