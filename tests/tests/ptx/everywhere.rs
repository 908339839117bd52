//! Hooks at every instruction of the suite's programs change no result.

use super::{campaign, ptxas};
use crate::suite::suite_programs;
use flipwave_campaigns::prepare;
use flipwave_depth::cases;
use flipwave_device::ModuleId;
use flipwave_hooks::hook::Source;
use flipwave_injector::{Golden, Workload};
use flipwave_machine::Machine;
use flipwave_ptx::{Ptx, parse};
use flipwave_ptx_hooks::{
    Argument, HookCall, Instrumentation, Lanes, Place, Point, PtxHookCompiler,
};
use flipwave_ptx_sim::{Inserted, PtxGpu};
use std::collections::{BTreeMap, BTreeSet};

/// A hook that returns its argument and counts, and one that only counts.
const HOOKS: &str = "uint32_t calls;
    uint32_t same(uint32_t value) { __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); return value CHANGE; }
    void seen(uint64_t pc) { if (pc) __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); }";

/// The program with hooks before each instruction, for each word that it reads, and after it, for each word that it
/// writes.
fn instrumented(workload: &Workload, change: &str) -> Workload {
    let mut workload = workload.clone();
    let gpu: &mut PtxGpu = workload.device.downcast_mut().expect("a GPU");
    let source = Source {
        name: "hooks.c".into(),
        text: HOOKS.into(),
        defines: vec![("CHANGE".into(), change.into())],
        ..Source::default()
    };
    let target = Ptx::new(gpu.architecture().target()).expect("a target");
    let library = PtxHookCompiler::default().compile(&source, &target).expect("compiles");
    let mut modules: BTreeMap<u32, ModuleId> = BTreeMap::new();
    for dispatch in &mut workload.program.dispatches {
        let original = dispatch.module;
        let module = modules.entry(original.0).or_insert_with(|| {
            let module = gpu.program(original).expect("a program").module.clone();
            let mut instrumentation = Instrumentation::new(&module).expect("a module");
            let library = instrumentation.add_library(library.clone());
            let call = |function: &str, arguments, result| HookCall {
                library,
                function: function.to_owned(),
                arguments,
                results: Vec::from_iter(result),
                lanes: Lanes::Executing,
            };
            let mut calls = Vec::new();
            for site in instrumentation.sites() {
                let accesses = site.inst.accesses();
                calls.push((Point::Before(site.number), call("seen", vec![Argument::Pc], None)));
                for word in &accesses.sources {
                    let call =
                        call("same", vec![Argument::Word(*word)], Some(Place::ReadWord(*word)));
                    calls.push((Point::Before(site.number), call));
                }
                for word in accesses.destinations.iter().filter(|_| !site.leaves()) {
                    let call = call("same", vec![Argument::Word(*word)], Some(Place::Word(*word)));
                    calls.push((Point::After(site.number), call));
                }
            }
            for (point, call) in calls {
                instrumentation.call(point, call).expect("a call");
            }
            let rewritten = instrumentation.rewrite().expect("a module");
            let module = parse(&rewritten.module.to_string()).expect("a module");
            gpu.load_rewritten(original, &module, &rewritten.origins, Inserted::Free)
                .expect("loads")
        });
        dispatch.module = *module;
    }
    workload
}

#[test]
fn neutral_hooks_at_every_instruction_change_no_result_of_the_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, name) in cases(suite_programs(), 4) {
        let campaign = campaign(folder.path(), &file, |text| text);
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{name}: {error}"));
        let golden = |workload: &Workload| {
            workload.golden().unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        let expected = golden(&prepared.workload);
        let found = golden(&instrumented(&prepared.workload, ""));
        let outputs = |golden: &Golden| -> Vec<Vec<u8>> {
            golden.outputs.iter().map(|output| output.bytes().to_vec()).collect()
        };
        assert!(outputs(&found) == outputs(&expected), "{name}");
        assert_eq!(found.statistics, expected.statistics, "{name}");
    }
}

/// Targets that programs are assembled for.
const TARGETS: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

/// NVIDIA's assembler accepts what the printer writes, without hooks and with them.
#[test]
fn ptxas_accepts_the_suite_with_hooks() {
    let Some(programs) = ptxas::programs() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let all = suite_programs().into_iter().flat_map(|(file, name)| {
        TARGETS.into_iter().map(move |target| (file.clone(), name, target))
    });
    for (file, name, target) in cases(all.collect::<Vec<_>>(), 4) {
        let campaign = campaign(folder.path(), &file, |text| text.replace("sm_80", target));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{name}: {error}"));
        for workload in [&prepared.workload, &instrumented(&prepared.workload, "")] {
            let gpu: &PtxGpu = workload.device.downcast().expect("a GPU");
            let dispatches = workload.program.dispatches.iter();
            let modules: BTreeSet<u32> = dispatches.map(|dispatch| dispatch.module.0).collect();
            for module in modules {
                let text = gpu.program(ModuleId(module)).expect("a program").module.to_string();
                let object = folder.path().join("object.cubin");
                ptxas::assemble(&programs, &text, target, &object)
                    .unwrap_or_else(|error| panic!("{name} for {target}: {error}"));
            }
        }
        // Negative control.
        let damaged = ".version 8.0\n.target sm_80\n.entry k() { add.u33 %r1, %r2, %r3; }";
        let object = folder.path().join("damaged.cubin");
        assert!(ptxas::assemble(&programs, damaged, "sm_80", &object).is_err());
    }
}

/// Negative control: hooks that change all values.
#[test]
fn hooks_that_change_values_change_results_of_the_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = suite_programs().into_iter().find(|(_, name)| *name == "mxm").expect("mxm");
    let campaign = campaign(folder.path(), &file, |text| text);
    let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
    assert!(instrumented(&prepared.workload, "^ 4").golden().is_err());
}
