//! Campaigns on PTX: the suite's programs, compiled by clang, and faults in them.

mod commands;
mod emulated;
mod everywhere;
mod hardened;
mod names;
mod ptxas;
mod random;
mod strict;
mod tools;

use crate::suite::{agrees_with_reference, suite_programs};
use flipwave_analysis::{Outcome, Row};
use flipwave_campaigns::{
    Campaign, InjectionPath, ProcessSite, Report, RunOptions, Silent, prepare, replay, run,
};
use flipwave_depth::cases;
use flipwave_injector::Accelerations;
use flipwave_tests::{flipwave, rows};
use std::num::NonZeroUsize;
use std::path::Path;

/// A campaign of the suite for PTX, in a folder.
fn campaign(folder: &Path, file: &Path, change: impl Fn(String) -> String) -> Campaign {
    let kernels = file.with_file_name("kernels");
    let link = folder.join("kernels");
    if !link.exists() {
        std::os::unix::fs::symlink(kernels, link).expect("a link");
    }
    let text = std::fs::read_to_string(file).expect("a campaign");
    assert!(text.contains("target: gfx90a"));
    let copy = folder.join(file.file_name().expect("a name"));
    std::fs::write(&copy, change(text.replace("target: gfx90a", "target: sm_80"))).expect("a file");
    Campaign::read(&copy).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn suite_programs_compute_on_ptx_what_the_host_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, name) in suite_programs() {
        let campaign = campaign(folder.path(), &file, |text| text);
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{name}: {error}"));
        let golden = prepared.workload.golden().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(agrees_with_reference(&campaign, &golden), "{name}");
        // Negative control: the results for other inputs.
        let changed = Campaign { seed: campaign.seed + 1, ..campaign };
        assert!(!agrees_with_reference(&changed, &golden), "{name} does not depend on its input");
    }
}

/// Programs whose outputs have the same bits on both instruction sets: those that consist of exact operations.
/// Division in single precision may be off by 2.5 ULP in OpenCL C, and libraries compute other functions.
const EQUAL: [&str; 7] = ["bfs", "cnn", "hotspot", "mergesort", "mxm", "nw", "quicksort"];

#[test]
fn suite_programs_compute_on_ptx_what_the_embedded_gpu_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut equal = Vec::new();
    for (file, name) in suite_programs() {
        let campaigns = [
            campaign(folder.path(), &file, |text| text),
            Campaign::read(&file).unwrap_or_else(|error| panic!("{error}")),
        ];
        let outputs = campaigns.map(|campaign| {
            let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{name}: {error}"));
            let golden = prepared.workload.golden().unwrap_or_else(|error| panic!("{error}"));
            golden.outputs.iter().map(|output| output.bytes().to_vec()).collect::<Vec<_>>()
        });
        if outputs[0] == outputs[1] {
            equal.push(name);
        }
    }
    assert_eq!(equal, EQUAL);
}

/// Campaigns with faults of each target that PTX has, on programs with barriers and with divergence.
const FAULTS: [(&str, &str); 12] = [
    ("mxm", "destination_register"),
    ("mxm", "source_operand"),
    ("mxm", "register"),
    ("mxm", "lds"),
    ("mxm", "global_memory"),
    ("mxm", "program_counter"),
    ("bfs", "load_address"),
    ("bfs", "store_address"),
    ("bfs", "store_value"),
    ("bfs", "branch"),
    ("bfs", "destination_register"),
    ("fft", "scratch"),
];

/// A campaign of the suite with these faults.
fn with_faults(folder: &Path, program: &str, target: &str, count: u32) -> Campaign {
    let (file, _) =
        suite_programs().into_iter().find(|(_, name)| *name == program).expect("a program");
    campaign(folder, &file, |text| {
        let (workload, _) = text.split_once("\nfaults:").expect("faults");
        format!("{workload}\nfaults: {{model: flip_one_bit, target: {target}, count: {count}}}\n")
    })
}

fn report(campaign: &Campaign, options: &RunOptions) -> Report {
    run(campaign, options, &mut Silent).unwrap_or_else(|error| panic!("{error}"))
}

/// Rows do not depend on workers, checkpoints or shortcuts, and sites replay alone.
#[test]
fn ptx_rows_do_not_depend_on_how_they_are_made() {
    let mut seen = Vec::new();
    for (program, target) in cases(FAULTS, 5) {
        let folder = tempfile::tempdir().expect("a folder");
        let campaign = with_faults(folder.path(), program, target, 60);
        let options = |out: &str, workers| {
            let workers = NonZeroUsize::new(workers).expect("workers");
            RunOptions::new(folder.path().join(out), workers)
        };
        let table = |out: &str| {
            std::fs::read(folder.path().join(out).join("results.csv")).expect("results.csv")
        };
        let with_self_test = RunOptions { self_test: true, ..options("one", 1) };
        let tested = report(&campaign, &with_self_test).self_test;
        assert!(tested.is_some_and(|done| done.planted >= 3), "{tested:?}");
        report(&campaign, &options("two", 2));
        report(&campaign, &RunOptions { accelerations: Accelerations::NONE, ..options("slow", 1) });
        assert!(
            table("two") == table("one") && table("slow") == table("one"),
            "{program} {target}"
        );
        for row in rows(&folder.path().join("one")).into_iter().step_by(6) {
            let Row { site: text, outcome, cause, before, after, .. } = row;
            let site = ProcessSite::parse(&text, campaign.target.architecture())
                .unwrap_or_else(|error| panic!("{error}"));
            let replayed = replay(&campaign, site, InjectionPath::Embedded)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(replayed.verdict.outcome(), outcome, "{text}");
            assert_eq!(replayed.verdict.cause().map(str::to_owned), cause, "{text}");
            assert_eq!((replayed.struck.before, replayed.struck.after), (before, after), "{text}");
            seen.push(outcome);
        }
    }
    for outcome in [Outcome::Masked, Outcome::Sdc, Outcome::Due] {
        assert!(seen.contains(&outcome), "{outcome}");
    }
}

/// Faults that hooks inject in programs of the suite have the rows of the simulated GPU.
#[test]
fn hooks_give_the_rows_of_ptx_campaigns() {
    let reached = FAULTS.into_iter().filter(|(_, target)| *target != "program_counter");
    for (program, target) in cases(reached, 4) {
        let folder = tempfile::tempdir().expect("a folder");
        let campaign = with_faults(folder.path(), program, target, 40);
        let table = |out: &str, path| {
            let options = RunOptions::new(folder.path().join(out), NonZeroUsize::MIN);
            report(&campaign, &RunOptions { path, ..options });
            std::fs::read(folder.path().join(out).join("results.csv")).expect("results.csv")
        };
        let [embedded, hooked] = [("one", InjectionPath::Embedded), ("two", InjectionPath::Hook)]
            .map(|(out, path)| table(out, Some(path)));
        // Hooks do not reach registers of other functions, and local memory at calls: other sites are drawn.
        let is_reached = !["register", "scratch"].contains(&target);
        assert!(embedded == hooked || !is_reached, "{program} {target}");
        for row in rows(&folder.path().join("two")).iter().step_by(8) {
            let site = ProcessSite::parse(&row.site, campaign.target.architecture())
                .unwrap_or_else(|error| panic!("{error}"));
            let replayed = replay(&campaign, site, InjectionPath::Embedded)
                .unwrap_or_else(|error| panic!("{}: {error}", row.site));
            let found = (replayed.verdict.outcome(), replayed.struck.before, replayed.struck.after);
            assert_eq!(found, (row.outcome, row.before, row.after), "{}", row.site);
        }
    }
}

/// Rows are the same in the interpreter, in compiled code with each vector extension, and if code is compiled in
/// the background.
#[test]
fn ptx_rows_do_not_depend_on_the_tier() {
    let suite = suite_programs().into_iter().map(|(_, name)| (name, "destination_register"));
    let all: Vec<(&str, &str)> = suite.chain(FAULTS).collect();
    for (program, target) in cases(all, 6) {
        let folder = tempfile::tempdir().expect("a folder");
        let campaign = with_faults(folder.path(), program, target, 60);
        let table = |out: &str, environment: &[(&str, &str)]| {
            let file = campaign.file.as_os_str();
            let arguments = ["run".as_ref(), file, "--out".as_ref(), out.as_ref()];
            flipwave(folder.path(), &arguments, environment).expect_success();
            std::fs::read(folder.path().join(out).join("results.csv")).expect("results.csv")
        };
        let interpreted = table("interpreted", &[("FLIPWAVE_TIER", "interpreter")]);
        let at_once = ("FLIPWAVE_TIER", "compiled-at-once");
        let compiled = table("compiled", &[at_once]);
        let narrow = table("narrow", &[at_once, ("FLIPWAVE_SIMD", "avx2")]);
        let hot = table("hot", &[]);
        assert!(compiled == interpreted, "{program} {target}: compiled");
        assert!(narrow == interpreted, "{program} {target}: compiled for AVX2");
        assert!(hot == interpreted, "{program} {target}: compiled in the background");
    }
}

/// PTX has no encoding that faults could strike.
#[test]
fn faults_in_encodings_of_ptx_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let campaign = with_faults(folder.path(), "mxm", "instruction", 10);
    let options = RunOptions::new(folder.path().join("out"), NonZeroUsize::MIN);
    let error = run(&campaign, &options, &mut Silent).expect_err("no encoding").to_string();
    assert!(error.contains("nothing to inject into"), "{error}");
}

/// Parts of the sums of matrix products can be struck.
#[test]
fn sums_of_matrix_products_of_ptx_are_struck() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("product.ptx"), PRODUCT).expect("a file");
    for target in ["matrix_product", "matrix_partial_sum", "matrix_accumulator"] {
        let file = folder.path().join("product.yaml");
        let text = format!(
            "name: product\nseed: 3\ntarget: sm_80\nworkload:\n  dispatches:\n    - code_object: \
             product.ptx\n      name: product\n      grid: 32\n      workgroup: 32\n      args:\n        - \
             {{buffer: d, type: f32, count: 128, output: true}}\n        - {{buffer: a, type: u32, count: \
             128, init: {{range: {{start: 0x3c003c00, step: 0}}}}}}\nfaults: {{model: flip_one_bit, target: \
             {target}, count: 40}}\n"
        );
        std::fs::write(&file, text).expect("a file");
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let options = RunOptions::new(folder.path().join(target), NonZeroUsize::MIN);
        report(&campaign, &options);
        let rows = rows(&folder.path().join(target));
        assert_eq!(rows.len(), 40);
        assert!(rows.iter().any(|row| row.outcome == Outcome::Sdc), "{target}");
    }
}

/// The product of two matrices of ones.
const PRODUCT: &str = "
.version 7.8
.target sm_80
.address_size 64
.visible .entry product(.param .u64 d, .param .u64 a)
{
    .reg .b32 %r<7>, %lane;
    .reg .f32 %f<4>;
    .reg .b64 %d, %a;
    ld.param.u64 %d, [d];
    ld.param.u64 %a, [a];
    mov.u32 %lane, %laneid;
    mad.wide.u32 %d, %lane, 16, %d;
    mad.wide.u32 %a, %lane, 16, %a;
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%a];
    mov.b32 %f0, 0f00000000;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, \
    {%f0, %f0, %f0, %f0};
    st.global.v4.f32 [%d], {%f0, %f1, %f2, %f3};
    ret;
}
";
