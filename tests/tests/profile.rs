//! Exact profiles, which count all dispatches, and approximate profiles, which count the first dispatch of
//! each kind.

use flipwave_injector::{
    Allocation, Counting, Fault, FaultModel, Plan, Profile, Sampling, Selection, Stratification,
    Workload, inject, profile,
};
use flipwave_tests::{TestProgram, compile, example, flipwave, scalar};
use std::path::Path;

fn counted(workload: &Workload, counting: Counting) -> Profile {
    let fault = Fault::transient(FaultModel::FlipOneBit);
    let everything = Selection::default();
    profile(workload, &fault, &everything, Stratification::None, counting)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Dispatches of `chase.cl`, with the given numbers of steps.
fn chases(steps: &[u32]) -> Workload {
    let mut program = TestProgram::new(&compile("chase.cl", &["-O3"]));
    let next: Vec<u32> = (0..128).map(|item| (item * 7 + 1) % 128).collect();
    let next = program.input(&next);
    let values = program.input(&[3u32; 128]);
    let sums = program.output(&[0u32; 128]);
    for steps in steps {
        let arguments = [next.clone(), values.clone(), sums.clone(), scalar(*steps)];
        program.launch("chase", [128, 1, 1], [64, 1, 1], &arguments);
    }
    program.workload()
}

#[test]
fn approximate_profile_of_equal_dispatches_is_exact() {
    let alike = chases(&[9, 9, 9]);
    let [exact, approximate] =
        [Counting::Exact, Counting::Approximate].map(|counting| counted(&alike, counting));
    assert_eq!(exact.fault_space, approximate.fault_space);
    assert_eq!(exact.counted(), "all dispatches counted");
    let words = "1 of 3 dispatches counted, the others taken to be like them";
    assert_eq!(approximate.counted(), words);
}

/// If dispatches differ, approximate counts are wrong, as documented. Drawn sites are exact nevertheless:
/// every fault strikes.
#[test]
fn sites_of_an_approximate_profile_strike_if_dispatches_differ() {
    let differing = chases(&[40, 4, 20]);
    let exact = counted(&differing, Counting::Exact);
    let approximate = counted(&differing, Counting::Approximate);
    assert!(approximate.fault_space.sites > exact.fault_space.sites);
    let sampling = Sampling::random(120, Allocation::Proportional);
    let plan = |workload: &Workload, profile: &Profile| {
        Plan::new(workload, profile, 8, &sampling).and_then(|plan| plan.faults(0..plan.count()))
    };
    let planned = plan(&differing, &approximate).unwrap_or_else(|error| panic!("{error}"));
    let golden = differing.golden().unwrap_or_else(|error| panic!("{error}"));
    let mut struck = [0; 3];
    for fault in &planned {
        let injection = inject(&differing, &fault.site, &golden.instruction_limits());
        injection.unwrap_or_else(|error| panic!("{}: {error}", fault.site));
        struck[fault.site.event().expect("an event").dispatch as usize] += 1;
    }
    assert!(struck.iter().all(|count| *count > 5), "{struck:?}");
    // Negative control: with fewer steps, some counted sites do not exist.
    let short = chases(&[4, 4, 4]);
    assert!(plan(&short, &exact).is_err());
}

#[test]
fn profile_prints_its_fault_space_and_counting_method() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/chase.cl");
    let launch = |arguments: &str| {
        let source = source.display();
        format!(
            "    - {{source: {source}, name: chase, grid: 128, workgroup: 64, args: [{arguments}]}}\n"
        )
    };
    let text = format!(
        "name: twice\nworkload:\n  dispatches:\n{}{}faults: {}\n",
        launch(
            "{buffer: next, type: u32, count: 128}, {buffer: values, type: u32, count: 128}, \
             {buffer: sums, type: u32, count: 128, output: true}, {scalar: 5, type: u32}"
        ),
        launch("{buffer: next}, {buffer: values}, {buffer: sums}, {scalar: 5, type: u32}"),
        "{model: zero_value, groups: [valu], profile: approximate, count: 1}",
    );
    let file = folder.path().join("twice.yaml");
    std::fs::write(&file, text).expect("a campaign file written");
    let arguments = ["profile".as_ref(), file.as_path()];
    let printed = flipwave(folder.path(), &arguments, &[]).expect_success().stdout;
    let words = "transient zero_value in destination_register of one lane, groups: [valu]: ";
    let line = printed.lines().find(|line| line.starts_with(words));
    assert!(line.is_some_and(|line| line.contains(": 1 of 2 dispatches counted")), "{printed}");
    let arguments = ["run".as_ref(), file.as_path()];
    let printed = flipwave(folder.path(), &arguments, &[]).expect_success().stdout;
    assert!(printed.lines().any(|line| line.starts_with("fault space: ")), "{printed}");
}

/// Both commands report an empty selection with the same message.
#[test]
fn empty_selection_is_the_same_error_in_profile_and_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "{model: flip_one_bit, groups: [lds], count: 10}";
    let file = example("vector_add", faults, folder.path());
    let errors = ["profile", "run"].map(|command| {
        let finished = flipwave(folder.path(), &[command.as_ref(), file.as_path()], &[]);
        assert_eq!(finished.code, Some(2), "{command}: {}", finished.stdout);
        let error = finished.stderr.lines().last().unwrap_or_default().to_owned();
        assert!(error.contains("nothing to inject into") && error.contains("[lds]"), "{error}");
        error
    });
    assert_eq!(errors[0], errors[1]);
}

/// The printed profile, the table and the JSON output contain the same numbers.
#[test]
fn profile_is_equal_as_text_table_and_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("saxpy", "{model: flip_one_bit, count: 5}", folder.path());
    let run = |others: &[&str]| {
        let mut arguments = vec!["profile", file.to_str().expect("text")];
        arguments.extend(others);
        flipwave(folder.path(), &arguments, &[]).expect_success().stdout
    };
    let text = run(&["--csv", "table.csv"]);
    let places = |line: &str| line.split_whitespace().next_back().map(str::to_owned);
    let sum = text.lines().find(|line| line.starts_with("sum ")).and_then(places).expect("a sum");
    let kernel = text.lines().find(|line| line.starts_with("saxpy ")).and_then(places);
    assert_eq!(kernel.as_ref(), Some(&sum), "of one kernel:\n{text}");
    let first = text.find("transient flip_one_bit").expect("the fault");
    assert!(first < text.find("instruction\n").expect("instructions"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&run(&["--json"])).expect("JSON");
    assert_eq!(json["fault_space"]["sites"].to_string(), sum);
    let mut table = csv::Reader::from_path(folder.path().join("table.csv")).expect("a table");
    let at = table.headers().expect("a header").iter().position(|column| column == "sites");
    let rows: Vec<csv::StringRecord> = table.records().collect::<Result<_, _>>().expect("rows");
    let all = rows.iter().map(|row| row[at.expect("a column")].parse::<u64>().expect("a number"));
    assert_eq!(all.sum::<u64>().to_string(), sum);
    assert_eq!(Some(rows.len()), json["instructions"].as_array().map(Vec::len));
}
