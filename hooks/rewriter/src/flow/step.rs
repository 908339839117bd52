//! What instructions do to the values that are followed.

use super::value::{Vector, is_followed};
use flipwave_isa::{Inst, Opcode, Register, RegisterRange, Value};

/// What an instruction does to what is known.
#[derive(Clone, Copy)]
pub struct Step {
    /// What is followed.
    pub followed: Followed,
    /// Whether SCC changes.
    pub writes_scc: bool,
    /// Whether EXEC selects all lanes after it, where it changes EXEC.
    pub all_lanes: Option<bool>,
    /// Whether it is of no concern unless lanes of vector registers hold something: nothing of it is
    /// followed, and it touches no scalar register.
    pub is_aside: bool,
}

/// What is followed through an instruction, with its destination.
#[derive(Clone, Copy)]
pub enum Followed {
    /// `s_getpc_b64`.
    GetPc(RegisterRange),
    /// A scalar move.
    Copy(RegisterRange),
    /// To or from the low half of an address.
    AddLow(RegisterRange),
    /// To or from the high half.
    AddHigh(RegisterRange),
    /// The sign of a register's low half into its high half.
    Extend(RegisterRange),
    /// A scalar load of addresses.
    Load(RegisterRange),
    /// A scalar into a lane.
    WriteLane(RegisterRange),
    /// A scalar from a lane.
    ReadLane(RegisterRange),
    /// A move of all lanes that EXEC selects.
    Lanes {
        /// Where they are.
        from: Vector,
        /// Where they go.
        to: Vector,
    },
    /// A call, with the pair that takes the return address.
    Call(Option<RegisterRange>),
    /// A jump through registers.
    Jump,
    /// Nothing.
    Nothing,
}

impl Step {
    /// What `inst` does.
    pub fn of(inst: &Inst) -> Step {
        let opcode = inst.operation.opcode();
        let all_lanes = inst.exec_change().is_some().then(|| {
            let widens = matches!(opcode, Opcode::SOrSaveexec | Opcode::SMov);
            widens && inst.source(0) == Some(&Value::Integer(-1))
        });
        let followed = Followed::of(inst);
        let touched = || inst.reads.iter().chain(&inst.writes);
        let is_aside = matches!(followed, Followed::Nothing)
            && all_lanes.is_none()
            && !touched().any(|range| range.iter().any(is_followed));
        Step { followed, writes_scc: writes(inst, Register::Scc), all_lanes, is_aside }
    }
}

impl Followed {
    fn of(inst: &Inst) -> Followed {
        match (inst.operation.opcode(), destination(inst)) {
            (Opcode::SGetpc, Some(pair)) => Followed::GetPc(pair),
            (Opcode::SMov | Opcode::SMovk, Some(to)) => Followed::Copy(to),
            (Opcode::SAdd | Opcode::SSub, Some(to)) => Followed::AddLow(to),
            (Opcode::SAddc | Opcode::SSubb, Some(to)) => Followed::AddHigh(to),
            (Opcode::SSextI16, Some(to)) => Followed::Extend(to),
            (Opcode::SLoad, Some(to)) if to.words > 1 => Followed::Load(to),
            (Opcode::VWritelane, Some(to)) => Followed::WriteLane(to),
            (Opcode::VReadlane, Some(to)) => Followed::ReadLane(to),
            (Opcode::VMov | Opcode::VAccvgprWrite | Opcode::VAccvgprRead, Some(to)) => {
                let from = inst.source(0).and_then(register);
                match from.filter(|own| own.is_per_lane() && inst.modifiers.dpp.is_none()) {
                    Some(from) => {
                        let [from, to] = [from, to.first].map(Vector::Register);
                        Followed::Lanes { from, to }
                    }
                    None => Followed::Nothing,
                }
            }
            (Opcode::SSwappc | Opcode::SCall, to) => Followed::Call(to),
            (Opcode::SSetpc, _) => Followed::Jump,
            (Opcode::StoreDword, _) => match slot(inst) {
                Some((from, to)) => Followed::Lanes { from, to },
                None => Followed::Nothing,
            },
            (Opcode::LoadDword, _) => match slot(inst) {
                Some((to, from)) => Followed::Lanes { from, to },
                None => Followed::Nothing,
            },
            _ => Followed::Nothing,
        }
    }
}

/// The register that an instruction names as its destination.
pub fn destination(inst: &Inst) -> Option<RegisterRange> {
    inst.destinations().find_map(|operand| match operand.value {
        Value::Register(range) => Some(range),
        _ => None,
    })
}

/// The register that a source names.
pub fn register(value: &Value) -> Option<Register> {
    match value {
        Value::Register(range) => Some(range.first),
        _ => None,
    }
}

fn writes(inst: &Inst, register: Register) -> bool {
    inst.writes.iter().any(|range| range.first == register)
}

/// The register and the place on the stack that a load or a store of one word moves between.
fn slot(inst: &Inst) -> Option<(Vector, Vector)> {
    let operand = inst.memory_operand().filter(|own| own.vaddr.is_none() && !own.to_lds)?;
    let base = operand.saddr.or(operand.soffset)?;
    let data = operand.stored.first().copied().or(operand.loaded)?;
    let place = Vector::Slot(base.first, *operand.offsets.first()?);
    Some((Vector::Register(data.first), place))
}
