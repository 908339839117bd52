//! The registers of an instruction that a fault can strike, and the places they offer.

use crate::FaultModel;
use flipwave_isa::{Inst, Lane, LaneMask, Register};

/// The destination registers of `inst`, in the order of its register list: every 32-bit word
/// of vector registers, scalar registers, VCC, EXEC, M0, SCC and FLAT_SCRATCH that it writes,
/// implicit ones included. MODE and trap-handler state are no destinations of programs.
pub(crate) fn destination_registers(inst: &Inst) -> impl Iterator<Item = Register> {
    let is_destination = |register: &Register| {
        matches!(
            register,
            Register::Vgpr(_)
                | Register::AccVgpr(_)
                | Register::Sgpr(_)
                | Register::VccLo
                | Register::VccHi
                | Register::ExecLo
                | Register::ExecHi
                | Register::FlatScratchLo
                | Register::FlatScratchHi
                | Register::M0
                | Register::Scc
        )
    };
    inst.writes.iter().flat_map(|range| range.iter()).filter(is_destination)
}

/// What one execution of an instruction offers to a fault model.
///
/// Places are numbered registers first (in [`Register`]'s order, so vector before scalar and
/// lower numbers before higher), then written lanes from the lowest, then bits from the lowest.
/// Scalar registers count once per execution. The order is what makes plans portable: the same
/// number is the same fault on every host and device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destinations {
    model: FaultModel,
    registers: Vec<Register>,
    /// Places of the per-lane registers, for one lane.
    per_lane: u64,
    /// Places of the scalar registers.
    scalar: u64,
}

/// One place of one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub register: Register,
    pub lane: Option<Lane>,
    /// Which of the register's places: the lowest bit a flip inverts.
    pub place: u32,
}

impl Destinations {
    /// The destinations of `inst` under `model`.
    pub fn of(inst: &Inst, model: FaultModel) -> Destinations {
        let mut registers: Vec<Register> = destination_registers(inst).collect();
        registers.sort_unstable();
        registers.dedup();
        let sum = |per_lane: bool| {
            let kind = registers.iter().filter(|register| register.is_per_lane() == per_lane);
            kind.map(|register| u64::from(model.places(*register))).sum()
        };
        let (per_lane, scalar) = (sum(true), sum(false));
        Destinations { model, registers, per_lane, scalar }
    }

    /// No destinations: an instruction outside the population.
    pub fn none(model: FaultModel) -> Destinations {
        Destinations { model, registers: Vec::new(), per_lane: 0, scalar: 0 }
    }

    /// The places of one execution that wrote `lanes`.
    pub fn places(&self, lanes: LaneMask) -> u64 {
        self.per_lane * u64::from(lanes.count()) + self.scalar
    }

    /// Place number `offset` of an execution that wrote `lanes`; `None` from
    /// [`Destinations::places`] on.
    pub fn place(&self, lanes: LaneMask, mut offset: u64) -> Option<Place> {
        for &register in &self.registers {
            let places = self.model.places(register);
            let copies = if register.is_per_lane() { lanes.count() } else { 1 };
            let total = u64::from(places) * u64::from(copies);
            if offset >= total {
                offset -= total;
                continue;
            }
            // Below 64 lanes of 32 bits, so both parts fit.
            let (copy, place) =
                ((offset / u64::from(places)) as u32, (offset % u64::from(places)) as u32);
            let lane = if register.is_per_lane() { lanes.nth(copy) } else { None };
            return Some(Place { register, lane, place });
        }
        None
    }
}
