//! The code of a loaded code object, decoded when first reached.

use crate::instruction::{Op, Shared};
use crate::translate::barrier_order::{Placed, ordered_by_barriers};
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

/// Largest number of kernels in a code object for which [`DecodedCode::is_ordered`] searches all of
/// them.
const MOST_SEARCHED: usize = 64;

/// When the instruction slots of code are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlotAllocation {
    /// At once: [`DecodedCode::fetch`] is fastest.
    Eager,
    /// When the first instruction is fetched: for code that hardly any wave reaches.
    Lazy,
}

/// The executable part of a loaded code object, as waves of one [`Machine`] with one setting of the
/// vector register banks execute it. Execution may reach every dword: a corrupted branch can land
/// inside an instruction, and the wave executes what it finds there.
pub struct DecodedCode {
    /// Device address of the first byte.
    base: u64,
    /// ELF virtual address of the first byte.
    virtual_base: u64,
    bytes: FileBytes,
    length: u64,
    slots: Slots,
    /// Replaces `slots` where those are empty; allocated at the first fetch.
    late_slots: OnceLock<Slots>,
    /// The high bits of the vector register numbers that the instructions name.
    banks: VgprMsb,
    isa: Arc<Mutex<Isa>>,
    level: Level,
    machine: Machine,
    /// Number of rows of each half of the vector registers that the instructions decoded so far can
    /// reach.
    rows_used: [AtomicU16; 2],
    /// ELF virtual addresses of kernel entries, ascending.
    starts: Arc<[Pc]>,
    /// LDS accesses, `true` for those that barriers order, by the device address where their kernel
    /// starts.
    ordered: Mutex<BTreeMap<u64, FxHashMap<u64, bool>>>,
}

impl DecodedCode {
    /// Code at device address `base` whose ELF virtual address is `virtual_base`.
    pub fn new(
        isa: Isa,
        level: Level,
        base: u64,
        virtual_base: u64,
        bytes: FileBytes,
    ) -> DecodedCode {
        let machine = Machine::new(isa.target(), isa.wave_size());
        DecodedCode {
            base,
            virtual_base,
            length: bytes.len() as u64,
            slots: Slots::of(&bytes),
            bytes,
            late_slots: OnceLock::new(),
            banks: VgprMsb::default(),
            isa: Arc::new(Mutex::new(isa)),
            level,
            machine,
            rows_used: Default::default(),
            starts: Arc::default(),
            ordered: Mutex::default(),
        }
    }

    /// Copies the code, without decoded instructions, for another machine and other banks.
    fn undecoded(&self, slots: Slots, machine: Machine, banks: VgprMsb) -> DecodedCode {
        DecodedCode {
            base: self.base,
            virtual_base: self.virtual_base,
            bytes: self.bytes.clone(),
            length: self.length,
            slots,
            late_slots: OnceLock::new(),
            banks,
            isa: Arc::clone(&self.isa),
            level: self.level,
            machine,
            rows_used: Default::default(),
            starts: Arc::clone(&self.starts),
            ordered: Mutex::default(),
        }
    }

    /// The code for waves that set these high bits of the vector register numbers.
    pub fn for_banks(&self, banks: VgprMsb) -> DecodedCode {
        self.undecoded(Slots::default(), self.machine, banks)
    }

    /// The code for waves that execute as `machine` says.
    pub fn for_machine(&self, machine: Machine, allocation: SlotAllocation) -> DecodedCode {
        let slots = match allocation {
            SlotAllocation::Eager => Slots::of(&self.bytes),
            SlotAllocation::Lazy => Slots::default(),
        };
        self.undecoded(slots, machine, VgprMsb::default())
    }

    /// Sets the ELF virtual addresses of kernel entries.
    pub fn with_starts(self, mut starts: Vec<Pc>) -> DecodedCode {
        starts.sort_unstable();
        DecodedCode { starts: starts.into(), ..self }
    }

    /// The high bits of the vector register numbers that the instructions name.
    pub fn banks(&self) -> VgprMsb {
        self.banks
    }

    /// Length in bytes.
    pub fn byte_count(&self) -> usize {
        self.bytes.len()
    }

    /// Vector extensions of the host that the instructions were translated for.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Machine properties that waves execute with.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Index of the dword at a device address; beyond the last dword if the address is outside this
    /// code.
    #[inline(always)]
    pub fn index_of(&self, pc: u64) -> usize {
        (pc.wrapping_sub(self.base) / 4) as usize
    }

    /// Returns `true` if a device address lies in this code.
    pub fn contains(&self, pc: u64) -> bool {
        pc.wrapping_sub(self.base) < self.length
    }

    /// The ELF virtual address of a device address, which need not lie in this code.
    pub fn virtual_address(&self, pc: u64) -> Pc {
        Pc(pc.wrapping_sub(self.base).wrapping_add(self.virtual_base))
    }

    /// The device address of an ELF virtual address: the inverse of
    /// [`DecodedCode::virtual_address`].
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
        let slots = if self.slots.is_empty() {
            self.late_slots.get_or_init(|| Slots::of(&self.bytes))
        } else {
            &self.slots
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

    /// Returns `true` if barriers order the LDS access at a device address in its kernel. That is
    /// mostly the kernel with the nearest start before it, but rewritten kernels have parts in
    /// other places.
    fn is_ordered(&self, pc: u64) -> bool {
        let nearest = self.starts.partition_point(|start| self.device_address(*start) <= pc);
        let nearest = nearest.checked_sub(1).map(|last| self.starts[last]);
        let all_starts = if self.starts.len() <= MOST_SEARCHED { &self.starts[..] } else { &[] };
        let mut known = self.ordered.lock().unwrap_or_else(PoisonError::into_inner);
        let found = nearest.into_iter().chain(all_starts.iter().copied()).find_map(|start| {
            let start = self.device_address(start);
            let accesses = known.entry(start).or_insert_with(|| self.ordered_from(start));
            accesses.get(&pc).copied()
        });
        found.unwrap_or(false)
    }

    /// LDS accesses of the kernel that starts at a device address; `true` for those that barriers
    /// order.
    pub(super) fn ordered_from(&self, start: u64) -> FxHashMap<u64, bool> {
        ordered_by_barriers(start, self.machine.generation, |pc| {
            // Not fetched: the stored instruction depends on this result.
            let bytes = self.bytes.get(pc.wrapping_sub(self.base) as usize..)?;
            let op = self.decode_bytes(pc, bytes).ok()?;
            let target = op.inst.branch_target.map(|target| self.device_address(target));
            Some(Placed { op, pc, target })
        })
    }

    /// Returns `true` if an LDS access of the same kind ends where the instruction at an offset
    /// begins. It is searched in memory, so that the result does not depend on how a wave arrives.
    fn continues_run(&self, offset: u64, shared: Shared) -> bool {
        // Sizes of LDS instructions in bytes.
        [8, 12].into_iter().any(|size| {
            let start = offset.checked_sub(size);
            let bytes = start.and_then(|start| self.bytes.get(start as usize..offset as usize));
            bytes.is_some_and(|bytes| {
                let before = self.decode_bytes(self.base + offset - size, bytes);
                before.is_ok_and(|op| u64::from(op.size) == size && op.shared == shared)
            })
        })
    }

    /// Number of rows of each half of the vector registers that the instructions decoded so far can
    /// have written.
    pub fn rows_used(&self) -> [u16; 2] {
        self.rows_used.each_ref().map(|used| used.load(Ordering::Relaxed))
    }

    /// The dword at a device address.
    pub fn dword(&self, pc: u64) -> Option<u32> {
        let bytes = self.bytes.get(pc.wrapping_sub(self.base) as usize..)?;
        bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
    }

    /// Decodes the instruction at a device address as if the code there began with `first`.
    ///
    /// # Errors
    /// See [`DecodedCode::fetch`].
    #[cold]
    pub fn decode_altered(&self, pc: u64, first: &[u8]) -> Result<Op, FaultCause> {
        let start = pc.wrapping_sub(self.base).wrapping_add(first.len() as u64) as usize;
        let following = self.bytes.get(start..).unwrap_or_default();
        let following = &following[..following.len().min(Isa::LONGEST_INSTRUCTION)];
        let op = self.decode_bytes(pc, &[first, following].concat());
        op.map_err(FaultCause::in_faulty_run)
    }

    /// Decodes the first instruction of `bytes`, which lie at a device address.
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

/// Number of rows of each half of the vector registers, from the first, that an instruction can
/// write: all if the register number is computed at run time.
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

impl fmt::Debug for DecodedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program at {:#x}, {} bytes", self.base, self.bytes.len())
    }
}

#[cfg(test)]
mod tests;
