//! Tests of golden runs.

use super::*;
use crate::application::{ApplicationGolden, Ended};

fn golden(script: &str, keys: &str, others: &str) -> Result<ApplicationGolden, ApplicationError> {
    shell(script, keys, others).golden(&BTreeMap::new(), &GO_ON)
}

fn error(script: &str, keys: &str, others: &str) -> String {
    golden(script, keys, others).expect_err(script).to_string()
}

#[test]
fn equal_runs_are_accepted() {
    let golden = golden("echo 1", "", "").expect("good");
    assert_eq!((golden.first.ended, &golden.first.stdout[..]), (Ended::Exited(0), &b"1\n"[..]));
    assert_eq!(golden.limits.timeout, Duration::from_secs(30));
    assert_eq!((golden.limits.memory, golden.limits.output), (8 << 30, 1 << 30));
}

#[test]
fn time_limit_is_that_of_the_file_or_relative_to_the_longest_run() {
    let given = golden("true", ", timeout: 90 s", "").expect("good");
    assert_eq!(given.limits.timeout, Duration::from_secs(90));
    let longer = golden("sleep 3.1", ", golden_runs: 1", "").expect("good");
    assert!(longer.limits.timeout >= Duration::from_secs(31));
    let late = error(&sleep(71201), ", timeout: 100 ms", "");
    assert!(late.contains("exceeded the time limit") && late.contains("`timeout`"), "{late}");
}

#[test]
fn nondeterminism_errors_name_the_first_difference() {
    let text = error("echo same; echo $$", "", "");
    assert!(text.contains("stdout, line 2: ") && text.contains("instead of"), "{text}");
    assert!(text.contains("`ignore`") && text.contains("nondeterminism: allow"), "{text}");
    // Ignored lines and files that are not compared may differ.
    let ignore = "compare: [stdout: {ignore: ['^[0-9]+$']}]";
    golden("echo same; echo $$", "", ignore).expect("ignored");
    golden("echo $$ > other", "", "").expect("not compared");
    golden("echo $$", ", golden_runs: 1", "").expect("one run");
}

/// Confirming the recorded run detects nondeterminism even with a single golden run.
#[test]
fn confirm_detects_differences_from_a_single_golden_run() {
    let confirmed = |script: &str, keys: &str, others: &str| {
        let application = shell(script, &format!(", golden_runs: 1{keys}"), others);
        let golden = application.golden(&BTreeMap::new(), &GO_ON).expect("one run");
        let next = application.run(&BTreeMap::new(), &golden.limits, &GO_ON).expect("a run");
        application.confirm(&golden, &next, &GO_ON)
    };
    confirmed("echo same", "", "").expect("the same");
    let error = confirmed("echo $$", "", "").expect_err("different").to_string();
    assert!(error.contains("two golden runs differ"), "{error}");
    let tolerance = "compare: [stdout: {tolerance: {absolute: 1.0e+9}}]";
    confirmed("echo $$", ", nondeterminism: allow", tolerance).expect("allowed");
}

#[test]
fn empty_outputs_are_detected() {
    let empty = |script: &str, others: &str| {
        let application = shell(script, ", golden_runs: 1", others);
        let golden = application.golden(&BTreeMap::new(), &GO_ON).expect("a run");
        application.empty_outputs(&golden.first).expect("outputs")
    };
    assert_eq!(empty("true", ""), Some("stdout".to_owned()));
    let all_ignored = "compare: [stdout: {ignore: ['.*']}, stderr: exact]";
    assert_eq!(empty("echo 1; echo 2", all_ignored), Some("stdout, stderr".to_owned()));
    // One output with content, or a check.
    assert_eq!(empty("echo 1; echo 2 >&2", all_ignored), None);
    assert_eq!(empty("echo 1", "compare: [stdout: {ignore: ['^2']}]"), None);
    assert_eq!(empty("true", "compare: [stdout: exact, check: ['true']]"), None);
}

#[test]
fn tolerances_permit_nondeterminism_only_if_allowed() {
    let tolerance = "compare: [stdout: {tolerance: {absolute: 1.0e+9}}]";
    assert!(error("echo $$", "", tolerance).contains("within the tolerance"));
    golden("echo $$", ", nondeterminism: allow", tolerance).expect("allowed");
    let narrow = "compare: [stdout: {tolerance: {absolute: 0.5}}]";
    let text = error("echo $$", ", nondeterminism: allow", narrow);
    assert!(text.contains("more than `compare` allows"), "{text}");
    assert!(error("echo $$", ", nondeterminism: allow", "").contains("more than"));
}

#[test]
fn unexpected_ends_are_errors() {
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
fn incomparable_outputs_are_errors() {
    let text = error("true", "", "compare: [file: out.csv]");
    assert!(text.contains("out.csv") && text.contains("not a file"), "{text}");
    let binary = "printf '\\377' > out";
    let text = error(binary, "", "compare: [{file: out, tolerance: {absolute: 1}}]");
    assert!(text.contains("UTF-8") && text.contains("`type`"), "{text}");
    golden(binary, "", "compare: [file: out]").expect("bytes");
    assert!(error(binary, "", "compare: [{file: out, type: f32}]").contains("not a multiple"));
}

#[test]
fn checks_must_accept_golden_runs() {
    golden("echo $$", "", "compare: [check: [sh, -c, 'test -s $FLIPWAVE_STDOUT']]").expect("right");
    let text = error("true", "", "compare: [check: [sh, -c, 'exit 1']]");
    assert!(text.contains("rejects a golden run"), "{text}");
    let text = error("true", "", "compare: [check: [sh, -c, 'echo broken >&2; exit 2']]");
    assert!(text.contains("exit code 2") && text.contains("broken"), "{text}");
}
