//! What an observer sees of a wave and may change.

use crate::execute::accessed;
use crate::execute::matrix_sum::{MatrixElement, ProductShape, Steps, SummedElement, Touch};
use crate::execute::operations::find_whole;
use crate::execute::step::resolved;
use crate::instruction::Op;
use crate::memory::{Memory, WrittenByte, read_bytes};
use crate::translate::program::Program;
use crate::wave::{Wave, private};
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_isa::{Lane, LaneMask, Pc, Register};

/// A wave between two instructions: its registers, its PC, and the memory it reaches.
pub struct WaveState<'a> {
    wave: &'a mut Wave,
    memory: &'a mut dyn Memory,
    lds: &'a mut [u8],
    /// The code that the instruction belongs to.
    program: &'a Program,
    /// Where a replacement goes, before an instruction.
    replacement: Option<&'a mut Option<Replacement>>,
}

/// What is executed in the place of an instruction, or the fault it gives.
pub(crate) type Replacement = Result<Box<Op>, FaultCause>;

impl<'a> WaveState<'a> {
    /// The state after an instruction.
    #[inline(always)]
    pub(crate) fn new(
        wave: &'a mut Wave,
        memory: &'a mut dyn Memory,
        lds: &'a mut [u8],
        program: &'a Program,
    ) -> WaveState<'a> {
        WaveState { wave, memory, lds, program, replacement: None }
    }

    /// The state before an instruction that can be replaced.
    #[inline(always)]
    pub(crate) fn replaceable(self, replacement: &'a mut Option<Replacement>) -> WaveState<'a> {
        WaveState { replacement: Some(replacement), ..self }
    }

    /// The wave.
    pub(crate) fn wave(&self) -> &Wave {
        self.wave
    }

    /// A register's value; `lane` matters for per-lane registers only. Registers outside the
    /// wave's allocation, and flags that are derived, give `None`.
    pub fn read(&self, register: Register, lane: Lane) -> Option<u32> {
        self.wave.read_register(register, lane)
    }

    /// All lanes of a per-lane register. `None` where [`WaveState::read`] gives it, and for
    /// registers that lanes share.
    pub fn lanes(&self, register: Register) -> Option<&[u32; 64]> {
        self.wave.read_lanes(register)
    }

    /// Changes a register for good. Gives `false`, and changes nothing, where
    /// [`WaveState::read`] gives `None`.
    pub fn write(&mut self, register: Register, lane: Lane, value: u32) -> bool {
        self.wave.write_register(register, lane, value)
    }

    /// Instructions that the wave has executed: after an instruction it is one of them.
    pub fn executed(&self) -> u64 {
        self.wave.executed
    }

    /// The lanes that are active; in waves of 32 lanes the upper half is empty.
    pub fn exec(&self) -> LaneMask {
        self.wave.exec()
    }

    /// All lanes of the wave.
    pub fn all_lanes(&self) -> LaneMask {
        self.wave.machine.all_lanes()
    }

    /// Lanes of the wave: 32 or 64.
    pub fn wave_lanes(&self) -> u8 {
        self.wave.machine.lanes
    }

    /// The next instruction: after a branch, where it leads. It is an ELF virtual address of the
    /// code object that the observed instruction belongs to, even where it lies outside its code:
    /// setting it again changes nothing.
    pub fn pc(&self) -> Pc {
        self.program.virtual_address(self.wave.pc)
    }

    /// Sends the wave to another place, in the terms of [`WaveState::pc`]. The PC has no two lowest
    /// bits (ISA manual, "Program counter"); all others may be anything, and where there is no code
    /// the wave's next instruction is a fault. Before an instruction, that one is not executed.
    pub fn set_pc(&mut self, pc: Pc) {
        self.wave.pc = self.program.device_address(pc) & !3;
    }

    /// A dword of the code at the PC: number 0 begins there.
    pub fn code(&self, dword: u8) -> Option<u32> {
        self.program.dword(self.wave.pc.wrapping_add(4 * u64::from(dword)))
    }

    /// Makes the wave execute other bytes than those in memory, this once: `bytes` take the place
    /// of as many of the instruction's first ones, and what the new instruction has more is read
    /// from what follows them in memory. The PC goes on by the new instruction's size. Bytes that
    /// are no instruction give the fault that they would give in memory. After an instruction it
    /// has no effect.
    pub fn replace_instruction(&mut self, bytes: &[u8]) {
        if let Some(replacement) = &mut self.replacement {
            **replacement = Some(self.program.decode_altered(self.wave.pc, bytes).map(Box::new));
        }
    }

    /// Addresses that the instruction at the PC accesses: for each of its elements the active lanes, or
    /// lane 0 where the wave accesses scalar memory. Of LDS and scratch they are offsets. Accesses of
    /// buffers are among them whether they are in range or not.
    pub fn accessed(&self) -> Vec<Vec<(Lane, u64)>> {
        let op = self.program.fetch(self.wave.pc).ok().and_then(|op| resolved(self.wave, op));
        op.map_or_else(Vec::new, |op| accessed(self.wave, &op))
    }

    /// What the instruction at the PC computes, if it is a product of matrices.
    pub fn matrix_shape(&self) -> Option<ProductShape> {
        let op = self.program.decode_altered(self.wave.pc, &[]).ok()?;
        Some(find_whole(op.inst.operation.name(), self.wave.machine)?.matrix?.shape)
    }

    /// Computes one element of what the instruction at the PC, a product of matrices, makes of the
    /// registers as they are now. `touch` sees each part of its sum, with its step and its bits, and
    /// gives the bits that the sum goes on with. Nothing is written. `None` where the instruction has
    /// no such element.
    pub fn sum_matrix_element(
        &self,
        element: MatrixElement,
        touch: &mut Touch<'_>,
    ) -> Option<SummedElement> {
        let named = self.program.decode_altered(self.wave.pc, &[]).ok()?;
        let op = resolved(self.wave, &named)?;
        let product = find_whole(op.inst.operation.name(), self.wave.machine)?.matrix?;
        if !product.shape.has(element) {
            return None;
        }
        (product.sum)(self.wave, &op, element, &mut Steps::new(touch))
    }

    /// Writes such an element where its instruction writes it; gives whether anything else was there.
    pub fn write_matrix_element(&mut self, element: &SummedElement) -> bool {
        element.write(self.wave)
    }

    /// The workgroup's LDS.
    pub fn lds(&self) -> &[u8] {
        self.lds
    }

    /// Bytes of LDS that the workgroup has.
    pub fn lds_bytes(&self) -> usize {
        self.lds.len()
    }

    /// A word of the workgroup's LDS, at a multiple of four bytes; `None` elsewhere.
    pub fn read_lds(&self, offset: u32) -> Option<u32> {
        let (words, _) = self.lds.as_chunks();
        is_word(offset).then(|| words.get(offset as usize / 4).copied().map(u32::from_le_bytes))?
    }

    /// Changes a word of the workgroup's LDS. Gives `false`, and changes nothing, where
    /// [`WaveState::read_lds`] gives `None`.
    pub fn write_lds(&mut self, offset: u32, word: u32) -> bool {
        let (words, _) = self.lds.as_chunks_mut();
        match words.get_mut(offset as usize / 4).filter(|_| is_word(offset)) {
            Some(place) => {
                *place = word.to_le_bytes();
                true
            }
            None => false,
        }
    }

    /// A word of device memory, as a load would give it; `None` where that would be a fault.
    pub fn read_memory(&mut self, address: Address) -> Option<u32> {
        let mut word = [0; 4];
        read_bytes(self.memory, address.0, &mut word, AccessKind::Read, None).ok()?;
        Some(u32::from_le_bytes(word))
    }

    /// Changes a word of device memory, as a store would. Gives `false`, and changes nothing, where
    /// that would be a fault: code is not written.
    pub fn write_memory(&mut self, address: Address, word: u32) -> bool {
        let word = word.to_le_bytes();
        let region = self.memory.writable(address.0, word.len());
        match region.and_then(|region| region.get(address.0, word.len())) {
            Some(place) => {
                place.copy_from_slice(&word);
                true
            }
            None => false,
        }
    }

    /// The bytes of device memory that the program and its observer have written since this was
    /// last asked, in the order in which they were; nothing where it is not noted (see
    /// [`EmbeddedGpu::advance_recording_writes`](crate::EmbeddedGpu::advance_recording_writes)).
    pub fn take_written(&mut self) -> Vec<WrittenByte> {
        self.memory.take_written()
    }

    /// Bytes of private memory (scratch) that each lane has.
    pub fn private_bytes(&self) -> u32 {
        self.wave.private.bytes
    }

    /// Where a word of a lane's private memory lies in device memory, whatever the program has made
    /// of the registers that lead there. `None` for lanes and offsets that the wave does not have,
    /// and for offsets that are no multiples of four bytes.
    pub fn private_address(&self, lane: Lane, offset: u32) -> Option<Address> {
        let lanes = self.wave_lanes();
        let exists = lane.0 < lanes && offset < self.private_bytes() && is_word(offset);
        exists.then(|| Address(private::address(self.wave.private.base, lanes, lane, offset)))
    }
}

/// Whether a word begins there.
fn is_word(offset: u32) -> bool {
    offset.is_multiple_of(4)
}
