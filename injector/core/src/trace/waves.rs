//! The waves that differ between the two runs, and how much of them in all.

use super::Spread;
use super::registers::WrongWave;
use flipwave_device::{Dim3, WaveId};
use std::collections::HashMap;

/// The waves that differ.
#[derive(Debug, Default)]
pub struct Waves {
    waves: HashMap<WaveId, WrongWave>,
    /// How many waves of each workgroup.
    workgroups: HashMap<Dim3, u64>,
    /// The sum, as far as waves have it.
    spread: Spread,
}

impl Waves {
    /// How much differs.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// What differs of a wave, if anything does.
    pub fn get(&self, wave: WaveId) -> Option<&WrongWave> {
        self.waves.get(&wave)
    }

    /// Changes what differs of a wave.
    pub fn change<T>(&mut self, wave: WaveId, change: impl FnOnce(&mut WrongWave) -> T) -> T {
        let mut own = self.waves.remove(&wave).unwrap_or_default();
        if !own.is_right() {
            self.count(wave, &own, |sum, own| *sum -= own);
        }
        let result = change(&mut own);
        if !own.is_right() {
            self.count(wave, &own, |sum, own| *sum += own);
            self.waves.insert(wave, own);
        }
        result
    }

    fn count(&mut self, wave: WaveId, own: &WrongWave, add: impl Fn(&mut u64, u64)) {
        let of_wave = own.spread();
        add(&mut self.spread.words, of_wave.words);
        add(&mut self.spread.registers, of_wave.registers);
        add(&mut self.spread.lanes, of_wave.lanes);
        add(&mut self.spread.waves, 1);
        add(&mut self.spread.waves_on_other_path, own.is_on_other_path.into());
        let waves = self.workgroups.entry(wave.workgroup).or_default();
        add(waves, 1);
        if *waves == 0 {
            self.workgroups.remove(&wave.workgroup);
        }
        self.spread.workgroups = self.workgroups.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wave;
    use flipwave_isa::{Register, Vgpr};

    #[test]
    fn the_sum_follows_every_change() {
        let mut waves = Waves::default();
        let v1 = Register::Vgpr(Vgpr(1));
        let wrong = |own: &mut WrongWave| own.set(v1, [1, 2].into(), &[0, 0]);
        waves.change(wave(0, 0), wrong);
        waves.change(wave(0, 1), wrong);
        waves.change(wave(2, 0), |own| own.is_on_other_path = true);
        let sum = Spread {
            words: 4,
            registers: 2,
            lanes: 4,
            waves: 3,
            waves_on_other_path: 1,
            workgroups: 2,
            ..Spread::default()
        };
        assert_eq!(waves.spread(), sum);
        for (x, index) in [(0, 0), (0, 1), (2, 0)] {
            waves.change(wave(x, index), |own| *own = WrongWave::default());
        }
        assert!(waves.spread().is_none() && waves.get(wave(0, 0)).is_none());
    }
}
