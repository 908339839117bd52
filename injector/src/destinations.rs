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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::inst;
    use std::collections::HashSet;

    fn names(text: &str) -> String {
        let destinations = Destinations::of(&inst(0, text), FaultModel::FlipOneBit);
        let names: Vec<String> = destinations.registers.iter().map(Register::to_string).collect();
        names.join(" ")
    }

    #[test]
    fn destinations_are_all_words_of_all_registers_written() {
        for (text, expected) in [
            ("v_add_f32_e32 v1, v2, v3", "v1"),
            ("v_add_f64 v[4:5], v[0:1], v[2:3]", "v4 v5"),
            ("v_add_co_u32_e32 v1, vcc, v2, v3", "v1 vcc_lo vcc_hi"),
            ("v_cmp_gt_f32_e64 s[4:5], v0, v1", "s4 s5"),
            ("v_cmpx_gt_f32_e32 vcc, v0, v1", "vcc_lo vcc_hi exec_lo exec_hi"),
            ("v_readfirstlane_b32 s3, v0", "s3"),
            ("v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]", "a0 a1 a2 a3"),
            ("s_add_u32 s0, s1, s2", "s0 scc"),
            ("s_and_saveexec_b64 s[0:1], vcc", "s0 s1 exec_lo exec_hi scc"),
            ("s_mov_b32 m0, 0", "m0"),
            ("s_cmp_eq_u32 s0, s1", "scc"),
            ("s_load_dwordx4 s[4:7], s[0:1], 0x10", "s4 s5 s6 s7"),
            ("global_load_dwordx3 v[0:2], v[4:5], off", "v0 v1 v2"),
            ("global_atomic_add v1, v[2:3], v4, off glc", "v1"),
            ("ds_read2_b64 v[0:3], v4 offset1:1", "v0 v1 v2 v3"),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn instructions_without_destination_offer_nothing() {
        for text in [
            "global_store_dwordx2 v[0:1], v[2:3], off",
            "global_atomic_add v[2:3], v4, off",
            "ds_write_b32 v0, v1",
            "s_cbranch_scc1 4",
            "s_waitcnt vmcnt(0)",
            "s_barrier",
            "s_endpgm",
            "s_nop 0",
        ] {
            let destinations = Destinations::of(&inst(0, text), FaultModel::FlipOneBit);
            assert_eq!(destinations.places(LaneMask::FULL), 0, "{text}");
            assert_eq!(destinations.place(LaneMask::FULL, 0), None, "{text}");
        }
    }

    /// Every number below `places` is another place, in the documented order, and together they
    /// are all bits of all registers of all written lanes.
    #[test]
    fn numbers_and_places_correspond_one_to_one() {
        let masks = [LaneMask::FULL, LaneMask::EMPTY, LaneMask(0x8000_0000_0000_0012)];
        for text in [
            "v_add_f64 v[4:5], v[0:1], v[2:3]",
            "v_add_co_u32_e32 v1, vcc, v2, v3",
            "s_and_saveexec_b64 s[0:1], vcc",
        ] {
            for model in FaultModel::ALL {
                for lanes in masks {
                    let destinations = Destinations::of(&inst(0, text), model);
                    let mut expected = Vec::new();
                    for &register in &destinations.registers {
                        let copies: Vec<Option<Lane>> = if register.is_per_lane() {
                            lanes.lanes().map(Some).collect()
                        } else {
                            vec![None]
                        };
                        for lane in copies {
                            let places = 0..model.places(register);
                            expected.extend(places.map(|place| Place { register, lane, place }));
                        }
                    }
                    let places = destinations.places(lanes);
                    let found: Vec<Place> =
                        (0..places).filter_map(|n| destinations.place(lanes, n)).collect();
                    assert_eq!(found, expected, "{text} {model} {lanes}");
                    assert_eq!(places, expected.len() as u64);
                    assert_eq!(destinations.place(lanes, places), None);
                }
            }
        }
    }

    #[test]
    fn both_halves_of_a_64_bit_result_are_hit() {
        let destinations =
            Destinations::of(&inst(0, "v_add_f64 v[4:5], v[0:1], v[2:3]"), FaultModel::FlipOneBit);
        let lanes = LaneMask(1);
        let hit: HashSet<String> = (0..destinations.places(lanes))
            .filter_map(|number| destinations.place(lanes, number))
            .map(|place| format!("{}.{}", place.register, place.place))
            .collect();
        assert_eq!(hit.len(), 64);
        assert!(hit.contains("v4.0") && hit.contains("v5.31"));
    }
}
