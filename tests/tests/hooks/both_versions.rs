//! Rewritten and original kernels in one code object.

use super::everywhere::touch_one_in;
use flipwave_codeobj::CodeObject;
use flipwave_device::Device;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::layout::Placement;
use flipwave_hooks::rewrite::SideBySideError;
use flipwave_injector::Workload;
use flipwave_tests::{MACHINES, contents, examples, gpu, gpu_mut, instrument, workload};

/// The program of each example, for a GPU that AMD's runtime supports.
fn workloads() -> impl Iterator<Item = Workload> {
    examples().into_iter().map(|file| workload(MACHINES[0], &file, &["-O3"]))
}

/// The workload with code that contains original and rewritten kernels. Launches whose number satisfies
/// `fits` run the rewritten kernels.
fn with_both_versions(original: &Workload, fits: impl Fn(usize) -> bool) -> Workload {
    let instrumented = instrument(original, |plan| _ = touch_one_in(2, "", plan));
    let mut new = instrumented.original.clone();
    for (index, dispatch) in new.program.dispatches.iter_mut().enumerate() {
        let object = gpu(&original.device).code_object(dispatch.module).expect("a loaded module");
        let (_, rewritten) = &instrumented.rewritten[&dispatch.module.0];
        let program = Disassembly::read(object).expect("a program");
        let versions = rewritten.beside(object, &program).unwrap_or_else(|error| panic!("{error}"));
        keeps_the_original(object, &versions.object);
        dispatch.module = gpu_mut(&mut new.device).load(&versions.object).expect("code that loads");
        dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(64);
        if fits(index) {
            let symbol = &versions.rewritten[&*dispatch.kernel];
            dispatch.kernel = symbol.strip_suffix(".kd").expect("a descriptor").to_owned();
        }
    }
    new
}

/// Asserts that code and descriptors have not changed or moved.
fn keeps_the_original(old: &CodeObject, new: &CodeObject) {
    for section in old.text() {
        let bytes = new.bytes_at(flipwave_isa::Pc(section.address), section.bytes().len());
        assert!(bytes == Some(section.bytes()), "original code has changed");
    }
    for (old, new) in old.kernels().iter().zip(new.kernels()) {
        assert_eq!((&old.name, &old.descriptor), (&new.name, &new.descriptor));
    }
    assert_eq!(new.kernels().len(), 2 * old.kernels().len());
}

fn executed(workload: &Workload) -> (Vec<Vec<u8>>, u64) {
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    let executed = golden.statistics.iter().map(|dispatch| dispatch.wave_instructions).sum();
    (contents(&golden.outputs), executed)
}

#[test]
fn each_launch_may_run_either_version() {
    for original in workloads() {
        let (outputs, plain) = executed(&original);
        assert_eq!(executed(&with_both_versions(&original, |_| false)), (outputs.clone(), plain));
        let (rewritten, all) = executed(&with_both_versions(&original, |_| true));
        assert_eq!(rewritten, outputs);
        let (mixed, some) = executed(&with_both_versions(&original, |index| index % 2 == 0));
        assert_eq!(mixed, outputs);
        let only_one = original.program.dispatches.len() == 1;
        assert!(plain < some && (some < all || only_one), "{plain}, {some}, {all} instructions");
    }
}

#[test]
fn trampolines_cannot_be_combined_with_original_kernels() {
    let original = workloads().next().expect("an example");
    let instrumented = instrument(&original, |plan| {
        plan.place_all(Placement::Trampoline);
        touch_one_in(2, "", plan);
    });
    let module = original.program.dispatches[0].module;
    let object = gpu(&original.device).code_object(module).expect("a loaded module");
    let program = Disassembly::read(object).expect("a program");
    let refused = instrumented.rewritten[&module.0].1.beside(object, &program);
    assert!(matches!(refused, Err(SideBySideError::Stays)), "{refused:?}");
}
