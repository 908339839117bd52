//! Sums of the counts of all dispatches.

use super::counter::{FaultSpaceCounter, WaveCount};
use super::instructions::{Frame, KnownMasked};
use super::permanent::UnitPlaces;
use super::profile::{Profile, StratumSites};
use super::size::{FaultSpace, InstructionFaultSpace, MaskedSites};
use flipwave_device::{Dispatch, WaveId};
use std::collections::{BTreeMap, HashMap};

/// Attributes that dispatches share if they are assumed to execute the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    module: u32,
    kernel: String,
    grid: [u32; 3],
    workgroup: [u32; 3],
}

impl Kind {
    pub fn of(dispatch: &Dispatch) -> Kind {
        Kind {
            module: dispatch.module.0,
            kernel: dispatch.kernel.clone(),
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
        }
    }
}

/// Counts of one dispatch.
#[derive(Clone, Default)]
struct Counted {
    instructions: Vec<((u32, String, u64), InstructionFaultSpace)>,
    /// Waves in the order of their numbers, with their sites per stratum name.
    waves: Vec<(WaveId, Vec<(String, u64)>)>,
}

/// Sums of the dispatches so far.
#[derive(Default)]
pub(crate) struct Collected {
    /// Instructions by module, kernel and PC.
    instructions: BTreeMap<(u32, String, u64), InstructionFaultSpace>,
    strata: BTreeMap<String, StratumSites>,
    kinds: HashMap<Kind, Counted>,
    counted: usize,
    units: BTreeMap<String, Vec<UnitPlaces>>,
}

impl Collected {
    /// Adds the counts of an earlier dispatch of this kind again. Returns `false` if there is none.
    pub fn repeat(&mut self, kind: &Kind, index: u32) -> bool {
        let Some(counted) = self.kinds.remove(kind) else { return false };
        self.sum_up(index, &counted);
        self.kinds.insert(kind.clone(), counted);
        true
    }

    pub fn add(
        &mut self,
        kind: Kind,
        index: u32,
        dispatch: &Dispatch,
        mut space_counter: FaultSpaceCounter<'_>,
    ) {
        self.counted += 1;
        space_counter.end();
        let frame = space_counter.frame;
        let (module, kernel) = (dispatch.module.0, &dispatch.kernel);
        let names = space_counter.instructions.strata().to_vec();
        let mut counted = Counted::default();
        if let Some(units) = space_counter.units {
            units.add_to(&names, &mut self.units);
        }
        for (instruction, count) in
            space_counter.instructions.into_entries().into_iter().zip(&space_counter.counts)
        {
            let fault_space = InstructionFaultSpace {
                kernel: kernel.to_owned(),
                pc: instruction.pc,
                text: instruction.text,
                opcode: instruction.opcode,
                group: instruction.group,
                line: instruction.line.map(|line| format!("{}:{}", line.file, line.line)),
                executions: count.executions,
                eligible: count.eligible,
                sites: count.sites,
                left_out: count.left_out,
                known: (frame.known_masked == KnownMasked::Counted).then_some(count.known),
            };
            let key = (module, kernel.to_owned(), instruction.pc.0);
            counted.instructions.push((key, fault_space));
        }
        let mut waves = space_counter.waves;
        waves.sort_unstable_by_key(|wave_count| {
            let WaveId { workgroup: [x, y, z], wave } = wave_count.wave;
            (z, y, x, wave)
        });
        let named = |wave_count: WaveCount| {
            let sites = names.iter().cloned().zip(wave_count.sites).collect();
            (wave_count.wave, sites)
        };
        counted.waves = waves.into_iter().map(named).collect();
        self.sum_up(index, &counted);
        self.kinds.insert(kind, counted);
    }

    fn sum_up(&mut self, index: u32, counted: &Counted) {
        for (key, instruction) in &counted.instructions {
            let known = self.instructions.entry(key.clone()).or_insert_with(|| {
                let known = instruction.known.map(|_| MaskedSites::default());
                InstructionFaultSpace {
                    executions: 0,
                    eligible: 0,
                    sites: 0,
                    left_out: 0,
                    known,
                    ..instruction.clone()
                }
            });
            known.executions += instruction.executions;
            known.eligible += instruction.eligible;
            known.sites += instruction.sites;
            known.left_out += instruction.left_out;
            if let (Some(sum), Some(instruction)) = (&mut known.known, instruction.known) {
                sum.add(instruction);
            }
        }
        for (wave, sites) in &counted.waves {
            for (name, sites) in sites {
                let stratum = self.strata.entry(name.clone()).or_default();
                stratum.push(index, *wave, *sites);
            }
        }
    }

    pub fn into_profile(mut self, frame: Frame, dispatches: usize) -> Profile {
        for (name, mut units) in std::mem::take(&mut self.units) {
            let stratum = self.strata.entry(name).or_default();
            for unit in &mut units {
                unit.first = stratum.sites;
                stratum.sites += unit.sites();
            }
            stratum.units = units;
        }
        let mut strata = Vec::new();
        for (name, stratum) in self.strata {
            strata.push(StratumSites { name, ..stratum });
        }
        let instructions: Vec<InstructionFaultSpace> = self.instructions.into_values().collect();
        let mut fault_space = FaultSpace::of(&instructions);
        for unit in strata.iter().flat_map(|stratum| &stratum.units) {
            fault_space.add_sites(unit.group, unit.sites());
        }
        Profile { frame, counted: self.counted, dispatches, fault_space, instructions, strata }
    }
}
