//! Tests of applications in campaign files.

use super::*;
use crate::application::{Comparison, Format, Nondeterminism, Output};
use crate::file::element::ElementType;
use crate::outputs::compare::Tolerance;

const GOOD: &str = "\
name: app
workload:
  app:
    command: [/bin/sh, -c, 'true']
    environment: {OMP_NUM_THREADS: '1'}
    input: [passwd]
    directory: ../etc
    stdin: group
    timeout: 60 s
    memory: 2 GiB
    output: 4 MiB
    golden_runs: 5
    nondeterminism: allow
compare:
  - stdout: {ignore: ['^time'], tolerance: {relative: 1.0e-6}}
  - stderr: exact
  - file: ./out/field.bin
    type: f32
    tolerance: {ulp: 4}
  - check: /bin/true
faults: {model: flip_one_bit, count: 10}
";

fn read(text: &str) -> Result<Campaign, FileError> {
    Campaign::parse(text, Path::new("/usr/app.yaml"))
}

/// Checks the error for the valid campaign with `from` replaced by `to`: it points to `at` in the
/// new text and contains `parts`.
fn assert_error(from: &str, to: &str, at: &str, parts: &[&str]) {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    let error = read(&text).expect_err(to).to_string();
    let mut lines = text.lines().enumerate();
    let place = lines.find_map(|(index, line)| Some((index + 1, line.find(at)? + 1)));
    let (line, column) = place.expect(at);
    assert!(error.starts_with(&format!("/usr/app.yaml:{line}:{column}: ")), "{error}");
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn applications_are_read() {
    let app = application(read(GOOD).expect("good"));
    assert_eq!(app.command.program, Path::new("/bin/sh"));
    assert_eq!(app.command.arguments, ["-c", "true"]);
    assert!(app.directory.is_absolute() && app.directory.ends_with("etc"));
    assert_eq!(app.input, [Path::new("passwd")]);
    assert_eq!(app.stdin, Some(app.directory.join("group")));
    assert_eq!(app.environment["OMP_NUM_THREADS"], "1");
    assert_eq!(app.timeout, Some(Duration::from_secs(60)));
    assert_eq!((app.memory, app.output, app.golden_runs), (2 << 30, 4 << 20, 5));
    assert_eq!(app.nondeterminism, Nondeterminism::Allow);
    let [
        Comparison::Output { format: Format::Text { ignore, tolerance }, .. },
        stderr,
        file,
        check,
    ] = &app.comparisons[..]
    else {
        panic!("{:?}", app.comparisons);
    };
    assert_eq!((ignore.len(), tolerance.relative), (1, Some(1.0e-6)));
    let exact = |output| Comparison::Output { output, format: Format::Exact };
    assert_eq!(*stderr, exact(Output::Stderr));
    let tolerance = Tolerance { ulp: Some(4), ..Tolerance::default() };
    let format = Format::Elements { element: ElementType::F32, extents: None, tolerance };
    assert_eq!(*file, Comparison::Output { output: Output::File("out/field.bin".into()), format });
    assert!(matches!(check, Comparison::Check(command) if command.arguments.is_empty()));
}

#[test]
fn missing_keys_have_defaults() {
    let app = application(read("name: app\nworkload: {app: {command: sh}}\n").expect("good"));
    assert_eq!((app.directory.as_path(), app.exit_code), (Path::new("/usr"), 0));
    assert_eq!((app.timeout, app.golden_runs), (None, 3));
    assert_eq!(app.nondeterminism, Nondeterminism::Error);
    let exact = Comparison::Output { output: Output::Stdout, format: Format::Exact };
    assert_eq!(app.comparisons, [exact]);
}

#[test]
fn unknown_keys_and_values_are_rejected_with_their_position() {
    assert_error("timeout", "timout", "timout", &["timout", "timeout"]);
    assert_error("stderr: exact", "stderr: exakt", "exakt", &["exakt", "`exact`"]);
    assert_error("stderr: exact", "stdrr: exact", "stdrr", &["stdrr", "stderr"]);
    assert_error("ignore:", "ingore:", "ingore", &["ingore", "ignore"]);
    assert_error("{relative:", "{relativ:", "relativ:", &["relativ", "relative"]);
    assert_error("allow", "maybe", "maybe", &["maybe", "allow"]);
    assert_error("[/bin/sh, -c, 'true']", "{a: b}", "{a: b}", &["command", "list of a program"]);
    assert_error("timeout: 60 s", "timeout: 60", "60", &["workload.app.timeout", "`60 s`"]);
    assert_error("2 GiB", "2 GB", "2 GB", &["workload.app.memory", "GiB"]);
    assert_error("golden_runs: 5", "golden_runs: 9999", "9999", &["expected 1 to"]);
    assert_error("golden_runs: 5", "gpus: 17", "17", &["expected 1 to 16"]);
    assert_error("timeout: 60 s", "exit_code: 256", "256", &["exit_code", "256"]);
}

#[test]
fn missing_programs_and_files_are_rejected_with_their_position() {
    assert_error("[/bin/sh,", "[./missing,", "[./missing", &["app.command", "./missing"]);
    assert_error("[/bin/sh, -c, 'true']", "[]", "[]", &["no program"]);
    assert_error("[passwd]", "[missing]", "missing", &["input[0]", "missing"]);
    assert_error("[passwd]", "[../usr]", "../usr", &["without `..`"]);
    assert_error("[passwd]", "[/etc/passwd]", "/etc", &["does not begin with `/`"]);
    assert_error("stdin: group", "stdin: missing", "missing", &["app.stdin"]);
    assert_error("../etc", "../missing", "../missing", &["not a folder"]);
    assert_error("/bin/true", "./missing", "./missing", &["compare[3].check"]);
}

#[test]
fn invalid_comparisons_are_rejected_with_their_position() {
    assert_error("'^time'", "'('", "'('", &["compare[0].stdout.ignore[0]", "regular expression"]);
    assert_error("relative: 1.0e-6", "ulp: 1", "1}", &["`type`"]);
    assert_error("relative: 1.0e-6", "relative: .nan", "{relative", &["invalid limit"]);
    assert_error("type: f32", "ignore: [a]\n    type: f32", "[a]", &["no lines"]);
    assert_error("type: f32", "type: i32", "{ulp", &["`ulp`"]);
    assert_error("stderr: exact", "stdout: exact", "stdout: exact", &["twice"]);
    assert_error("stderr: exact", "{}", "{}", &["exactly one of"]);
    let both = "{stderr: exact, check: /bin/true}";
    assert_error("stderr: exact", both, both, &["exactly one of"]);
    let with_ignore = "{stderr: exact, ignore: [b]}";
    assert_error("stderr: exact", with_ignore, "[b]", &["not allowed with `stderr`"]);
    assert_error("./out/field.bin", "/tmp/x", "/tmp/x", &["compare[2].file"]);
}

#[test]
fn kernels_and_applications_cannot_be_combined() {
    let kernels = "dispatches: []\n  app:";
    assert_error("app:", kernels, "dispatches", &["expected exactly one of"]);
    assert_error(
        "faults:",
        "software: {}\nfaults:",
        "{}",
        &["software", "requires a workload of kernels"],
    );
    let start = GOOD.find("compare:").expect("compare");
    let end = GOOD.find("faults:").expect("faults");
    assert_error(
        &GOOD[start..end],
        "compare: {out: {exact: true}}\n",
        "{out",
        &["expected a list"],
    );
    let kernel = "name: k\nworkload: {kernel: {source: a.cl, name: a, grid: 1, workgroup: 1}}\n\
                  compare: [stdout: exact]\n";
    let error = read(kernel).expect_err("a list").to_string();
    assert!(error.contains(":3:10: compare: is a list"), "{error}");
}

#[test]
fn applications_cannot_be_assembled_as_kernels() {
    let campaign = read(GOOD).expect("good");
    let error = crate::program::prepare::prepare(&campaign).err().expect("no kernels");
    assert!(error.to_string().contains("`dispatches`"), "{error}");
    let error =
        crate::program::launch::launch(&campaign, Path::new("/nowhere")).expect_err("no kernels");
    assert!(error.to_string().contains("`dispatches`"), "{error}");
}

#[test]
fn documentation_example_is_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name);
    std::fs::create_dir(place("inputs")).expect("a folder");
    for name in ["matmul", "verify.sh", "data.txt", "numbers.txt"] {
        std::fs::copy("/bin/true", place(name)).expect("a file");
    }
    let lines = include_str!("../mod.rs").lines().map(|line| line.trim_start_matches("//!"));
    let example = lines.skip_while(|line| *line != " ```yaml").skip(1);
    let example: Vec<&str> = example.take_while(|line| *line != " ```").collect();
    let text = format!(" name: app\n{}\n", example.join("\n"));
    let application = application(Campaign::parse(&text, &place("app.yaml")).expect("good"));
    assert_eq!(application.input.len(), 2);
    assert_eq!(application.comparisons.len(), 5);
}
