//! Live-range splitting in compiled kernels: hooks read the same entry values as from a reserved register.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, Device};
use flipwave_hooks::hook::Variables;
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::rewrite::{
    HookCall, Instrumentation, Rewritten, Selection, ValueStorage, When,
};
use flipwave_injector::Workload;
use flipwave_isa::Class;
use flipwave_tests::{MACHINES, clean, compile_for, gpu, hook_compiler, hook_source, instrument};

/// Kernels that are long enough to have dead SGPRs.
pub const FILES: [&str; 3] = ["control.cl", "memory.cl", "pressure.hip"];

const HOOKS: &str = "
uint64_t seen[17];

/* Counts by workgroup, unexpected ones last. */
void see(uint32_t workgroup)
{
    flipwave_count(&seen[workgroup < 16 ? workgroup : 16], 1);
}
";

/// Requests hooks that read the workgroup ID before and after every scalar instruction.
fn watch(instrumentation: &mut Instrumentation<'_>, keeping: &[ValueStorage]) {
    instrumentation.set_value_storage(keeping);
    let source = instrumentation.add_source(hook_source("see.c", HOOKS, instrumentation));
    let scalar = Selection { class: Some(Class::Salu), ..Selection::default() };
    for at in instrumentation.select(&scalar) {
        for when in [When::Before, When::After] {
            let call = HookCall {
                source,
                function: "see".into(),
                arguments: vec![Argument::WorkgroupId(0)],
                results: Vec::new(),
                mask: Mask::Single,
            };
            instrumentation.call(at, when, call);
        }
    }
}

/// Counts of the hooks in all dispatches of a workload; `None` if a kernel has no register for the value.
fn seen(workload: &Workload, keeping: &[ValueStorage]) -> Option<Vec<Vec<u64>>> {
    let instrumented = instrument(workload, |instrumentation| watch(instrumentation, keeping));
    let dispatches = &instrumented.workload.program.dispatches;
    for dispatch in dispatches {
        let mut modules = instrumented.rewritten.values();
        let (_, new) = modules.find(|(module, _)| *module == dispatch.module)?;
        let kernel = new.report.kernels.iter().find(|kernel| kernel.name == dispatch.kernel)?;
        kernel.state.values().next()?;
    }
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(clean(&instrumented.workload).outputs, golden.outputs);
    let mut device = gpu(&instrumented.workload.device).clone();
    for dispatch in dispatches {
        let end = device.dispatch(dispatch).expect("a launch");
        assert!(matches!(end, Completion::Completed(_)), "{end:?}");
    }
    let read = |(module, new): &(_, Rewritten)| {
        let variables = Variables::read(&device, *module, &new.data[0]).expect("variables");
        variables.numbers("seen").expect("numbers")
    };
    Some(instrumented.rewritten.values().map(read).collect())
}

/// Compares values read with live-range splitting with those read from reserved registers.
pub fn check(workload: &Workload) {
    let Some(moving) = seen(workload, &[ValueStorage::DeadSgprs]) else { return };
    let staying =
        seen(workload, &[ValueStorage::FreeSgprs, ValueStorage::MoreSgprs]).expect("a free SGPR");
    assert_eq!(moving, staying);
    assert!(staying.iter().all(|seen| seen[0] > 0 && seen[16] == 0), "{staying:?}");
}

/// Ensures that the comparisons are not vacuous.
#[test]
fn live_range_splitting_works_in_compiled_kernels() {
    for name in ["gfx90a with 64 lanes", "gfx1100 with 32 lanes"] {
        let machine = MACHINES.into_iter().find(|machine| machine.to_string() == name);
        let machine = machine.expect("a machine");
        let mut all = Vec::new();
        for file in FILES {
            let code_object = compile_for(machine, file, &["-O3"]);
            let object = CodeObject::parse(&code_object).expect("a code object");
            let mut instrumentation =
                Instrumentation::new(&object).unwrap_or_else(|error| panic!("{error}"));
            watch(&mut instrumentation, &[ValueStorage::DeadSgprs]);
            let new = instrumentation.rewrite(hook_compiler());
            let report = new.unwrap_or_else(|error| panic!("{error}")).report;
            let moving = report.kernels.iter().filter(|kernel| !kernel.state.is_empty());
            let moves: Vec<_> = moving.map(|kernel| (&kernel.name, kernel.moves)).collect();
            println!("{name} {file}: {moves:?} moves of {} kernels", report.kernels.len());
            all.extend(moves.iter().map(|kernel| kernel.1));
        }
        assert!(all.iter().any(|moves| *moves > 0));
    }
}
