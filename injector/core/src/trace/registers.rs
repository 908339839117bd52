//! Registers of one wave that differ between the two runs.

use super::event::Wrong;
use flipwave_arch::{Instruction, Lane, LaneMask, RegisterId};
use flipwave_machine::WaveState;
use std::collections::BTreeMap;

/// Words of a register: one per lane of the wave, or one for scalar registers.
pub type Words = Box<[u32]>;

/// Contents of a wave's register; `None` if the wave does not have it.
pub fn words(state: &dyn WaveState, register: RegisterId) -> Option<Words> {
    match state.lanes(register) {
        Some(lanes) => lanes.get(..state.all_lanes().count() as usize).map(Words::from),
        None => state.read(register, Lane(0)).map(|word| Words::from([word])),
    }
}

/// Returns `true` if the wave's register contains these words.
pub fn is_held(state: &dyn WaveState, register: RegisterId, words: &[u32]) -> bool {
    match state.lanes(register) {
        Some(lanes) => lanes.get(..words.len()).is_some_and(|lanes| lanes == words),
        None => state.read(register, Lane(0)).is_some_and(|word| *words == [word]),
    }
}

/// Differences of a wave.
#[derive(Debug, Default)]
pub struct WrongWave {
    registers: BTreeMap<RegisterId, WrongRegister>,
    /// `true` if the wave took a different path than in the golden run.
    pub is_on_other_path: bool,
}

#[derive(Debug)]
struct WrongRegister {
    /// Lanes that differ; lane 0 for scalar registers.
    lanes: LaneMask,
    /// Contents in the golden run.
    golden: Words,
}

/// Amount of differences of a wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaveSpread {
    pub words: u64,
    pub registers: u64,
    pub lanes: u64,
}

impl WrongWave {
    /// Updates a register's contents in both runs and returns the lanes that differ.
    pub fn set(&mut self, register: RegisterId, golden: Words, faulty: &[u32]) -> LaneMask {
        let pairs = (0..).zip(golden.iter().zip(faulty));
        let wrong = pairs.filter(|(_, (golden, faulty))| golden != faulty);
        let lanes = LaneMask(wrong.fold(0, |mask, (lane, _)| mask | 1 << lane));
        if lanes == LaneMask::EMPTY {
            self.registers.remove(&register);
        } else {
            self.registers.insert(register, WrongRegister { lanes, golden });
        }
        lanes
    }

    /// The golden run's contents of a register that differs.
    pub fn golden(&self, register: RegisterId) -> Option<&Words> {
        self.registers.get(&register).map(|wrong| &wrong.golden)
    }

    /// Lanes in which a register differs.
    pub fn lanes(&self, register: RegisterId) -> LaneMask {
        self.registers.get(&register).map_or(LaneMask::EMPTY, |wrong| wrong.lanes)
    }

    /// The difference of a register in its lowest wrong lane.
    pub fn wrong(&self, register: RegisterId, state: &dyn WaveState) -> Option<Wrong> {
        let WrongRegister { lanes, golden } = self.registers.get(&register)?;
        let lane = lanes.nth(0)?;
        let faulty = state.read(register, lane)?;
        let golden = *golden.get(usize::from(lane.0))?;
        let lane = register.is_per_lane().then_some(lane);
        Some(Wrong::Register { register, lane, golden, faulty })
    }

    /// Returns `true` if an instruction, executed with this EXEC, reads a register that differs.
    pub fn is_read(&self, inst: &dyn Instruction, exec: LaneMask) -> bool {
        let lanes = if inst.reads_other_lanes() { LaneMask::FULL } else { exec };
        let mut is_read = false;
        inst.for_each_read(&mut |register| {
            let wrong = self.lanes(register);
            is_read |= wrong.0 & if register.is_per_lane() { lanes.0 } else { 1 } != 0;
        });
        is_read
    }

    /// Removes all register differences.
    pub fn clear(&mut self) {
        self.registers.clear();
    }

    /// Returns `true` if the wave has no differences.
    pub fn is_right(&self) -> bool {
        self.registers.is_empty() && !self.is_on_other_path
    }

    /// Amount of differences.
    pub fn spread(&self) -> WaveSpread {
        let mut spread = WaveSpread::default();
        let mut lanes = 0;
        for (register, wrong) in &self.registers {
            spread.words += u64::from(wrong.lanes.count());
            spread.registers += 1;
            if register.is_per_lane() {
                lanes |= wrong.lanes.0;
            }
        }
        spread.lanes = u64::from(lanes.count_ones());
        spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{inst, register};

    fn wave() -> WrongWave {
        let mut wave = WrongWave::default();
        wave.set(register("v1"), [1, 2, 3, 4].into(), &[1, 0, 3, 0]);
        wave.set(register("s4"), [7].into(), &[8]);
        wave
    }

    #[test]
    fn registers_are_wrong_in_differing_lanes_until_corrected() {
        let mut wave = wave();
        assert_eq!(wave.lanes(register("v1")), LaneMask(0b1010));
        assert_eq!(wave.spread(), WaveSpread { words: 3, registers: 2, lanes: 2 });
        assert_eq!(wave.set(register("v1"), [1, 2, 3, 4].into(), &[1, 2, 3, 4]), LaneMask::EMPTY);
        assert_eq!(wave.spread(), WaveSpread { words: 1, registers: 1, lanes: 0 });
        wave.set(register("s4"), [8].into(), &[8]);
        assert!(wave.is_right());
    }

    #[test]
    fn inactive_wrong_lanes_are_read_only_across_lanes() {
        let wave = wave();
        let add = inst(0, "v_add_u32 v2, v1, v1");
        assert!(wave.is_read(&add, LaneMask(0b0010)));
        assert!(!wave.is_read(&add, LaneMask(0b0101)));
        let first = inst(0, "v_readlane_b32 s0, v1, 1");
        assert!(wave.is_read(&first, LaneMask(0b0101)));
        assert!(wave.is_read(&inst(0, "s_add_u32 s0, s4, 1"), LaneMask::EMPTY));
        assert!(!wave.is_read(&inst(0, "s_add_u32 s4, s0, 1"), LaneMask::FULL));
    }
}
