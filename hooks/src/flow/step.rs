//! What instructions do to the values that are followed.

use super::value::Vector;
use flipwave_isa::{Inst, Register, RegisterRange, Value};

/// What an instruction does to what is known.
#[derive(Clone, Copy)]
pub struct Step {
    /// What is followed.
    pub followed: Followed,
    /// Whether SCC changes.
    pub writes_scc: bool,
    /// Whether EXEC selects all lanes behind it, where it changes EXEC.
    pub all_lanes: Option<bool>,
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
        let name = inst.operation.name();
        let all_lanes = inst.exec_change().is_some().then(|| {
            let widens = name.contains("_or_saveexec_") || name.starts_with("s_mov_");
            widens && inst.source(0) == Some(&Value::Integer(-1))
        });
        Step { followed: Followed::of(inst), writes_scc: writes(inst, Register::Scc), all_lanes }
    }
}

impl Followed {
    fn of(inst: &Inst) -> Followed {
        match (inst.operation.name(), destination(inst)) {
            ("s_getpc_b64", Some(pair)) => Followed::GetPc(pair),
            ("s_mov_b32" | "s_mov_b64" | "s_movk_i32", Some(to)) => Followed::Copy(to),
            ("s_add_u32" | "s_sub_u32", Some(to)) => Followed::AddLow(to),
            ("s_addc_u32" | "s_subb_u32", Some(to)) => Followed::AddHigh(to),
            (
                "s_load_dwordx2" | "s_load_dwordx4" | "s_load_dwordx8" | "s_load_dwordx16",
                Some(to),
            ) => Followed::Load(to),
            ("v_writelane_b32", Some(to)) => Followed::WriteLane(to),
            ("v_readlane_b32", Some(to)) => Followed::ReadLane(to),
            ("v_mov_b32" | "v_accvgpr_write_b32" | "v_accvgpr_read_b32", Some(to)) => {
                let from = inst.source(0).and_then(register);
                match from.filter(|own| own.is_per_lane() && inst.modifiers.dpp.is_none()) {
                    Some(from) => {
                        let [from, to] = [from, to.first].map(Vector::Register);
                        Followed::Lanes { from, to }
                    }
                    None => Followed::Nothing,
                }
            }
            ("s_swappc_b64" | "s_call_b64", to) => Followed::Call(to),
            ("s_setpc_b64", _) => Followed::Jump,
            ("scratch_store_dword" | "buffer_store_dword", _) => match slot(inst) {
                Some((from, to)) => Followed::Lanes { from, to },
                None => Followed::Nothing,
            },
            ("scratch_load_dword" | "buffer_load_dword", _) => match slot(inst) {
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
