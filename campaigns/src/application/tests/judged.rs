//! Tests of judging. A variable in the environment, which the program executes, represents the
//! fault.

use super::*;
use crate::application::{Ended, JudgedOutputs, JudgedRun};
use crate::outputs::compare::Difference;
use crate::run::due_cause::DueCause;
use std::ffi::OsString;

/// Judges a run of `script` with the variable FAULT set to `fault`, compared with runs without it.
fn judged(script: &str, keys: &str, others: &str, fault: &str) -> JudgedRun {
    try_judge(script, keys, others, fault).expect("judged")
}

fn try_judge(
    script: &str,
    keys: &str,
    others: &str,
    fault: &str,
) -> Result<JudgedRun, ApplicationError> {
    let application = shell(script, keys, others);
    let golden = application.golden(&BTreeMap::new(), &GO_ON).expect("good");
    let limits = Limits { timeout: Duration::from_secs(5), output: 1 << 20, ..golden.limits };
    let environment = BTreeMap::from([(OsString::from("FAULT"), OsString::from(fault))]);
    let ran = application.run(&environment, &limits, &GO_ON).expect("a run");
    application.judge(&golden, &ran, &GO_ON)
}

/// Judges a run that prints the correct result and then executes `fault`.
fn after_result(fault: &str) -> JudgedRun {
    judged("echo 1; eval \"$FAULT\"", "", "", fault)
}

#[test]
fn ends_of_runs_are_distinguished() {
    assert!(matches!(after_result("true"), JudgedRun::Matches { is_exact: true, .. }));
    assert!(matches!(after_result("echo 2"), JudgedRun::Differs { .. }));
    assert_eq!(after_result("exit 1"), JudgedRun::Ended(Ended::Exited(1)));
    assert_eq!(after_result("kill -SEGV $$"), JudgedRun::Ended(Ended::Signalled(11)));
    assert_eq!(after_result(&sleep(71301)), JudgedRun::Ended(Ended::TimedOut));
    assert_eq!(after_result("yes"), JudgedRun::Ended(Ended::OutputTooLarge));
    let line = "Memory access fault by GPU node-1 on address 0x7f00. Reason: Unknown.";
    let error = JudgedRun::RuntimeError(line.to_owned());
    for end in ["true", "exit 1", "kill -ABRT $$"] {
        assert_eq!(after_result(&format!("echo '{line}' >&2; {end}")), error, "{end}");
    }
    let hog = format!("(head -c 67108864 /dev/zero; {}) | tail -n 1", sleep(71302));
    let script = "echo 1; eval \"$FAULT\"";
    assert_eq!(judged(script, ", memory: 32 MiB", "", &hog), JudgedRun::Ended(Ended::OutOfMemory));
}

#[test]
fn stopped_runs_have_a_cause_of_due() {
    let correct = JudgedOutputs { is_correct: true, difference: Difference::default() };
    assert_eq!(after_result("true").outputs(), Ok(correct));
    assert!(after_result("echo 2").outputs().is_ok_and(|outputs| !outputs.is_correct));
    assert_eq!(after_result("exit 1").outputs(), Err(DueCause::ExitCode));
    assert_eq!(after_result("kill -SEGV $$").outputs(), Err(DueCause::Signal));
}

#[test]
fn outputs_and_checks_of_crashed_runs_are_ignored() {
    let check = "compare: [check: ['true'], stdout: exact]";
    let script = "echo 1; eval \"$FAULT\"";
    assert_eq!(judged(script, "", check, "echo 2; exit 9"), JudgedRun::Ended(Ended::Exited(9)));
    assert_eq!(
        judged("eval \"$FAULT\"; exit 3", ", exit_code: 3", check, "exit 0"),
        JudgedRun::Ended(Ended::Exited(0))
    );
}

#[test]
fn files_are_compared_and_missing_ones_differ() {
    let script = "echo 1 > out; printf '\\0\\0\\200\\077' > bin; eval \"$FAULT\"";
    let files = "compare: [file: out, {file: bin, type: f32, tolerance: {relative: 0.01}}]";
    let judge = |fault| judged(script, "", files, fault);
    assert!(matches!(judge("echo noise"), JudgedRun::Matches { is_exact: true, .. }));
    let near = judge("printf '\\001\\0\\200\\077' > bin");
    assert!(
        matches!(near, JudgedRun::Matches { is_exact: false, difference } if difference.max_rel_error > 0.0)
    );
    for (fault, place) in [
        ("rm out", "out, is missing"),
        ("rm out; mkfifo out", "out, is missing"),
        ("echo 2 > out", "out, line 1: 2 instead of 1"),
        ("printf '\\0\\0\\0\\0' > bin", "bin, element 0"),
    ] {
        match judge(fault) {
            JudgedRun::Differs { first, .. } => assert_eq!(first, place),
            judged => panic!("{fault}: {judged:?}"),
        }
    }
}

#[test]
fn checks_accept_or_reject_runs() {
    let check = "compare: [check: [sh, -c, 'test $(cat out) -ge $(cat $FLIPWAVE_GOLDEN/out) && \
                 diff $FLIPWAVE_STDOUT $FLIPWAVE_GOLDEN_STDOUT']]";
    let judge = |fault| judged("echo 5 > out; echo x; eval \"$FAULT\"", "", check, fault);
    assert!(matches!(judge("true"), JudgedRun::Matches { is_exact: false, .. }));
    assert!(matches!(judge("echo 7 > out"), JudgedRun::Matches { is_exact: false, .. }));
    assert!(
        matches!(judge("echo 3 > out"), JudgedRun::Differs { first, .. } if first.contains("check"))
    );
    assert!(matches!(judge("echo y"), JudgedRun::Differs { .. }));
}

#[test]
fn failing_checks_are_errors() {
    let check = "compare: [check: [sh, -c, 'test -e out || exit 2']]";
    let error =
        try_judge("touch out; eval \"$FAULT\"", "", check, "rm out").expect_err("no answer");
    assert!(matches!(error, ApplicationError::Check { .. }), "{error}");
}
