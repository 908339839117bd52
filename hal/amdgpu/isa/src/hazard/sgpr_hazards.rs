//! SGPR hazards: an instruction may read the old value of a scalar register after it is written, because
//! earlier vector operations read it, until a wait ensures that the new value has arrived. On gfx12 this
//! affects all scalar registers (LLVM, `AMDGPUWaitSGPRHazards`), on gfx11 lane masks in wave64 (LLVM,
//! `fixVALUMaskWriteHazard`). Reads at any earlier time count, so this is not a table of pairs but a state
//! that is tracked through the program.

use super::group::{READS_MASK, SA_SDST_0, VA_SDST_0, VA_VCC_0, is_salu, is_valu};
use super::{Mitigation, Registers};
use crate::{Class, Encoding, Generation, Inst, Opcode, Register, RegisterRange, Sgpr, Ttmp};

/// The SGPR hazard state of a wave at a program point. Bit `n` of a register mask is scalar register `n` as
/// encoded in operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SgprHazardState {
    kind: Kind,
    /// Registers that a vector operation has read on some path.
    pub(super) read: u128,
    /// Registers of pairs that a vector operation has read on every path.
    pub(super) read_on_all_paths: u128,
    /// Registers in `read` that SALU has written since and whose new value may not have arrived, except
    /// VCC.
    pub(super) pending_salu: u128,
    /// Like `pending_salu`, but written by VALU.
    pub(super) pending_valu: u128,
    /// Like `pending_salu`, for VCC.
    pub(super) vcc_pending_salu: bool,
    /// Like `pending_valu`, for VCC.
    pub(super) vcc_pending_valu: bool,
    /// Number of consecutive `ds_nop`.
    nops: u8,
}

/// The reads that cause a hazard, and the events that resolve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Reads of an aligned register pair by any vector operation (gfx12).
    Pairs {
        /// Number of consecutive `ds_nop` after which earlier reads no longer matter.
        nops_to_forget: u8,
    },
    /// Reads of lane masks, until the registers are written (gfx11, wave64). LLVM then inserts a wait even
    /// if nothing reads the written registers.
    Masks,
}

/// Selects whether a step records the registers that the instruction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadRecording {
    Record,
    Ignore,
}

/// The pending writes that an instruction must wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SgprWait {
    /// Writes by SALU.
    salu: bool,
    /// Writes by VALU, except of VCC.
    valu: bool,
    /// Writes of VCC by VALU.
    vcc_valu: bool,
}

impl SgprWait {
    /// Waits for writes by SALU.
    pub const FOR_SALU: SgprWait = SgprWait { salu: true, valu: false, vcc_valu: false };

    /// Returns `true` if no wait is needed.
    pub fn is_empty(self) -> bool {
        self == SgprWait::default()
    }
}

impl SgprHazardState {
    /// The initial state of a wave; `None` for targets and wave sizes without SGPR hazards.
    pub(crate) fn new(generation: Generation, wave_size: u8) -> Option<SgprHazardState> {
        let kind = match (generation, wave_size) {
            (Generation::Gfx12, 32) => Kind::Pairs { nops_to_forget: 4 },
            (Generation::Gfx12, _) => Kind::Pairs { nops_to_forget: 8 },
            (Generation::Gfx11, 64) => Kind::Masks,
            _ => return None,
        };
        Some(SgprHazardState::initial(kind))
    }

    /// The state before any reads and writes.
    fn initial(kind: Kind) -> SgprHazardState {
        SgprHazardState {
            kind,
            read: 0,
            read_on_all_paths: 0,
            pending_salu: 0,
            pending_valu: 0,
            vcc_pending_salu: false,
            vcc_pending_valu: false,
            nops: 0,
        }
    }

    /// The state at the entry of a called function and after a call returns: all registers may have been
    /// read, and all writes have arrived.
    #[must_use]
    pub fn called(self) -> SgprHazardState {
        SgprHazardState { read: !0, read_on_all_paths: !0, ..self.after_wait(self.pending()) }
    }

    /// The state that compilers assume after `inst`, if it leaves the function through an address: earlier
    /// writes have been waited for, and the writes of the call itself have arrived. For masks, LLVM looks back
    /// to the beginning of the function only.
    #[must_use]
    pub fn after_leaving(self, inst: &Inst) -> SgprHazardState {
        match self.kind {
            _ if !inst.leaves_function() => self,
            Kind::Pairs { .. } if inst.flags.call => self.called(),
            Kind::Pairs { .. } => self.after_wait(self.pending()),
            Kind::Masks => SgprHazardState::initial(self.kind),
        }
    }

    /// The instruction that performs a wait.
    pub fn mitigation(&self, wait: SgprWait) -> Mitigation {
        let mnemonic = match self.kind {
            Kind::Pairs { .. } => "s_wait_alu",
            Kind::Masks => "s_waitcnt_depctr",
        };
        let fields = [
            (wait.salu, " depctr_sa_sdst(0)"),
            (wait.valu, " depctr_va_sdst(0)"),
            (wait.vcc_valu, " depctr_va_vcc(0)"),
        ];
        let needed = fields.into_iter().filter(|(is_needed, _)| *is_needed);
        let fields: String = needed.map(|(_, field)| field).collect();
        Mitigation::Instruction(format!("{mnemonic}{fields}"))
    }

    /// The wait that `inst` needs before it.
    pub fn required_wait(&self, inst: &Inst) -> SgprWait {
        self.stale_reads(inst).fold(SgprWait::default(), |all, (_, wait)| SgprWait {
            salu: all.salu || wait.salu,
            valu: all.valu || wait.valu,
            vcc_valu: all.vcc_valu || wait.vcc_valu,
        })
    }

    /// The registers that `inst` reads and that may be stale, each with the wait that it needs.
    pub fn stale_reads(&self, inst: &Inst) -> impl Iterator<Item = (RegisterRange, SgprWait)> {
        // On gfx12 hardware makes SALU wait for VALU writes.
        let (can_be_stale, needs_valu_wait) = match self.kind {
            Kind::Pairs { .. } => (is_valu(inst) || is_salu(inst), is_valu(inst)),
            Kind::Masks => (true, true),
        };
        let reads: &[RegisterRange] = if can_be_stale { &inst.reads } else { &[] };
        let read = scalars(reads).filter(|(first, _)| match self.kind {
            Kind::Pairs { .. } => self.read & bits(*first, 1) != 0,
            Kind::Masks => true,
        });
        read.filter_map(move |(first, range)| {
            let registers = bits(first, range.words);
            let wait = SgprWait {
                salu: self.pending_salu & registers != 0 || is_vcc(range) && self.vcc_pending_salu,
                valu: needs_valu_wait && self.pending_valu & registers != 0,
                vcc_valu: needs_valu_wait && is_vcc(range) && self.vcc_pending_valu,
            };
            (!wait.is_empty()).then_some((range, wait))
        })
    }

    /// The wait for all pending writes, which LLVM inserts before calls and returns.
    pub fn pending(&self) -> SgprWait {
        SgprWait {
            salu: self.pending_salu != 0 || self.vcc_pending_salu,
            valu: self.pending_valu != 0,
            vcc_valu: self.vcc_pending_valu,
        }
    }

    /// The state after a wait.
    #[must_use]
    pub fn after_wait(mut self, wait: SgprWait) -> SgprHazardState {
        if wait.salu {
            (self.pending_salu, self.vcc_pending_salu) = (0, false);
        }
        if wait.valu {
            self.pending_valu = 0;
        }
        self.vcc_pending_valu &= !wait.vcc_valu;
        self
    }

    /// The state after the pending writes of `registers` have arrived.
    #[must_use]
    pub fn with_arrived(mut self, registers: RegisterRange) -> SgprHazardState {
        for (first, range) in scalars(&[registers]) {
            self.pending_salu &= !bits(first, range.words);
            self.pending_valu &= !bits(first, range.words);
            self.vcc_pending_salu &= !is_vcc(range);
            self.vcc_pending_valu &= !is_vcc(range);
        }
        self
    }

    /// Executes an instruction.
    pub fn execute(&mut self, inst: &Inst) {
        self.step(inst, self.read, ReadRecording::Record);
    }

    /// Executes an instruction whose writes become pending for registers in `read`. `recording` selects whether
    /// the registers that the instruction itself reads are recorded.
    pub(super) fn step(&mut self, inst: &Inst, read: u128, recording: ReadRecording) {
        if inst.operation.opcode() == Opcode::SWaitcntDepctr {
            self.nops = 0;
            *self = self.after_wait(SgprWait {
                salu: SA_SDST_0.contains(inst),
                valu: VA_SDST_0.contains(inst),
                vcc_valu: VA_VCC_0.contains(inst),
            });
            return;
        }
        match self.kind {
            Kind::Pairs { nops_to_forget } if inst.operation.opcode() == Opcode::DsNop => {
                self.nops = self.nops.saturating_add(1);
                if self.nops >= nops_to_forget {
                    (self.read, self.read_on_all_paths) = (0, 0);
                }
            }
            Kind::Pairs { .. } => self.step_pairs(inst, read, recording),
            Kind::Masks => self.step_masks(inst, read, recording),
        }
    }

    fn step_pairs(&mut self, inst: &Inst, mut read: u128, recording: ReadRecording) {
        self.nops = 0;
        let is_buffer_or_image = inst.class() == Class::Image
            || matches!(inst.encoding, Encoding::Mubuf | Encoding::Mtbuf);
        if is_buffer_or_image || inst.class() == Class::Smem {
            *self = self.after_wait(self.pending());
            return;
        }
        let by_valu = is_valu(inst);
        if !by_valu && !is_salu(inst) {
            return;
        }
        let records_reads = recording == ReadRecording::Record;
        for (first, range) in scalars(&inst.reads) {
            let pair = bits(first & !1, 2);
            let is_read_on_all_paths = self.read_on_all_paths & pair != 0;
            if by_valu {
                self.read_on_all_paths |= pair;
                if records_reads {
                    self.read |= pair;
                    read |= pair;
                }
            } else if is_read_on_all_paths && is_vcc(range) {
                self.vcc_pending_valu = false;
            } else if is_read_on_all_paths {
                self.pending_valu = 0;
            }
        }
        if inst.flags.call && records_reads {
            (self.read, self.read_on_all_paths, read) = (!0, !0, !0);
        }
        for (first, range) in scalars(&inst.writes) {
            if read & bits(first, 1) == 0 {
                continue;
            }
            if is_vcc(range) {
                (self.vcc_pending_salu, self.vcc_pending_valu) = (!by_valu, by_valu);
            } else if by_valu {
                self.pending_valu |= bits(first, range.words);
            } else {
                self.pending_salu |= bits(first, range.words);
            }
        }
    }

    fn step_masks(&mut self, inst: &Inst, read: u128, recording: ReadRecording) {
        let (by_valu, by_salu) = (is_valu(inst), is_salu(inst));
        for (first, range) in scalars(&inst.writes) {
            let overwritten = read & bits(first, range.words);
            self.read &= !bits(first, range.words);
            if is_vcc(range) {
                self.vcc_pending_salu |= overwritten != 0 && by_salu;
                self.vcc_pending_valu |= overwritten != 0 && by_valu;
            } else if by_salu {
                self.pending_salu |= overwritten;
            } else if by_valu {
                self.pending_valu |= overwritten;
            }
        }
        if recording == ReadRecording::Record && READS_MASK.contains(inst) {
            for (first, range) in scalars(&Registers::LaneMask.select(inst)) {
                self.read |= bits(first, range.words);
            }
        }
    }

    /// Joins the state of another path: the result needs at least the waits of both. Returns `true` if this
    /// state changed.
    pub fn join(&mut self, other: &SgprHazardState) -> bool {
        let before = *self;
        self.read |= other.read;
        self.read_on_all_paths &= other.read_on_all_paths;
        self.pending_salu |= other.pending_salu;
        self.pending_valu |= other.pending_valu;
        self.vcc_pending_salu |= other.vcc_pending_salu;
        self.vcc_pending_valu |= other.vcc_pending_valu;
        self.nops = self.nops.min(other.nops);
        *self != before
    }
}

/// The scalar registers among `ranges` that can be stale, with the number of the first: all except EXEC, M0
/// and the null register.
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

/// The register mask of `words` registers that start at number `first`.
fn bits(first: u8, words: u8) -> u128 {
    ((1u128 << words.min(64)) - 1) << first
}
