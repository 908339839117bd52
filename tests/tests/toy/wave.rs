//! A wave and its execution.

use super::isa::{Inst, LANES, Op, SCALARS, VECTORS, scalar, vector};
use super::memory::Memory;
use flipwave_arch::{Instruction, Lane, LaneMask, Pc, RegisterId};
use flipwave_device::{AccessKind, Address, FaultCause, WaveId};
use flipwave_machine::{FootprintBuilder, WaveState, WrittenByte};

/// The architectural state of a wave.
#[derive(Clone, PartialEq, Eq)]
pub struct Wave {
    pub id: WaveId,
    pub pc: u64,
    pub executed: u64,
    /// Number of the wave's first work-item in the grid.
    pub first_item: u32,
    vectors: [[u32; LANES as usize]; VECTORS as usize],
    scalars: [u32; SCALARS as usize],
}

impl Wave {
    /// A wave before its first instruction.
    pub fn new(id: WaveId, first_item: u32) -> Wave {
        Wave { id, pc: 0, executed: 0, first_item, vectors: Default::default(), scalars: [0; 8] }
    }

    fn register(&mut self, register: RegisterId, lane: Lane) -> Option<&mut u32> {
        let number = usize::from(register.number);
        if register.is_per_lane() {
            self.vectors.get_mut(number)?.get_mut(usize::from(lane.0))
        } else {
            self.scalars.get_mut(number)
        }
    }
}

/// A wave at work: what it reaches.
pub struct Reach<'a> {
    pub wave: &'a mut Wave,
    pub memory: &'a mut Memory,
    /// Code of the module, one dword an instruction.
    pub code: &'a [u32],
    /// Kernel arguments.
    pub arguments: &'a [u32],
    /// Receives accesses to memory, if they are recorded.
    pub footprint: Option<&'a mut FootprintBuilder>,
    /// Writes since they were last taken.
    pub written: Vec<WrittenByte>,
    /// Dword to execute in place of the one in memory.
    pub replacement: Option<u32>,
}

impl Reach<'_> {
    /// The instruction at the PC, or the fault of fetching it.
    pub fn fetch(&self) -> Result<Inst, FaultCause> {
        let (access, lane) = (AccessKind::Fetch, None);
        let address = Address(self.wave.pc);
        let outside = FaultCause::MemoryViolation { address, access, lane };
        let word = self.replacement.or_else(|| self.dword(0)).ok_or(outside)?;
        Inst::decode(word, Pc(self.wave.pc)).ok_or(FaultCause::IllegalInstruction { word })
    }

    fn dword(&self, ahead: u8) -> Option<u32> {
        self.code.get(usize::try_from(self.wave.pc / 4).ok()? + usize::from(ahead)).copied()
    }

    /// Executes the instruction, which was fetched, and advances the PC.
    pub fn execute(&mut self, inst: &Inst) -> Result<(), FaultCause> {
        let [a, b, c] = inst.operands;
        let mut next = self.wave.pc + 4;
        let (arguments, first) = (self.arguments, self.wave.first_item);
        for lane in (0..LANES).map(Lane) {
            let value = |register| self.read(register, lane).unwrap_or(0);
            let address = |base, offset| {
                Address(u64::from(value(scalar(base))) + u64::from(value(vector(offset))))
            };
            let result = match inst.op {
                Op::Set => u32::from(b),
                Op::Tid => first + u32::from(lane.0),
                Op::Add => value(vector(b)).wrapping_add(value(vector(c))),
                Op::FAdd => {
                    let [b, c] = [b, c].map(|register| f32::from_bits(value(vector(register))));
                    (b + c).to_bits()
                }
                Op::Shl => value(vector(b)).checked_shl(c.into()).unwrap_or(0),
                Op::Load => {
                    let address = address(b, c);
                    self.load(address, lane)?
                }
                Op::Store => {
                    let (address, word) = (address(a, b), value(vector(c)));
                    self.store(address, word, lane)?;
                    continue;
                }
                Op::Arg | Op::Loop | Op::End => break,
            };
            self.write(vector(a), lane, result);
        }
        match inst.op {
            Op::Arg => {
                let argument = arguments.get(usize::from(b)).copied().unwrap_or(0);
                self.write(scalar(a), Lane(0), argument);
            }
            Op::Loop => {
                let left = self.read(scalar(a), Lane(0)).unwrap_or(0).wrapping_sub(1);
                self.write(scalar(a), Lane(0), left);
                next = if left == 0 { next } else { 4 * u64::from(b) };
            }
            _ => {}
        }
        self.wave.pc = next;
        self.wave.executed += 1;
        Ok(())
    }

    fn load(&mut self, address: Address, lane: Lane) -> Result<u32, FaultCause> {
        let (access, lane) = (AccessKind::Read, Some(lane));
        let violation = FaultCause::MemoryViolation { address, access, lane };
        let word = self.memory.word(address).ok_or(violation)?;
        if let Some(footprint) = &mut self.footprint {
            footprint.read.insert(address, 4);
        }
        Ok(word)
    }

    fn store(&mut self, address: Address, word: u32, lane: Lane) -> Result<(), FaultCause> {
        let (access, lane) = (AccessKind::Write, Some(lane));
        let violation = FaultCause::MemoryViolation { address, access, lane };
        let bytes = self.memory.get_mut(address, 4).ok_or(violation)?;
        for (at, (byte, after)) in (address.0..).zip(bytes.iter_mut().zip(word.to_le_bytes())) {
            self.written.push(WrittenByte { address: Address(at), before: *byte, after });
            *byte = after;
        }
        if let Some(footprint) = &mut self.footprint {
            footprint.written.insert(address, 4);
        }
        Ok(())
    }
}

impl WaveState for Reach<'_> {
    fn read(&self, register: RegisterId, lane: Lane) -> Option<u32> {
        let number = usize::from(register.number);
        if register.is_per_lane() {
            self.wave.vectors.get(number)?.get(usize::from(lane.0)).copied()
        } else {
            self.wave.scalars.get(number).copied()
        }
    }

    fn lanes(&self, register: RegisterId) -> Option<&[u32]> {
        let lanes = self.wave.vectors.get(usize::from(register.number))?;
        register.is_per_lane().then_some(&lanes[..])
    }

    fn write(&mut self, register: RegisterId, lane: Lane, value: u32) -> bool {
        self.wave.register(register, lane).map(|word| *word = value).is_some()
    }

    fn changeable(&self) -> Vec<RegisterId> {
        let vectors = (0..VECTORS as u8).map(vector);
        vectors.chain((0..SCALARS as u8).map(scalar)).collect()
    }

    fn written_by(&self, inst: &dyn Instruction) -> Vec<RegisterId> {
        let mut written = Vec::new();
        inst.for_each_written(&mut |register| written.push(register));
        written
    }

    fn executed(&self) -> u64 {
        self.wave.executed
    }

    fn active(&self) -> LaneMask {
        self.all_lanes()
    }

    fn all_lanes(&self) -> LaneMask {
        LaneMask((1 << LANES) - 1)
    }

    fn pc(&self) -> Pc {
        Pc(self.wave.pc)
    }

    fn set_pc(&mut self, pc: Pc) {
        self.wave.pc = pc.0 & self.pc_bits();
    }

    fn pc_bits(&self) -> u64 {
        !3
    }

    fn code(&self, dword: u8) -> Option<u32> {
        self.dword(dword)
    }

    fn replace_instruction(&mut self, bytes: &[u8]) {
        self.replacement = bytes.first_chunk().map(|word| u32::from_le_bytes(*word));
    }

    fn lds(&self) -> &[u8] {
        &[]
    }

    fn read_lds(&self, _: u32) -> Option<u32> {
        None
    }

    fn write_lds(&mut self, _: u32, _: u32) -> bool {
        false
    }

    fn read_memory(&mut self, address: Address) -> Option<u32> {
        self.load(address, Lane(0)).ok()
    }

    fn write_memory(&mut self, address: Address, word: u32) -> bool {
        self.store(address, word, Lane(0)).is_ok()
    }

    fn take_written(&mut self) -> Vec<WrittenByte> {
        std::mem::take(&mut self.written)
    }

    fn private_bytes(&self) -> u32 {
        0
    }

    fn private_address(&self, _: Lane, _: u32) -> Option<Address> {
        None
    }
}
