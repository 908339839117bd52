//! Effects of instructions on tracked values.

use super::value::{LaneStorage, is_tracked};
use flipwave_isa::{Inst, Opcode, Register, RegisterRange, Value};

/// The effect of an instruction on tracked values.
#[derive(Clone, Copy)]
pub struct Effect {
    /// The operation.
    pub operation: TrackedOperation,
    /// The instruction writes SCC.
    pub writes_scc: bool,
    /// For instructions that write EXEC: EXEC selects all lanes afterwards.
    pub all_lanes: Option<bool>,
    /// The instruction can only affect values in lanes: it is not a tracked operation and accesses no
    /// tracked register.
    pub only_affects_lanes: bool,
}

/// An operation on tracked values, with its destination.
#[derive(Clone, Copy)]
pub enum TrackedOperation {
    /// `s_getpc_b64`.
    GetPc(RegisterRange),
    /// A scalar move.
    Copy(RegisterRange),
    /// An addition to or subtraction from the low half of an address.
    AddLow(RegisterRange),
    /// An addition to or subtraction from the high half of an address.
    AddHigh(RegisterRange),
    /// Adds 64 bits (gfx1250).
    AddWide(RegisterRange),
    /// A sign extension of a register's low 16 bits.
    Extend(RegisterRange),
    /// A scalar load of addresses.
    Load(RegisterRange),
    /// A move of a scalar to a lane.
    WriteLane(RegisterRange),
    /// A move of a lane to a scalar register.
    ReadLane(RegisterRange),
    /// A move of all lanes that EXEC selects.
    Lanes {
        /// The source.
        from: LaneStorage,
        /// The destination.
        to: LaneStorage,
    },
    /// A call, with the register pair that receives the return address.
    Call(Option<RegisterRange>),
    /// A jump through registers.
    Jump,
    /// Any other operation.
    Other,
}

impl Effect {
    /// The effect of `inst`.
    pub fn of(inst: &Inst) -> Effect {
        let opcode = inst.operation.opcode();
        let all_lanes = inst.exec_change().is_some().then(|| {
            let widens = matches!(opcode, Opcode::SOrSaveexec | Opcode::SMov);
            widens && inst.source(0) == Some(&Value::Integer(-1))
        });
        let operation = TrackedOperation::of(inst);
        let accessed = || inst.reads.iter().chain(&inst.writes);
        let only_affects_lanes = matches!(operation, TrackedOperation::Other)
            && all_lanes.is_none()
            && !accessed().any(|range| range.iter().any(is_tracked));
        let writes_scc = writes(inst, Register::Scc);
        Effect { operation, writes_scc, all_lanes, only_affects_lanes }
    }
}

impl TrackedOperation {
    fn of(inst: &Inst) -> TrackedOperation {
        match (inst.operation.opcode(), destination(inst)) {
            (Opcode::SGetpc, Some(pair)) => TrackedOperation::GetPc(pair),
            (Opcode::SMov | Opcode::SMovk, Some(to)) => TrackedOperation::Copy(to),
            (Opcode::SAdd | Opcode::SSub, Some(to)) => TrackedOperation::AddLow(to),
            (Opcode::SAddc | Opcode::SSubb, Some(to)) => TrackedOperation::AddHigh(to),
            (Opcode::SAddNc64, Some(to)) => TrackedOperation::AddWide(to),
            (Opcode::SSextI16, Some(to)) => TrackedOperation::Extend(to),
            (Opcode::SLoad, Some(to)) if to.words > 1 => TrackedOperation::Load(to),
            (Opcode::VWritelane, Some(to)) => TrackedOperation::WriteLane(to),
            (Opcode::VReadlane, Some(to)) => TrackedOperation::ReadLane(to),
            (Opcode::VMov | Opcode::VAccvgprWrite | Opcode::VAccvgprRead, Some(to)) => {
                let from = inst.source(0).and_then(register);
                match from.filter(|from| from.is_per_lane() && inst.modifiers.dpp.is_none()) {
                    Some(from) => {
                        let [from, to] = [from, to.first].map(LaneStorage::Register);
                        TrackedOperation::Lanes { from, to }
                    }
                    None => TrackedOperation::Other,
                }
            }
            (Opcode::SSwappc | Opcode::SCall, to) => TrackedOperation::Call(to),
            (Opcode::SSetpc, _) => TrackedOperation::Jump,
            (Opcode::StoreDword, _) => match stack_access(inst) {
                Some(StackAccess { data, slot }) => {
                    TrackedOperation::Lanes { from: data, to: slot }
                }
                None => TrackedOperation::Other,
            },
            (Opcode::LoadDword, _) => match stack_access(inst) {
                Some(StackAccess { data, slot }) => {
                    TrackedOperation::Lanes { from: slot, to: data }
                }
                None => TrackedOperation::Other,
            },
            _ => TrackedOperation::Other,
        }
    }
}

/// The destination register of an instruction.
pub fn destination(inst: &Inst) -> Option<RegisterRange> {
    inst.destinations().find_map(|operand| match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    })
}

/// The register of an operand.
pub fn register(value: &Value) -> Option<Register> {
    match value {
        Value::Register(range) => Some(range.first),
        _ => None,
    }
}

fn writes(inst: &Inst, register: Register) -> bool {
    inst.writes.iter().any(|range| range.first == register)
}

/// A load or store of one word between a register and the stack.
struct StackAccess {
    data: LaneStorage,
    slot: LaneStorage,
}

fn stack_access(inst: &Inst) -> Option<StackAccess> {
    let operand = inst.memory_operand();
    let operand = operand.filter(|operand| operand.vaddr.is_none() && !operand.to_lds)?;
    let base = operand.saddr.or(operand.soffset)?;
    let data = operand.stored.first().copied().or(operand.loaded)?;
    let slot = LaneStorage::Slot(base.first, *operand.offsets.first()?);
    Some(StackAccess { data: LaneStorage::Register(data.first), slot })
}
