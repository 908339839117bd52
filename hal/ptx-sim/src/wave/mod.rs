//! The state of a wave.

mod frame;
mod registers;
mod rows;

pub(crate) use frame::{Frame, Path, next};
pub(crate) use registers::{RegisterRange, Registers, Word};
pub(crate) use rows::Rows;

use crate::program::{BarrierKind, Program};
use flipwave_device::WaveId;

/// The state of a wave, apart from memory.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Wave {
    /// The wave.
    pub id: WaveId,
    /// Instructions executed.
    pub executed: u64,
    /// Lanes that the wave began with.
    pub all: u32,
    /// The registers.
    pub registers: Registers,
    /// Calls, the kernel first. Empty once the wave has ended.
    pub frames: Vec<Frame>,
    /// Readiness to execute instructions.
    pub status: Status,
}

/// Readiness of a wave to execute instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The wave executes instructions.
    Running,
    /// The wave waits at a barrier.
    Waiting {
        /// Number of the barrier.
        barrier: usize,
        /// Lanes that receive a result.
        lanes: u32,
        /// The result.
        kind: BarrierKind,
    },
    /// All lanes have ended.
    Ended,
}

impl Wave {
    /// A wave before the first instruction of a kernel, with as many lanes as there are threads.
    pub fn new(id: WaveId, program: &Program, kernel: usize, threads: u32) -> Wave {
        let all = u32::MAX >> (32 - threads.clamp(1, 32));
        let frame = Frame::new(program, kernel, None, 0, all);
        let registers = Registers::new(&RegisterRange::default());
        // Kernels often call a function or two.
        let mut frames = Vec::with_capacity(4);
        frames.push(frame);
        Wave { id, executed: 0, all, registers, frames, status: Status::Running }
    }

    /// Gives the wave the registers of its kernel, unless it has begun. Until then it has none, so that clones of
    /// a dispatch are small.
    pub fn begin(&mut self, program: &Program) {
        if self.executed == 0
            && let Some(frame) = self.frames.first()
        {
            self.registers.extend(&program.ranges[frame.function]);
        }
    }

    /// The path that executes the next instruction.
    pub fn path(&self) -> Option<&Path> {
        self.frames.last()?.paths.last()
    }

    /// The path that executes the next instruction.
    pub fn path_mut(&mut self) -> Option<&mut Path> {
        self.frames.last_mut()?.paths.last_mut()
    }

    /// Address of the next instruction.
    pub fn pc(&self) -> u64 {
        self.path().map_or(0, |path| path.pc)
    }

    /// Lanes that execute the next instruction.
    pub fn active(&self) -> u32 {
        self.path().map_or(0, |path| path.lanes)
    }

    /// Bytes of the private memory of a lane.
    pub fn private_bytes(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.base + frame.bytes)
    }

    /// Continues with the path that is next after an instruction: paths end where they meet others, and
    /// calls end when all their lanes have returned.
    pub fn settle(&mut self) {
        while let Some(frame) = self.frames.last_mut() {
            frame.settle();
            if !frame.paths.is_empty() {
                return;
            }
            self.frames.pop();
        }
        self.status = Status::Ended;
    }

    /// Ends lanes.
    pub fn exit(&mut self, lanes: u32) {
        self.frames.iter_mut().for_each(|frame| frame.remove(lanes));
    }
}
