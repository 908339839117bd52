//! Blocks: instructions that are executed one after the other, from where waves arrive to where they
//! part or what is active changes.

use super::access::{Access, Place};
use super::emit::{self, Module};
use super::value::Shape;
use super::vector::Stored;
use super::{scalar, vector};
use crate::execute::lane::{Denormals, Kind, ResultKind};
use crate::execute::scalar::ScalarOperation;
use crate::execute::vector::VectorOperation;
use crate::instruction::control::{Condition, Control};
use crate::instruction::{Inner, Op, Run, Stretch, Word};
use crate::memory::{Memory, WindowAccess};
use crate::translate::program::Program;
use crate::translate::vector_row;
use crate::wave::{Level, Machine, Mode, RowIndex, ScalarIndex, Wave};
use flipwave_isa::{Family, Register, RegisterRange};
use flipwave_jit::{Code, Compiler, Extensions};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Most instructions of a block.
const LONGEST: usize = 256;

/// What is compiled together.
pub struct Source {
    /// Device address of the first instruction.
    pub start: u64,
    /// Its instructions.
    pub ops: Vec<Op>,
    /// How each is compiled.
    pub plans: Vec<Plan>,
    /// The device address of each, and that after the last one.
    pub places: Vec<u64>,
}

/// How an instruction is compiled.
#[derive(Clone, Copy)]
pub enum Plan {
    /// It does nothing.
    Nothing,
    /// As code over scalar registers.
    Scalar(&'static ScalarOperation, &'static scalar::Lowering),
    /// As a word that moves from a lane to a scalar register, or the other way.
    Lane(LaneAccess),
    /// As code over lanes.
    Vector(VectorPlan),
    /// As the same operation on both of two words or halves, or a move that takes each word from another
    /// source.
    Pair(&'static vector::Lowering),
    /// Both halves so.
    Dual(VectorPlan, VectorPlan),
    /// As an access to memory, lane by lane or as a whole.
    Access(Access),
    /// As a call of the interpreter.
    Call,
    /// As the branch at the block's end.
    Branch(Condition),
}

/// A move between a lane and a scalar register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneAccess {
    /// From the lowest active lane.
    ReadFirst,
    /// From the lane that the second source names.
    Read,
    /// To that lane.
    Write,
}

impl LaneAccess {
    fn of(op: &Op) -> Option<LaneAccess> {
        let own = match op.inst.operation.name() {
            "v_readfirstlane_b32" => LaneAccess::ReadFirst,
            "v_readlane_b32" => LaneAccess::Read,
            "v_writelane_b32" => LaneAccess::Write,
            _ => return None,
        };
        has_plain_words(op).then_some(own)
    }
}

/// An operation that is compiled as code over lanes.
#[derive(Clone, Copy)]
pub struct VectorPlan {
    pub row: &'static VectorOperation,
    pub lowering: &'static vector::Lowering,
}

impl Source {
    /// The instructions from a device address on; nothing if there is nothing to be compiled.
    pub fn of(program: &Program, start: u64) -> Option<Source> {
        let (mut ops, mut places, mut place) = (Vec::new(), vec![start], start);
        let machine = program.machine();
        let mut has_new_exec = false;
        while ops.len() < LONGEST
            && program.contains(place)
            && let Ok(op) = program.fetch(place)
        {
            let is_branch = matches!(op.run, Run::Control(Control::Branch(_)));
            // What is executed is counted with EXEC as it is at the beginning, and with one other.
            let has_other_exec = has_new_exec && (!is_straight(op, machine) || writes_exec(op));
            if !is_branch && (!is_part(op) || has_other_exec) {
                break;
            }
            ops.push(op.clone());
            place = place.wrapping_add(op.size.into());
            places.push(place);
            has_new_exec |= writes_exec(op);
            if is_branch || writes_exec(op) && !is_straight(op, machine) {
                break;
            }
        }
        let plans = ops.iter().map(|op| Plan::of(op, machine)).collect();
        (ops.len() > 1).then_some(Source { start, ops, plans, places })
    }
}

impl Source {
    /// Accesses to device memory.
    pub fn sites(&self) -> usize {
        let is_site =
            |plan: &&Plan| matches!(plan, Plan::Access(own) if own.place == Place::Global);
        self.plans.iter().filter(is_site).count()
    }
}

/// Whether an instruction can stand inside of a block.
fn is_part(op: &Op) -> bool {
    match op.run {
        Run::Control(control) => control == Control::Nothing,
        Run::NotCompute(_) | Run::Gap(_) => false,
        // What changes MODE.
        _ if op.inst.operation.is(Family::GprIndex) => false,
        _ => !op.inst.writes.iter().any(|range| range.first == Register::Mode),
    }
}

/// Whether an instruction is compiled as scalar code: what may follow where EXEC has changed, as it does
/// the same whatever lanes are active.
fn is_straight(op: &Op, machine: Machine) -> bool {
    matches!(Plan::of(op, machine), Plan::Nothing | Plan::Scalar(..))
}

/// Whether an instruction writes EXEC, so that the lanes of those after it are others.
pub fn writes_exec(op: &Op) -> bool {
    let is_exec = |range: &RegisterRange| {
        (0..range.words).any(|word| {
            range
                .first
                .offset(word)
                .is_some_and(|own| matches!(own, Register::ExecLo | Register::ExecHi))
        })
    };
    op.writes_exec || op.inst.writes.iter().any(is_exec)
}

impl Plan {
    /// How an instruction is compiled.
    pub fn of(op: &Op, machine: Machine) -> Plan {
        match op.run {
            Run::Control(Control::Branch(condition)) => Plan::Branch(condition),
            Run::Control(_) => Plan::Nothing,
            Run::Scalar(_) => {
                let name = op.inst.operation.name();
                match (crate::execute::scalar::find(name), scalar::find(name)) {
                    (Some(row), Some(lowering))
                        if has_plain_words(op) && leaves_exec_whole(op, lowering, machine) =>
                    {
                        Plan::Scalar(row, lowering)
                    }
                    _ => Plan::Call,
                }
            }
            _ if writes_exec(op) => Plan::Call,
            Run::Vector(_) => match (vector_plan(op, machine), pair_plan(op, machine)) {
                (Some(plan), _) => Plan::Vector(plan),
                (None, Some(lowering)) => Plan::Pair(lowering),
                (None, None) => Plan::Call,
            },
            Run::Whole(_) => LaneAccess::of(op).map_or(Plan::Call, Plan::Lane),
            Run::Dual => match op.inner.as_deref() {
                Some(Inner::Dual(dual)) if dual.words == 1 => {
                    let halves = [&dual.first, &dual.second].map(|half| vector_plan(half, machine));
                    match halves {
                        [Some(first), Some(second)] => Plan::Dual(first, second),
                        _ => Plan::Call,
                    }
                }
                _ => Plan::Call,
            },
            _ => Access::of(op).map_or(Plan::Call, Plan::Access),
        }
    }
}

/// Whether EXEC is written as a whole if it is written: all words of the wave's lanes, and no others.
fn leaves_exec_whole(op: &Op, lowering: &scalar::Lowering, machine: Machine) -> bool {
    let words = machine.lanes / 32;
    let is_other =
        |index: ScalarIndex| !(0..lowering.words).any(|word| ScalarIndex(index.0 + word).is_exec());
    let is_whole = op.scalar_destination == ScalarIndex::EXEC && lowering.words == words;
    match lowering.saves_exec {
        true => lowering.words == words && is_other(op.scalar_destination),
        false => is_whole || is_other(op.scalar_destination),
    }
}

/// The operation on each word of one that works on pairs of words.
fn pair_plan(op: &Op, machine: Machine) -> Option<&'static vector::Lowering> {
    let row = vector_row(&op.inst, machine)?;
    let lowering = vector::find(vector::of_pairs(row.name)?)?;
    let kind = if lowering.result == Stored::Whole { Kind::PackedWords } else { Kind::Packed };
    let has_pairs = row.sources.iter().all(|own| *own == kind);
    let is_plain = op
        .adapt
        .as_ref()
        .is_none_or(|adapt| adapt.lane_move.is_none() && adapt.finish == Default::default());
    (has_pairs && is_plain && has_plain_words(op)).then_some(lowering)
}

/// Whether all words of the sources are registers or constants.
fn has_plain_words(op: &Op) -> bool {
    let mut words = op.sources.iter().flat_map(|source| source.words);
    words.all(|word| matches!(word, Word::Row(_) | Word::Scalar(_) | Word::Constant(_) | Word::Scc))
}

fn vector_plan(op: &Op, machine: Machine) -> Option<VectorPlan> {
    let row = vector_row(&op.inst, machine)?;
    let lowering = vector::find(row.name)?;
    let is_kind = |kind: &Kind| {
        matches!(kind, Kind::Word | Kind::F32 | Kind::F16 | Kind::Wide | Kind::F64 | Kind::Mask)
    };
    let fits = row.sources.iter().all(is_kind)
        && matches!(
            row.result,
            ResultKind::Rows(1 | 2) | ResultKind::Mask | ResultKind::RowsAndMask(1 | 2)
        )
        && matches!(row.numerics.denormals, Denormals::Kept | Denormals::ByMode)
        && has_plain_words(op)
        && !op.mask_destination.iter().any(|word| word.is_exec())
        && has_simple_modifiers(op, row);
    fits.then_some(VectorPlan { row, lowering })
}

/// Whether modifiers do nothing but to change signs of floating-point sources.
fn has_simple_modifiers(op: &Op, row: &VectorOperation) -> bool {
    let Some(adapt) = &op.adapt else { return true };
    let mut sources = adapt.sources.iter().enumerate();
    adapt.lane_move.is_none()
        && adapt.finish == Default::default()
        && sources.all(|(index, source)| {
            let signs = crate::instruction::SourceAdapt {
                negate: source.negate,
                absolute: source.absolute,
                ..Default::default()
            };
            let is_float =
                matches!(row.sources.get(index), Some(Kind::F32 | Kind::F16 | Kind::F64));
            *source == signs && (is_float || signs == Default::default())
        })
}

/// The bits of MODE that compiled code depends on, and what they must be: to nearest even, denormals
/// kept, infinities of half precision, vector registers where they are named.
const MODE_BITS: u32 = 0xff | Mode::GPR_INDEX | Mode::SKIP_VECTORS | Mode::FP16_OVERFLOW;
const MODE: u32 = 0xf0;

/// Bytes of LDS that compiled code reads whatever the addresses are.
const SHORTEST_LDS: usize = 64;

/// A block that is compiled, or going to be.
pub struct Block {
    pub source: Source,
    /// See [`Stretch::number`].
    number: u64,
    /// See [`Stretch::seen_alone`]: what is left to the interpreter.
    seen_alone: Vec<bool>,
    /// See [`Stretch::before_exec`].
    before_exec: usize,
    /// See [`Stretch::has_own_lanes`].
    has_own_lanes: bool,
    /// Which of the tier's windows its accesses to device memory have, from this one on.
    pub first_site: usize,
    /// Instructions before each one that do something in each active lane.
    per_lane: Vec<u32>,
    /// Whether EXEC is another one afterwards.
    pub changes_exec: bool,
    /// Vector registers that its instructions name.
    vgprs: u16,
    acc_vgprs: u16,
    /// What was compiled, and what was that notes what it touches.
    variants: [Variant; 2],
}

/// A block as code of the host.
#[derive(Default)]
struct Variant {
    /// Whether it is compiled, or being compiled.
    is_asked_for: AtomicBool,
    /// What was compiled; nothing if that did not succeed.
    compiled: OnceLock<Option<Compiled>>,
}

/// What is known of a block once it is compiled.
pub struct Compiled {
    /// The stretches of code over lanes that can be undone.
    pub segments: Vec<Segment>,
    /// Accesses to device memory, in the order of instructions.
    pub sites: Vec<Site>,
    uses_lds: bool,
    pub code: Code,
}

/// A stretch of code over lanes that can be undone: where it meets what it does not do right, the rows
/// that it has written are those of the wave again, and the interpreter executes it.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its instructions, and scalar ones between them.
    pub instructions: Range<usize>,
    /// The rows of which there are copies, in their order.
    pub kept: Vec<RowIndex>,
}

/// An access to device memory.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    pub instruction: usize,
    /// What the window is for.
    pub access: WindowAccess,
    /// Bytes of a lane.
    pub bytes: u32,
}

impl Block {
    /// A block that is not compiled yet. The tier's windows from `first_site` on are its own.
    pub fn new(source: Source, first_site: usize) -> Block {
        let named = source.ops.iter();
        let per_lane = source.ops.iter().scan(0, |count, op| {
            let before = *count;
            *count += u32::from(op.per_lane);
            Some(before)
        });
        let mut per_lane: Vec<u32> = per_lane.collect();
        per_lane.push(source.ops.iter().map(|op| u32::from(op.per_lane)).sum());
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Block {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            before_exec: source
                .ops
                .iter()
                .position(writes_exec)
                .map_or(source.ops.len(), |index| index + 1),
            has_own_lanes: source
                .plans
                .iter()
                .any(|plan| matches!(plan, Plan::Lane(LaneAccess::Write))),
            seen_alone: source.plans.iter().map(|plan| matches!(plan, Plan::Call)).collect(),
            vgprs: named.clone().map(|op| op.vgprs_named).max().unwrap_or(0),
            acc_vgprs: named.map(|op| op.acc_vgprs_named).max().unwrap_or(0),
            first_site,
            per_lane,
            changes_exec: source.ops.iter().any(writes_exec),
            source,
            variants: Default::default(),
        }
    }

    /// Whether nobody has asked before for what notes what it touches, or does not.
    pub fn is_first_to_ask(&self, notes: bool) -> bool {
        !self.variants[usize::from(notes)].is_asked_for.swap(true, Ordering::Relaxed)
    }

    /// Has it compiled, so that it notes what it touches or does not.
    pub fn compile(
        &self,
        machine: Machine,
        level: Level,
        notes: bool,
        compiler: &mut dyn Compiler,
    ) {
        let (shape, extensions) = match level {
            Level::Avx512 => (Shape::Sixteen, Extensions::Avx512),
            _ => (Shape::Eight, Extensions::Avx2),
        };
        let Module { text, segments, sites, uses_lds } =
            emit::module(&self.source, machine, shape, notes);
        let object = compiler.compile(&text, extensions).map_err(|error| error.to_string());
        let code = object
            .and_then(|object| Code::load(&object, emit::NAME).map_err(|error| error.to_string()));
        // The interpreter executes what is not compiled; a test says why not.
        #[cfg(test)]
        if let Err(error) = &code {
            panic!("{error}\n{text}");
        }
        let compiled = code.ok().map(|code| Compiled { segments, sites, uses_lds, code });
        let _ = self.variants[usize::from(notes)].compiled.set(compiled);
    }

    /// What was compiled, that notes what it touches or does not; nothing as long as it is not, or if
    /// that did not succeed.
    #[inline(always)]
    pub fn compiled(&self, notes: bool) -> Option<&Compiled> {
        self.variants[usize::from(notes)].compiled.get()?.as_ref()
    }

    /// Instructions.
    pub fn len(&self) -> usize {
        self.source.ops.len()
    }

    /// Its instructions, as they are counted.
    #[inline(always)]
    pub fn stretch(&self) -> Stretch<'_> {
        let Block { number, source, seen_alone, .. } = self;
        Stretch {
            number: *number,
            start: source.start,
            ops: &source.ops,
            seen_alone,
            before_exec: self.before_exec,
            has_own_lanes: self.has_own_lanes,
        }
    }

    /// Whether a wave can execute what was compiled: it has the registers, MODE is as the code expects
    /// it, and memory is what compiled code can access.
    pub fn suits(&self, compiled: &Compiled, wave: &Wave, memory: &dyn Memory, lds: &[u8]) -> bool {
        (compiled.sites.is_empty() || memory.generation().is_some())
            && (!compiled.uses_lds || lds.len() >= SHORTEST_LDS)
            && wave.mode.0 & MODE_BITS == MODE
            && self.vgprs <= wave.vgpr_count
            && self.acc_vgprs <= wave.acc_vgpr_count
    }

    /// What the first `count` instructions count as, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub fn lane_operations(&self, count: usize, active: u32) -> u64 {
        let per_lane = u64::from(self.per_lane[count]);
        per_lane * u64::from(active) + (count as u64 - per_lane)
    }
}
