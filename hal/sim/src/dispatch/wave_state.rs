//! Access of observers to the state of a wave.

use crate::execute::accessed;
use crate::execute::matrix_sum::{Steps, SummedElement, Touch};
use crate::execute::operations::find_whole;
use crate::execute::step::resolved;
use crate::instruction::Op;
use crate::memory::{Memory, read_bytes};
use crate::translate::program::Program;
use crate::wave::{Wave, private};
use flipwave_arch::{MatrixElement, ProductShape};
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_isa::{Lane, LaneMask, Pc, Register};
use flipwave_machine::WrittenByte;

/// A wave between two instructions: its registers, its PC, and the memory it reaches.
pub struct WaveState<'a> {
    wave: &'a mut Wave,
    memory: &'a mut dyn Memory,
    lds: &'a mut [u8],
    /// Code that contains the instruction.
    program: &'a Program,
    /// Destination of a replacement, before an instruction.
    replacement: Option<&'a mut Option<Replacement>>,
}

/// Instruction to execute in place of another one, or the fault that it causes.
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

    /// Reads a register; `lane` matters for per-lane registers only. Returns `None` for registers
    /// outside the wave's allocation, and for derived flags.
    pub fn read(&self, register: Register, lane: Lane) -> Option<u32> {
        self.wave.read_register(register, lane)
    }

    /// All lanes of a per-lane register. `None` where [`WaveState::read`] returns it, and for
    /// registers that lanes share.
    pub fn lanes(&self, register: Register) -> Option<&[u32; 64]> {
        self.wave.read_lanes(register)
    }

    /// Writes a register permanently. Returns `false`, and changes nothing, where
    /// [`WaveState::read`] returns `None`.
    pub fn write(&mut self, register: Register, lane: Lane, value: u32) -> bool {
        self.wave.write_register(register, lane, value)
    }

    /// Number of instructions that the wave has executed, including the current one if that was
    /// executed.
    pub fn executed(&self) -> u64 {
        self.wave.executed
    }

    /// Active lanes; in waves of 32 lanes the upper half is empty.
    pub fn exec(&self) -> LaneMask {
        self.wave.exec()
    }

    /// All lanes of the wave.
    pub fn all_lanes(&self) -> LaneMask {
        self.wave.machine.all_lanes()
    }

    /// Number of lanes of the wave: 32 or 64.
    pub fn wave_lanes(&self) -> u8 {
        self.wave.machine.lanes
    }

    /// Address of the next instruction: after a branch, its target. It is an ELF virtual address of
    /// the code object that the observed instruction belongs to, even if it lies outside its code:
    /// setting it again changes nothing.
    pub fn pc(&self) -> Pc {
        self.program.virtual_address(self.wave.pc)
    }

    /// Continues the wave at another address, in the terms of [`WaveState::pc`]. The two lowest
    /// bits of the PC are always zero (ISA manual, "Program counter"); all others may have any
    /// value, and the wave's next instruction faults if there is no code. Before an instruction,
    /// that instruction is not executed.
    pub fn set_pc(&mut self, pc: Pc) {
        self.wave.pc = self.program.device_address(pc) & !3;
    }

    /// Reads a dword of code: number 0 is at the PC.
    pub fn code(&self, dword: u8) -> Option<u32> {
        self.program.dword(self.wave.pc.wrapping_add(4 * u64::from(dword)))
    }

    /// Makes the wave execute other bytes than those in memory, once: `bytes` replace the first
    /// bytes of the instruction, and further bytes of the new instruction are read from memory
    /// after them. The PC advances by the new instruction's size. Bytes that are no instruction
    /// cause the fault that they would cause in memory. Has no effect after an instruction.
    pub fn replace_instruction(&mut self, bytes: &[u8]) {
        if let Some(replacement) = &mut self.replacement {
            **replacement = Some(self.program.decode_altered(self.wave.pc, bytes).map(Box::new));
        }
    }

    /// Addresses that the instruction at the PC accesses: for each of its elements the active
    /// lanes, or lane 0 for scalar memory. For LDS and scratch they are offsets. Buffer accesses
    /// are included whether or not they are in range.
    pub fn accessed(&self) -> Vec<Vec<(Lane, u64)>> {
        let op = self.program.fetch(self.wave.pc).ok().and_then(|op| resolved(self.wave, op));
        op.map_or_else(Vec::new, |op| accessed(self.wave, &op))
    }

    /// Shape of the matrix product that the instruction at the PC computes, if it is one.
    pub fn matrix_shape(&self) -> Option<ProductShape> {
        let op = self.program.decode_altered(self.wave.pc, &[]).ok()?;
        Some(find_whole(op.inst.operation.name(), self.wave.machine)?.matrix?.shape)
    }

    /// Computes one result element of the instruction at the PC, a matrix product, from the current
    /// registers. `touch` receives each partial sum, with its step and its bits, and returns the
    /// bits with which the summation continues. Nothing is written. Returns `None` if the
    /// instruction has no such element.
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

    /// Writes such an element to its destination. Returns `true` if the destination had another
    /// value.
    pub fn write_matrix_element(&mut self, element: &SummedElement) -> bool {
        element.write(self.wave)
    }

    /// The workgroup's LDS.
    pub fn lds(&self) -> &[u8] {
        self.lds
    }

    /// Size of the workgroup's LDS in bytes.
    pub fn lds_bytes(&self) -> usize {
        self.lds.len()
    }

    /// Reads a word of the workgroup's LDS at a multiple of four bytes; `None` if it is out of
    /// range or misaligned.
    pub fn read_lds(&self, offset: u32) -> Option<u32> {
        let (words, _) = self.lds.as_chunks();
        is_word(offset).then(|| words.get(offset as usize / 4).copied().map(u32::from_le_bytes))?
    }

    /// Writes a word of the workgroup's LDS. Returns `false`, and changes nothing, where
    /// [`WaveState::read_lds`] returns `None`.
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

    /// Reads a word of device memory as a load would; `None` if that would fault.
    pub fn read_memory(&mut self, address: Address) -> Option<u32> {
        let mut word = [0; 4];
        read_bytes(self.memory, address.0, &mut word, AccessKind::Read, None).ok()?;
        Some(u32::from_le_bytes(word))
    }

    /// Writes a word of device memory as a store would. Returns `false`, and changes nothing, if
    /// that would fault: code is not writable.
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

    /// Takes the bytes of device memory that the program and its observer have written since the
    /// last call, in order; empty if writes are not recorded (see
    /// [`EmbeddedGpu::advance_recording_writes`](crate::EmbeddedGpu::advance_recording_writes)).
    pub fn take_written(&mut self) -> Vec<WrittenByte> {
        self.memory.take_written()
    }

    /// Size of a lane's private memory (scratch) in bytes.
    pub fn private_bytes(&self) -> u32 {
        self.wave.private.bytes
    }

    /// Device address of a word of a lane's private memory, whatever the program has written to the
    /// registers that address it. `None` for lanes and offsets that the wave does not have, and for
    /// misaligned offsets.
    pub fn private_address(&self, lane: Lane, offset: u32) -> Option<Address> {
        let lanes = self.wave_lanes();
        let exists = lane.0 < lanes && offset < self.private_bytes() && is_word(offset);
        exists.then(|| Address(private::address(self.wave.private.base, lanes, lane, offset)))
    }
}

/// Returns `true` if the offset is word-aligned.
fn is_word(offset: u32) -> bool {
    offset.is_multiple_of(4)
}
