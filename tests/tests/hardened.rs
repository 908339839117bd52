//! Programs hardened by duplication compute the same results, and no fault in a compared result is
//! silent.

use flipwave_analysis::Outcome;
use flipwave_campaigns::{
    Campaign, Comparing, HardenOptions, Hardenings, RunOptions, Silent, harden,
};
use flipwave_device::Device;
use flipwave_harden::amdgpu::{Hardened, candidates};
use flipwave_harden::{DETECTED, Hardening};
use flipwave_hooks::hook::Variables;
use flipwave_isa::Pc;
use flipwave_tests::{
    Twins, examples, examples_folder, flipwave, gpu, hook_compiler, is_long_run,
    rewritten_machines, rows, workload,
};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;

/// Duplicates every duplicable instruction of the examples, on different machines. Without a fault,
/// nothing is detected, all live registers hold the same values before every instruction, and no
/// hardware rule is violated.
#[test]
fn fully_duplicated_programs_compute_the_same() {
    let mut copied: BTreeMap<String, usize> = BTreeMap::new();
    for machine in rewritten_machines() {
        for file in examples() {
            let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
            if !is_long_run() && !["reduction", "scan"].contains(&&*name) {
                continue;
            }
            if name == "saxpy" && !machine.runs_hip() {
                continue;
            }
            let plain = workload(machine, &file, &["-O3"]);
            let mut device = gpu(&plain.device).clone();
            let mut hardened: BTreeMap<u32, (flipwave_device::ModuleId, Hardened)> =
                BTreeMap::new();
            for dispatch in &plain.program.dispatches {
                let object =
                    gpu(&plain.device).code_object(dispatch.module).expect("a module").clone();
                let module = hardened.entry(dispatch.module.0).or_insert_with(|| {
                    let new = all(&object);
                    *copied.entry(machine.to_string()).or_default() += new.duplicated.len();
                    (device.load(&new.rewritten.object).expect("loads"), new)
                });
                let mut instrumented = dispatch.clone();
                instrumented.module = module.0;
                let twins = Twins {
                    original: dispatch,
                    instrumented: &instrumented,
                    rewritten: &module.1.rewritten,
                    substituted: BTreeSet::new(),
                };
                let report = twins.side_by_side(&device, true);
                assert!(
                    report.is_clean(),
                    "{machine} {name}: {:?} {:?}",
                    report.difference,
                    report.violations
                );
                let end = device.dispatch(&instrumented).expect("runs");
                let data = &module.1.rewritten.data[0];
                let counted = Variables::read(&device, module.0, data).expect("variables");
                let detected = counted.numbers(DETECTED).expect("a number");
                assert_eq!(detected, [0], "{machine} {name}: {end:?}");
            }
        }
    }
    println!("{copied:?}");
    assert!(copied.values().all(|executions| *executions > 100), "{copied:?}");
}

/// Hardens a code object, with all duplicable instructions duplicated.
fn all(object: &flipwave_codeobj::CodeObject) -> Hardened {
    let candidates = candidates(object).unwrap_or_else(|error| panic!("{error}"));
    let instructions: BTreeSet<Pc> = candidates.instructions.keys().copied().collect();
    let hardening = Hardening { instructions: &instructions, comparing: Comparing::Ends };
    let hardened = flipwave_harden::amdgpu::harden(object, hardening, hook_compiler());
    hardened.unwrap_or_else(|error| panic!("{error}"))
}

/// Hardens an example, with `count` injected faults.
fn example(name: &str, count: &str, wanted: &HardenOptions, folder: &Path) -> Hardenings {
    let text =
        std::fs::read_to_string(examples_folder().join(format!("{name}.yaml"))).expect("a file");
    let kernels = examples_folder().join("kernels");
    let text = text.replace("count: 1000}", &format!("count: {count}}}"));
    let text = text.replace("kernels/", &format!("{}/", kernels.display()));
    let file = folder.join("campaign.yaml");
    std::fs::write(&file, text).expect("a file");
    let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
    let workers = NonZeroUsize::new(2).expect("two");
    let options = RunOptions::new(folder.join("hardened"), workers);
    let found = harden(&campaign, wanted, &options, &mut Silent);
    found.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn larger_budgets_reduce_sdc_and_compared_results_have_no_silent_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    let budgets = vec![1.1, 1.2, 1.3, 1.5, 2.0];
    let wanted = HardenOptions { budgets, holds_out: false, comparing: Comparing::Ends };
    let found = example("matmul", "200", &wanted, folder.path());
    assert_eq!(found.escapes, []);
    let plain = rows(&folder.path().join("hardened/plain"));
    for point in &found.points {
        assert!(point.cost > 1.0 && point.cost <= point.budget, "{point:?}");
        let sum: f64 = point.rates.iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{point:?}");
        let rows = rows(&folder.path().join(format!("hardened/{}", point.budget)));
        assert!(rows.iter().map(|row| &row.site).eq(plain.iter().map(|row| &row.site)));
        assert!(rows.iter().map(|row| &row.line).eq(plain.iter().map(|row| &row.line)));
        // Compute the coverage from the two tables.
        let sdc = plain.iter().zip(&rows).filter(|(row, _)| row.outcome == Outcome::Sdc);
        let silent = sdc.clone().filter(|(_, row)| row.outcome == Outcome::Sdc).count();
        let coverage = 1.0 - silent as f64 / sdc.count() as f64;
        assert!((coverage - point.coverage).abs() < 1e-12, "{point:?}");
    }
    let coverage: Vec<f64> = found.points.iter().map(|point| point.coverage).collect();
    assert!(coverage.is_sorted(), "{coverage:?}");
    assert!(coverage[0] < 0.3 && coverage[3] > 0.6 && coverage[4] > 0.95, "{coverage:?}");
}

/// Negative control: duplicated instructions whose results are not compared.
#[test]
fn uncompared_copies_are_reported_as_escapes() {
    let folder = tempfile::tempdir().expect("a folder");
    let comparing = Comparing::Nothing;
    let wanted = HardenOptions { budgets: vec![2.0], holds_out: false, comparing };
    let found = example("matmul", "60", &wanted, folder.path());
    assert!(found.escapes.len() > 10, "{:?}", found.escapes);
    assert_eq!(found.points[0].coverage, 0.0);
    assert_eq!(found.points[0].rates[Outcome::Detected as usize], 0.0);
}

#[test]
fn invalid_budgets_are_refused() {
    let file = examples_folder().join("vector_add.yaml").display().to_string();
    for (arguments, expected) in [
        (vec!["--budget", "1.3,0.9"], "invalid budget 0.9"),
        (vec!["--budget", "1.3,1.3"], "1.3 is given twice"),
        (vec!["--budget", "1.0001"], "a budget of 1.0001 is too small"),
        (vec!["--budget", "much"], "invalid value 'much'"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out").display().to_string();
        let arguments = [&["harden", &*file, "--out", &*out][..], &arguments].concat();
        let run = flipwave(folder.path(), &arguments, &[]);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}
