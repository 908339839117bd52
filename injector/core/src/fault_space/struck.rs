//! Workgroups that faults strike.

use super::Planned;
use std::collections::{BTreeMap, HashSet};

/// Workgroups that faults strike, by dispatch index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StruckWorkgroups(BTreeMap<u32, HashSet<[u32; 3]>>);

impl StruckWorkgroups {
    /// Workgroups of the given faults; permanent faults strike no particular workgroup.
    pub fn of(faults: &[Planned]) -> StruckWorkgroups {
        let events = faults.iter().filter_map(|planned| planned.site.event());
        events.map(|event| (event.dispatch, event.workgroup)).collect()
    }

    pub(crate) fn dispatches(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    /// Returns `true` if faults strike any workgroup of the dispatch.
    pub(crate) fn has(&self, dispatch: u32) -> bool {
        self.0.contains_key(&dispatch)
    }

    /// Removes and returns the workgroups of a dispatch, if there are any.
    pub(crate) fn take(&mut self, dispatch: u32) -> Option<HashSet<[u32; 3]>> {
        self.0.remove(&dispatch)
    }
}

impl FromIterator<(u32, [u32; 3])> for StruckWorkgroups {
    fn from_iter<I: IntoIterator<Item = (u32, [u32; 3])>>(all: I) -> StruckWorkgroups {
        let mut struck = StruckWorkgroups::default();
        for (dispatch, workgroup) in all {
            struck.0.entry(dispatch).or_default().insert(workgroup);
        }
        struck
    }
}
