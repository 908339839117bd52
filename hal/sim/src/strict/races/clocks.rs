//! The happens-before order of waves.
//!
//! A moment of a wave precedes another wave's present if both are in one workgroup and a barrier
//! lies between, or if the present wave has acquired something since the moment was released: by
//! its own wave, or by one that a barrier has ordered after it.

use flipwave_device::{Dim3, WaveId};
use rustc_hash::FxHashMap;

/// Number of a wave in a dispatch, in the order of their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveNumber(u32);

/// A point in a wave's execution.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The wave.
    pub wave: WaveNumber,
    /// Number of barrier signals before it.
    signals: u32,
    /// Number of releases before it.
    releases: u32,
}

/// Clocks of the waves of a dispatch.
#[derive(Default)]
pub struct Clocks {
    /// Counts releases and acquires of all waves.
    time: u64,
    numbers: FxHashMap<WaveId, WaveNumber>,
    waves: Vec<WaveClock>,
    group_numbers: FxHashMap<Dim3, usize>,
    groups: Vec<GroupClock>,
}

/// Clock of a wave.
struct WaveClock {
    id: WaveId,
    group: usize,
    signals: u32,
    waits: u32,
    /// Time of each release.
    releases: Vec<u64>,
    /// Time of the last acquire.
    acquired: u64,
    /// `true` if it acquires as soon as it continues.
    acquires_later: bool,
}

/// Clock of a workgroup, by number of signals.
#[derive(Default)]
struct GroupClock {
    /// Time at which the actions after each number of signals were first released.
    released: Vec<u64>,
    /// Last acquire before a wave made each signal.
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

    /// Number of a started wave, which continues now.
    pub fn resume(&mut self, id: WaveId) -> Option<WaveNumber> {
        let number = *self.numbers.get(&id)?;
        let wave = &mut self.waves[number.0 as usize];
        if std::mem::take(&mut wave.acquires_later) {
            self.acquire(number);
        }
        Some(number)
    }

    /// Identity of a wave.
    pub fn id(&self, wave: WaveNumber) -> WaveId {
        self.waves[wave.0 as usize].id
    }

    /// Present moment of a wave.
    pub fn now(&self, wave: WaveNumber) -> Moment {
        let WaveClock { signals, releases, .. } = &self.waves[wave.0 as usize];
        Moment { wave, signals: *signals, releases: releases.len() as u32 }
    }

    /// Records a barrier signal of a wave.
    pub fn signal(&mut self, wave: WaveNumber) {
        let last = self.acquired(wave);
        let wave = &mut self.waves[wave.0 as usize];
        let acquired = &mut self.groups[wave.group].acquired;
        let phase = wave.signals as usize;
        acquired.resize(acquired.len().max(phase + 1), 0);
        acquired[phase] = acquired[phase].max(last);
        wave.signals += 1;
    }

    /// Time of the last acquire that precedes the present of a wave: its own, or one that a barrier
    /// has ordered before it.
    fn acquired(&self, wave: WaveNumber) -> u64 {
        let &WaveClock { group, waits, acquired, .. } = &self.waves[wave.0 as usize];
        let by_group = &self.groups[group].acquired;
        let by_barrier = waits.checked_sub(1).and_then(|phase| by_group.get(phase as usize));
        acquired.max(by_barrier.copied().unwrap_or(0))
    }

    /// Records a barrier wait of a wave, which passes before its next action.
    pub fn wait(&mut self, wave: WaveNumber) {
        self.waves[wave.0 as usize].waits += 1;
    }

    /// Releases the actions of a wave, and those that barriers have ordered before them.
    pub fn release(&mut self, wave: WaveNumber) {
        self.time += 1;
        let wave = &mut self.waves[wave.0 as usize];
        wave.releases.push(self.time);
        let released = &mut self.groups[wave.group].released;
        released.resize(released.len().max(wave.waits as usize), self.time);
    }

    /// Acquires everything that has been released.
    pub fn acquire(&mut self, wave: WaveNumber) {
        self.time += 1;
        self.waves[wave.0 as usize].acquired = self.time;
    }

    /// Acquires everything that has been released when the wave continues.
    pub fn acquire_later(&mut self, wave: WaveNumber) {
        self.waves[wave.0 as usize].acquires_later = true;
    }

    /// Releases a moment if it has not been released, because another wave acquires its actions.
    pub fn release_moment(&mut self, moment: Moment) {
        if self.waves[moment.wave.0 as usize].releases.len() as u32 == moment.releases {
            self.release(moment.wave);
        }
    }

    /// Returns `true` if a moment precedes the present of a wave.
    pub fn is_before(&self, moment: Moment, wave: WaveNumber) -> bool {
        if moment.wave == wave {
            return true;
        }
        let (current, earlier) =
            (&self.waves[wave.0 as usize], &self.waves[moment.wave.0 as usize]);
        if current.group == earlier.group && moment.signals < current.waits {
            return true;
        }
        let acquired = self.acquired(wave);
        let by_wave = earlier.releases.get(moment.releases as usize);
        let by_group = self.groups[earlier.group].released.get(moment.signals as usize);
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
        let numbers = ids.map(|id| clocks.resume(id).expect("a wave"));
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
        // This includes later barriers that the acquiring wave does not reach.
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
