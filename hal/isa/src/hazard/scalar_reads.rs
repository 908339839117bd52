//! gfx12: a vector operation may see the old value of a scalar register that vector operations
//! have read before, until a wait proves that the new one has arrived (LLVM,
//! `AMDGPUWaitSGPRHazards`). What has been read any time before counts, so this is no table of
//! pairs, but what is known of a wave at a point.

use super::group::{SA_SDST_0, VA_SDST_0, VA_VCC_0, is_salu, is_valu};
use crate::{Class, Encoding, Inst, Opcode, Register, RegisterRange, Sgpr, Ttmp};
use std::fmt;

/// What is known of the scalar registers of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarReads {
    /// Aligned pairs of registers that a vector operation may have read, and those that one has on
    /// every way: a bit of a state that is on more ways never asks for less.
    read: u64,
    surely_read: u64,
    /// Registers of such pairs that were written since, by unit; VCC stands for itself.
    by_salu: u128,
    by_valu: u128,
    vcc_by_salu: bool,
    vcc_by_valu: bool,
    /// How many `ds_nop` in a row make vector operations forget what they have read, and how many
    /// there were.
    forgetting: u8,
    nops: u8,
}

/// What must have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScalarWait {
    by_salu: bool,
    by_valu: bool,
    vcc_by_valu: bool,
}

impl ScalarWait {
    /// Whether nothing is missing.
    pub fn is_empty(self) -> bool {
        self == ScalarWait::default()
    }

    /// What is missing here and is not in `other`.
    #[must_use]
    pub fn without(self, other: ScalarWait) -> ScalarWait {
        ScalarWait {
            by_salu: self.by_salu && !other.by_salu,
            by_valu: self.by_valu && !other.by_valu,
            vcc_by_valu: self.vcc_by_valu && !other.vcc_by_valu,
        }
    }
}

/// As the assembler writes the instruction that waits.
impl fmt::Display for ScalarWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("s_wait_alu")?;
        for (is_needed, field) in [
            (self.by_salu, "depctr_sa_sdst(0)"),
            (self.by_valu, "depctr_va_sdst(0)"),
            (self.vcc_by_valu, "depctr_va_vcc(0)"),
        ] {
            if is_needed {
                write!(f, " {field}")?;
            }
        }
        Ok(())
    }
}

impl ScalarReads {
    /// At the beginning of a wave of this many lanes.
    pub(crate) fn of_wave(wave_size: u8) -> ScalarReads {
        ScalarReads {
            read: 0,
            surely_read: 0,
            by_salu: 0,
            by_valu: 0,
            vcc_by_salu: false,
            vcc_by_valu: false,
            forgetting: if wave_size == 32 { 4 } else { 8 },
            nops: 0,
        }
    }

    /// At the beginning of a function that is called, and where a call comes back: anything may
    /// have been read, and all that was written has arrived.
    #[must_use]
    pub fn called(self) -> ScalarReads {
        ScalarReads { read: !0, surely_read: !0, ..self.after(self.pending()) }
    }

    /// What `inst` needs before it.
    pub fn needed(&self, inst: &Inst) -> ScalarWait {
        self.late(inst).fold(ScalarWait::default(), |all, (_, own)| ScalarWait {
            by_salu: all.by_salu || own.by_salu,
            by_valu: all.by_valu || own.by_valu,
            vcc_by_valu: all.vcc_by_valu || own.vcc_by_valu,
        })
    }

    /// The registers that `inst` reads and that may not have arrived, with what they need.
    pub fn late(&self, inst: &Inst) -> impl Iterator<Item = (RegisterRange, ScalarWait)> {
        let by_valu = is_valu(inst);
        let reads: &[RegisterRange] = if by_valu || is_salu(inst) { &inst.reads } else { &[] };
        let read = scalars(reads).filter(|(first, _)| self.is_read(*first));
        read.filter_map(move |(first, range)| {
            let registers = bits(first, range.words);
            // SALU itself waits for what VALU writes.
            let wait = ScalarWait {
                by_salu: self.by_salu & registers != 0 || is_vcc(range) && self.vcc_by_salu,
                by_valu: by_valu && self.by_valu & registers != 0,
                vcc_by_valu: by_valu && is_vcc(range) && self.vcc_by_valu,
            };
            (!wait.is_empty()).then_some((range, wait))
        })
    }

    /// All that may not have arrived. LLVM waits for it before calls and returns.
    pub fn pending(&self) -> ScalarWait {
        ScalarWait {
            by_salu: self.by_salu != 0 || self.vcc_by_salu,
            by_valu: self.by_valu != 0,
            vcc_by_valu: self.vcc_by_valu,
        }
    }

    /// The same after a wait.
    #[must_use]
    pub fn after(mut self, wait: ScalarWait) -> ScalarReads {
        if wait.by_salu {
            (self.by_salu, self.vcc_by_salu) = (0, false);
        }
        if wait.by_valu {
            self.by_valu = 0;
        }
        self.vcc_by_valu &= !wait.vcc_by_valu;
        self
    }

    /// Executes an instruction.
    pub fn execute(&mut self, inst: &Inst) {
        if inst.operation.opcode() == Opcode::DsNop {
            self.nops = self.nops.saturating_add(1);
            if self.nops >= self.forgetting {
                (self.read, self.surely_read) = (0, 0);
            }
            return;
        }
        self.nops = 0;
        let is_buffer_or_image = inst.class() == Class::Image
            || matches!(inst.encoding, Encoding::Mubuf | Encoding::Mtbuf);
        if is_buffer_or_image || inst.class() == Class::Smem {
            *self = self.after(self.pending());
            return;
        }
        if inst.operation.opcode() == Opcode::SWaitcntDepctr {
            *self = self.after(ScalarWait {
                by_salu: SA_SDST_0.contains(inst),
                by_valu: VA_SDST_0.contains(inst),
                vcc_by_valu: VA_VCC_0.contains(inst),
            });
            return;
        }
        let by_valu = is_valu(inst);
        if !by_valu && !is_salu(inst) {
            return;
        }
        for (first, range) in scalars(&inst.reads) {
            let is_surely_read = self.surely_read & pair(first) != 0;
            if by_valu {
                self.read |= pair(first);
                self.surely_read |= pair(first);
            } else if is_surely_read && is_vcc(range) {
                self.vcc_by_valu = false;
            } else if is_surely_read {
                self.by_valu = 0;
            }
        }
        if inst.flags.call {
            (self.read, self.surely_read) = (!0, !0);
        }
        for (first, range) in scalars(&inst.writes) {
            match (is_vcc(range), by_valu) {
                _ if !self.is_read(first) => {}
                (true, _) => (self.vcc_by_salu, self.vcc_by_valu) = (!by_valu, by_valu),
                (false, true) => self.by_valu |= bits(first, range.words),
                (false, false) => self.by_salu |= bits(first, range.words),
            }
        }
    }

    /// What may be on either of two ways; whether that is more than on this one.
    pub fn join(&mut self, other: &ScalarReads) -> bool {
        let before = *self;
        self.read |= other.read;
        self.surely_read &= other.surely_read;
        self.by_salu |= other.by_salu;
        self.by_valu |= other.by_valu;
        self.vcc_by_salu |= other.vcc_by_salu;
        self.vcc_by_valu |= other.vcc_by_valu;
        self.nops = self.nops.min(other.nops);
        *self != before
    }

    fn is_read(&self, first: u8) -> bool {
        self.read & pair(first) != 0
    }
}

/// The scalar registers among some that the hazard is about, with the number of the first: all but
/// EXEC, M0 and the null register.
fn scalars(ranges: &[RegisterRange]) -> impl Iterator<Item = (u8, RegisterRange)> {
    ranges.iter().filter_map(|range| {
        let first = match range.first {
            Register::Sgpr(Sgpr(n)) => n,
            Register::VccLo => 106,
            Register::VccHi => 107,
            Register::Ttmp(Ttmp(n)) => 108 + n,
            _ => return None,
        };
        Some((first & 127, *range))
    })
}

fn is_vcc(range: RegisterRange) -> bool {
    matches!(range.first, Register::VccLo | Register::VccHi)
}

fn pair(first: u8) -> u64 {
    1 << (first / 2)
}

fn bits(first: u8, words: u8) -> u128 {
    ((1u128 << words.min(64)) - 1) << first
}
