//! The instructions of a block, and how each is compiled. A block begins where waves arrive, and
//! ends where they branch or the active lanes change.

use super::access::{Access, AccessSpace, PrivateAccess};
use super::vector::Stored;
use super::{scalar, vector};
use crate::execute::lane::{Kind, ResultKind};
use crate::instruction::ScalarOperation;
use crate::instruction::VectorOperation;
use crate::instruction::control::{Condition, Control};
use crate::instruction::lds::LdsAccess;
use crate::instruction::scalar_memory::{ScalarAccess, Space, Transfer};
use crate::instruction::{Flow, Inner, Op, Run, Shared, SourceAdapt, Word};
use crate::translate::code::DecodedCode;
use crate::wave::{Machine, RowIndex, ScalarIndex};
use flipwave_isa::{Opcode, Register, RegisterRange, SdwaSelect};

/// Largest number of instructions of a block.
const LONGEST: usize = 256;

/// The instructions of a block.
pub struct Source {
    /// Device address of the first instruction.
    pub start: u64,
    /// The instructions.
    pub ops: Vec<Op>,
    /// The compilation strategy of each instruction.
    pub plans: Vec<Plan>,
    /// Device addresses of the instructions, and of the end of the last one.
    pub addresses: Vec<u64>,
    /// Runs of LDS accesses that begin at the exits, see [`Source::exits`].
    pub next_runs: [Shared; 2],
}

/// Compilation strategy of an instruction.
#[derive(Clone, Copy)]
pub enum Plan {
    /// Compiled to nothing.
    Nothing,
    /// Operation on scalar registers.
    Scalar(&'static ScalarOperation, &'static scalar::Lowering),
    /// Move of a word between a lane and a scalar register.
    Lane(LaneAccess),
    /// Move of words between lanes.
    Exchange(Exchange),
    /// Vector operation.
    Vector(VectorPlan),
    /// One operation on both halves or words of a pair, or a move that takes each word from another
    /// source.
    Pair(&'static vector::Lowering),
    /// Dual-issue instruction of two vector operations.
    Dual(VectorPlan, VectorPlan),
    /// Memory access, lane by lane or as a whole.
    Access(Access),
    /// Access to private memory; calls the interpreter if it does not fit a known window.
    Private(PrivateAccess),
    /// Load of this number of words to scalar registers.
    ScalarLoad(u8),
    /// Call of the interpreter.
    Call,
    /// Branch at the end of the block.
    Branch(Condition),
    /// Barrier at the end of the block.
    Barrier,
}

/// A move between a lane and a scalar register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneAccess {
    /// Lowest active lane to scalar register.
    ReadFirst,
    /// Lane that the second source names to scalar register.
    Read,
    /// Scalar source to the lane that the second source names.
    Write,
}

impl LaneAccess {
    fn of(op: &Op) -> Option<LaneAccess> {
        let access = match op.inst.operation.opcode() {
            Opcode::VReadfirstlane => LaneAccess::ReadFirst,
            Opcode::VReadlane => LaneAccess::Read,
            Opcode::VWritelane => LaneAccess::Write,
            _ => return None,
        };
        has_plain_words(op).then_some(access)
    }
}

/// Source lane of each lane, for an instruction that does nothing but move words between lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Fixed by the instruction's lane move.
    Fixed,
    /// The lane whose number is a quarter of the lane's address.
    ByAddress {
        /// Inactive lanes can be read.
        fetch_inactive: bool,
    },
    /// The lane of a row of 16 that four bits of two scalar words select.
    BySelects {
        /// Distance in lanes from a lane's row to the source row.
        distance: u32,
    },
    /// The lane of a row of 16 that a word of each lane selects.
    BySelectOfLane {
        /// Distance in lanes from a lane's row to the source row.
        distance: u32,
    },
    /// The lane at the same position in the other half of the wave.
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
                selects.into_iter().all(|source| source.row().is_none())
            }
            _ => true,
        };
        (is_known && has_addresses).then_some(exchange)
    }

    /// Register whose words are moved.
    pub fn data(self, op: &Op) -> Option<RowIndex> {
        op.sources[usize::from(matches!(self, Exchange::ByAddress { .. }))].row()
    }

    /// Treatment of lanes that cannot read their source.
    pub fn controls(self, op: &Op) -> ExchangeControls {
        let op_sel = op.inst.modifiers.op_sel.unwrap_or(0);
        let (fetch_inactive, bound_control) = match self {
            Exchange::Fixed => (false, true),
            Exchange::ByAddress { fetch_inactive } => (fetch_inactive, true),
            Exchange::BySelects { .. } | Exchange::BySelectOfLane { .. } => {
                (op_sel & 1 != 0, op_sel & 2 != 0)
            }
            Exchange::ByHalves => (true, true),
        };
        ExchangeControls { fetch_inactive, bound_control }
    }
}

/// Treatment of lanes whose source lane is inactive or does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeControls {
    /// Lanes can read words of inactive lanes.
    pub fetch_inactive: bool,
    /// Lanes that cannot read their source are written with zero; others keep their value.
    pub bound_control: bool,
}

/// A vector operation that is compiled.
#[derive(Clone, Copy)]
pub struct VectorPlan {
    pub row: &'static VectorOperation,
    pub lowering: &'static vector::Lowering,
}

impl Source {
    /// Collects the block that begins at a device address; `None` if its first instruction is not
    /// compiled.
    pub fn of(code: &DecodedCode, start: u64) -> Option<Source> {
        let (mut ops, mut addresses, mut address) = (Vec::new(), vec![start], start);
        let machine = code.machine();
        let mut has_new_exec = false;
        while ops.len() < LONGEST
            && code.contains(address)
            && let Ok(op) = code.fetch(address)
        {
            let is_branch = matches!(op.run, Run::Control(Control::Branch(_)));
            // Lane operations are counted with EXEC at the beginning and with at most one other
            // value.
            let has_other_exec = has_new_exec && (!is_straight(op, machine) || writes_exec(op));
            let begins_run = op.begins_run && !ops.is_empty();
            if begins_run || !is_branch && (op.flow == Flow::Parts || has_other_exec) {
                break;
            }
            ops.push(op.clone());
            address = address.wrapping_add(op.size.into());
            addresses.push(address);
            has_new_exec |= writes_exec(op);
            if op.flow != Flow::Inside || writes_exec(op) && !is_straight(op, machine) {
                break;
            }
        }
        let plans = ops.iter().map(|op| Plan::of(op, machine)).collect();
        let mut source = Source { start, ops, plans, addresses, next_runs: Default::default() };
        source.next_runs = source.exits().map(|exit| source.run_at(code, exit));
        (!source.ops.is_empty()).then_some(source)
    }
}

impl Source {
    /// Device addresses where waves continue: after the block, and at its branch target. Both are
    /// equal without a branch.
    pub fn exits(&self) -> [u64; 2] {
        let next = self.addresses[self.ops.len()];
        let target = match (self.plans.last(), self.ops.last()) {
            (Some(Plan::Branch(_)), Some(op)) => {
                next.wrapping_add_signed(op.immediate.wrapping_mul(4))
            }
            _ => next,
        };
        [next, target]
    }

    /// The run of LDS accesses that begins at an exit: at any access if the block ends with a
    /// branch, else only at the first access of a run.
    fn run_at(&self, code: &DecodedCode, exit: u64) -> Shared {
        let op = code.contains(exit).then(|| code.fetch(exit).ok()).flatten();
        let begins = |op: &&Op| op.begins_run || self.flow() == Flow::Parts;
        op.filter(begins).map_or(Shared::Nothing, |op| op.held)
    }

    /// The run of LDS accesses that begins with the block's first instruction.
    pub fn begins_run(&self) -> Shared {
        let first = self.ops.first().filter(|op| op.begins_run);
        first.map_or(Shared::Nothing, |op| op.held)
    }

    /// Flow of the last instruction.
    pub fn flow(&self) -> Flow {
        self.ops.last().map_or(Flow::Inside, |op| op.flow)
    }

    /// Number of accesses to device memory.
    pub fn sites(&self) -> usize {
        let is_site = |plan: &&Plan| match plan {
            Plan::Access(access) => access.space == AccessSpace::Global,
            Plan::ScalarLoad(_) => true,
            _ => false,
        };
        self.plans.iter().filter(is_site).count()
    }
}

/// Returns `true` for instructions compiled as scalar code and for barriers. They may follow a
/// change of EXEC in a block, since their effect does not depend on the active lanes.
fn is_straight(op: &Op, machine: Machine) -> bool {
    matches!(Plan::of(op, machine), Plan::Nothing | Plan::Scalar(..) | Plan::Barrier)
}

/// Returns `true` if an instruction writes EXEC, and so changes the active lanes.
pub fn writes_exec(op: &Op) -> bool {
    let is_exec = |range: &RegisterRange| {
        (0..range.words).any(|word| {
            range
                .first
                .offset(word)
                .is_some_and(|register| matches!(register, Register::ExecLo | Register::ExecHi))
        })
    };
    op.writes_exec || op.inst.writes.iter().any(is_exec)
}

impl Plan {
    /// Returns `true` if the interpreter always executes the instruction, and shows it to a
    /// checker.
    pub fn is_seen_alone(self) -> bool {
        matches!(self, Plan::Call)
    }

    /// Decides how an instruction is compiled.
    pub fn of(op: &Op, machine: Machine) -> Plan {
        match op.run {
            Run::Control(Control::Branch(condition)) => Plan::Branch(condition),
            Run::Control(Control::Barrier) => Plan::Barrier,
            Run::Control(_) => Plan::Nothing,
            Run::Scalar(_) => scalar_plan(op, machine).unwrap_or(Plan::Call),
            _ if writes_exec(op) => Plan::Call,
            Run::ScalarMemory(access) => {
                scalar_load(op, access).map_or(Plan::Call, Plan::ScalarLoad)
            }
            Run::Vector(_) => match (vector_plan(op), pair_plan(op)) {
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
                    let halves = [&dual.first, &dual.second].map(vector_plan);
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

fn scalar_plan(op: &Op, machine: Machine) -> Option<Plan> {
    let row = op.scalar_row()?;
    let lowering = scalar::find(row.name)?;
    let fits = has_plain_words(op) && writes_whole_exec(op, lowering, machine);
    fits.then_some(Plan::Scalar(row, lowering))
}

/// Number of words that an instruction loads to plain scalar registers from the address of its base
/// and offset; `None` for other loads.
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

/// Returns `true` if the instruction either does not write EXEC or writes exactly the words of the
/// wave's lanes.
fn writes_whole_exec(op: &Op, lowering: &scalar::Lowering, machine: Machine) -> bool {
    let words = machine.lanes / 32;
    let avoids_exec =
        |index: ScalarIndex| !(0..lowering.words).any(|word| ScalarIndex(index.0 + word).is_exec());
    let is_whole = op.scalar_destination == ScalarIndex::EXEC && lowering.words == words;
    if lowering.saves_exec {
        lowering.words == words && avoids_exec(op.scalar_destination)
    } else {
        is_whole || avoids_exec(op.scalar_destination)
    }
}

/// The operation on one element of an operation on pairs.
fn pair_plan(op: &Op) -> Option<&'static vector::Lowering> {
    let row = op.vector_row()?;
    let lowering = vector::find(vector::pair_element(row.name)?)?;
    let kind = if lowering.result == Stored::Whole { Kind::PackedWords } else { Kind::Packed };
    let has_pairs = row.sources.iter().all(|source| *source == kind);
    let is_plain = op
        .adapt
        .as_ref()
        .is_none_or(|adapt| adapt.lane_move.is_none() && adapt.finish == Default::default());
    (has_pairs && is_plain && has_plain_words(op)).then_some(lowering)
}

/// Returns `true` if all words of the sources are registers or constants.
fn has_plain_words(op: &Op) -> bool {
    let mut words = op.sources.iter().flat_map(|source| source.words);
    words.all(|word| matches!(word, Word::Row(_) | Word::Scalar(_) | Word::Constant(_) | Word::Scc))
}

fn vector_plan(op: &Op) -> Option<VectorPlan> {
    let row = op.vector_row()?;
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

/// Returns `true` if modifiers only change signs of floating-point sources, select parts of words
/// or words of other lanes, and select a part of the destination.
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
