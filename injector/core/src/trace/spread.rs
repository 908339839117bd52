//! Extent of a fault's effects over time.

use super::Step;

/// Amount of differences between the two runs at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Wrong register words: one per wrong lane for per-lane registers.
    pub words: u64,
    /// Wrong registers, counted per wave.
    pub registers: u64,
    /// Lanes with a wrong per-lane register, counted per wave.
    pub lanes: u64,
    /// Waves with a wrong register or a different path.
    pub waves: u64,
    /// Waves that took a different path than in the golden run.
    pub waves_on_other_path: u64,
    /// Workgroups with such waves.
    pub workgroups: u64,
    /// Wrong bytes of LDS.
    pub lds_bytes: u64,
    /// Wrong bytes of device memory that outlives the dispatch.
    pub memory_bytes: u64,
    /// Wrong bytes of memory that belongs to the dispatch: scratch.
    pub scratch_bytes: u64,
}

impl Spread {
    /// Returns `true` if there are no differences.
    pub fn is_none(&self) -> bool {
        *self == Spread::default()
    }

    /// The maximum of each quantity.
    fn peak(self, other: Spread) -> Spread {
        Spread {
            words: self.words.max(other.words),
            registers: self.registers.max(other.registers),
            lanes: self.lanes.max(other.lanes),
            waves: self.waves.max(other.waves),
            waves_on_other_path: self.waves_on_other_path.max(other.waves_on_other_path),
            workgroups: self.workgroups.max(other.workgroups),
            lds_bytes: self.lds_bytes.max(other.lds_bytes),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            scratch_bytes: self.scratch_bytes.max(other.scratch_bytes),
        }
    }
}

/// Differences after an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The instruction.
    pub step: Step,
    /// The differences.
    pub spread: Spread,
}

/// Evenly spaced samples of bounded number, for any duration.
#[derive(Debug)]
pub(super) struct Series {
    samples: Vec<Sample>,
    /// Minimum time between samples.
    gap: u64,
    last: Spread,
    peak: Spread,
    /// The latest differences, if they came too soon after a sample.
    pending: Option<Sample>,
}

impl Series {
    /// Maximum number of samples.
    const MOST: usize = 1024;

    pub fn new() -> Series {
        let (last, peak) = Default::default();
        Series { samples: Vec::new(), gap: 0, last, peak, pending: None }
    }

    /// Adds the differences after an instruction.
    pub fn add(&mut self, spread: Spread, step: &Step) {
        if spread == self.last {
            return;
        }
        self.last = spread;
        self.peak = self.peak.peak(spread);
        let time = step.time;
        let last = self.samples.last().map(|sample| sample.step.time);
        let sample = Sample { step: step.clone(), spread };
        if last.is_some_and(|last| time < last.saturating_add(self.gap)) {
            self.pending = Some(sample);
            return;
        }
        self.pending = None;
        self.samples.push(sample);
        if self.samples.len() >= Series::MOST {
            let first = self.samples[0].step.time;
            self.gap = ((time - first) / (Series::MOST as u64 / 2)).max(1);
            let mut next = first;
            self.samples.retain(|sample| {
                let is_kept = sample.step.time >= next;
                if is_kept {
                    next = sample.step.time + self.gap;
                }
                is_kept
            });
        }
    }

    /// The samples, and the maximum of each quantity.
    pub fn into_parts(mut self) -> (Vec<Sample>, Spread) {
        self.samples.extend(self.pending);
        (self.samples, self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{inst, wave};

    fn step(time: u64) -> Step {
        let inst = inst(0, "s_nop 0");
        Step {
            time,
            dispatch: 0,
            wave: wave(0, 0),
            pc: inst.pc,
            operation: flipwave_arch::Instruction::operation(&inst),
            text: inst.text.clone(),
            line: None,
        }
    }

    #[test]
    fn samples_stay_few_and_cover_the_whole_time() {
        let mut series = Series::new();
        let end = 100_000;
        for time in 0..end {
            let words = if time == 50_001 { 1 << 40 } else { time + 1 };
            series.add(Spread { words, ..Spread::default() }, &step(time));
        }
        let (samples, peak) = series.into_parts();
        assert!((Series::MOST / 4..Series::MOST).contains(&samples.len()), "{}", samples.len());
        assert_eq!(samples[0].step.time, 0);
        assert_eq!(samples[samples.len() - 1].step.time, end - 1, "the last one is there");
        let gaps = samples.windows(2).map(|pair| pair[1].step.time - pair[0].step.time);
        assert!(gaps.max().unwrap() < 1000);
        assert_eq!(peak.words, 1 << 40, "what is between samples counts for the peak");
    }

    #[test]
    fn unchanged_differences_add_no_sample() {
        let mut series = Series::new();
        let spread = Spread { words: 1, ..Spread::default() };
        for time in 0..10 {
            series.add(spread, &step(time));
        }
        assert_eq!(series.into_parts().0.len(), 1);
    }
}
