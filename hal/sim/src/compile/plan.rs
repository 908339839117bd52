//! What is compiled together, and how each instruction of it: those that are executed one after the
//! other, from where waves arrive to where they part or what is active changes.

use super::access::{Access, Place, PrivateAccess};
use super::vector::Stored;
use super::{scalar, vector};
use crate::execute::lane::{Kind, ResultKind};
use crate::execute::scalar::ScalarOperation;
use crate::execute::vector::VectorOperation;
use crate::instruction::control::{Condition, Control};
use crate::instruction::lds::LdsAccess;
use crate::instruction::scalar_memory::{ScalarAccess, Space, Transfer};
use crate::instruction::{Flow, Inner, Op, Run, Shared, SourceAdapt, Word};
use crate::translate::code::DecodedCode;
use crate::translate::vector_row;
use crate::wave::{Machine, RowIndex, ScalarIndex};
use flipwave_isa::{Opcode, Register, RegisterRange, SdwaSelect};

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
    /// Runs of accesses to LDS that begin where waves go on, see [`Source::exits`].
    pub next_runs: [Shared; 2],
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
    /// As words that lanes take from other lanes.
    Exchange(Exchange),
    /// As code over lanes.
    Vector(VectorPlan),
    /// As the same operation on both of two words or halves, or a move that takes each word from another
    /// source.
    Pair(&'static vector::Lowering),
    /// Both halves so.
    Dual(VectorPlan, VectorPlan),
    /// As an access to memory, lane by lane or as a whole.
    Access(Access),
    /// As an access to private memory, or a call.
    Private(PrivateAccess),
    /// As a load of so many words to scalar registers.
    ScalarLoad(u8),
    /// As a call of the interpreter.
    Call,
    /// As the branch at the block's end.
    Branch(Condition),
    /// As the barrier there.
    Barrier,
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
        let own = match op.inst.operation.opcode() {
            Opcode::VReadfirstlane => LaneAccess::ReadFirst,
            Opcode::VReadlane => LaneAccess::Read,
            Opcode::VWritelane => LaneAccess::Write,
            _ => return None,
        };
        has_plain_words(op).then_some(own)
    }
}

/// From which lane each lane takes a word, where an instruction does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// As its lane move says.
    Fixed,
    /// From the one whose number is a quarter of the lane's address.
    ByAddress {
        /// Inactive lanes can be read.
        fetch_inactive: bool,
    },
    /// From the one of a row of 16 that four bits of two scalar words name.
    BySelects {
        /// Lanes from a lane's own row to that.
        distance: u32,
    },
    /// The same that a word of each lane names.
    BySelectOfLane {
        /// Lanes from a lane's own row to that.
        distance: u32,
    },
    /// From the one in the other half of the wave.
    ByHalves,
}

impl Exchange {
    fn of(op: &Op, machine: Machine) -> Option<Exchange> {
        let opcode = op.inst.operation.opcode();
        let exchange = match op.run {
            Run::Lds(LdsAccess::Swizzle) => Exchange::Fixed,
            Run::Lds(LdsAccess::BackwardPermute) => Exchange::ByAddress { fetch_inactive: false },
            Run::Lds(LdsAccess::BackwardPermuteAny) => Exchange::ByAddress { fetch_inactive: true },
            Run::Whole(_) => match opcode {
                Opcode::VPermlane64 if machine.lanes == 64 => Exchange::ByHalves,
                Opcode::VPermlane16 => Exchange::BySelects { distance: 0 },
                Opcode::VPermlanex16 => Exchange::BySelects { distance: 16 },
                Opcode::VPermlane16Var => Exchange::BySelectOfLane { distance: 0 },
                Opcode::VPermlanex16Var => Exchange::BySelectOfLane { distance: 16 },
                _ => return None,
            },
            _ => return None,
        };
        let is_known = exchange.data(op).is_some() && has_plain_words(op);
        let has_addresses = match exchange {
            Exchange::ByAddress { .. } => op.sources[0].row().is_some(),
            Exchange::BySelects { .. } => {
                let selects = op.sources[1..].iter().take(2);
                selects.into_iter().all(|own| own.row().is_none())
            }
            _ => true,
        };
        (is_known && has_addresses).then_some(exchange)
    }

    /// The register of which lanes take words.
    pub fn data(self, op: &Op) -> Option<RowIndex> {
        op.sources[usize::from(matches!(self, Exchange::ByAddress { .. }))].row()
    }

    /// Whether lanes can take words of inactive lanes, and whether those that cannot take what they are
    /// to take are written with zero.
    pub fn controls(self, op: &Op) -> [bool; 2] {
        let op_sel = op.inst.modifiers.op_sel.unwrap_or(0);
        match self {
            Exchange::Fixed => [false, true],
            Exchange::ByAddress { fetch_inactive } => [fetch_inactive, true],
            Exchange::BySelects { .. } | Exchange::BySelectOfLane { .. } => {
                [op_sel & 1 != 0, op_sel & 2 != 0]
            }
            Exchange::ByHalves => [true, true],
        }
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
    pub fn of(code: &DecodedCode, start: u64) -> Option<Source> {
        let (mut ops, mut places, mut place) = (Vec::new(), vec![start], start);
        let machine = code.machine();
        let mut has_new_exec = false;
        while ops.len() < LONGEST
            && code.contains(place)
            && let Ok(op) = code.fetch(place)
        {
            let is_branch = matches!(op.run, Run::Control(Control::Branch(_)));
            // What is executed is counted with EXEC as it is at the beginning, and with one other.
            let has_other_exec = has_new_exec && (!is_straight(op, machine) || writes_exec(op));
            let begins_run = op.begins_run && !ops.is_empty();
            if begins_run || !is_branch && (op.flow == Flow::Parts || has_other_exec) {
                break;
            }
            ops.push(op.clone());
            place = place.wrapping_add(op.size.into());
            places.push(place);
            has_new_exec |= writes_exec(op);
            if op.flow != Flow::Inside || writes_exec(op) && !is_straight(op, machine) {
                break;
            }
        }
        let plans = ops.iter().map(|op| Plan::of(op, machine)).collect();
        let mut source = Source { start, ops, plans, places, next_runs: Default::default() };
        source.next_runs = source.exits().map(|exit| source.run_at(code, exit));
        (!source.ops.is_empty()).then_some(source)
    }
}

impl Source {
    /// Where waves go on: device addresses of what stands after it, and of what its branch leads to,
    /// which is the same if there is none.
    pub fn exits(&self) -> [u64; 2] {
        let next = self.places[self.ops.len()];
        let target = match (self.plans.last(), self.ops.last()) {
            (Some(Plan::Branch(_)), Some(op)) => {
                next.wrapping_add_signed(op.immediate.wrapping_mul(4))
            }
            _ => next,
        };
        [next, target]
    }

    /// The run of accesses to LDS that begins where waves go on: wherever they branch to an access, and
    /// else with its first one.
    fn run_at(&self, code: &DecodedCode, exit: u64) -> Shared {
        let op = code.contains(exit).then(|| code.fetch(exit).ok()).flatten();
        let begins = |op: &&Op| op.begins_run || self.flow() == Flow::Parts;
        op.filter(begins).map_or(Shared::Nothing, |op| op.held)
    }

    /// The run of accesses to LDS that begins with its first instruction.
    pub fn begins_run(&self) -> Shared {
        let first = self.ops.first().filter(|op| op.begins_run);
        first.map_or(Shared::Nothing, |op| op.held)
    }

    /// That of its last instruction: a branch, if that parts blocks.
    pub fn flow(&self) -> Flow {
        self.ops.last().map_or(Flow::Inside, |op| op.flow)
    }

    /// Accesses to device memory.
    pub fn sites(&self) -> usize {
        let is_site = |plan: &&Plan| match plan {
            Plan::Access(own) => own.place == Place::Global,
            Plan::ScalarLoad(_) => true,
            _ => false,
        };
        self.plans.iter().filter(is_site).count()
    }
}

/// Whether an instruction is compiled as scalar code or is a barrier: what may follow where EXEC has
/// changed, as it does the same whatever lanes are active.
fn is_straight(op: &Op, machine: Machine) -> bool {
    matches!(Plan::of(op, machine), Plan::Nothing | Plan::Scalar(..) | Plan::Barrier)
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
    /// Whether an instruction is always executed by the interpreter, which has a checker see it.
    pub fn is_seen_alone(self) -> bool {
        matches!(self, Plan::Call)
    }

    /// How an instruction is compiled.
    pub fn of(op: &Op, machine: Machine) -> Plan {
        match op.run {
            Run::Control(Control::Branch(condition)) => Plan::Branch(condition),
            Run::Control(Control::Barrier) => Plan::Barrier,
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
            Run::ScalarMemory(access) => {
                scalar_load(op, access).map_or(Plan::Call, Plan::ScalarLoad)
            }
            Run::Vector(_) => match (vector_plan(op, machine), pair_plan(op, machine)) {
                (Some(plan), _) => Plan::Vector(plan),
                (None, Some(lowering)) => Plan::Pair(lowering),
                (None, None) => Plan::Call,
            },
            Run::Whole(_) => match (LaneAccess::of(op), Exchange::of(op, machine)) {
                (Some(access), _) => Plan::Lane(access),
                (None, Some(exchange)) => Plan::Exchange(exchange),
                (None, None) => Plan::Call,
            },
            Run::Lds(access) if access.is_exchange() => {
                Exchange::of(op, machine).map_or(Plan::Call, Plan::Exchange)
            }
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
            _ => match (Access::of(op, machine), PrivateAccess::of(op, machine)) {
                (Some(access), _) => Plan::Access(access),
                (None, Some(access)) => Plan::Private(access),
                (None, None) => Plan::Call,
            },
        }
    }
}

/// How many words an instruction loads to scalar registers that are nothing else, if it does so from
/// where its base and offset say.
fn scalar_load(op: &Op, access: ScalarAccess) -> Option<u8> {
    let ScalarAccess { space: Space::Address, transfer: Transfer::Load(words), is_scaled: false } =
        access
    else {
        return None;
    };
    let end = op.scalar_destination.0.checked_add(words)?;
    let is_vcc = op.scalar_destination == ScalarIndex::VCC && words <= 2;
    let is_plain = end <= ScalarIndex::VCC.0 || is_vcc;
    (is_plain && words <= 16 && has_plain_words(op)).then_some(words)
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
        matches!(
            kind,
            Kind::Word
                | Kind::F32
                | Kind::F16
                | Kind::Half
                | Kind::Mixed
                | Kind::Wide
                | Kind::F64
                | Kind::Mask
        )
    };
    let fits = row.sources.iter().all(is_kind)
        && matches!(
            row.result,
            ResultKind::Rows(1 | 2) | ResultKind::Mask | ResultKind::RowsAndMask(1 | 2)
        )
        && has_plain_words(op)
        && !op.mask_destination.iter().any(|word| word.is_exec())
        && has_simple_modifiers(op, row, lowering);
    fits.then_some(VectorPlan { row, lowering })
}

/// Whether modifiers do nothing but to change signs of floating-point sources, to take parts of words or
/// those of other lanes, and to write a part of one.
fn has_simple_modifiers(op: &Op, row: &VectorOperation, lowering: &vector::Lowering) -> bool {
    let Some(adapt) = &op.adapt else { return true };
    let mut sources = adapt.sources.iter().enumerate();
    let writes_word = matches!(row.result, ResultKind::Rows(1) | ResultKind::RowsAndMask(1))
        && lowering.result != Stored::HighHalf;
    let is_whole = adapt.finish.select == SdwaSelect::Dword;
    let can_move = matches!(row.result, ResultKind::Rows(_))
        && !matches!(row.sources.first(), None | Some(Kind::Mask))
        && op.sources[0].row().is_some();
    (adapt.lane_move.is_none() || can_move)
        && !adapt.finish.changes_value()
        && (is_whole || writes_word)
        && sources.all(|(index, source)| {
            let kind = row.sources.get(index);
            let simple = SourceAdapt {
                negate: source.negate,
                absolute: source.absolute,
                select: source.select,
                sign_extend: source.sign_extend,
                ..Default::default()
            };
            let has_signs = source.negate || source.absolute;
            let takes_part = source.select != SdwaSelect::Dword || source.sign_extend;
            let may_have_signs = !matches!(kind, None | Some(Kind::Mask));
            let may_be_part =
                matches!(kind, Some(Kind::Word | Kind::F32 | Kind::F16 | Kind::Half | Kind::Mixed));
            *source == simple && (may_have_signs || !has_signs) && (may_be_part || !takes_part)
        })
}
