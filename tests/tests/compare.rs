//! `flipwave compare`: a kernel with duplicated computation, compared with a plain one.

use flipwave_tests::{Finished, flipwave};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const PLAIN: &str = "\
kernel void plain(global uint *sums, global const uint *in)
{
    size_t id = get_global_id(0);
    sums[id] = in[id] * 7 + 3;
}
";

/// Runs a campaign on a kernel. `arguments` are inserted between its output and its input.
fn run(folder: &Path, name: &str, source: &Path, arguments: &str) {
    let text = format!(
        "
name: {name}
seed: 3
workload:
  kernel:
    source: {}
    name: {name}
    grid: 256
    workgroup: 64
    args:
      - {{buffer: sums, type: u32, count: 256, output: true}}
{arguments}      - {{buffer: in, type: u32, count: 256, init: {{uniform: [0, 1000]}}}}
faults: {{model: flip_one_bit, groups: [valu], count: 300}}
",
        source.display()
    );
    fs::write(folder.join(format!("{name}.yaml")), text).expect("a campaign file written");
    flipwave(folder, &["run", &format!("{name}.yaml")], &[]).expect_success();
}

fn compare(folder: &Path, a: &str, b: &str) -> Finished {
    flipwave(folder, &["compare", a, b, "--csv", "."], &[])
}

type Line = BTreeMap<String, String>;

/// Lines of the scope `all`, by outcome.
fn all(folder: &Path) -> BTreeMap<String, Line> {
    let mut reader = csv::Reader::from_path(folder.join("compare.csv")).expect("a table");
    let lines = reader.deserialize().map(|line| -> Line { line.expect("a line") });
    lines
        .filter(|line| line["scope"] == "all")
        .map(|line| (line["outcome"].clone(), line))
        .collect()
}

fn number(line: &Line, name: &str) -> f64 {
    line[name].parse().expect(name)
}

#[test]
fn duplicated_kernel_has_less_sdc_and_more_instructions() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::write(folder.join("plain.cl"), PLAIN).expect("written");
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    run(folder, "plain", Path::new("plain.cl"), "");
    let detector = "      - {buffer: errors, type: u32, count: 1, detector: true}\n";
    run(folder, "duplicated", &kernels.join("duplicated.cl"), detector);

    let said = compare(folder, "plain.results", "duplicated.results/results.csv");
    let said = said.expect_success();
    assert!(said.stdout.starts_with("SDC "), "{}", said.stdout);
    assert_eq!(said.stderr, "", "the program's own error check is not a different comparison");
    let found = all(folder);
    assert!(number(&found["sdc"], "high") < 0.0, "{:?}", found["sdc"]);
    assert!(number(&found["sdc"], "p") < 0.01);
    assert!(number(&found["detected"], "low") > 0.0, "{:?}", found["detected"]);
    assert_eq!(found["detected"]["count_a"], "0");
    let [a, b] = ["instructions_a", "instructions_b"].map(|name| number(&found["sdc"], name));
    assert!(a > 0.0 && b / a > 1.2, "{a}, {b}");
    assert!(said.stdout.contains(&format!("{:.2}x the instructions", b / a)), "{}", said.stdout);
    assert_eq!(found["sdc"]["test"], "fisher");

    // A campaign compared with itself has no differing pairs.
    compare(folder, "plain.results", "plain.results").expect_success();
    for line in all(folder).values() {
        let zero = ["only_a", "only_b", "difference"].map(|name| number(line, name));
        assert_eq!(zero, [0.0; 3], "{line:?}");
        assert!(number(line, "low") <= 0.0 && number(line, "high") >= 0.0);
        assert_eq!(number(line, "p"), 1.0);
    }
}

#[test]
fn missing_results_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = compare(folder.path(), "nothing", "nothing");
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("no such folder"), "{}", said.stderr);
}

#[test]
fn folders_of_campaigns_are_compared_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for name in ["plain", "other"] {
        let source = folder.join(format!("{name}.cl"));
        fs::write(&source, PLAIN.replace("plain", name)).expect("written");
        run(folder, name, &source, "");
        let file = format!("{name}.yaml");
        for target in ["gfx90a", "sm_80"] {
            let out = format!("{target}/{name}");
            flipwave(folder, &["run", &file, "--target", target, "--out", &out], &[])
                .expect_success();
        }
    }
    let lone = ["run", "plain.yaml", "--count", "5", "--out", "sm_80/lone"];
    flipwave(folder, &lone, &[]).expect_success();
    let compared = compare(folder, "gfx90a", "sm_80");
    assert!(compared.stderr.contains("ignoring campaigns of sm_80 alone: lone"), "{compared:#?}");
    let text = compared.expect_success().stdout;
    assert!(text.starts_with("2 programs\n") && text.contains("\nplain "), "{text}");
    let mut reader = csv::Reader::from_path(folder.join("compare.csv")).expect("a table");
    let lines = reader.deserialize().map(|line| -> Line { line.expect("a line") });
    let overall = lines.filter(|line| line["scope"] == "all" && line["outcome"] == "sdc").count();
    assert_eq!(overall, 2);
    fs::create_dir_all(folder.join("empty")).expect("a folder");
    compare(folder, "gfx90a", "empty").expect_refused(&["gfx90a", "empty", "same names"]);
    let unknown = ["run", "plain.yaml", "--target", "sm_1"];
    flipwave(folder, &unknown, &[]).expect_refused(&["--target", "sm_1"]);
}
