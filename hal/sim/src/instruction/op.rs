//! An instruction made ready for execution.

use super::control::Control;
use super::lane_move::LaneMove;
use super::lds::LdsAccess;
use super::scalar_memory::ScalarAccess;
use super::shared::Shared;
use super::tensor::Direction;
use super::vector_memory::VectorAccess;
use crate::wave::{RowIndex, ScalarIndex, Wave};
use flipwave_device::Absence;
use flipwave_isa::{Inst, OutputScale, SdwaSelect, SdwaUnused};
use std::sync::Arc;

/// Executes a vector operation on all lanes.
///
/// # Safety
/// The host must have the CPU features that the function was compiled for.
pub type VectorFunction = unsafe fn(&mut Wave, &Op);

/// Executes an operation that is not lane by lane.
pub type ScalarFunction = fn(&mut Wave, &Op);

/// A decoded instruction with its operands resolved. In this order, what is read whenever it is
/// executed lies in two cache lines: loops of some hundred instructions stay in the first cache
/// beside the registers.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Op {
    /// What executes it.
    pub run: Run,
    /// Length in bytes.
    pub size: u8,
    /// Whether it does something in each active lane, rather than once.
    pub per_lane: bool,
    /// One more than the highest architectural vector register it names.
    pub vgprs_named: u16,
    /// One more than the highest accumulation register it names.
    pub acc_vgprs_named: u16,
    /// Lowest row of the per-lane destination.
    pub destination: RowIndex,
    /// What modifiers make of sources and result; absent without modifiers.
    pub adapt: Option<Box<Adapt>>,
    /// Immediate field, address offset, branch distance: as the operation has it.
    pub immediate: i64,
    /// Lowest register of the scalar destination.
    pub scalar_destination: ScalarIndex,
    /// The registers of the lane-mask destination's two words.
    pub mask_destination: [ScalarIndex; 2],
    /// A comparison that also writes EXEC.
    pub writes_exec: bool,
    /// How it stands to blocks of compiled code.
    pub flow: Flow,
    /// Its access to LDS.
    pub shared: Shared,
    /// LDS access that no barrier orders. The scheduler may hold a wave before it.
    pub held: Shared,
    /// Whether that is the first of a run: the instruction before it in memory has no access of the same
    /// kind. Blocks of compiled code begin with it.
    pub begins_run: bool,
    /// The operations that an instruction is made of.
    pub inner: Option<Box<Inner>>,
    /// The sources.
    pub sources: [Source; 4],
    /// The instruction it came from, its `pc` being the ELF virtual address.
    pub inst: Arc<Inst>,
}

impl Op {
    /// How lanes take the words of its first source from other lanes, if they do.
    pub fn lane_move(&self) -> Option<&LaneMove> {
        self.adapt.as_ref()?.lane_move.as_ref()
    }

    /// The instruction, to be changed by a test.
    #[cfg(test)]
    pub fn inst_mut(&mut self) -> &mut Inst {
        Arc::make_mut(&mut self.inst)
    }

    /// The operations that it consists of, mostly itself.
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
    /// An operation without operands, made of `inst` and executed by `run`.
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
            inst: Arc::new(inst),
        }
    }
}

/// How an instruction stands to blocks of compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one may follow it in a block.
    Inside,
    /// It ends a block: the next one is on another page of code.
    LastOfPage,
    /// It ends a block: the wave waits at a barrier.
    Waits,
    /// It ends a block, or stands between two: it changes the course of the wave, or what instructions
    /// after it do, or is none.
    Parts,
}

impl Flow {
    /// Bytes of a page of code, beginning at an ELF virtual address that is a multiple of that.
    const PAGE: u64 = 4096;

    /// That of an instruction that has no other one of its own.
    pub fn of_place(inst: &Inst) -> Flow {
        let next = inst.pc.0.wrapping_add(inst.size.into());
        match inst.pc.0 / Flow::PAGE == next / Flow::PAGE {
            true => Flow::Inside,
            false => Flow::LastOfPage,
        }
    }
}

/// The operations that an instruction is made of.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "it is always in a box, and most are dual")]
pub enum Inner {
    /// Those of [`Run::Dual`].
    Dual(Dual),
    /// That of [`Run::OnScalars`]. Its sources are [`ScalarIndex::OPERANDS`], its result goes to
    /// [`RowIndex::WAITING`] or, of a comparison, to [`ScalarIndex::COMPARED`].
    OnScalars(Op),
    /// That of [`Run::LdsDirect`], which finds the word in [`ScalarIndex::LDS_DIRECT`].
    LdsDirect(Op),
}

/// The halves of a dual instruction.
#[derive(Clone, Debug)]
pub struct Dual {
    /// The first. Its result waits in [`RowIndex::WAITING`], because the second half reads its
    /// sources before either half writes (RDNA 3 ISA, "VOPD").
    pub first: Op,
    /// Where the first half's result goes.
    pub destination: RowIndex,
    /// Its words: two of double precision (gfx1250).
    pub words: u16,
    /// The second.
    pub second: Op,
}

/// Why an instruction that decodes is never executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotExecuted {
    /// Whether the processor or the embedded GPU lacks the instruction.
    pub absence: Absence,
    /// Why.
    pub reason: &'static str,
}

/// How an instruction is executed.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// On all active lanes.
    Vector(VectorFunction),
    /// Once.
    Scalar(ScalarFunction),
    /// On the wave as a whole: moves between lanes, matrices.
    Whole(ScalarFunction),
    /// Changes the course of the wave.
    Control(Control),
    /// Scalar memory.
    ScalarMemory(ScalarAccess),
    /// Vector memory.
    VectorMemory(VectorAccess),
    /// Local data share.
    Lds(LdsAccess),
    /// A tensor between memory and LDS.
    Tensor(Direction),
    /// Two operations at once, in [`Op::inner`].
    Dual,
    /// A vector operation, which is in [`Op::inner`], on scalar registers.
    OnScalars,
    /// A vector operation, which is in [`Op::inner`], with a word of LDS as a source.
    LdsDirect,
    /// Decodes, but is nothing that a compute wave executes.
    NotCompute(NotExecuted),
    /// Decodes, but is not executed yet, and why.
    Gap(&'static str),
}

impl Run {
    /// Whether it does something in each active lane, rather than once.
    pub fn is_per_lane(self) -> bool {
        matches!(self, Run::Vector(_) | Run::VectorMemory(_) | Run::Lds(_))
    }
}

/// A source operand, by words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Low word, high word. One-word sources repeat the low word.
    pub words: [Word; 2],
}

impl Source {
    /// A source that is not there.
    pub const NONE: Source = Source { words: [Word::Constant(0); 2] };

    /// The row of a vector-register source.
    pub fn row(&self) -> Option<RowIndex> {
        match self.words[0] {
            Word::Row(row) => Some(row),
            _ => None,
        }
    }
}

/// Where a word of a source comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A vector register.
    Row(RowIndex),
    /// A scalar register, the same for all lanes.
    Scalar(ScalarIndex),
    /// A constant, the same for all lanes.
    Constant(u32),
    /// 1 if SCC is set.
    Scc,
    /// 1 if VCC is zero.
    Vccz,
    /// 1 if EXEC is zero.
    Execz,
}

/// What modifiers make of sources and result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adapt {
    /// Per source.
    pub sources: [SourceAdapt; 4],
    /// How the first source moves between lanes.
    pub lane_move: Option<LaneMove>,
    /// The result.
    pub finish: Finish,
}

/// What modifiers make of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceAdapt {
    /// Part of the word taken.
    pub select: SdwaSelect,
    /// Sign-extends the part taken.
    pub sign_extend: bool,
    /// Absolute value.
    pub absolute: bool,
    /// Negation, after the absolute value.
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

/// What modifiers make of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// Scaled.
    pub scale: OutputScale,
    /// Clamped to 0..1.
    pub clamp: bool,
    /// Part of the destination written.
    pub select: SdwaSelect,
    /// What becomes of the rest.
    pub unused: SdwaUnused,
}

impl Finish {
    /// Whether it scales or clamps.
    #[inline(always)]
    pub fn changes_value(&self) -> bool {
        self.clamp || self.scale != OutputScale::None
    }
}
