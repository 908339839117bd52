//! Serializable forms of a golden run's results, so that other processes running the same workload can
//! reuse them.
//!
//! Stored golden runs (`campaigns/src/shards/store.rs`) contain these types without names: fields by
//! position, variants by number. Raise the format number there whenever either changes.

use crate::fault::Fault;
use crate::fault_space::Frame;
use crate::fault_space::{
    Draw, FaultSpace, Group, InstructionFaultSpace, KnownMasked, MaskedSites, Profile, Selection,
    Stratification, StratumSites,
};
use crate::golden::profiling::WorkgroupFootprints;
use flipwave_arch::{OperationName, Pc};
use flipwave_device::{Address, Dim3, Statistics, WaveId};
use flipwave_machine::{ByteSet, Footprint, Footprints};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A stored profile of faults that strike executions.
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
    eligible: u64,
    sites: u64,
    left_out: u64,
    known: Option<MaskedSites>,
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
    sites: u64,
}

impl StoredProfile {
    /// Converts a profile into its stored form. Returns `None` for permanent faults, which are counted
    /// again.
    pub fn of(profile: &Profile) -> Option<StoredProfile> {
        if profile.is_permanent() {
            return None;
        }
        let instruction = |instruction: &InstructionFaultSpace| StoredInstruction {
            kernel: instruction.kernel.clone(),
            pc: instruction.pc.0,
            text: instruction.text.clone(),
            opcode: instruction.opcode.to_owned(),
            group: instruction.group,
            line: instruction.line.clone(),
            executions: instruction.executions,
            eligible: instruction.eligible,
            sites: instruction.sites,
            left_out: instruction.left_out,
            known: instruction.known,
        };
        let stratum = |stratum: &StratumSites| StoredStratum {
            name: stratum.name.clone(),
            waves: stratum
                .waves
                .iter()
                .map(|wave| StoredWave {
                    dispatch: wave.dispatch,
                    workgroup: wave.wave.workgroup,
                    wave: wave.wave.wave,
                    sites: wave.sites,
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

    /// Restores the profile of the given faults.
    pub fn profile(
        self,
        fault: &Fault,
        selection: &Selection,
        stratification: Stratification,
        draw: Draw,
        known_masked: KnownMasked,
    ) -> Profile {
        let instruction = |stored: StoredInstruction| InstructionFaultSpace {
            kernel: stored.kernel,
            pc: Pc(stored.pc),
            text: stored.text,
            opcode: OperationName::interned(&stored.opcode).name(),
            group: stored.group,
            line: stored.line,
            executions: stored.executions,
            eligible: stored.eligible,
            sites: stored.sites,
            left_out: stored.left_out,
            known: stored.known,
        };
        let instructions: Vec<_> = self.instructions.into_iter().map(instruction).collect();
        let stratum = |stored: StoredStratum| {
            let mut stratum = StratumSites { name: stored.name, ..StratumSites::default() };
            for StoredWave { dispatch, workgroup, wave, sites } in stored.waves {
                stratum.push(dispatch, WaveId { workgroup, wave }, sites);
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
            fault_space: FaultSpace::of(&instructions),
            instructions,
            strata: self.strata.into_iter().map(stratum).collect(),
        }
    }
}

/// Stored footprints of workgroups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFootprints(BTreeMap<u32, Vec<StoredFootprint>>);

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

/// Byte ranges in ascending order: (gap from the end of the previous range, length).
type Runs = Vec<(u64, u64)>;

impl StoredFootprints {
    /// Converts footprints into their stored form.
    pub fn of(touched: &WorkgroupFootprints) -> StoredFootprints {
        let footprint = |(workgroup, footprint): (Dim3, &Footprint)| {
            let Statistics { wave_instructions, lane_operations, waves } = footprint.statistics;
            StoredFootprint {
                workgroup,
                slot: footprint.slot as u64,
                statistics: [wave_instructions, lane_operations, waves],
                read: runs(&footprint.read),
                written: runs(&footprint.written),
                private: runs(&footprint.private),
                uses_global_sync: footprint.uses_global_sync,
            }
        };
        let dispatches = touched.0.iter();
        let all = dispatches
            .map(|(index, footprints)| (*index, footprints.iter().map(footprint).collect()));
        StoredFootprints(all.collect())
    }

    /// Restores the footprints.
    pub fn touched(self) -> WorkgroupFootprints {
        let footprint = |stored: StoredFootprint| {
            let [wave_instructions, lane_operations, waves] = stored.statistics;
            let footprint = Footprint {
                slot: stored.slot as usize,
                statistics: Statistics { wave_instructions, lane_operations, waves },
                read: bytes(&stored.read),
                written: bytes(&stored.written),
                private: bytes(&stored.private),
                uses_global_sync: stored.uses_global_sync,
            };
            (stored.workgroup, footprint)
        };
        let dispatch = |footprints: Vec<StoredFootprint>| -> Footprints {
            footprints.into_iter().map(footprint).collect()
        };
        WorkgroupFootprints(
            self.0.into_iter().map(|(index, footprints)| (index, dispatch(footprints))).collect(),
        )
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

/// Changing these bytes requires a new format number: `FORMAT` in `campaigns/src/shards/store.rs`.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::{
        DecisionRecord, DoubtRecord, FidelityCounts, FidelityRecord, OperationRecord,
    };
    use flipwave_machine::Exactness;
    use std::fmt::Debug;

    /// Checks the serialized bytes of a value against hexadecimal text (whitespace ignored) and that
    /// they deserialize to the same value.
    fn check<T>(value: &T, hexadecimal: &str)
    where
        T: Serialize + for<'de> Deserialize<'de> + PartialEq + Debug,
    {
        let bytes = postcard::to_stdvec(value).expect("bytes");
        let found: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected: Vec<&str> = hexadecimal.split_whitespace().collect();
        assert_eq!(found.join(" "), expected.join(" "));
        assert_eq!(postcard::from_bytes::<T>(&bytes).expect("the value"), *value);
    }

    #[test]
    fn stored_profiles_have_fixed_bytes() {
        let instruction = StoredInstruction {
            kernel: "k".to_owned(),
            pc: 1,
            text: "t".to_owned(),
            opcode: "o".to_owned(),
            group: Group::ScalarRegister,
            line: Some("l".to_owned()),
            executions: 2,
            eligible: 3,
            sites: 4,
            left_out: 5,
            known: Some(MaskedSites { overwritten: 6, dead: 7 }),
        };
        let wave = StoredWave { dispatch: 8, workgroup: [9, 10, 11], wave: 12, sites: 13 };
        let profile = StoredProfile {
            counted: 14,
            dispatches: 15,
            instructions: vec![instruction],
            strata: vec![StoredStratum { name: "s".to_owned(), waves: vec![wave] }],
        };
        check(
            &profile,
            "0e 0f 01 01 6b 01 01 74 01 6f 0f 01 01 6c 02 03 04 05 01 06 07 \
             01 01 73 01 08 09 0a 0b 0c 0d",
        );
    }

    #[test]
    fn stored_footprints_have_fixed_bytes() {
        let footprint = StoredFootprint {
            workgroup: [1, 2, 3],
            slot: 4,
            statistics: [5, 6, 7],
            read: vec![(8, 9)],
            written: vec![(10, 11)],
            private: vec![(12, 13)],
            uses_global_sync: true,
        };
        check(
            &StoredFootprints(BTreeMap::from([(14, vec![footprint])])),
            "01 0e 01 01 02 03 04 05 06 07 01 08 09 01 0a 0b 01 0c 0d 01",
        );
    }

    #[test]
    fn stored_fidelity_has_fixed_bytes() {
        let operation =
            |fidelity| OperationRecord { operation: "o".to_owned(), executions: 4, fidelity };
        let decision = |fidelity| DecisionRecord {
            fidelity,
            kernel: "k".to_owned(),
            pc: "p".to_owned(),
            line: Some("l".to_owned()),
            instruction: "i".to_owned(),
            registers: vec!["r".to_owned()],
            decides: "d".to_owned(),
            times: 5,
        };
        let fidelity = FidelityRecord {
            executions: FidelityCounts { exact: 1, within_error: 2, not_settled: 3 },
            operations: vec![
                operation(Exactness::Exact),
                operation(Exactness::WithinError("within 1 ULP".to_owned())),
                operation(Exactness::NotSettled("not settled: r".to_owned())),
            ],
            decisions: vec![decision(DoubtRecord::NotSettled), decision(DoubtRecord::WithinError)],
        };
        check(
            &fidelity,
            "01 02 03 03 01 6f 04 05 65 78 61 63 74 \
             01 6f 04 0c 77 69 74 68 69 6e 20 31 20 55 4c 50 \
             01 6f 04 0e 6e 6f 74 20 73 65 74 74 6c 65 64 3a 20 72 \
             02 00 01 6b 01 70 01 01 6c 01 69 01 01 72 01 64 05 \
             01 01 6b 01 70 01 01 6c 01 69 01 01 72 01 64 05",
        );
    }
}
