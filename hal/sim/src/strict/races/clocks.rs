//! The order of what waves do.
//!
//! A moment of a wave is ordered before another wave's present if both are of one workgroup and a barrier
//! lies between, or if the present one has acquired something since the moment was released: by its own
//! wave, or by one that a barrier has ordered after it.

use flipwave_device::{Dim3, WaveId};
use rustc_hash::FxHashMap;

/// The number of a wave among those of a dispatch, in the order in which they started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveNumber(u32);

/// When a wave did something.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The wave.
    pub wave: WaveNumber,
    /// Barriers that it had signalled.
    signals: u32,
    /// Releases that it had made.
    releases: u32,
}

/// The clocks of the waves of a dispatch.
#[derive(Default)]
pub struct Clocks {
    /// Counts releases and acquisitions of all waves.
    time: u64,
    numbers: FxHashMap<WaveId, WaveNumber>,
    waves: Vec<WaveClock>,
    group_numbers: FxHashMap<Dim3, usize>,
    groups: Vec<GroupClock>,
}

/// The clock of a wave.
struct WaveClock {
    id: WaveId,
    group: usize,
    signals: u32,
    waits: u32,
    /// The time of each release.
    releases: Vec<u64>,
    /// The time of the last acquisition.
    acquired: u64,
    /// Whether it acquires as soon as it goes on.
    acquires_later: bool,
}

/// The clock of a workgroup, by the number of signals.
#[derive(Default)]
struct GroupClock {
    /// When that was first released which its waves did after so many signals.
    released: Vec<u64>,
    /// The last acquisition before a wave signalled so often and once more.
    acquired: Vec<u64>,
}

impl Clocks {
    /// Adds a wave.
    pub fn start(&mut self, id: WaveId) {
        let group = *self.group_numbers.entry(id.workgroup).or_insert_with(|| {
            self.groups.push(GroupClock::default());
            self.groups.len() - 1
        });
        self.numbers.insert(id, WaveNumber(self.waves.len() as u32));
        self.waves.push(WaveClock {
            id,
            group,
            signals: 0,
            waits: 0,
            releases: Vec::new(),
            acquired: 0,
            acquires_later: false,
        });
    }

    /// The number of a wave that has started, which goes on now.
    pub fn goes_on(&mut self, id: WaveId) -> Option<WaveNumber> {
        let number = *self.numbers.get(&id)?;
        let wave = &mut self.waves[number.0 as usize];
        if std::mem::take(&mut wave.acquires_later) {
            self.acquire(number);
        }
        Some(number)
    }

    /// The name of a wave.
    pub fn id(&self, wave: WaveNumber) -> WaveId {
        self.waves[wave.0 as usize].id
    }

    /// The present moment of a wave.
    pub fn now(&self, wave: WaveNumber) -> Moment {
        let WaveClock { signals, releases, .. } = &self.waves[wave.0 as usize];
        Moment { wave, signals: *signals, releases: releases.len() as u32 }
    }

    /// A wave signals the barrier of its workgroup.
    pub fn signal(&mut self, wave: WaveNumber) {
        let last = self.acquired(wave);
        let wave = &mut self.waves[wave.0 as usize];
        let acquired = &mut self.groups[wave.group].acquired;
        let phase = wave.signals as usize;
        acquired.resize(acquired.len().max(phase + 1), 0);
        acquired[phase] = acquired[phase].max(last);
        wave.signals += 1;
    }

    /// The time of the last acquisition that comes before what a wave does now: its own, or one that a
    /// barrier has ordered before.
    fn acquired(&self, wave: WaveNumber) -> u64 {
        let &WaveClock { group, waits, acquired, .. } = &self.waves[wave.0 as usize];
        let by_group = &self.groups[group].acquired;
        let by_barrier = waits.checked_sub(1).and_then(|phase| by_group.get(phase as usize));
        acquired.max(by_barrier.copied().unwrap_or(0))
    }

    /// A wave waits at that barrier, and passes it before it does anything else.
    pub fn wait(&mut self, wave: WaveNumber) {
        self.waves[wave.0 as usize].waits += 1;
    }

    /// A wave releases what it has done, and what barriers have ordered before.
    pub fn release(&mut self, wave: WaveNumber) {
        self.time += 1;
        let wave = &mut self.waves[wave.0 as usize];
        wave.releases.push(self.time);
        let released = &mut self.groups[wave.group].released;
        released.resize(released.len().max(wave.waits as usize), self.time);
    }

    /// A wave acquires what has been released.
    pub fn acquire(&mut self, wave: WaveNumber) {
        self.time += 1;
        self.waves[wave.0 as usize].acquired = self.time;
    }

    /// A wave acquires what has been released when it goes on.
    pub fn acquire_later(&mut self, wave: WaveNumber) {
        self.waves[wave.0 as usize].acquires_later = true;
    }

    /// Has a moment be released, if it is not: what a wave did then is acquired by another one.
    pub fn release_moment(&mut self, moment: Moment) {
        if self.waves[moment.wave.0 as usize].releases.len() as u32 == moment.releases {
            self.release(moment.wave);
        }
    }

    /// Whether a moment is ordered before what a wave does now.
    pub fn is_before(&self, moment: Moment, wave: WaveNumber) -> bool {
        if moment.wave == wave {
            return true;
        }
        let (own, other) = (&self.waves[wave.0 as usize], &self.waves[moment.wave.0 as usize]);
        if own.group == other.group && moment.signals < own.waits {
            return true;
        }
        let acquired = self.acquired(wave);
        let by_wave = other.releases.get(moment.releases as usize);
        let by_group = self.groups[other.group].released.get(moment.signals as usize);
        by_wave.into_iter().chain(by_group).any(|time| *time <= acquired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(group: u32, wave: u32) -> WaveId {
        WaveId { workgroup: [group, 0, 0], wave }
    }

    /// Two workgroups of two waves.
    fn clocks() -> (Clocks, [WaveNumber; 4]) {
        let mut clocks = Clocks::default();
        let ids = [id(0, 0), id(0, 1), id(1, 0), id(1, 1)];
        ids.into_iter().for_each(|id| clocks.start(id));
        let numbers = ids.map(|id| clocks.goes_on(id).expect("a wave"));
        (clocks, numbers)
    }

    #[test]
    fn barrier_orders_waves_of_its_workgroup_only() {
        let (mut clocks, [first, second, other, _]) = clocks();
        let moment = clocks.now(first);
        assert!(clocks.is_before(moment, first) && !clocks.is_before(moment, second));
        [first, second].into_iter().for_each(|wave| clocks.signal(wave));
        assert!(!clocks.is_before(moment, second));
        [first, second].into_iter().for_each(|wave| clocks.wait(wave));
        assert!(clocks.is_before(moment, second) && !clocks.is_before(moment, other));
        assert!(!clocks.is_before(clocks.now(first), second));
    }

    #[test]
    fn release_after_a_barrier_covers_the_workgroup_and_passes_through_the_other_barrier() {
        let (mut clocks, [first, second, other, last]) = clocks();
        let moment = clocks.now(first);
        for wave in [first, second] {
            clocks.signal(wave);
            clocks.wait(wave);
        }
        clocks.release(second);
        let later = clocks.now(first);
        clocks.acquire(other);
        assert!(clocks.is_before(moment, other) && !clocks.is_before(later, other));
        assert!(!clocks.is_before(moment, last));
        for wave in [other, last] {
            clocks.signal(wave);
            clocks.wait(wave);
        }
        assert!(clocks.is_before(moment, last) && !clocks.is_before(later, last));
        // Later barriers, too, which the wave does not reach that has acquired.
        clocks.signal(last);
        clocks.wait(last);
        assert!(clocks.is_before(moment, last) && !clocks.is_before(later, last));
    }

    #[test]
    fn acquisition_before_the_release_orders_nothing() {
        let (mut clocks, [first, _, other, _]) = clocks();
        let moment = clocks.now(first);
        clocks.acquire(other);
        clocks.release(first);
        assert!(!clocks.is_before(moment, other));
        clocks.acquire(other);
        assert!(clocks.is_before(moment, other));
    }
}
