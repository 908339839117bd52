//! Waves that differ between the two runs, and their total differences.

use super::Spread;
use super::registers::WrongWave;
use flipwave_device::{Dim3, WaveId};
use std::collections::HashMap;

/// Waves with differences.
#[derive(Debug, Default)]
pub struct Waves {
    waves: HashMap<WaveId, WrongWave>,
    /// Number of such waves of each workgroup.
    workgroups: HashMap<Dim3, u64>,
    /// Sum over all waves.
    spread: Spread,
}

impl Waves {
    /// Total differences of waves.
    pub fn spread(&self) -> Spread {
        self.spread
    }

    /// Differences of a wave, if any.
    pub fn get(&self, wave: WaveId) -> Option<&WrongWave> {
        self.waves.get(&wave)
    }

    /// Changes the differences of a wave.
    pub fn change<T>(&mut self, wave: WaveId, change: impl FnOnce(&mut WrongWave) -> T) -> T {
        let mut wrong_wave = self.waves.remove(&wave).unwrap_or_default();
        if !wrong_wave.is_right() {
            self.count(wave, &wrong_wave, |sum, wrong_wave| *sum -= wrong_wave);
        }
        let result = change(&mut wrong_wave);
        if !wrong_wave.is_right() {
            self.count(wave, &wrong_wave, |sum, wrong_wave| *sum += wrong_wave);
            self.waves.insert(wave, wrong_wave);
        }
        result
    }

    fn count(&mut self, wave: WaveId, wrong_wave: &WrongWave, add: impl Fn(&mut u64, u64)) {
        let wave_spread = wrong_wave.spread();
        add(&mut self.spread.words, wave_spread.words);
        add(&mut self.spread.registers, wave_spread.registers);
        add(&mut self.spread.lanes, wave_spread.lanes);
        add(&mut self.spread.waves, 1);
        add(&mut self.spread.waves_on_other_path, wrong_wave.is_on_other_path.into());
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
    use crate::testing::{register, wave};

    #[test]
    fn sum_follows_every_change() {
        let mut waves = Waves::default();
        let v1 = register("v1");
        let wrong = |wrong_wave: &mut WrongWave| wrong_wave.set(v1, [1, 2].into(), &[0, 0]);
        waves.change(wave(0, 0), wrong);
        waves.change(wave(0, 1), wrong);
        waves.change(wave(2, 0), |wrong_wave| wrong_wave.is_on_other_path = true);
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
            waves.change(wave(x, index), |wrong_wave| *wrong_wave = WrongWave::default());
        }
        assert!(waves.spread().is_none() && waves.get(wave(0, 0)).is_none());
    }
}
