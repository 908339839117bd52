//! What a fault-free run has shown, in a form that can be kept: others who run the same workload begin
//! with it.

use crate::fault::Fault;
use crate::golden::survey::Touched;
use crate::population::Frame;
use crate::population::{
    Draw, Group, InstructionPopulation, KnownMasked, KnownPlaces, Population, Profile, Selection,
    Stratification, StratumPlaces,
};
use flipwave_device::{Address, Dim3, Statistics, WaveId};
use flipwave_isa::{Operation, Pc};
use flipwave_sim::{ByteSet, Footprint, Footprints};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A profile that is kept, of faults that strike executions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredProfile {
    counted: u64,
    dispatches: u64,
    instructions: Vec<StoredInstruction>,
    strata: Vec<StoredStratum>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredInstruction {
    kernel: String,
    pc: u64,
    text: String,
    opcode: String,
    group: Group,
    line: Option<String>,
    executions: u64,
    hittable: u64,
    places: u64,
    left_out: u64,
    known: Option<KnownPlaces>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredStratum {
    name: String,
    waves: Vec<StoredWave>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct StoredWave {
    dispatch: u32,
    workgroup: Dim3,
    wave: u32,
    places: u64,
}

impl StoredProfile {
    /// A profile in a form that can be kept; nothing for permanent faults, which are counted anew.
    pub fn of(profile: &Profile) -> Option<StoredProfile> {
        if profile.is_permanent() {
            return None;
        }
        let instruction = |own: &InstructionPopulation| StoredInstruction {
            kernel: own.kernel.clone(),
            pc: own.pc.0,
            text: own.text.clone(),
            opcode: own.opcode.to_owned(),
            group: own.group,
            line: own.line.clone(),
            executions: own.executions,
            hittable: own.hittable,
            places: own.places,
            left_out: own.left_out,
            known: own.known,
        };
        let stratum = |own: &StratumPlaces| StoredStratum {
            name: own.name.clone(),
            waves: own
                .waves
                .iter()
                .map(|wave| StoredWave {
                    dispatch: wave.dispatch,
                    workgroup: wave.wave.workgroup,
                    wave: wave.wave.wave,
                    places: wave.places,
                })
                .collect(),
        };
        Some(StoredProfile {
            counted: profile.counted as u64,
            dispatches: profile.dispatches as u64,
            instructions: profile.instructions.iter().map(instruction).collect(),
            strata: profile.strata.iter().map(stratum).collect(),
        })
    }

    /// The profile, which is that of these faults.
    pub fn profile(
        self,
        fault: &Fault,
        selection: &Selection,
        stratification: Stratification,
        (draw, known_masked): (Draw, KnownMasked),
    ) -> Profile {
        let instruction = |own: StoredInstruction| InstructionPopulation {
            kernel: own.kernel,
            pc: Pc(own.pc),
            text: own.text,
            opcode: Operation::named(&own.opcode).name(),
            group: own.group,
            line: own.line,
            executions: own.executions,
            hittable: own.hittable,
            places: own.places,
            left_out: own.left_out,
            known: own.known,
        };
        let instructions: Vec<_> = self.instructions.into_iter().map(instruction).collect();
        let stratum = |own: StoredStratum| {
            let mut stratum = StratumPlaces { name: own.name, ..StratumPlaces::default() };
            for StoredWave { dispatch, workgroup, wave, places } in own.waves {
                stratum.push(dispatch, WaveId { workgroup, wave }, places);
            }
            stratum
        };
        Profile {
            frame: Frame {
                fault: fault.clone(),
                selection: selection.clone(),
                stratification,
                draw,
                known_masked,
            },
            counted: self.counted as usize,
            dispatches: self.dispatches as usize,
            population: Population::of(&instructions),
            instructions,
            strata: self.strata.into_iter().map(stratum).collect(),
        }
    }
}

/// What workgroups touch, kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTouched(BTreeMap<u32, Vec<StoredFootprint>>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredFootprint {
    workgroup: Dim3,
    slot: u64,
    /// Wave instructions, lane operations, waves.
    statistics: [u64; 3],
    read: Runs,
    written: Runs,
    private: Runs,
    uses_global_sync: bool,
}

/// Runs of bytes, ascending: how far after the end of the one before, and how many bytes.
type Runs = Vec<(u64, u64)>;

impl StoredTouched {
    /// What workgroups touch in a form that can be kept.
    pub fn of(touched: &Touched) -> StoredTouched {
        let footprint = |(workgroup, own): (Dim3, &Footprint)| {
            let Statistics { wave_instructions, lane_operations, waves } = own.statistics;
            StoredFootprint {
                workgroup,
                slot: own.slot as u64,
                statistics: [wave_instructions, lane_operations, waves],
                read: runs(&own.read),
                written: runs(&own.written),
                private: runs(&own.private),
                uses_global_sync: own.uses_global_sync,
            }
        };
        let dispatches = touched.0.iter();
        let all = dispatches.map(|(index, own)| (*index, own.iter().map(footprint).collect()));
        StoredTouched(all.collect())
    }

    /// What they touch.
    pub fn touched(self) -> Touched {
        let footprint = |own: StoredFootprint| {
            let [wave_instructions, lane_operations, waves] = own.statistics;
            let footprint = Footprint {
                slot: own.slot as usize,
                statistics: Statistics { wave_instructions, lane_operations, waves },
                read: bytes(&own.read),
                written: bytes(&own.written),
                private: bytes(&own.private),
                uses_global_sync: own.uses_global_sync,
            };
            (own.workgroup, footprint)
        };
        let dispatch =
            |own: Vec<StoredFootprint>| -> Footprints { own.into_iter().map(footprint).collect() };
        Touched(self.0.into_iter().map(|(index, own)| (index, dispatch(own))).collect())
    }
}

fn runs(set: &ByteSet) -> Runs {
    let mut end = 0;
    let relative = |(start, bytes): (Address, u64)| {
        let gap = start.0 - end;
        end = start.0 + bytes;
        (gap, bytes)
    };
    set.runs().into_iter().map(relative).collect()
}

fn bytes(runs: &Runs) -> ByteSet {
    let mut end = 0u64;
    ByteSet::of_runs(runs.iter().map(|(gap, bytes)| {
        let start = end.saturating_add(*gap);
        end = start.saturating_add(*bytes);
        (Address(start), *bytes)
    }))
}
