//! Runs without a fault.

use super::*;
use crate::application::{ApplicationGolden, Ended};

fn golden(script: &str, keys: &str, others: &str) -> Result<ApplicationGolden, ApplicationError> {
    shell(script, keys, others).golden(&BTreeMap::new(), &GO_ON)
}

fn error(script: &str, keys: &str, others: &str) -> String {
    golden(script, keys, others).expect_err(script).to_string()
}

#[test]
fn runs_that_are_the_same_are_good() {
    let golden = golden("echo 1", "", "").expect("good");
    assert_eq!((golden.first.ended, &golden.first.stdout[..]), (Ended::Exited(0), &b"1\n"[..]));
    assert_eq!(golden.limits.timeout, Duration::from_secs(30));
    assert_eq!((golden.limits.memory, golden.limits.output), (8 << 30, 1 << 30));
}

#[test]
fn the_time_allowed_is_the_files_or_many_times_the_longest_run() {
    let stated = golden("true", ", timeout: 90 s", "").expect("good");
    assert_eq!(stated.limits.timeout, Duration::from_secs(90));
    let longer = golden("sleep 3.1", ", golden_runs: 1", "").expect("good");
    assert!(longer.limits.timeout >= Duration::from_secs(31));
    let late = error(&sleep(71201), ", timeout: 100 ms", "");
    assert!(late.contains("did not end in time") && late.contains("`timeout`"), "{late}");
}

#[test]
fn nondeterminism_is_an_error_that_names_the_first_difference() {
    let text = error("echo same; echo $$", "", "");
    assert!(text.contains("stdout, line 2: ") && text.contains("in place of"), "{text}");
    assert!(text.contains("`ignore`") && text.contains("nondeterminism: allow"), "{text}");
    // What is ignored, or not compared, may differ; one run cannot.
    let ignore = "compare: [stdout: {ignore: ['^[0-9]+$']}]";
    golden("echo same; echo $$", "", ignore).expect("ignored");
    golden("echo $$ > other", "", "").expect("not compared");
    golden("echo $$", ", golden_runs: 1", "").expect("one run");
}

/// The recorded run is confirmed like any other, which finds what differs in an application that
/// was run once.
#[test]
fn another_run_than_the_only_one_is_noticed() {
    let confirmed = |script: &str, keys: &str, others: &str| {
        let application = shell(script, &format!(", golden_runs: 1{keys}"), others);
        let golden = application.golden(&BTreeMap::new(), &GO_ON).expect("one run");
        let next = application.run(&BTreeMap::new(), &golden.limits, &GO_ON).expect("a run");
        application.confirm(&golden, &next, &GO_ON)
    };
    confirmed("echo same", "", "").expect("the same");
    let error = confirmed("echo $$", "", "").expect_err("different").to_string();
    assert!(error.contains("two runs without a fault differ"), "{error}");
    let tolerance = "compare: [stdout: {tolerance: {absolute: 1.0e+9}}]";
    confirmed("echo $$", ", nondeterminism: allow", tolerance).expect("allowed");
}

#[test]
fn an_application_of_which_nothing_is_compared_is_noticed() {
    let nothing = |script: &str, others: &str| {
        let application = shell(script, ", golden_runs: 1", others);
        let golden = application.golden(&BTreeMap::new(), &GO_ON).expect("a run");
        application.compares_nothing(&golden.first).expect("outputs")
    };
    assert_eq!(nothing("true", ""), Some("stdout".to_owned()));
    let all_ignored = "compare: [stdout: {ignore: ['.*']}, stderr: exact]";
    assert_eq!(nothing("echo 1; echo 2", all_ignored), Some("stdout, stderr".to_owned()));
    // One output that has something, or a check, is enough.
    assert_eq!(nothing("echo 1; echo 2 >&2", all_ignored), None);
    assert_eq!(nothing("echo 1", "compare: [stdout: {ignore: ['^2']}]"), None);
    assert_eq!(nothing("true", "compare: [stdout: exact, check: ['true']]"), None);
}

#[test]
fn a_tolerance_excuses_nondeterminism_only_where_that_is_allowed() {
    let tolerance = "compare: [stdout: {tolerance: {absolute: 1.0e+9}}]";
    assert!(error("echo $$", "", tolerance).contains("within the tolerance"));
    golden("echo $$", ", nondeterminism: allow", tolerance).expect("allowed");
    let narrow = "compare: [stdout: {tolerance: {absolute: 0.5}}]";
    let text = error("echo $$", ", nondeterminism: allow", narrow);
    assert!(text.contains("more than `compare` allows"), "{text}");
    assert!(error("echo $$", ", nondeterminism: allow", "").contains("more than"));
}

#[test]
fn a_run_that_does_not_end_as_it_must_is_an_error() {
    let text = error("echo oops >&2; exit 4", "", "");
    assert!(text.contains("`exit_code: 4`") && text.contains("oops"), "{text}");
    golden("exit 4", ", exit_code: 4", "").expect("expected");
    assert!(error("true", ", exit_code: 4", "").contains("exit code 0"));
    assert!(error("kill -SEGV $$", "", "").contains("signal 11"));
    assert!(error("yes", ", output: 64 KiB", "").contains("`output`"));
    let hog = format!("(head -c 67108864 /dev/zero; {}) | tail -n 1", sleep(71202));
    assert!(error(&hog, ", memory: 32 MiB, timeout: 60 s", "").contains("`memory`"));
}

#[test]
fn outputs_that_cannot_be_compared_are_errors() {
    let text = error("true", "", "compare: [file: out.csv]");
    assert!(text.contains("out.csv") && text.contains("no file"), "{text}");
    let binary = "printf '\\377' > out";
    let text = error(binary, "", "compare: [{file: out, tolerance: {absolute: 1}}]");
    assert!(text.contains("UTF-8") && text.contains("`type`"), "{text}");
    golden(binary, "", "compare: [file: out]").expect("bytes");
    assert!(error(binary, "", "compare: [{file: out, type: f32}]").contains("no whole number"));
}

#[test]
fn a_check_must_accept_a_run_without_a_fault() {
    golden("echo $$", "", "compare: [check: [sh, -c, 'test -s $FLIPWAVE_STDOUT']]").expect("right");
    let text = error("true", "", "compare: [check: [sh, -c, 'exit 1']]");
    assert!(text.contains("without a fault wrong"), "{text}");
    let text = error("true", "", "compare: [check: [sh, -c, 'echo broken >&2; exit 2']]");
    assert!(text.contains("exit code 2") && text.contains("broken"), "{text}");
}
