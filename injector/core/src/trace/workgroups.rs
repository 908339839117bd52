//! Data of running workgroups.

use flipwave_device::{Dim3, WaveId};
use std::collections::{BTreeSet, HashMap};

/// One value for each workgroup, until its last wave has ended.
#[derive(Debug)]
pub struct Workgroups<T> {
    workgroups: HashMap<Dim3, Workgroup<T>>,
}

#[derive(Debug)]
struct Workgroup<T> {
    started: BTreeSet<u32>,
    ended: BTreeSet<u32>,
    value: Option<T>,
}

impl<T> Workgroups<T> {
    pub fn new() -> Workgroups<T> {
        Workgroups { workgroups: HashMap::new() }
    }

    /// Adds a wave that starts or is running.
    pub fn start(&mut self, wave: WaveId) {
        self.entry(wave.workgroup).started.insert(wave.wave);
    }

    /// Ends a wave; returns the workgroup's value if the wave is its last.
    pub fn end(&mut self, wave: WaveId) -> Option<T> {
        let entry = self.entry(wave.workgroup);
        entry.ended.insert(wave.wave);
        if !entry.started.is_subset(&entry.ended) {
            return None;
        }
        self.workgroups.remove(&wave.workgroup)?.value
    }

    /// The value of a workgroup, created with `new` if there is none yet.
    pub fn get_or(&mut self, workgroup: Dim3, new: impl FnOnce() -> T) -> &mut T {
        self.entry(workgroup).value.get_or_insert_with(new)
    }

    /// The value of a workgroup.
    pub fn get(&mut self, workgroup: Dim3) -> Option<&mut T> {
        self.workgroups.get_mut(&workgroup)?.value.as_mut()
    }

    fn entry(&mut self, workgroup: Dim3) -> &mut Workgroup<T> {
        let new = || Workgroup { started: BTreeSet::new(), ended: BTreeSet::new(), value: None };
        self.workgroups.entry(workgroup).or_insert_with(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wave;

    #[test]
    fn workgroups_are_kept_until_their_last_wave_ends() {
        let mut workgroups = Workgroups::new();
        for index in 0..3 {
            workgroups.start(wave(5, index));
        }
        *workgroups.get_or([5, 0, 0], || 1) += 1;
        assert_eq!(workgroups.end(wave(5, 1)), None);
        // When a dispatch is resumed, its waves are announced again.
        workgroups.start(wave(5, 1));
        assert_eq!(workgroups.end(wave(5, 0)), None);
        assert_eq!(workgroups.get([5, 0, 0]), Some(&mut 2));
        assert_eq!(workgroups.end(wave(5, 2)), Some(2));
        assert_eq!(workgroups.get([5, 0, 0]), None);
    }
}
