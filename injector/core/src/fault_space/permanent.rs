//! Fault space of permanent faults: every part of the device that the workload uses.

use super::counter::Execution;
use super::execution_sites::ExecutionSite;
use super::instructions::CountedInstruction;
use super::{ExecutionSites, Group};
use crate::fault::Action;
use crate::resolve::stream::Stream;
use crate::site::{Lanes, Place, Unit};
use flipwave_arch::{Architecture, LaneMask, OperationName, SimdShape};
use flipwave_device::{Dispatch, WaveId};
use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// Sites of one operation on one SIMD: words of its result, lane slots, bits.
///
/// The words are those of the instruction that executed the operation first. Sites are numbered by
/// word, then slot, then bit, each from the lowest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnitPlaces {
    /// Unit of the device, without a slot.
    pub unit: Unit,
    pub group: Group,
    /// Number of its first site in the stratum.
    pub first: u64,
    /// Slots that executed the operation, one bit each.
    pub slots: LaneMask,
    sites: ExecutionSites,
}

impl UnitPlaces {
    /// Number of sites.
    pub fn sites(&self) -> u64 {
        self.sites.count(self.slots)
    }

    /// The action of a fault at one of these sites. `stream` supplies its random choices.
    pub fn action(&self, struck: &ExecutionSite, stream: &mut Stream) -> Action {
        self.sites.action(struck, stream)
    }

    /// The site with this number: the unit with its slot, the word of the result, and the bit position
    /// in the word.
    pub fn get(&self, number: u64) -> Option<(Unit, Place, ExecutionSite)> {
        let struck = self.sites.get(self.slots, number)?;
        let words = self.sites.words();
        let word = words.iter().position(|word_range| word_range.first == struck.place)?;
        let slot = match struck.lanes {
            Some(Lanes::One(lane)) => Some(lane.0),
            _ => None,
        };
        let place = Place::Destination(u8::try_from(word).ok()?);
        Some((Unit { slot, ..self.unit }, place, struck))
    }
}

/// Counts which operations are executed on which units.
pub(crate) struct UnitCounter {
    units: NonZeroU32,
    /// Workgroups in x and y.
    workgroups: [u32; 2],
    /// SIMD units per compute unit and their width.
    simds: SimdShape,
    /// Found sites by operation, compute unit and SIMD.
    found: BTreeMap<(&'static str, u32, u8), (usize, UnitPlaces)>,
}

impl UnitCounter {
    /// Creates an empty count for a dispatch on a device with this many compute units.
    pub fn new(
        units: NonZeroU32,
        architecture: &dyn Architecture,
        dispatch: &Dispatch,
    ) -> UnitCounter {
        UnitCounter {
            units,
            workgroups: workgroups(dispatch),
            simds: architecture.simds(),
            found: BTreeMap::new(),
        }
    }

    /// Counts an execution of an instruction on `lanes`.
    pub fn count(
        &mut self,
        instruction: &CountedInstruction,
        execution: &Execution<'_>,
        lanes: LaneMask,
    ) {
        if instruction.sites.words().is_empty() {
            return;
        }
        let (unit, simd) = self.place_of(execution.wave);
        let key = (instruction.opcode, unit, simd);
        let width = self.simds.width;
        let slots = (0..width).filter(|slot| {
            let slot_unit = Unit { slot: Some(*slot), ..self.unit(instruction.opcode, unit, simd) };
            slot_unit.lanes(width).0 & lanes.0 != 0
        });
        let slots = LaneMask(slots.fold(0, |mask, slot| mask | 1 << slot));
        let new = UnitPlaces {
            unit: self.unit(instruction.opcode, unit, simd),
            group: instruction.group,
            first: 0,
            slots: LaneMask::EMPTY,
            sites: instruction.sites.clone(),
        };
        let (_, found) = self.found.entry(key).or_insert((instruction.stratum, new));
        found.slots.0 |= slots.0;
    }

    fn unit(&self, opcode: &str, unit: u32, simd: u8) -> Unit {
        Unit { opcode: OperationName::interned(opcode), units: self.units, unit, simd, slot: None }
    }

    fn place_of(&self, wave: WaveId) -> (u32, u8) {
        let any = self.unit("", 0, 0);
        any.place_of(wave, self.workgroups, self.simds.count)
    }

    /// Merges the counts into those of other dispatches, by stratum.
    pub fn add_to(self, names: &[String], all: &mut BTreeMap<String, Vec<UnitPlaces>>) {
        for (stratum, found) in self.found.into_values() {
            let name = names.get(stratum).cloned().unwrap_or_default();
            let units = all.entry(name).or_default();
            let key = |sites: &UnitPlaces| {
                let Unit { opcode, unit, simd, .. } = sites.unit;
                (opcode.name(), unit, simd)
            };
            match units.binary_search_by_key(&key(&found), key) {
                Ok(at) => units[at].slots.0 |= found.slots.0,
                Err(at) => units.insert(at, found),
            }
        }
    }
}

/// Workgroups of a dispatch in x and y.
pub(crate) fn workgroups(dispatch: &Dispatch) -> [u32; 2] {
    [0, 1].map(|axis| dispatch.grid[axis].div_ceil(dispatch.workgroup[axis].max(1)))
}
