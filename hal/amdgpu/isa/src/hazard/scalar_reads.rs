//! Scalar registers whose old value an instruction may see after they are written, as vector
//! operations have read them before, until a wait proves that the new one has arrived: on gfx12 any
//! of them (LLVM, `AMDGPUWaitSGPRHazards`), in waves of 64 lanes of gfx11 masks (LLVM,
//! `fixVALUMaskWriteHazard`). What has been read any time before counts, so this is no table of
//! pairs, but what is known of a wave at a point.

use super::group::{READS_MASK, SA_SDST_0, VA_SDST_0, VA_VCC_0, is_salu, is_valu};
use super::{Mitigation, Part};
use crate::{Class, Encoding, Generation, Inst, Opcode, Register, RegisterRange, Sgpr, Ttmp};

/// What is known of the scalar registers of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarReads {
    kind: Kind,
    /// Registers that a vector operation may have read, and those of pairs that one has on every way: a
    /// bit of a state that is on more ways never asks for less.
    pub(super) read: u128,
    pub(super) surely_read: u128,
    /// Such registers that were written since, by unit; VCC stands for itself.
    pub(super) by_salu: u128,
    pub(super) by_valu: u128,
    pub(super) vcc_by_salu: bool,
    pub(super) vcc_by_valu: bool,
    /// `ds_nop` in a row.
    nops: u8,
}

/// Which reads make an instruction see an old value, and what ends that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Those of both registers of an aligned pair, by any vector operation (gfx12).
    Pairs {
        /// How many `ds_nop` in a row make vector operations forget what they have read.
        forgetting: u8,
    },
    /// Those of masks, until the registers are written (gfx11, waves of 64 lanes). LLVM waits after
    /// that, whether anything reads what is written or not.
    Masks,
}

/// What must have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScalarWait {
    by_salu: bool,
    by_valu: bool,
    vcc_by_valu: bool,
}

impl ScalarWait {
    /// What SALU wrote.
    pub const FOR_SALU: ScalarWait =
        ScalarWait { by_salu: true, by_valu: false, vcc_by_valu: false };

    /// Whether nothing is missing.
    pub fn is_empty(self) -> bool {
        self == ScalarWait::default()
    }
}

impl ScalarReads {
    /// At the beginning of a wave of this many lanes; `None` where no target's wave sees old values.
    pub(crate) fn of_wave(generation: Generation, wave_size: u8) -> Option<ScalarReads> {
        let kind = match (generation, wave_size) {
            (Generation::Gfx12, 32) => Kind::Pairs { forgetting: 4 },
            (Generation::Gfx12, _) => Kind::Pairs { forgetting: 8 },
            (Generation::Gfx11, 64) => Kind::Masks,
            _ => return None,
        };
        Some(ScalarReads::new(kind))
    }

    /// Nothing is read or written yet.
    fn new(kind: Kind) -> ScalarReads {
        ScalarReads {
            kind,
            read: 0,
            surely_read: 0,
            by_salu: 0,
            by_valu: 0,
            vcc_by_salu: false,
            vcc_by_valu: false,
            nops: 0,
        }
    }

    /// At the beginning of a function that is called, and where a call comes back: anything may
    /// have been read, and all that was written has arrived.
    #[must_use]
    pub fn called(self) -> ScalarReads {
        ScalarReads { read: !0, surely_read: !0, ..self.after(self.pending()) }
    }

    /// What compilers take for granted after an instruction that leaves a function by an address has
    /// been executed: they have waited for what came before it, and what the call itself writes has
    /// arrived. For masks LLVM looks no further back than the beginning of a function.
    #[must_use]
    pub fn left_by(self, inst: &Inst) -> ScalarReads {
        match self.kind {
            _ if !inst.leaves_function() => self,
            Kind::Pairs { .. } if inst.flags.call => self.called(),
            Kind::Pairs { .. } => self.after(self.pending()),
            Kind::Masks => ScalarReads::new(self.kind),
        }
    }

    /// The instruction that waits.
    pub fn mitigation(&self, wait: ScalarWait) -> Mitigation {
        let mnemonic = match self.kind {
            Kind::Pairs { .. } => "s_wait_alu",
            Kind::Masks => "s_waitcnt_depctr",
        };
        let fields = [
            (wait.by_salu, " depctr_sa_sdst(0)"),
            (wait.by_valu, " depctr_va_sdst(0)"),
            (wait.vcc_by_valu, " depctr_va_vcc(0)"),
        ];
        let needed = fields.into_iter().filter(|(is_needed, _)| *is_needed);
        let fields: String = needed.map(|(_, field)| field).collect();
        Mitigation::Instruction(format!("{mnemonic}{fields}"))
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
        // On gfx12 SALU itself waits for what VALU writes.
        let (may_be_late, waits_for_valu) = match self.kind {
            Kind::Pairs { .. } => (is_valu(inst) || is_salu(inst), is_valu(inst)),
            Kind::Masks => (true, true),
        };
        let reads: &[RegisterRange] = if may_be_late { &inst.reads } else { &[] };
        let read = scalars(reads).filter(|(first, _)| match self.kind {
            Kind::Pairs { .. } => self.read & bits(*first, 1) != 0,
            Kind::Masks => true,
        });
        read.filter_map(move |(first, range)| {
            let registers = bits(first, range.words);
            let wait = ScalarWait {
                by_salu: self.by_salu & registers != 0 || is_vcc(range) && self.vcc_by_salu,
                by_valu: waits_for_valu && self.by_valu & registers != 0,
                vcc_by_valu: waits_for_valu && is_vcc(range) && self.vcc_by_valu,
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

    /// The same where a register that may not have arrived has.
    #[must_use]
    pub fn arrived(mut self, registers: RegisterRange) -> ScalarReads {
        for (first, range) in scalars(&[registers]) {
            self.by_salu &= !bits(first, range.words);
            self.by_valu &= !bits(first, range.words);
            self.vcc_by_salu &= !is_vcc(range);
            self.vcc_by_valu &= !is_vcc(range);
        }
        self
    }

    /// Executes an instruction.
    pub fn execute(&mut self, inst: &Inst) {
        self.step(inst, self.read, true);
    }

    /// Executes an instruction where what it writes is late if it is among `read`; whether it counts what
    /// the instruction itself reads.
    pub(super) fn step(&mut self, inst: &Inst, read: u128, counts_reads: bool) {
        if inst.operation.opcode() == Opcode::SWaitcntDepctr {
            self.nops = 0;
            *self = self.after(ScalarWait {
                by_salu: SA_SDST_0.contains(inst),
                by_valu: VA_SDST_0.contains(inst),
                vcc_by_valu: VA_VCC_0.contains(inst),
            });
            return;
        }
        match self.kind {
            Kind::Pairs { forgetting } => self.step_pairs(inst, read, counts_reads, forgetting),
            Kind::Masks => self.step_masks(inst, read, counts_reads),
        }
    }

    fn step_pairs(&mut self, inst: &Inst, mut read: u128, counts_reads: bool, forgetting: u8) {
        if inst.operation.opcode() == Opcode::DsNop {
            self.nops = self.nops.saturating_add(1);
            if self.nops >= forgetting {
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
        let by_valu = is_valu(inst);
        if !by_valu && !is_salu(inst) {
            return;
        }
        for (first, range) in scalars(&inst.reads) {
            let pair = bits(first & !1, 2);
            let is_surely_read = self.surely_read & pair != 0;
            if by_valu {
                self.surely_read |= pair;
                if counts_reads {
                    self.read |= pair;
                    read |= pair;
                }
            } else if is_surely_read && is_vcc(range) {
                self.vcc_by_valu = false;
            } else if is_surely_read {
                self.by_valu = 0;
            }
        }
        if inst.flags.call && counts_reads {
            (self.read, self.surely_read, read) = (!0, !0, !0);
        }
        for (first, range) in scalars(&inst.writes) {
            match (is_vcc(range), by_valu) {
                _ if read & bits(first, 1) == 0 => {}
                (true, _) => (self.vcc_by_salu, self.vcc_by_valu) = (!by_valu, by_valu),
                (false, true) => self.by_valu |= bits(first, range.words),
                (false, false) => self.by_salu |= bits(first, range.words),
            }
        }
    }

    fn step_masks(&mut self, inst: &Inst, read: u128, counts_reads: bool) {
        let (by_valu, by_salu) = (is_valu(inst), is_salu(inst));
        for (first, range) in scalars(&inst.writes) {
            let overwritten = read & bits(first, range.words);
            self.read &= !bits(first, range.words);
            let is_late = overwritten != 0;
            match is_vcc(range) {
                true => {
                    self.vcc_by_salu |= is_late && by_salu;
                    self.vcc_by_valu |= is_late && by_valu;
                }
                false if by_salu => self.by_salu |= overwritten,
                false if by_valu => self.by_valu |= overwritten,
                false => {}
            }
        }
        if counts_reads && READS_MASK.contains(inst) {
            for (first, range) in scalars(&Part::Mask.registers(inst)) {
                self.read |= bits(first, range.words);
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

fn bits(first: u8, words: u8) -> u128 {
    ((1u128 << words.min(64)) - 1) << first
}
