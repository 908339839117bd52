//! Registers of one wave that differ between the two runs.

use super::event::Wrong;
use flipwave_isa::{AccVgpr, Inst, Lane, LaneMask, Register, RegisterRange, Sgpr, Vgpr};
use flipwave_sim::WaveState;
use std::collections::BTreeMap;

/// Words of a register: one per lane of the wave, or one for scalar registers.
pub type Words = Box<[u32]>;

/// Contents of a wave's register; `None` if the wave does not have it.
pub fn words(state: &WaveState<'_>, register: Register) -> Option<Words> {
    match state.lanes(register) {
        Some(lanes) => lanes.get(..usize::from(state.wave_lanes())).map(Words::from),
        None => state.read(register, Lane(0)).map(|word| Words::from([word])),
    }
}

/// Returns `true` if the wave's register contains these words.
pub fn is_held(state: &WaveState<'_>, register: Register, words: &[u32]) -> bool {
    match state.lanes(register) {
        Some(lanes) => lanes.get(..words.len()).is_some_and(|lanes| lanes == words),
        None => state.read(register, Lane(0)).is_some_and(|word| *words == [word]),
    }
}

/// Registers that an instruction writes, or may write if it accesses them by index.
pub fn written(inst: &Inst, state: &WaveState<'_>) -> Vec<Register> {
    // MODE.gpr_idx_en (ISA manual, "MODE register").
    let is_indexed = state.read(Register::Mode, Lane(0)).is_some_and(|mode| mode >> 27 & 1 != 0);
    if is_indexed || inst.indexes_registers() {
        return all(state);
    }
    inst.writes.iter().flat_map(|range| range.iter()).collect()
}

/// All registers that instructions of a wave can change.
pub fn all(state: &WaveState<'_>) -> Vec<Register> {
    let files = [
        RegisterRange::new(Register::VccLo, 2),
        RegisterRange::new(Register::ExecLo, 2),
        RegisterRange::new(Register::FlatScratchLo, 2),
        RegisterRange::new(Register::M0, 1),
        RegisterRange::new(Register::Scc, 1),
        RegisterRange::new(Register::Mode, 1),
    ];
    let numbered = (0..=u8::MAX).flat_map(|n| {
        let vectors = [Register::Vgpr(Vgpr(n.into())), Register::AccVgpr(AccVgpr(n))];
        vectors.into_iter().chain((n < 106).then_some(Register::Sgpr(Sgpr(n))))
    });
    let numbered = numbered.chain((256..Vgpr::COUNT).map(|n| Register::Vgpr(Vgpr(n))));
    let registers = numbered.chain(files.into_iter().flat_map(RegisterRange::iter));
    registers.filter(|register| state.read(*register, Lane(0)).is_some()).collect()
}

/// Differences of a wave.
#[derive(Debug, Default)]
pub struct WrongWave {
    registers: BTreeMap<Register, WrongRegister>,
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
    pub fn set(&mut self, register: Register, golden: Words, faulty: &[u32]) -> LaneMask {
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
    pub fn golden(&self, register: Register) -> Option<&Words> {
        self.registers.get(&register).map(|wrong| &wrong.golden)
    }

    /// Lanes in which a register differs.
    pub fn lanes(&self, register: Register) -> LaneMask {
        self.registers.get(&register).map_or(LaneMask::EMPTY, |wrong| wrong.lanes)
    }

    /// The difference of a register in its lowest wrong lane.
    pub fn wrong(&self, register: Register, state: &WaveState<'_>) -> Option<Wrong> {
        let WrongRegister { lanes, golden } = self.registers.get(&register)?;
        let lane = lanes.nth(0)?;
        let faulty = state.read(register, lane)?;
        let golden = *golden.get(usize::from(lane.0))?;
        let lane = register.is_per_lane().then_some(lane);
        Some(Wrong::Register { register, lane, golden, faulty })
    }

    /// Returns `true` if an instruction, executed with this EXEC, reads a register that differs.
    pub fn is_read(&self, inst: &Inst, exec: LaneMask) -> bool {
        let lanes = if inst.reads_other_lanes() { LaneMask::FULL } else { exec };
        inst.reads.iter().flat_map(|range| range.iter()).any(|register| {
            let wrong = self.lanes(register);
            wrong.0 & if register.is_per_lane() { lanes.0 } else { 1 } != 0
        })
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
    use crate::testing::inst;

    const V1: Register = Register::Vgpr(Vgpr(1));
    const S4: Register = Register::Sgpr(Sgpr(4));

    fn wave() -> WrongWave {
        let mut wave = WrongWave::default();
        wave.set(V1, [1, 2, 3, 4].into(), &[1, 0, 3, 0]);
        wave.set(S4, [7].into(), &[8]);
        wave
    }

    #[test]
    fn registers_are_wrong_in_differing_lanes_until_corrected() {
        let mut wave = wave();
        assert_eq!(wave.lanes(V1), LaneMask(0b1010));
        assert_eq!(wave.spread(), WaveSpread { words: 3, registers: 2, lanes: 2 });
        assert_eq!(wave.set(V1, [1, 2, 3, 4].into(), &[1, 2, 3, 4]), LaneMask::EMPTY);
        assert_eq!(wave.spread(), WaveSpread { words: 1, registers: 1, lanes: 0 });
        wave.set(S4, [8].into(), &[8]);
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
