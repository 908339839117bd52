//! Every kind of fault that docs/faults.md lists, injected by the embedded GPU and by hooks with the same
//! results.

use flipwave_analysis::{Outcome, Row};
use flipwave_injector::{
    Duration, Ending, Fault, FaultFunction, FaultModel, FaultTarget, Injection, Intermittent,
    MaskDistribution, MeasuredPair, MeasuredValues, Planned, RelativeError, Results, Scope,
    Workload, inject,
};
use flipwave_injector_amdgpu::{HookInjector, read_function, supports};
use flipwave_sim::{Leads, Policy};
use flipwave_tests::{
    TestProgram, compile, example, examples_folder, flipwave, gpu, gpu_mut, hook_compiler, plan_of,
    profile_of, rows,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::Arc;

/// Measured wrong results, as numbers and as words.
fn measured() -> [MeasuredPair; 3] {
    let pair = |results| MeasuredPair { opcode: None, results, count: 1 };
    [
        pair(Results::Numbers([2.0, 3.0])),
        pair(Results::Numbers([0.0, 1.0])),
        pair(Results::Words([0x10, 0x8000_0001])),
    ]
}

/// The fault models with the heads of their columns in docs/faults.md.
fn models() -> [(&'static str, FaultModel); 14] {
    let masks = MaskDistribution::new("masks.csv", [(0x3, 2), (0x101, 1)]).expect("masks");
    let values = MeasuredValues::new(
        "values.csv",
        measured().to_vec(),
        &flipwave_sim::Amdgpu::new(flipwave_tests::gfx90a()),
    )
    .expect("values");
    let error = RelativeError::new(0.125).expect("an error");
    [
        ("one bit", FaultModel::FlipOneBit),
        ("adjacent", FaultModel::FlipAdjacentBits(3)),
        ("random bits", FaultModel::FlipRandomBits(2)),
        ("mask", FaultModel::FlipMask(0x8000_0001)),
        ("drawn mask", FaultModel::FlipDrawnMask(Arc::new(masks))),
        ("drawn values", FaultModel::DrawnValues(Arc::new(values))),
        ("random", FaultModel::RandomValue),
        ("zero", FaultModel::ZeroValue),
        ("ones", FaultModel::OnesValue),
        ("stuck at 0", FaultModel::StuckAtZero),
        ("stuck at 1", FaultModel::StuckAtOne),
        ("relative", FaultModel::RelativeError(error)),
        ("C, words", FaultModel::Function(function("burst.c"))),
        ("C, numbers", FaultModel::Function(function("relative.c"))),
    ]
}

/// A fault model of the examples.
fn function(name: &str) -> FaultFunction {
    read_function(&examples_folder().join("../fault_models").join(name)).expect("a fault model")
}

fn durations() -> [Duration; 3] {
    let window = NonZeroU64::new(5).expect("a window");
    [
        Duration::Transient,
        Duration::Intermittent(Intermittent { window, rate: 1 << 31 }),
        Duration::Permanent(NonZeroU32::new(2).expect("units")),
    ]
}

/// Two workgroups of two waves.
fn workload() -> Workload {
    let mut program = TestProgram::new(&compile("faults.cl", &["-O2"]));
    let values: Vec<f32> = (0..256).map(|item| item as f32 / 64.0).collect();
    let input = program.input(&values);
    let output = program.output(&[0.0f32; 256]);
    program.launch(
        "everything",
        [256, 1, 1],
        [128, 1, 1],
        &[output, input, flipwave_tests::scalar(3i32)],
    );
    let mut workload = program.workload();
    workload.program.buffers = workload.program.outputs.clone();
    // A wrong address may be an address that another wave uses. If waves were kept close together, the
    // order of both accesses would depend on the number of hook instructions.
    let policy = Policy { leads: Leads::ANY, ..gpu(&workload.device).policy() };
    gpu_mut(&mut workload.device).set_policy(policy);
    workload
}

/// Two workgroups of one wave, each of which computes a matrix product.
fn matrices() -> Workload {
    let mut program = TestProgram::new(&compile("matrices.cl", &["-O2"]));
    let values: Vec<f32> = (0..128).map(|item| item as f32 / 8.0).collect();
    let input = program.input(&values);
    let output = program.output(&[0.0f32; 512]);
    program.launch("product", [128, 1, 1], [64, 1, 1], &[output, input]);
    program.workload()
}

/// The parts of an injection in which hooks and the embedded GPU must agree. The position of a hang
/// differs, because the limit also counts the instructions of hooks.
fn compared(injection: Injection) -> String {
    match injection.ending {
        Ending::Completed { outputs, .. } => format!("{:?} {outputs:?}", injection.struck),
        Ending::Faulted { fault, .. } if fault.cause.name() == "watchdog" => "watchdog".to_owned(),
        Ending::Faulted { dispatch, fault } => {
            format!("{:?} {dispatch} {fault:?}", injection.struck)
        }
    }
}

/// Fills cells of the table: injects faults of a kind and records which methods support it.
struct Cells<'a> {
    workload: &'a Workload,
    limits: Vec<u64>,
    hooks: HookInjector<'a>,
    injected: u64,
    by_hook: u64,
}

impl Cells<'_> {
    fn fill(&mut self, target: FaultTarget, model: &FaultModel, scope: Scope) -> &'static str {
        let mut methods: BTreeMap<&str, u32> = BTreeMap::new();
        for duration in durations() {
            let fault = Fault { target, model: model.clone(), scope, duration };
            if fault.check().is_err() {
                continue;
            }
            let profile = profile_of(self.workload, &fault, &[]);
            if profile.fault_space.sites == 0 {
                assert!(duration != Duration::Transient, "nothing to strike for {fault}");
                continue;
            }
            for planned in plan_of(self.workload, &profile, 9, 1) {
                *methods.entry(self.inject(&fault, &planned)).or_default() += 1;
            }
        }
        match (methods.contains_key("EH"), methods.len()) {
            (_, 0) => "–",
            (true, 1) => "E H",
            (false, 1) => "E",
            _ => panic!("{target}, {model}, {scope}: {methods:?}"),
        }
    }

    fn inject(&mut self, fault: &Fault, planned: &Planned) -> &'static str {
        let site = &planned.site;
        let embedded = inject(self.workload, site, &self.limits)
            .unwrap_or_else(|error| panic!("{fault}: {error}"));
        self.injected += 1;
        if supports(site).is_err() {
            return "E";
        }
        let hook = self.hooks.inject(site, &self.limits);
        let hook = hook.unwrap_or_else(|error| panic!("{fault}: {error}"));
        self.by_hook += 1;
        assert_eq!(compared(hook), compared(embedded), "{fault}: {site}");
        "EH"
    }
}

/// Computes the table of docs/faults.md by injecting faults of every kind.
#[test]
fn documented_fault_table_matches_injections() {
    let workloads = [workload(), matrices()];
    let mut all = workloads.each_ref().map(|workload| {
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let limits = golden.instruction_limits();
        let hooks = HookInjector::new(workload, hook_compiler());
        Cells { workload, limits, hooks, injected: 0, by_hook: 0 }
    });
    let models = models();
    let heads: Vec<&str> = models.iter().map(|(head, _)| *head).collect();
    let mut table = format!("| target | scopes | {} |\n", heads.join(" | "));
    let _ = writeln!(table, "|---|---|{}", "---|".repeat(models.len()));
    for target in FaultTarget::ALL {
        let cells = &mut all[usize::from(target.part_of_sum().is_some())];
        // Scopes with equal cells share a line.
        let mut lines: Vec<(String, String)> = Vec::new();
        for scope in target.scopes() {
            let filled = models.iter().map(|(_, model)| cells.fill(target, model, scope));
            let filled = filled.collect::<Vec<_>>().join(" | ");
            match lines.iter_mut().find(|(_, cells)| *cells == filled) {
                Some((scopes, _)) => {
                    let _ = write!(scopes, ", {}", scope.name());
                }
                None => lines.push((scope.name().to_owned(), filled)),
            }
        }
        for (scopes, filled) in lines {
            let _ = writeln!(table, "| `{target}` | {scopes} | {filled} |");
        }
    }
    let [injected, by_hook] = [|cells: &Cells| cells.injected, |cells: &Cells| cells.by_hook]
        .map(|count| all.iter().map(count).sum::<u64>());
    println!("{injected} faults, {by_hook} of them by hooks too\n{table}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/faults.md");
    let page = std::fs::read_to_string(page).expect("the page of the book");
    assert!(page.contains(&table), "the book has another table than:\n{table}");
}

/// Runs a campaign on a program that checks its results.
fn duplicated(folder: &Path, faults: &str) -> Vec<Row> {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let text = format!(
        "
name: duplicated
seed: 3
workload:
  kernel:
    source: {}/duplicated.cl
    name: duplicated
    grid: 256
    workgroup: 64
    args:
      - {{buffer: sums, type: u32, count: 256, output: true}}
      - {{buffer: errors, type: u32, count: 1, detector: true}}
      - {{buffer: in, type: u32, count: 256, init: {{uniform: [0, 1000]}}}}
faults: {faults}
",
        kernels.display()
    );
    let file = folder.join("duplicated.yaml");
    std::fs::write(&file, text).expect("a campaign file written");
    let out = folder.join("out");
    let arguments = ["run".as_ref(), file.as_path(), "--out".as_ref(), &out, "--force".as_ref()];
    flipwave(folder, &arguments, &[]).expect_success();
    rows(&out)
}

/// Errors that the program detects are not silent. It cannot detect faults that strike both copies, or
/// the sum after the check.
#[test]
fn fault_found_by_the_program_s_check_is_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = duplicated(folder.path(), "{model: flip_one_bit, groups: [valu], count: 300}");
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    assert!(count(Outcome::Detected) > 50, "{}", count(Outcome::Detected));
    for row in rows.iter().filter(|row| row.outcome == Outcome::Detected) {
        assert_eq!(row.cause.as_deref(), Some("errors"), "{}", row.site);
    }
    // A load is copied before anything is checked.
    let loads = duplicated(
        folder.path(),
        "{model: flip_one_bit, groups: [load], opcodes: [global_load_dword], count: 100}",
    );
    assert!(loads.iter().all(|row| row.outcome != Outcome::Detected));
    assert!(loads.iter().filter(|row| row.outcome == Outcome::Sdc).count() > 50);
}

/// The rows of both campaigns are equal except for instruction counts.
#[test]
fn campaigns_with_hooks_agree_with_the_embedded_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "{model: flip_one_bit, target: source_operand, count: 30}";
    let file = example("quickstart", faults, folder.path());
    let run = |by: &str| {
        let out = folder.path().join(by);
        let arguments = ["run".as_ref(), file.as_os_str(), "--out".as_ref(), out.as_os_str()];
        let more = ["--by".as_ref(), by.as_ref(), "--self-test".as_ref()];
        let all: Vec<&std::ffi::OsStr> = arguments.into_iter().chain(more).collect();
        let finished = flipwave(folder.path(), &all, &[]).expect_success();
        assert!(finished.stdout.contains("faults without effect were masked"), "{by}");
        rows(&out)
    };
    let embedded = run("embedded");
    let timeless = |row: Row| Row { instructions: None, timing_changed: None, ..row };
    let expected: Vec<Row> = embedded.iter().cloned().map(timeless).collect();
    assert_eq!(run("hook"), expected);
    assert!(embedded.iter().any(|row| row.instructions.is_some()));

    // Unsupported faults are errors, not outcomes.
    let faults = "{model: flip_one_bit, target: instruction, count: 5}";
    let file = example("quickstart", faults, folder.path());
    let arguments = ["run".as_ref(), file.as_os_str(), "--by".as_ref(), "hook".as_ref()];
    let finished = flipwave(folder.path(), &arguments, &[]);
    finished.expect_refused(&["hooks cannot strike encoding"]);
}
