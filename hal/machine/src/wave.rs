//! State of a wave between two instructions.

use flipwave_arch::{
    Instruction, Lane, LaneMask, MatrixElement, Pc, ProductShape, RegisterId, SumPart,
};
use flipwave_device::Address;
use std::any::Any;

/// A wave between two instructions: its registers, its PC, and the memory it reaches.
pub trait WaveState {
    /// Reads a register; `lane` matters for per-lane registers only. Returns `None` for registers
    /// outside the wave's allocation, and for derived flags.
    fn read(&self, register: RegisterId, lane: Lane) -> Option<u32>;

    /// All lanes of a per-lane register. `None` where [`WaveState::read`] returns it, and for
    /// registers that lanes share.
    fn lanes(&self, register: RegisterId) -> Option<&[u32]>;

    /// Writes a register permanently. Returns `false`, and changes nothing, where
    /// [`WaveState::read`] returns `None`.
    fn write(&mut self, register: RegisterId, lane: Lane, value: u32) -> bool;

    /// All registers that instructions of the wave can change.
    fn changeable(&self) -> Vec<RegisterId>;

    /// Registers that an instruction writes, or may write if it accesses them by an index.
    fn written_by(&self, inst: &dyn Instruction) -> Vec<RegisterId>;

    /// Number of instructions that the wave has executed, including the current one if that was
    /// executed.
    fn executed(&self) -> u64;

    /// Active lanes; in waves of 32 lanes the upper half is empty.
    fn active(&self) -> LaneMask;

    /// All lanes of the wave.
    fn all_lanes(&self) -> LaneMask;

    /// Address of the next instruction: after a branch, its target. It is an ELF virtual address of
    /// the code object that the observed instruction belongs to, even if it lies outside its code:
    /// setting it again changes nothing.
    fn pc(&self) -> Pc;

    /// Continues the wave at another address, in the terms of [`WaveState::pc`]. Before an instruction,
    /// that instruction is not executed.
    fn set_pc(&mut self, pc: Pc);

    /// Bits of a program counter that exist: all others are always zero.
    fn pc_bits(&self) -> u64;

    /// Reads a dword of code: number 0 is at the PC. `None` if code has no encoding.
    fn code(&self, dword: u8) -> Option<u32>;

    /// Makes the wave execute other bytes than those in memory, once: `bytes` replace the first
    /// bytes of the instruction, and further bytes of the new instruction are read from memory
    /// after them. The PC advances by the new instruction's size. Bytes that are no instruction
    /// cause the fault that they would cause in memory. Has no effect after an instruction.
    fn replace_instruction(&mut self, bytes: &[u8]);

    /// Shape of the matrix product that the instruction at the PC computes, if it is one.
    fn matrix_shape(&self) -> Option<ProductShape> {
        None
    }

    /// Computes one result element of the instruction at the PC, a matrix product, from the current
    /// registers. `touch` receives each part of the sum, with its step and its bits, and returns the
    /// bits with which the summation continues. Nothing is written. Returns `None` if the
    /// instruction has no such element.
    fn sum_matrix_element(
        &self,
        _element: MatrixElement,
        _touch: &mut dyn FnMut(SumPart, u8, u64) -> u64,
    ) -> Option<SummedElement> {
        None
    }

    /// Writes such an element to its destination. Returns `true` if the destination had another
    /// value.
    fn write_matrix_element(&mut self, _element: &SummedElement) -> bool {
        false
    }

    /// The workgroup's LDS.
    fn lds(&self) -> &[u8];

    /// Reads a word of the workgroup's LDS at a multiple of four bytes; `None` if it is out of
    /// range or misaligned.
    fn read_lds(&self, offset: u32) -> Option<u32>;

    /// Writes a word of the workgroup's LDS. Returns `false`, and changes nothing, where
    /// [`WaveState::read_lds`] returns `None`.
    fn write_lds(&mut self, offset: u32, word: u32) -> bool;

    /// Reads a word of device memory as a load would; `None` if that would fault.
    fn read_memory(&mut self, address: Address) -> Option<u32>;

    /// Writes a word of device memory as a store would. Returns `false`, and changes nothing, if
    /// that would fault: code is not writable.
    fn write_memory(&mut self, address: Address, word: u32) -> bool;

    /// Takes the bytes of device memory that the program and its observer have written since the
    /// last call, in order; empty if writes are not recorded (see
    /// [`Machine::advance_recording_writes`](crate::Machine::advance_recording_writes)).
    fn take_written(&mut self) -> Vec<WrittenByte>;

    /// Address in private memory of the variables of the function that the wave executes, on machines where
    /// functions have such variables.
    fn frame_base(&self) -> u64 {
        0
    }

    /// Size of a lane's private memory (scratch) in bytes.
    fn private_bytes(&self) -> u32;

    /// Device address of a word of a lane's private memory, whatever the program has written to the
    /// registers that address it. `None` for lanes and offsets that the wave does not have, and for
    /// misaligned offsets.
    fn private_address(&self, lane: Lane, offset: u32) -> Option<Address>;
}

/// An element of a matrix product, see [`WaveState::sum_matrix_element`]. Its content belongs to the
/// machine.
#[derive(Debug)]
pub struct SummedElement(pub Box<dyn Any + Send>);

/// A byte of device memory that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenByte {
    /// Address of the byte.
    pub address: Address,
    /// Value before the write.
    pub before: u8,
    /// Current value: that of the last write.
    pub after: u8,
}
