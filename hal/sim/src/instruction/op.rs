//! An instruction made ready for execution.

use super::control::Control;
use super::lane_move::LaneMove;
use super::lds::LdsAccess;
use super::operation::{ScalarOperation, VectorOperation};
use super::scalar_memory::ScalarAccess;
use super::shared::Shared;
use super::tensor::Direction;
use super::vector_memory::VectorAccess;
use crate::wave::{RowIndex, ScalarIndex, Wave};
use flipwave_device::Absence;
use flipwave_isa::{Inst, OutputScale, SdwaSelect, SdwaUnused};
use std::fmt;
use std::sync::Arc;

/// Executes a vector operation on all lanes.
///
/// # Safety
/// The host must have the CPU features that the function was compiled for.
pub type VectorFunction = unsafe fn(&mut Wave, &Op);

/// Executes an operation that is not lane by lane.
pub type ScalarFunction = fn(&mut Wave, &Op);

/// A decoded instruction with resolved operands. The field order puts everything that each
/// execution reads into two cache lines, so that loops of some hundred instructions stay in the
/// first-level cache together with the registers.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Op {
    /// Execution function.
    pub run: Run,
    /// Length in bytes.
    pub size: u8,
    /// `true` if it acts in each active lane, rather than once per wave.
    pub per_lane: bool,
    /// Highest named architectural vector register plus one.
    pub vgprs_named: u16,
    /// Highest named accumulation register plus one.
    pub acc_vgprs_named: u16,
    /// Lowest row of the per-lane destination.
    pub destination: RowIndex,
    /// Source and result modifiers; absent without modifiers.
    pub adapt: Option<Box<Adapt>>,
    /// Immediate field, address offset or branch distance, depending on the operation.
    pub immediate: i64,
    /// Lowest register of the scalar destination.
    pub scalar_destination: ScalarIndex,
    /// Registers of the two words of the lane-mask destination.
    pub mask_destination: [ScalarIndex; 2],
    /// `true` if it is a comparison that also writes EXEC.
    pub writes_exec: bool,
    /// Role in blocks of compiled code.
    pub flow: Flow,
    /// Access to LDS.
    pub shared: Shared,
    /// LDS access that no barrier orders. The scheduler may hold a wave before it.
    pub held: Shared,
    /// `true` if `held` is the first of a run: the previous instruction in memory has no access of
    /// the same kind. Blocks of compiled code start here.
    pub begins_run: bool,
    /// Operations that the instruction is composed of.
    pub inner: Option<Box<Inner>>,
    /// Source operands.
    pub sources: [Source; 4],
    /// Row of the operation tables that defines the operation.
    pub row: Option<TableRow>,
    /// The decoded instruction; its `pc` is the ELF virtual address.
    pub inst: Arc<Inst>,
}

/// A row of the operation tables.
#[derive(Clone, Copy)]
pub enum TableRow {
    /// A vector operation.
    Vector(&'static VectorOperation),
    /// A scalar operation.
    Scalar(&'static ScalarOperation),
}

impl fmt::Debug for TableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TableRow::Vector(row) => row.name,
            TableRow::Scalar(row) => row.name,
        })
    }
}

impl Op {
    /// Row of a vector operation.
    pub fn vector_row(&self) -> Option<&'static VectorOperation> {
        match self.row {
            Some(TableRow::Vector(row)) => Some(row),
            _ => None,
        }
    }

    /// Row of a scalar operation.
    pub fn scalar_row(&self) -> Option<&'static ScalarOperation> {
        match self.row {
            Some(TableRow::Scalar(row)) => Some(row),
            _ => None,
        }
    }

    /// Lane permutation of the first source, if there is one.
    pub fn lane_move(&self) -> Option<&LaneMove> {
        self.adapt.as_ref()?.lane_move.as_ref()
    }

    /// Returns the decoded instruction for modification by a test.
    #[cfg(test)]
    pub fn inst_mut(&mut self) -> &mut Inst {
        Arc::make_mut(&mut self.inst)
    }

    /// Component operations; mostly the operation itself.
    pub fn parts(&self) -> impl Iterator<Item = &Op> {
        let (first, second) = match self.inner.as_deref() {
            Some(Inner::Dual(halves)) => (&halves.first, Some(&halves.second)),
            _ => (self, None),
        };
        std::iter::once(first).chain(second)
    }
}

const _: () = assert!(std::mem::offset_of!(Op, sources) == 64, "see `Op`");

impl Op {
    /// Creates an operation without operands from `inst`, executed by `run`.
    pub fn new(inst: Inst, run: Run) -> Op {
        Op {
            run,
            size: inst.size,
            per_lane: run.is_per_lane(),
            vgprs_named: 0,
            acc_vgprs_named: 0,
            destination: RowIndex(0),
            scalar_destination: ScalarIndex(0),
            mask_destination: [ScalarIndex::DROPPED; 2],
            writes_exec: false,
            flow: Flow::Inside,
            shared: Shared::of(run),
            held: Shared::of(run),
            begins_run: false,
            sources: [Source::NONE; 4],
            adapt: None,
            immediate: inst.immediate.unwrap_or_default(),
            inner: None,
            row: None,
            inst: Arc::new(inst),
        }
    }
}

/// Role of an instruction in blocks of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next instruction may follow in the same block.
    Inside,
    /// Ends a block, because the next instruction is on another page of code.
    LastOfPage,
    /// Ends a block, because the wave waits at a barrier.
    Waits,
    /// Ends or separates blocks, because it changes the control flow or the effect of later
    /// instructions, or is invalid.
    Parts,
}

impl Flow {
    /// Bytes per page of code; pages start at multiples of this in ELF virtual addresses.
    const PAGE: u64 = 4096;

    /// Role of an instruction by its address alone.
    pub fn of_place(inst: &Inst) -> Flow {
        let next = inst.pc.0.wrapping_add(inst.size.into());
        if inst.pc.0 / Flow::PAGE == next / Flow::PAGE { Flow::Inside } else { Flow::LastOfPage }
    }
}

/// Operations that an instruction is composed of.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "it is always in a box, and most are dual")]
pub enum Inner {
    /// Operations of [`Run::Dual`].
    Dual(Dual),
    /// Operation of [`Run::OnScalars`]. Its sources are [`ScalarIndex::OPERANDS`], its result is
    /// written to [`RowIndex::WAITING`] or, for a comparison, to [`ScalarIndex::COMPARED`].
    OnScalars(Op),
    /// Operation of [`Run::LdsDirect`], which reads the word from [`ScalarIndex::LDS_DIRECT`].
    LdsDirect(Op),
}

/// The halves of a dual instruction.
#[derive(Clone, Debug)]
pub struct Dual {
    /// First operation. Its result is kept in [`RowIndex::WAITING`], because the second half reads
    /// its sources before either half writes (RDNA 3 ISA, "VOPD").
    pub first: Op,
    /// Destination of the first half's result.
    pub destination: RowIndex,
    /// Words of the result: two for double precision (gfx1250).
    pub words: u16,
    /// Second operation.
    pub second: Op,
}

/// Reason why a decodable instruction is never executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotExecuted {
    /// Absent from the processor or from the simulator.
    pub absence: Absence,
    /// Explanation.
    pub reason: &'static str,
}

/// Execution method of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Executed in all active lanes.
    Vector(VectorFunction),
    /// Executed once per wave.
    Scalar(ScalarFunction),
    /// Executed on the whole wave: moves between lanes, matrix operations.
    Whole(ScalarFunction),
    /// Control flow.
    Control(Control),
    /// Scalar memory.
    ScalarMemory(ScalarAccess),
    /// Vector memory access.
    VectorMemory(VectorAccess),
    /// Local data share.
    Lds(LdsAccess),
    /// Moves a tensor between memory and LDS.
    Tensor(Direction),
    /// Two operations in one instruction, in [`Op::inner`].
    Dual,
    /// A vector operation on scalar registers, in [`Op::inner`].
    OnScalars,
    /// A vector operation with a word of LDS as a source, in [`Op::inner`].
    LdsDirect,
    /// Decodable, but not executable by compute waves.
    NotCompute(NotExecuted),
    /// Decodable, but not executed because no public source specifies it; the text says what is open.
    Unspecified(&'static str),
    /// Decodable, but not implemented; the text is the reason.
    Gap(&'static str),
}

impl Run {
    /// Returns `true` if it acts in each active lane, rather than once per wave.
    pub fn is_per_lane(self) -> bool {
        matches!(self, Run::Vector(_) | Run::VectorMemory(_) | Run::Lds(_))
    }
}

/// A source operand, split into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Low word, high word. One-word sources repeat the low word.
    pub words: [Word; 2],
}

impl Source {
    /// An absent source.
    pub const NONE: Source = Source { words: [Word::Constant(0); 2] };

    /// Row of a vector-register source.
    pub fn row(&self) -> Option<RowIndex> {
        match self.words[0] {
            Word::Row(row) => Some(row),
            _ => None,
        }
    }
}

/// Location of a word of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A vector register.
    Row(RowIndex),
    /// A scalar register, uniform over lanes.
    Scalar(ScalarIndex),
    /// A constant, uniform over lanes.
    Constant(u32),
    /// 1 if SCC is set.
    Scc,
    /// 1 if VCC is zero.
    Vccz,
    /// 1 if EXEC is zero.
    Execz,
}

/// Source and result modifiers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adapt {
    /// Modifiers of each source.
    pub sources: [SourceAdapt; 4],
    /// Lane permutation of the first source.
    pub lane_move: Option<LaneMove>,
    /// Result modifiers.
    pub finish: Finish,
}

/// Modifiers of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceAdapt {
    /// Selected part of the word.
    pub select: SdwaSelect,
    /// `true` if the selected part is sign-extended.
    pub sign_extend: bool,
    /// `true` if the absolute value is taken.
    pub absolute: bool,
    /// `true` if the value is negated, after the absolute value.
    pub negate: bool,
    /// Packed operations: the low result reads the high half.
    pub low_from_high: bool,
    /// Packed operations: the high result reads the low half.
    pub high_from_low: bool,
    /// Packed operations: negation for the low result.
    pub negate_low: bool,
    /// Packed operations: negation for the high result.
    pub negate_high: bool,
}

/// Modifiers of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// Output scale.
    pub scale: OutputScale,
    /// `true` if the result is clamped to 0..1.
    pub clamp: bool,
    /// Part of the destination that is written.
    pub select: SdwaSelect,
    /// Treatment of the other part.
    pub unused: SdwaUnused,
}

impl Finish {
    /// Returns `true` if the result is scaled or clamped.
    #[inline(always)]
    pub fn changes_value(&self) -> bool {
        self.clamp || self.scale != OutputScale::None
    }
}
