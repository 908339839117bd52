//! Programs for PTX hardened by duplication compute the same results, and no fault in a compared result is silent.

use super::{campaign, ptxas};
use crate::suite::suite_programs;
use flipwave_analysis::Outcome;
use flipwave_campaigns::{
    Campaign, Comparing, HardenOptions, Hardenings, RunOptions, Silent, harden, prepare,
};
use flipwave_depth::{Depth, cases};
use flipwave_device::ModuleId;
use flipwave_harden::ptx::{VARIABLE, candidates};
use flipwave_harden::{Comparing as Compared, DETECTED, Hardening};
use flipwave_injector::{Buffer, Workload};
use flipwave_ptx::parse;
use flipwave_ptx_sim::{Inserted, PtxGpu};
use flipwave_tests::{flipwave, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;

const TARGETS: [&str; 7] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

/// A program with all instructions duplicated, whose counter is its last output, and the text of its modules.
fn fully_hardened(workload: &Workload) -> (Workload, Vec<String>) {
    let (mut workload, mut texts) = (workload.clone(), Vec::new());
    let gpu: &mut PtxGpu = workload.device.downcast_mut().expect("a GPU");
    let mut modules: BTreeMap<u32, ModuleId> = BTreeMap::new();
    for dispatch in &mut workload.program.dispatches {
        let plain = dispatch.module;
        dispatch.module = *modules.entry(plain.0).or_insert_with(|| {
            let module = gpu.program(plain).expect("a program").module.clone();
            let found = candidates(&module).unwrap_or_else(|error| panic!("{error}"));
            let instructions: BTreeSet<_> = found.instructions.into_keys().collect();
            let hardening = Hardening { instructions: &instructions, comparing: Compared::Ends };
            let hardened = flipwave_harden::ptx::harden(&module, hardening);
            let rewritten = hardened.unwrap_or_else(|error| panic!("{error}")).rewritten;
            let text = rewritten.module.to_string();
            let module = parse(&text).unwrap_or_else(|error| panic!("{error}"));
            texts.push(text);
            let id = gpu.load_rewritten(plain, &module, &rewritten.origins, Inserted::Counted);
            let id = id.unwrap_or_else(|error| panic!("{error}"));
            let (address, bytes) = gpu.variable(id, VARIABLE).expect("a counter");
            let (name, bytes) = (DETECTED.to_owned(), bytes as usize);
            workload.program.outputs.push(Buffer { name, address, bytes });
            id
        });
        dispatch.instruction_limit = dispatch.instruction_limit.saturating_mul(8);
    }
    (workload, texts)
}

/// Without a fault, all programs of the suite have the same outputs with everything duplicated, and nothing is
/// detected. NVIDIA's assembler accepts their code.
#[test]
fn fully_duplicated_ptx_programs_compute_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = suite_programs().into_iter().zip(TARGETS.into_iter().cycle());
    let programs = ptxas::programs();
    for ((file, name), target) in all {
        let campaign = campaign(folder.path(), &file, |text| text.replace("sm_80", target));
        let plain = prepare(&campaign).unwrap_or_else(|error| panic!("{name}: {error}")).workload;
        let expected = plain.golden().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (hardened, texts) = fully_hardened(&plain);
        let found = hardened.golden().unwrap_or_else(|error| panic!("{name}: {error}"));
        let (outputs, counters) = found.outputs.split_at(expected.outputs.len());
        assert!(outputs == expected.outputs, "{name} {target}");
        let is_zero = counters.iter().all(|found| found.bytes().iter().all(|byte| *byte == 0));
        assert!(is_zero && !counters.is_empty(), "{name} {target}");
        let executed = |golden: &flipwave_injector::Golden| -> u64 {
            golden.statistics.iter().map(|dispatch| dispatch.wave_instructions).sum()
        };
        let cost = executed(&found) as f64 / executed(&expected) as f64;
        assert!(cost > 1.3 && cost < 3.0, "{name} {target}: {cost}");
        for text in programs.iter().flat_map(|_| &texts) {
            let programs = programs.as_ref().expect("present");
            let out = folder.path().join("hardened.cubin");
            ptxas::assemble(programs, text, target, &out)
                .unwrap_or_else(|error| panic!("{name} {target}: {error}"));
        }
    }
}

/// The number of faults for each program.
fn fault_count() -> u32 {
    if Depth::asked() == Depth::Sample { 150 } else { 1000 }
}

/// A campaign of the suite.
fn with_count(folder: &Path, program: &str, count: u32) -> Campaign {
    let (file, _) =
        suite_programs().into_iter().find(|(_, name)| *name == program).expect("a program");
    campaign(folder, &file, |text| text.replace("count: 1000", &format!("count: {count}")))
}

fn hardened(
    campaign: &Campaign,
    folder: &Path,
    workers: usize,
    wanted: &HardenOptions,
) -> Hardenings {
    let workers = NonZeroUsize::new(workers).expect("workers");
    let options = RunOptions::new(folder.to_owned(), workers);
    harden(campaign, wanted, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn hardened_ptx_programs_have_less_sdc_and_no_silent_fault_in_a_compared_result() {
    for program in cases(["mxm", "hotspot", "lud"], 3) {
        let folder = tempfile::tempdir().expect("a folder");
        let campaign = with_count(folder.path(), program, fault_count());
        let budgets = vec![1.2, 1.5, 4.0];
        let wanted = HardenOptions { budgets, holds_out: false, comparing: Comparing::Ends };
        let found = hardened(&campaign, &folder.path().join("one"), 1, &wanted);
        assert_eq!(found.escapes, [], "{program}");
        let plain = rows(&folder.path().join("one/plain"));
        for point in &found.points {
            assert!(point.cost > 1.0 && point.cost <= point.budget, "{program} {point:?}");
            let rows = rows(&folder.path().join(format!("one/{}", point.budget)));
            assert!(rows.iter().map(|row| &row.site).eq(plain.iter().map(|row| &row.site)));
            let sdc = plain.iter().zip(&rows).filter(|(row, _)| row.outcome == Outcome::Sdc);
            let silent = sdc.clone().filter(|(_, row)| row.outcome == Outcome::Sdc).count();
            let coverage = 1.0 - silent as f64 / sdc.count() as f64;
            assert!((coverage - point.coverage).abs() < 1e-12, "{program} {point:?}");
        }
        let coverage: Vec<f64> = found.points.iter().map(|point| point.coverage).collect();
        assert!(coverage.is_sorted() && coverage[2] > 0.95, "{program} {coverage:?}");
        assert!(found.steps.iter().all(|step| step.registers > 1000 && step.differing.is_none()));
        // Everything is the same with two workers.
        hardened(&campaign, &folder.path().join("two"), 2, &wanted);
        for file in ["1.2/results.csv", "4/results.csv", "4-0.ptx", "curve.csv", "instructions.csv"]
        {
            let read = |out: &str| std::fs::read(folder.path().join(out).join(file)).expect(file);
            assert!(read("one") == read("two"), "{program} {file}");
        }
    }
}

/// Negative control: duplicated instructions whose results are not compared.
#[test]
fn uncompared_copies_of_ptx_are_reported_as_escapes() {
    let folder = tempfile::tempdir().expect("a folder");
    let campaign = with_count(folder.path(), "mxm", 60);
    let comparing = Comparing::Nothing;
    let wanted = HardenOptions { budgets: vec![4.0], holds_out: false, comparing };
    let found = hardened(&campaign, &folder.path().join("out"), 2, &wanted);
    assert!(found.escapes.len() > 10, "{:?}", found.escapes);
    assert_eq!(found.points[0].coverage, 0.0);
    assert_eq!(found.points[0].rates[Outcome::Detected as usize], 0.0);
}

/// Hardened code, and code with a detector, has the same rows in the interpreter and as compiled code.
#[test]
fn rows_of_rewritten_ptx_do_not_depend_on_the_tier() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let campaign = with_count(folder, "hotspot", 80);
    let text = std::fs::read_to_string(&campaign.file).expect("a campaign");
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/tools/range_check.c");
    let checked = format!("{text}detector: {{c: {tool}}}\n");
    std::fs::write(folder.join("checked.yaml"), checked).expect("written");
    let tables = |tier: &str| {
        let environment = [("FLIPWAVE_TIER", tier)];
        let out = |name: &str| format!("{tier}.{name}");
        let harden = ["harden", "hotspot.yaml", "--budget", "3", "--out", &out("hardened")];
        flipwave(folder, &harden, &environment).expect_success();
        flipwave(folder, &["run", "checked.yaml", "--out", &out("checked")], &environment)
            .expect_success();
        ["hardened/3", "checked"]
            .map(|name| std::fs::read(folder.join(out(name)).join("results.csv")).expect("a table"))
    };
    assert!(tables("interpreter") == tables("compiled-at-once"));
}

/// A hardened module is code like any other: faults in it, also in copies, are injected inside the simulated GPU and
/// with hooks.
#[test]
fn hardened_modules_are_code_objects_of_campaigns() {
    let folder = tempfile::tempdir().expect("a folder");
    let campaign = with_count(folder.path(), "mxm", 60);
    let wanted = HardenOptions { budgets: vec![4.0], holds_out: false, comparing: Comparing::Ends };
    hardened(&campaign, &folder.path().join("out"), 2, &wanted);
    let text = std::fs::read_to_string(&campaign.file).expect("a campaign");
    let text = text.replace("source: kernels/mxm.cl", "code_object: out/4-0.ptx");
    std::fs::write(folder.path().join("object.yaml"), text).expect("written");
    for (out, by) in [("embedded", &[][..]), ("hooks", &["--by", "hook"])] {
        let arguments = [&["run", "object.yaml", "--out", out][..], by].concat();
        flipwave(folder.path(), &arguments, &[]).expect_success();
    }
    let table = |out: &str| std::fs::read(folder.path().join(out).join("results.csv")).expect(out);
    assert!(table("embedded") == table("hooks"));
    // The module declares the counter, and is not hardened twice.
    let again = flipwave(folder.path(), &["harden", "object.yaml", "--out", "again"], &[]);
    again.expect_refused(&["already declares `flipwave_detected`"]);
}

#[test]
fn ptx_programs_that_cannot_be_hardened_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let write = |body: &str, faults: &str| {
        let module = format!(
            ".version 7.8\n.target sm_80\n.address_size 64\n.visible .global .u32 value;\n\
             .visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<4>; .reg .b64 %d;\n{body}\nret;\n}}\n"
        );
        std::fs::write(folder.join("k.ptx"), module).expect("written");
        let campaign = format!(
            "name: k\nseed: 1\ntarget: sm_80\nworkload:\n  kernel:\n    code_object: k.ptx\n    name: k\n    \
             grid: 32\n    workgroup: 32\n    args: [{{buffer: out, type: u32, count: 32, output: true}}]\n\
             allow: [unwritten_output]\nfaults: {faults}\n"
        );
        std::fs::write(folder.join("k.yaml"), campaign).expect("written");
    };
    let refused = |more: &[&str], words: &[&str]| {
        let _ = std::fs::remove_dir_all(folder.join("out"));
        let arguments = [&["harden", "k.yaml", "--out", "out"][..], more].concat();
        flipwave(folder, &arguments, &[]).expect_refused(words);
    };
    let faults = "{model: flip_one_bit, count: 40}";
    let store = "ld.param.u64 %d, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d, %r1, 4, %d;\n\
                 st.global.u32 [%d], %r1;";
    write(store, faults);
    refused(&["--budget", "0.9"], &["invalid budget 0.9"]);
    refused(&["--budget", "nan"], &["invalid budget NaN"]);
    refused(&["--budget", "1.0001"], &["a budget of 1.0001 is too small"]);
    write("mov.u32 %r1, %clock; st.global.u32 [value], %r1;", faults);
    refused(&[], &["none of the instructions that the program executes can be duplicated"]);
    write("mov.u32 %r1, %tid.x;", faults);
    refused(&[], &["nothing to protect"]);
    let detected = format!("{store}\n}}\n.visible .global .u64 flipwave_detected;\n.func f() {{");
    write(&detected, faults);
    refused(&["--budget", "3"], &["already declares `flipwave_detected`"]);
}
