//! Selection of the dispatches that run instrumented code.

use super::example;
use flipwave_device::{Completion, Device};
use flipwave_hooks::hook::Variables;
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::rewrite::{HookCall, Position, Selection, When};
use flipwave_tests::{gpu, hook_source, instrument};
use flipwave_tools::{ControlRule, DispatchControl, ModuleVersions};
use std::num::NonZeroU64;

const WAVES: &str = "uint64_t waves; void wave(uint64_t *waves) { flipwave_count(waves, 1); }";

/// Dispatches of a kernel with two grid sizes, and the selection of each rule.
#[test]
fn rules_choose_which_dispatches_are_instrumented() {
    let workload = example("vector_add.yaml");
    let instrumented = instrument(&workload, |instrumentation| {
        let source = instrumentation.add_source(hook_source("waves.c", WAVES, instrumentation));
        let entry = Selection { position: Position::KernelEntry, ..Selection::default() };
        for at in instrumentation.select(&entry) {
            let call = HookCall {
                source,
                function: "wave".into(),
                arguments: vec![Argument::Data { symbol: "waves".into(), offset: 0 }],
                results: vec![],
                mask: Mask::Single,
            };
            instrumentation.call(at, When::Before, call);
        }
    });
    let original = instrumented.original.program.dispatches[0].clone();
    let (module, rewritten) = &instrumented.rewritten[&original.module.0];
    let versions = vec![ModuleVersions { original: original.module, instrumented: *module }];
    let mut narrow = original.clone();
    narrow.grid[0] = original.workgroup[0];
    let waves = |grid: u32| u64::from(grid.div_ceil(64));
    let (whole, part) = (waves(original.grid[0]), waves(narrow.grid[0]));

    let two = NonZeroU64::new(2).expect("two");
    for (rule, expected) in [
        (ControlRule::Always, [whole, part, whole, part, whole]),
        (ControlRule::Never, [0; 5]),
        (ControlRule::FirstPerGrid, [whole, part, 0, 0, 0]),
        (ControlRule::Every(two), [whole, 0, whole, 0, whole]),
    ] {
        let mut device = gpu(&instrumented.original.device).clone();
        let mut control = DispatchControl::new(versions.clone(), rule);
        for round in 0..2 {
            for (number, expected) in expected.into_iter().enumerate() {
                let dispatch = if number % 2 == 0 { &original } else { &narrow };
                let end = device.dispatch(&control.choose(dispatch)).expect("a launch");
                assert!(matches!(end, Completion::Completed(_)), "{end:?}");
                let variables = Variables::read(&device, *module, &rewritten.data[0]);
                let counted = variables.expect("the counter").numbers("waves").expect("waves");
                assert_eq!(counted, [expected], "{rule:?}, round {round}, dispatch {number}");
                Variables::reset(&mut device, *module, &rewritten.data[0]).expect("a reset");
            }
            control.reset();
        }
    }
}
