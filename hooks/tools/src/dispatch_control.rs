//! Selects the original or the instrumented code for each dispatch.

use flipwave_device::{Dim3, Dispatch, ModuleId};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

/// The original and the instrumented version of a code object, both loaded on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleVersions {
    /// The module of the original code.
    pub original: ModuleId,
    /// The module of the instrumented code.
    pub instrumented: ModuleId,
}

/// A rule that selects the dispatches which run instrumented code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRule {
    /// All dispatches.
    Always,
    /// No dispatches.
    Never,
    /// The first dispatch of each kernel with each grid size.
    FirstPerGrid,
    /// The first of every N dispatches of each kernel.
    Every(NonZeroU64),
}

/// Selects the version of the code for each dispatch.
#[derive(Clone, Debug)]
pub struct DispatchControl {
    versions: Vec<ModuleVersions>,
    rule: ControlRule,
    /// The original module, kernel and grid of all dispatches so far.
    grids: BTreeSet<(u32, String, Dim3)>,
    /// The number of dispatches so far, by original module and kernel.
    dispatches: BTreeMap<(u32, String), u64>,
}

impl DispatchControl {
    /// Selects among `versions` by `rule`.
    pub fn new(versions: Vec<ModuleVersions>, rule: ControlRule) -> DispatchControl {
        DispatchControl { versions, rule, grids: BTreeSet::new(), dispatches: BTreeMap::new() }
    }

    /// Returns the dispatch with the module of the selected version. A dispatch of a module without
    /// versions is returned unchanged and does not count.
    pub fn choose(&mut self, dispatch: &Dispatch) -> Dispatch {
        let has_module = |versions: &&ModuleVersions| {
            [versions.original, versions.instrumented].contains(&dispatch.module)
        };
        let Some(versions) = self.versions.iter().find(has_module).copied() else {
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

    /// Resets the history of dispatches.
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
            is_cooperative: false,
        }
    }

    fn control(rule: ControlRule) -> DispatchControl {
        DispatchControl::new(
            vec![ModuleVersions { original: ModuleId(0), instrumented: ModuleId(1) }],
            rule,
        )
    }

    /// Dispatches kernels with grid sizes; returns `i` for each instrumented and `o` for each original one.
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
    fn rules_select_the_documented_dispatches() {
        let two = NonZeroU64::new(2).expect("two");
        let rules = [
            (ControlRule::Always, "iiiiiii"),
            (ControlRule::Never, "ooooooo"),
            (ControlRule::FirstPerGrid, "ioiiooo"),
            // Kernel a has the dispatches 0 1 - 2 - 3 4, kernel b - - 0 - 1 - -.
            (ControlRule::Every(two), "ioiiooi"),
        ];
        for (rule, expected) in rules {
            assert_eq!(chosen(&mut control(rule), &RUN), expected, "{rule:?}");
        }
    }

    #[test]
    fn reset_clears_the_dispatch_history() {
        let mut control = control(ControlRule::FirstPerGrid);
        assert_eq!(chosen(&mut control, &RUN), "ioiiooo");
        assert_eq!(chosen(&mut control, &RUN), "ooooooo");
        control.reset();
        assert_eq!(chosen(&mut control, &RUN), "ioiiooo");
    }

    #[test]
    fn dispatch_of_unknown_module_is_unchanged() {
        let foreign = dispatch(7, "a", 64);
        assert_eq!(control(ControlRule::Always).choose(&foreign), foreign);
    }

    #[test]
    fn dispatch_of_instrumented_module_can_select_the_original() {
        let back = control(ControlRule::Never).choose(&dispatch(1, "a", 64));
        assert_eq!(back.module, ModuleId(0));
    }
}
