//! Loaded code objects: their code, and everything derived from it while waves execute it.

use crate::compile::Tier;
use crate::translate::code::{DecodedCode, SlotAllocation};
use crate::translate::order::{Reached, reached};
use crate::wave::{Level, Machine, RowIndex};
use flipwave_codeobj::FileBytes;
use flipwave_isa::{Isa, Pc, VgprMsb};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A program for each setting of the high bits of vector register numbers.
type Banked = Box<[OnceLock<Program>]>;

/// A loaded code object: its [`DecodedCode`], to which it dereferences, the compiled tier of that code,
/// and its variants for waves with other register layouts.
pub struct Program {
    code: DecodedCode,
    /// Blocks of the code compiled to host code; `None` if nothing is compiled.
    tier: OnceLock<Option<Tier>>,
    /// Variants for waves with other banks, allocated when the first such wave executes.
    banked: OnceLock<Banked>,
    /// Variants for kernels whose AccVGPRs begin at another row.
    variants: Mutex<BTreeMap<(RowIndex, SlotAllocation), Arc<Program>>>,
    /// Properties of the reachable code, by the device address where kernels start.
    reached: Mutex<BTreeMap<u64, Reached>>,
}

impl Deref for Program {
    type Target = DecodedCode;

    #[inline(always)]
    fn deref(&self) -> &DecodedCode {
        &self.code
    }
}

impl Program {
    /// Code at device address `base` whose ELF virtual address is `virtual_base`.
    pub fn new(isa: Isa, level: Level, base: u64, virtual_base: u64, bytes: FileBytes) -> Program {
        Program::of_code(DecodedCode::new(isa, level, base, virtual_base, bytes))
    }

    fn of_code(code: DecodedCode) -> Program {
        Program {
            code,
            tier: OnceLock::new(),
            banked: OnceLock::new(),
            variants: Mutex::default(),
            reached: Mutex::default(),
        }
    }

    /// Sets the ELF virtual addresses of kernel entries.
    pub fn with_starts(self, starts: Vec<Pc>) -> Program {
        Program { code: self.code.with_starts(starts), ..self }
    }

    /// Properties of the code reachable by a kernel that starts at a device address.
    pub fn reached(&self, start: u64) -> Reached {
        let mut known = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(start).or_insert_with(|| reached(&self.code, start))
    }

    /// The code for waves that set these high bits of the vector register numbers. Each setting has its
    /// own decoded instructions, so that executing one needs no lookup of the bits. `self` is the
    /// program with no bits set.
    pub fn of_banks(&self, banks: VgprMsb) -> &Program {
        if banks == self.code.banks() {
            return self;
        }
        let all =
            self.banked.get_or_init(|| (0..VgprMsb::COUNT).map(|_| OnceLock::new()).collect());
        all[banks.index()].get_or_init(|| Program::of_code(self.code.for_banks(banks)))
    }

    /// The code for waves whose AccVGPRs begin at the row where those of `machine` do. `allocation` is
    /// lazy for code objects other than the kernel's.
    pub fn of_machine(
        self: &Arc<Program>,
        machine: Machine,
        allocation: SlotAllocation,
    ) -> Arc<Program> {
        if machine.accumulation == self.machine().accumulation {
            return Arc::clone(self);
        }
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let variant = variants.entry((machine.accumulation, allocation)).or_insert_with(|| {
            Arc::new(Program::of_code(self.code.for_machine(machine, allocation)))
        });
        Arc::clone(variant)
    }

    /// Blocks of the code compiled to host code; `None` if nothing is compiled.
    pub fn tier(&self) -> Option<&Tier> {
        self.tier.get_or_init(|| Tier::new(self.code.byte_count(), self.level())).as_ref()
    }

    /// Number of rows of each half of the vector registers that the instructions executed so far can
    /// have written.
    pub fn rows_used(&self) -> [u16; 2] {
        let banked = self.banked.get().into_iter().flatten().filter_map(OnceLock::get);
        banked
            .map(Program::rows_used)
            .fold(self.code.rows_used(), |most, rows| [0, 1].map(|half| rows[half].max(most[half])))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)
    }
}
