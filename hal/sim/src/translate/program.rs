//! Loaded code: instructions are decoded when they are first reached, and kept.

use crate::compile::Tier;
use crate::instruction::{Op, Shared};
use crate::translate::barrier_order::{Placed, ordered_by_barriers};
use crate::translate::order::{Reached, reached};
use crate::translate::slots::Slots;
use crate::translate::translate;
use crate::wave::{Level, Machine, RowIndex};
use flipwave_codeobj::FileBytes;
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_isa::{DecodeError, Family, Inst, Isa, Pc, VgprMsb};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most kernels of a code object all of which are searched for an instruction.
const MOST_SEARCHED: usize = 64;

/// A place for the code of waves with each setting of the high bits of vector registers.
type Banked = Box<[OnceLock<Program>]>;

/// Code, and where it lies.
struct Place {
    base: u64,
    virtual_base: u64,
    bytes: FileBytes,
}

/// The executable part of a loaded code object. Every dword is a place where execution may
/// arrive: a corrupted branch can land inside an instruction, and what it finds there runs.
pub struct Program {
    /// Device address of the first byte.
    base: u64,
    /// ELF virtual address of the same byte.
    virtual_base: u64,
    bytes: FileBytes,
    length: u64,
    slots: Slots,
    /// The slots instead, made when first reached: of code that hardly any wave comes to.
    late_slots: OnceLock<Slots>,
    /// The high bits of the numbers of vector registers that the instructions name.
    banks: VgprMsb,
    /// The same code for waves with others, by those, as far as there were such waves.
    banked: OnceLock<Banked>,
    isa: Arc<Mutex<Isa>>,
    level: Level,
    machine: Machine,
    /// How many rows of each half of the vector registers the instructions decoded so far can reach.
    rows_used: [AtomicU16; 2],
    /// The same code for kernels whose AccVGPRs begin elsewhere, by where, and by whether it is
    /// theirs.
    others: Mutex<BTreeMap<(RowIndex, bool), Arc<Program>>>,
    /// What of it is compiled; nothing where nothing is.
    tier: OnceLock<Option<Tier>>,
    /// By where kernels start.
    reached: Mutex<BTreeMap<u64, Reached>>,
    /// ELF virtual addresses of kernel entries, ascending.
    starts: Arc<[Pc]>,
    /// LDS accesses, `true` for those that barriers order, by where kernels start.
    ordered: Mutex<BTreeMap<u64, FxHashMap<u64, bool>>>,
}

impl Program {
    /// Code that lies at `base` on the device and at `virtual_base` in its code object.
    pub fn new(isa: Isa, level: Level, base: u64, virtual_base: u64, bytes: FileBytes) -> Program {
        let machine = Machine::new(isa.target(), isa.wave_size());
        let place = Place { base, virtual_base, bytes };
        let slots = Slots::of(&place.bytes);
        Program::made(place, slots, Arc::new(Mutex::new(isa)), level, machine)
    }

    fn made(
        place: Place,
        slots: Slots,
        isa: Arc<Mutex<Isa>>,
        level: Level,
        machine: Machine,
    ) -> Program {
        let Place { base, virtual_base, bytes } = place;
        let late_slots = OnceLock::new();
        let (rows_used, others, banks, banked) = Default::default();
        Program {
            base,
            virtual_base,
            length: bytes.len() as u64,
            bytes,
            slots,
            late_slots,
            banks,
            banked,
            isa,
            level,
            machine,
            rows_used,
            others,
            tier: OnceLock::new(),
            reached: Mutex::default(),
            starts: Arc::default(),
            ordered: Mutex::default(),
        }
    }

    /// Sets the ELF virtual addresses of kernel entries.
    pub fn with_starts(self, mut starts: Vec<Pc>) -> Program {
        starts.sort_unstable();
        Program { starts: starts.into(), ..self }
    }

    /// What is seen of the code that a kernel can reach which starts at a device address.
    pub fn reached(&self, start: u64) -> Reached {
        let mut known = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(start).or_insert_with(|| reached(self, start))
    }

    /// The code as waves execute it that have set these high bits of the numbers of vector registers:
    /// each setting has instructions of its own, made when they are first reached, so that to execute
    /// one is to look nothing up. `self` is the code as it is with none set.
    pub fn of_banks(&self, banks: VgprMsb) -> &Program {
        if banks == self.banks {
            return self;
        }
        let all =
            self.banked.get_or_init(|| (0..VgprMsb::COUNT).map(|_| OnceLock::new()).collect());
        all[banks.index()].get_or_init(|| {
            let Program { base, virtual_base, ref bytes, ref isa, level, machine, .. } = *self;
            let place = Place { base, virtual_base, bytes: bytes.clone() };
            let program = Program::made(place, Slots::default(), Arc::clone(isa), level, machine);
            Program { banks, starts: Arc::clone(&self.starts), ..program }
        })
    }

    /// The code as waves execute it whose AccVGPRs begin where those of `machine` do. `is_home` says
    /// whether their kernel is of this code: else it is executed the slower way, and costs no memory
    /// unless it is reached.
    pub fn of_machine(self: &Arc<Program>, machine: Machine, is_home: bool) -> Arc<Program> {
        if machine.accumulation == self.machine.accumulation {
            return Arc::clone(self);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let other = others.entry((machine.accumulation, is_home)).or_insert_with(|| {
            let Program { base, virtual_base, ref bytes, ref isa, level, .. } = **self;
            let place = Place { base, virtual_base, bytes: bytes.clone() };
            let slots = if is_home { Slots::of(bytes) } else { Slots::default() };
            let program = Program::made(place, slots, Arc::clone(isa), level, machine);
            Arc::new(Program { starts: Arc::clone(&self.starts), ..program })
        });
        Arc::clone(other)
    }

    /// The host's vector extensions that the code was made ready for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// What waves execute by.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// What of it is compiled; nothing where nothing is.
    pub fn tier(&self) -> Option<&Tier> {
        self.tier.get_or_init(|| Tier::new(self.bytes.len(), self.level)).as_ref()
    }

    /// Which dword of the code a device address is; beyond the last one if it is none.
    #[inline(always)]
    pub fn index_of(&self, pc: u64) -> usize {
        (pc.wrapping_sub(self.base) / 4) as usize
    }

    /// Whether a device address lies in this code.
    pub fn contains(&self, pc: u64) -> bool {
        pc.wrapping_sub(self.base) < self.length
    }

    /// The ELF virtual address of a device address, which need not lie in this code.
    pub fn virtual_address(&self, pc: u64) -> Pc {
        Pc(pc.wrapping_sub(self.base).wrapping_add(self.virtual_base))
    }

    /// The device address of an ELF virtual address: the inverse of
    /// [`Program::virtual_address`].
    pub fn device_address(&self, pc: Pc) -> u64 {
        pc.0.wrapping_sub(self.virtual_base).wrapping_add(self.base)
    }

    /// The instruction at a device address.
    ///
    /// # Errors
    /// A fault if there is no code, or no instruction.
    #[inline(always)]
    pub fn fetch(&self, pc: u64) -> Result<&Op, FaultCause> {
        let index = self.index_of(pc);
        match self.slots.get(index) {
            Some(op) => Ok(op),
            None => self.decode(pc),
        }
    }

    #[cold]
    fn decode(&self, pc: u64) -> Result<&Op, FaultCause> {
        let offset = pc.wrapping_sub(self.base);
        let violation = || FaultCause::MemoryViolation {
            address: Address(pc),
            access: AccessKind::Fetch,
            lane: None,
        };
        let slots = match self.slots.is_empty() {
            true => self.late_slots.get_or_init(|| Slots::of(&self.bytes)),
            false => &self.slots,
        };
        let index = (offset / 4) as usize;
        if let Some(op) = slots.get(index) {
            return Ok(op);
        }
        let bytes = self.bytes.get(offset as usize..).ok_or_else(violation)?;
        let mut op = self.decode_bytes(pc, bytes)?;
        if op.shared != Shared::Nothing && self.is_ordered(pc) {
            op.held = Shared::Nothing;
        }
        op.begins_run = op.held != Shared::Nothing && !self.continues_run(offset, op.shared);
        slots.put(index, op).ok_or_else(violation)
    }

    /// Returns `true` if barriers order the LDS access at a device address, in the kernel that has it. That is
    /// mostly the one that starts last before it, but rewritten kernels have parts elsewhere.
    fn is_ordered(&self, pc: u64) -> bool {
        let nearest = self.starts.partition_point(|start| self.device_address(*start) <= pc);
        let nearest = nearest.checked_sub(1).map(|last| self.starts[last]);
        let others = if self.starts.len() <= MOST_SEARCHED { &self.starts[..] } else { &[] };
        let mut known = self.ordered.lock().unwrap_or_else(PoisonError::into_inner);
        let found = nearest.into_iter().chain(others.iter().copied()).find_map(|start| {
            let start = self.device_address(start);
            let accesses = known.entry(start).or_insert_with(|| self.ordered_from(start));
            accesses.get(&pc).copied()
        });
        found.unwrap_or(false)
    }

    /// The LDS accesses of the kernel that starts at a device address; `true` for those that barriers order.
    pub(super) fn ordered_from(&self, start: u64) -> FxHashMap<u64, bool> {
        ordered_by_barriers(start, self.machine.generation, |pc| {
            // Not fetched: what is kept of an access depends on the result.
            let bytes = self.bytes.get(pc.wrapping_sub(self.base) as usize..)?;
            let op = self.decode_bytes(pc, bytes).ok()?;
            let target = op.inst.branch_target.map(|target| self.device_address(target));
            Some(Placed { op, pc, target })
        })
    }

    /// Whether an access to LDS of the same kind ends where the instruction at an offset begins. It is
    /// found in memory, so that it does not depend on how a wave arrives.
    fn continues_run(&self, offset: u64, shared: Shared) -> bool {
        // Bytes of instructions that access LDS.
        [8, 12].into_iter().any(|size| {
            let start = offset.checked_sub(size);
            let bytes = start.and_then(|start| self.bytes.get(start as usize..offset as usize));
            bytes.is_some_and(|bytes| {
                let before = self.decode_bytes(self.base + offset - size, bytes);
                before.is_ok_and(|op| u64::from(op.size) == size && op.shared == shared)
            })
        })
    }

    /// How many rows of each half of the vector registers the instructions executed so far can
    /// have written.
    pub fn rows_used(&self) -> [u16; 2] {
        let own = self.rows_used.each_ref().map(|used| used.load(Ordering::Relaxed));
        let banked = self.banked.get().into_iter().flatten().filter_map(OnceLock::get);
        banked
            .map(Program::rows_used)
            .fold(own, |all, other| [0, 1].map(|half| other[half].max(all[half])))
    }

    /// The dword at a device address.
    pub fn dword(&self, pc: u64) -> Option<u32> {
        let bytes = self.bytes.get(pc.wrapping_sub(self.base) as usize..)?;
        bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
    }

    /// The instruction at a device address if the code there began with `first`.
    ///
    /// # Errors
    /// As [`Program::fetch`].
    #[cold]
    pub fn decode_altered(&self, pc: u64, first: &[u8]) -> Result<Op, FaultCause> {
        let start = pc.wrapping_sub(self.base).wrapping_add(first.len() as u64) as usize;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let rest = &rest[..rest.len().min(Isa::LONGEST_INSTRUCTION)];
        let op = self.decode_bytes(pc, &[first, rest].concat());
        op.map_err(FaultCause::in_faulty_run)
    }

    /// The instruction that `bytes`, which lie at a device address, begin with.
    fn decode_bytes(&self, pc: u64, bytes: &[u8]) -> Result<Op, FaultCause> {
        let word = |bytes: &[u8]| match bytes {
            [a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => 0,
        };
        let isa = self.isa.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inst =
            isa.decode(bytes, self.virtual_address(pc)).map_err(|error| match error {
                DecodeError::Truncated { .. } => FaultCause::MemoryViolation {
                    address: Address(self.base + self.length),
                    access: AccessKind::Fetch,
                    lane: None,
                },
                DecodeError::NotAnInstruction { .. } => {
                    FaultCause::IllegalInstruction { word: word(bytes) }
                }
                DecodeError::NotDecoded { .. } => FaultCause::NotDecoded { word: word(bytes) },
                DecodeError::NotExact { text, .. } => FaultCause::Unimplemented {
                    instruction: text.into(),
                    reason: "LLVM 22 does not decode the halves that its op_sel chooses".into(),
                },
            })?;
        if let Some(accum_offset) = self.machine.accum_offset() {
            inst.replace_vgpr_aliases(accum_offset);
        }
        inst.apply_vgpr_msb(self.banks, self.machine.generation);
        for (used, count) in self.rows_used.iter().zip(rows_reached(&inst, self.machine)) {
            used.fetch_max(count, Ordering::Relaxed);
        }
        Ok(translate(inst, self.level, self.machine))
    }
}

/// How many rows of each half of the vector registers, from the first on, an instruction can write:
/// all where an index says which.
fn rows_reached(inst: &Inst, machine: Machine) -> [u16; 2] {
    if inst.indexes_registers() || inst.operation.is(Family::GprIndex) {
        return [256; 2];
    }
    let written = inst.writes.iter().filter_map(|range| {
        let first = usize::from(machine.row(range.first)?.0);
        Some(first..first + usize::from(range.words))
    });
    RowIndex::halves(written)
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program at {:#x}, {} bytes", self.base, self.bytes.len())
    }
}

#[cfg(test)]
mod tests;
