//! Test bench shared by the unit tests.

use crate::execute::control::Step;
use crate::execute::step::step;
use crate::instruction::{Op, Run};
use crate::memory::AddressSpace;
use crate::tests::operations::{DEFAULT_MODE, Random};
use crate::translate::translate;
use crate::wave::{Level, Machine, Row, RowIndex, ScalarIndex, Wave};
use flipwave_device::{Address, FaultCause, WaveId};
use flipwave_isa::{Encoding, Flags, Inst, InstWords, Isa, LaneMask, Modifiers, Operation, Pc};

/// Returns an operation without operands that executes `run`.
pub fn op(run: Run) -> Op {
    let words = InstWords {
        size: 4,
        operation: Operation::named("test"),
        encoding: Encoding::Other,
        operands: Vec::new(),
        modifiers: Modifiers::default(),
        immediate: None,
        reads: Vec::new(),
        writes: Vec::new(),
        flags: Flags::default(),
        opcode_name: "TEST",
        text: "test".into(),
    };
    let inst = Inst { pc: Pc(0), branch_target: None, words: words.into() };
    Op::new(inst, run)
}

/// Size of [`Bench::buffer`] in bytes.
pub const BUFFER_BYTES: usize = 1 << 16;
/// Size of LDS in bytes.
pub const LDS_BYTES: usize = 4096;

/// A wave with all its registers, a buffer in memory, and LDS, for tests of single instructions.
pub struct Bench {
    isa: Isa,
    pub wave: Wave,
    pub space: AddressSpace,
    pub buffer: Address,
    pub lds: Vec<u8>,
}

impl Bench {
    /// Creates a wave of gfx90a.
    pub fn new() -> Bench {
        Bench::with_processor("gfx90a")
    }

    /// Creates a wave of `processor` with all lanes active and all registers zero.
    pub fn with_processor(processor: &str) -> Bench {
        Bench::with_lanes(processor, 64)
    }

    /// Creates a wave of `processor` with `lanes` lanes.
    pub fn with_lanes(processor: &str, lanes: u8) -> Bench {
        let target = processor.parse().expect("a target");
        let isa = Isa::new(&target).expect("LLVM has it");
        let machine = Machine::new(&target, lanes);
        let mut space = AddressSpace::default();
        let buffer = space.allocate(BUFFER_BYTES as u64).expect("memory");
        let mut wave = Wave::new(Level::detect());
        wave.reset(machine, WaveId { workgroup: [0; 3], wave: 0 }, 256, 256);
        wave.mode = DEFAULT_MODE;
        wave.set_exec(LaneMask::FULL);
        Bench { isa, wave, space, buffer, lds: vec![0; LDS_BYTES] }
    }

    /// Assembles `text` and executes its instructions in textual order, ignoring branches. Returns
    /// the step of the last instruction.
    pub fn run(&mut self, text: &str) -> Result<Step, FaultCause> {
        let bytes = self.isa.assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        self.run_bytes(&bytes)
    }

    /// Executes encoded instructions, for encodings that the assembler does not emit.
    pub fn run_bytes(&mut self, bytes: &[u8]) -> Result<Step, FaultCause> {
        let mut at = 0;
        let mut last = Step::Next;
        while at < bytes.len() {
            let inst = self.isa.decode(&bytes[at..], Pc(at as u64)).expect("an instruction");
            at += usize::from(inst.size);
            last = self.step(inst)?;
        }
        Ok(last)
    }

    /// Assembles one instruction and translates it into an operation.
    pub fn op(&self, text: &str) -> Op {
        let bytes = self.isa.assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let inst = self.isa.decode(&bytes, Pc(0)).expect("an instruction");
        translate(inst, self.wave.level, self.wave.machine)
    }

    /// Executes one instruction.
    pub fn step(&mut self, inst: Inst) -> Result<Step, FaultCause> {
        let op = translate(inst, self.wave.level, self.wave.machine);
        self.wave.pc = self.wave.pc.wrapping_add(op.size.into());
        self.wave.executed += 1;
        match step(&mut self.wave, &op, &mut self.space, &mut self.lds) {
            Step::Fault(cause) => Err(cause),
            step => Ok(step),
        }
    }

    /// Sets consecutive scalar registers.
    pub fn set_scalars(&mut self, first: u8, words: &[u32]) {
        for (index, word) in (first..).zip(words) {
            self.wave.write_scalar(ScalarIndex(index), *word);
        }
    }

    /// Sets a pair of scalar registers to `address`.
    pub fn set_address(&mut self, first: u8, address: u64) {
        self.set_scalars(first, &[address as u32, (address >> 32) as u32]);
    }

    /// Sets a vector register in every lane.
    pub fn set_lanes(&mut self, register: u16, word: impl Fn(u32) -> u32) {
        *self.wave.row_mut(RowIndex(register)) = Row(std::array::from_fn(|lane| word(lane as u32)));
    }

    /// Returns a vector register.
    pub fn lanes(&self, register: u16) -> [u32; 64] {
        self.wave.row(RowIndex(register)).0
    }

    /// Writes words to the buffer.
    pub fn set_memory(&mut self, offset: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.space.write(Address(self.buffer.0 + offset), &bytes).expect("inside the buffer");
    }

    /// Reads words from the buffer.
    pub fn memory<const N: usize>(&self, offset: u64) -> [u32; N] {
        std::array::from_fn(|word| {
            let mut bytes = [0; 4];
            let at = Address(self.buffer.0 + offset + 4 * word as u64);
            self.space.read(at, &mut bytes).expect("inside the buffer");
            u32::from_le_bytes(bytes)
        })
    }

    /// Fills the registers with random values, some of which point into the buffer.
    pub fn randomize(&mut self, random: &mut Random) {
        self.wave.mode = DEFAULT_MODE;
        for index in 0..128 {
            let word = match index % 8 {
                0 => self.buffer.0 as u32,
                1 => (self.buffer.0 >> 32) as u32,
                2 => random.next() as u32 & 0xfff,
                _ => random.next() as u32,
            };
            self.wave.write_scalar(ScalarIndex(index), word);
        }
        for row in [0, 1, 2, 3, 200, 255, 256, 511] {
            let seed = random.next() as u32;
            *self.wave.row_mut(RowIndex(row)) =
                Row(std::array::from_fn(|lane| seed.rotate_left(lane as u32)));
        }
        self.wave.scc = random.next() & 1 != 0;
    }
}
