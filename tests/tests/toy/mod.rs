//! Campaigns on an instruction set that the product does not contain.
//!
//! This folder defines an instruction set of ten instructions, a machine that executes it, and a platform.
//! Fault injection, campaigns and reports run on it unchanged.

mod execution;
mod isa;
mod machine;
mod memory;
mod platform;
mod survey;
mod wave;

use flipwave_analysis::{Outcome, Row};
use flipwave_campaigns::{
    Campaign, InjectionPath, MergeOptions, ProcessSite, Report, RunOptions, ShardOptions, Silent,
    StrictOptions, merge, prepare, register_platform, replay, run, run_shard, strict, trace,
};
use flipwave_injector::Accelerations;
use flipwave_tests::{flipwave, rows};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;
use tempfile::TempDir;

/// Each work-item of `sums` adds `ROWS` numbers; `twice` doubles the sums.
const CODE: &str = "
sums:
    arg s0, 0
    arg s1, 1
    arg s2, 2
    tid r0
    shl r1, r0, 2
    set r3, 0
    set r6, 64
    shl r6, r6, 2
    add r2, r1, r3
    load r4, s0, r2
    fadd r3, r3, r4
    add r2, r2, r6
    loop s2, 9
    store s1, r1, r3
    end
twice:
    arg s0, 0
    tid r0
    shl r1, r0, 2
    load r2, s0, r1
    fadd r2, r2, r2
    store s0, r1, r2
    end
";

/// Work-items.
const ITEMS: usize = 64;
/// Numbers that each work-item adds.
const ROWS: usize = 5;

/// A folder with the code and a campaign.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| register_platform(&platform::ToyPlatform));
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("sums.toy"), CODE).expect("a file");
        Bench { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The campaign with these faults.
    fn campaign(&self, faults: &str) -> Campaign {
        let file = self.path().join("sums.yaml");
        let text = format!(
            "name: sums
seed: 11
target: toy
workload:
  dispatches:
    - code_object: sums.toy
      name: sums
      grid: {ITEMS}
      workgroup: 16
      args:
        - {{buffer: in, type: f32, count: {}, init: {{range: {{start: 1, step: 0.25}}}}}}
        - {{buffer: out, type: f32, count: {ITEMS}, output: true}}
        - {{scalar: {ROWS}, type: u32}}
    - code_object: sums.toy
      name: twice
      grid: {ITEMS}
      workgroup: 16
      args: [{{buffer: out}}]
faults: {faults}
",
            ITEMS * ROWS
        );
        fs::write(&file, text).expect("a file");
        Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"))
    }

    fn options(&self, out: &str, workers: usize) -> RunOptions {
        let workers = NonZeroUsize::new(workers).expect("workers");
        RunOptions::new(self.path().join(out), workers)
    }

    fn run(&self, campaign: &Campaign, options: &RunOptions) -> Report {
        run(campaign, options, &mut Silent).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The content of a results table.
    fn table(&self, out: &str) -> Vec<u8> {
        fs::read(self.path().join(out).join("results.csv")).expect("results.csv")
    }
}

/// Faults of all targets that the instruction set has.
const TARGETS: [&str; 10] = [
    "destination_register",
    "source_operand",
    "register",
    "load_address",
    "store_address",
    "store_value",
    "global_memory",
    "instruction",
    "branch",
    "program_counter",
];

#[test]
fn the_golden_run_computes_the_sums() {
    let bench = Bench::new();
    let campaign = bench.campaign("{model: flip_one_bit, count: 1}");
    let workload = prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload;
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    let input = |index: usize| 1.0 + 0.25 * index as f32;
    let sum = |item: usize| (0..ROWS).fold(0.0, |sum, row| sum + input(item + ITEMS * row));
    let expected: Vec<u8> = (0..ITEMS).flat_map(|item| (2.0 * sum(item)).to_le_bytes()).collect();
    assert_eq!(golden.outputs[0].bytes(), expected);
}

/// Rows do not depend on workers, shards, checkpoints or shortcuts, whatever faults strike.
#[test]
fn rows_do_not_depend_on_how_they_are_made() {
    for target in TARGETS {
        let bench = Bench::new();
        let campaign =
            bench.campaign(&format!("{{model: flip_one_bit, target: {target}, count: 200}}"));
        let with_self_test = RunOptions { self_test: true, ..bench.options("one", 1) };
        let report = bench.run(&campaign, &with_self_test);
        assert!(report.self_test.is_some_and(|done| done.planted >= 4), "{:?}", report.self_test);
        bench.run(&campaign, &bench.options("two", 2));
        let slow = RunOptions { accelerations: Accelerations::NONE, ..bench.options("slow", 1) };
        bench.run(&campaign, &slow);
        for part in ["1/3", "2/3", "3/3"] {
            let options = ShardOptions {
                folder: bench.path().join("shards"),
                part: part.parse().unwrap_or_else(|error| panic!("{error}")),
                workers: NonZeroUsize::MIN,
                scratch: bench.path().to_owned(),
                accelerations: Accelerations::ALL,
                path: None,
            };
            run_shard(&campaign, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
        }
        let (folders, out) = (vec![bench.path().join("shards")], bench.path().join("merged"));
        merge(&MergeOptions { folders, out, wait: Duration::ZERO })
            .unwrap_or_else(|error| panic!("{error}"));
        let table = bench.table("one");
        assert!(!table.is_empty());
        for out in ["two", "slow", "merged"] {
            assert!(bench.table(out) == table, "{target}: {out}");
        }
    }
}

/// Each row is reproduced by its site alone, and outcomes of all kinds occur.
#[test]
fn rows_are_replayed_from_the_text_of_their_sites() {
    let bench = Bench::new();
    let mut seen = Vec::new();
    for target in TARGETS {
        let campaign =
            bench.campaign(&format!("{{model: flip_one_bit, target: {target}, count: 40}}"));
        bench.run(&campaign, &bench.options(target, 2));
        for row in rows(&bench.path().join(target)) {
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

/// Faults whose outcome follows from the program.
#[test]
fn outcomes_are_those_that_the_program_implies() {
    let bench = Bench::new();
    let campaign = bench.campaign("{model: flip_one_bit, count: 1}");
    let outcome = |site: &str| {
        let text = format!("dispatch=0 workgroup=1,0,0 wave=1 {site}");
        let site = ProcessSite::parse(&text, campaign.target.architecture())
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        let replayed = replay(&campaign, site, InjectionPath::Embedded)
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        let cause = replayed.verdict.cause().map(str::to_owned);
        (replayed.verdict.outcome(), cause.unwrap_or_default())
    };
    // The sum, after the last addition; a register that nothing reads; the number of rows, which ends
    // the loop much later; an address outside of memory; an unknown operation.
    let [sum, unused, rows, address, operation] = [
        "pc=0x28 occurrence=4 lane=3 register=r3 flip=0x00400000",
        "pc=0x28 occurrence=4 lane=3 register=r9 flip=0x00400000",
        "pc=0x8 occurrence=0 register=s2 flip=0x00100000",
        "pc=0x24 occurrence=2 lane=0 source=r2 flip=0x80000000",
        "pc=0x10 occurrence=0 encoding=0 flip=0x00000080",
    ]
    .map(outcome);
    assert_eq!(sum.0, Outcome::Sdc);
    assert_eq!(unused, (Outcome::Masked, "dead".to_owned()));
    assert_eq!(rows, (Outcome::Due, "memory_violation".to_owned()));
    assert_eq!(address, (Outcome::Due, "memory_violation".to_owned()));
    assert_eq!(operation, (Outcome::Due, "illegal_instruction".to_owned()));
}

/// The propagation of a fault ends where the program stores the wrong sum.
#[test]
fn faults_are_traced() {
    let bench = Bench::new();
    let campaign = bench.campaign("{model: flip_one_bit, count: 1}");
    let text = "dispatch=0 workgroup=2,0,0 wave=0 pc=0x28 occurrence=4 lane=5 register=r3 \
                flip=0x00400000";
    let site = ProcessSite::parse(text, campaign.target.architecture())
        .unwrap_or_else(|error| panic!("{error}"));
    let traced = trace(&campaign, site).unwrap_or_else(|error| panic!("{error}"));
    let flipwave_injector::TraceEnding::Escaped(wrong) = &traced.trace.ending else {
        panic!("{:?}", traced.trace.ending)
    };
    let item = 2 * 16 + 5;
    assert_eq!(wrong[0].first / 4, item);
    let escape = traced
        .trace
        .events
        .iter()
        .find(|event| matches!(event.what, flipwave_injector::What::Escape { .. }));
    assert_eq!(escape.map(|event| event.step.text.as_str()), Some("store s1, r1, r3"));
}

#[test]
fn reports_show_results_of_any_instruction_set() {
    let bench = Bench::new();
    let campaign = bench.campaign("{model: flip_one_bit, stratify: opcode, count: 300}");
    bench.run(&campaign, &bench.options("results", 2));
    let page = bench.path().join("report.html");
    let arguments: [&Path; 4] =
        ["report".as_ref(), "results".as_ref(), "--out".as_ref(), page.as_path()];
    flipwave(bench.path(), &arguments, &[]).expect_success();
    let text = fs::read_to_string(&page).expect("a page");
    assert!(text.contains("fadd") && text.contains("toy"));
}

/// Features that only AMD's instruction set has, and names of other instruction sets, are refused.
#[test]
fn requests_for_another_instruction_set_are_refused() {
    let bench = Bench::new();
    let campaign = bench.campaign("{model: flip_one_bit, count: 1}");
    let error = strict(&campaign, StrictOptions::default()).expect_err("no rules").to_string();
    assert!(error.contains("`toy` is not an AMD GPU"), "{error}");
    let by_hook = RunOptions { path: Some(InjectionPath::Hook), ..bench.options("hook", 1) };
    let error = run(&campaign, &by_hook, &mut Silent).expect_err("no hooks").to_string();
    assert!(error.contains("`toy` is not an AMD GPU"), "{error}");
    let text = "dispatch=0 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0 lane=0 register=v4 flip=0x1";
    let error = ProcessSite::parse(text, campaign.target.architecture()).expect_err("no v4");
    assert!(error.to_string().contains("r0 to r15"), "{error}");
    let file: PathBuf = bench.path().join("sums.yaml");
    let text = fs::read_to_string(&file)
        .expect("a file")
        .replace("count: 1}", "count: 1, registers: [vcc]}");
    fs::write(&file, text).expect("a file");
    let error = Campaign::read(&file).expect_err("no vcc").to_string();
    assert!(error.contains("invalid registers `vcc`"), "{error}");
}
