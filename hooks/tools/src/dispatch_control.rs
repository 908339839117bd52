//! Original and instrumented code side by side: which of the two a dispatch runs.

use flipwave_device::{Dim3, Dispatch, ModuleId};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

/// A code object as it was and instrumented, both loaded on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleVersions {
    /// The code as it was.
    pub original: ModuleId,
    /// The instrumented code.
    pub instrumented: ModuleId,
}

/// Which dispatches run instrumented code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRule {
    /// All.
    Always,
    /// None.
    Never,
    /// Of each kernel the first with a grid of its size.
    FirstPerGrid,
    /// Of each kernel the first, and from there on each of this distance.
    Every(NonZeroU64),
}

/// Chooses for each dispatch.
#[derive(Clone, Debug)]
pub struct DispatchControl {
    versions: Vec<ModuleVersions>,
    rule: ControlRule,
    /// Module, kernel and grid of the dispatches so far.
    grids: BTreeSet<(u32, String, Dim3)>,
    /// Module and kernel, and how many dispatches of it there were.
    dispatches: BTreeMap<(u32, String), u64>,
}

impl DispatchControl {
    /// Chooses by `rule` among these versions.
    pub fn new(versions: Vec<ModuleVersions>, rule: ControlRule) -> DispatchControl {
        DispatchControl { versions, rule, grids: BTreeSet::new(), dispatches: BTreeMap::new() }
    }

    /// The same dispatch, of the version that the rule says. A dispatch of code that has no
    /// versions stays as it is and does not count.
    pub fn choose(&mut self, dispatch: &Dispatch) -> Dispatch {
        let of =
            |own: &&ModuleVersions| [own.original, own.instrumented].contains(&dispatch.module);
        let Some(versions) = self.versions.iter().find(of).copied() else {
            return dispatch.clone();
        };
        let kernel = (versions.original.0, dispatch.kernel.clone());
        let grid = (kernel.0, kernel.1.clone(), dispatch.grid);
        let is_first_grid = self.grids.insert(grid);
        let count = self.dispatches.entry(kernel).or_default();
        let number = *count;
        *count += 1;
        let is_instrumented = match self.rule {
            ControlRule::Always => true,
            ControlRule::Never => false,
            ControlRule::FirstPerGrid => is_first_grid,
            ControlRule::Every(distance) => number.is_multiple_of(distance.get()),
        };
        let module = if is_instrumented { versions.instrumented } else { versions.original };
        Dispatch { module, ..dispatch.clone() }
    }

    /// Forgets all dispatches.
    pub fn reset(&mut self) {
        self.grids.clear();
        self.dispatches.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch(module: u32, kernel: &str, x: u32) -> Dispatch {
        Dispatch {
            module: ModuleId(module),
            kernel: kernel.to_owned(),
            grid: [x, 1, 1],
            workgroup: [64, 1, 1],
            kernarg: vec![],
            dynamic_lds: 0,
            instruction_limit: 1,
            queued: None,
        }
    }

    fn control(rule: ControlRule) -> DispatchControl {
        DispatchControl::new(
            vec![ModuleVersions { original: ModuleId(0), instrumented: ModuleId(1) }],
            rule,
        )
    }

    /// Which dispatches of kernels and grids are instrumented.
    fn chosen(control: &mut DispatchControl, dispatches: &[(&str, u32)]) -> String {
        let one = |&(kernel, x): &(&str, u32)| match control.choose(&dispatch(0, kernel, x)).module
        {
            ModuleId(1) => 'i',
            _ => 'o',
        };
        dispatches.iter().map(one).collect()
    }

    const RUN: [(&str, u32); 7] =
        [("a", 64), ("a", 64), ("b", 64), ("a", 128), ("b", 64), ("a", 64), ("a", 64)];

    #[test]
    fn each_rule_takes_its_dispatches() {
        let two = NonZeroU64::new(2).expect("two");
        let rules = [
            (ControlRule::Always, "iiiiiii"),
            (ControlRule::Never, "ooooooo"),
            (ControlRule::FirstPerGrid, "ioiiooo"),
            // The numbers of a are 0 1 - 2 - 3 4, those of b - - 0 - 1.
            (ControlRule::Every(two), "ioiiooi"),
        ];
        for (rule, expected) in rules {
            assert_eq!(chosen(&mut control(rule), &RUN), expected, "{rule:?}");
        }
    }

    #[test]
    fn what_was_dispatched_counts_until_it_is_reset() {
        let mut control = control(ControlRule::FirstPerGrid);
        assert_eq!(chosen(&mut control, &RUN), "ioiiooo");
        assert_eq!(chosen(&mut control, &RUN), "ooooooo");
        control.reset();
        assert_eq!(chosen(&mut control, &RUN), "ioiiooo");
    }

    #[test]
    fn code_without_versions_is_left_alone() {
        let foreign = dispatch(7, "a", 64);
        assert_eq!(control(ControlRule::Always).choose(&foreign), foreign);
    }

    #[test]
    fn a_dispatch_of_the_instrumented_version_may_go_back() {
        let back = control(ControlRule::Never).choose(&dispatch(1, "a", 64));
        assert_eq!(back.module, ModuleId(0));
    }
}
