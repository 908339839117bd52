//! What is kept of each workgroup under way.

use flipwave_device::{Dim3, WaveId};
use std::collections::{BTreeSet, HashMap};

/// Something for each workgroup, until its last wave has ended.
#[derive(Debug)]
pub struct Workgroups<T> {
    workgroups: HashMap<Dim3, Workgroup<T>>,
}

#[derive(Debug)]
struct Workgroup<T> {
    started: BTreeSet<u32>,
    ended: BTreeSet<u32>,
    own: Option<T>,
}

impl<T> Workgroups<T> {
    pub fn new() -> Workgroups<T> {
        Workgroups { workgroups: HashMap::new() }
    }

    /// A wave starts, or is under way.
    pub fn start(&mut self, wave: WaveId) {
        self.of(wave.workgroup).started.insert(wave.wave);
    }

    /// A wave ends; gives what was kept of its workgroup if it is the last.
    pub fn end(&mut self, wave: WaveId) -> Option<T> {
        let own = self.of(wave.workgroup);
        own.ended.insert(wave.wave);
        if !own.started.is_subset(&own.ended) {
            return None;
        }
        self.workgroups.remove(&wave.workgroup)?.own
    }

    /// What is kept of a workgroup; `new` where that is nothing yet.
    pub fn get_or(&mut self, workgroup: Dim3, new: impl FnOnce() -> T) -> &mut T {
        self.of(workgroup).own.get_or_insert_with(new)
    }

    /// What is kept of a workgroup.
    pub fn get(&mut self, workgroup: Dim3) -> Option<&mut T> {
        self.workgroups.get_mut(&workgroup)?.own.as_mut()
    }

    fn of(&mut self, workgroup: Dim3) -> &mut Workgroup<T> {
        let new = || Workgroup { started: BTreeSet::new(), ended: BTreeSet::new(), own: None };
        self.workgroups.entry(workgroup).or_insert_with(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::wave;

    #[test]
    fn a_workgroup_is_kept_until_its_last_wave_ends() {
        let mut workgroups = Workgroups::new();
        for index in 0..3 {
            workgroups.start(wave(5, index));
        }
        *workgroups.get_or([5, 0, 0], || 1) += 1;
        assert_eq!(workgroups.end(wave(5, 1)), None);
        // Where a dispatch is carried on, its waves are named again.
        workgroups.start(wave(5, 1));
        assert_eq!(workgroups.end(wave(5, 0)), None);
        assert_eq!(workgroups.get([5, 0, 0]), Some(&mut 2));
        assert_eq!(workgroups.end(wave(5, 2)), Some(2));
        assert_eq!(workgroups.get([5, 0, 0]), None);
    }
}
