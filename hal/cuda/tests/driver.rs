//! Programs on the driver API.

use crate::common::{output, program, programs, ptx};
use std::process::Output;

/// Compiles and runs a program with the kernels as its first argument.
#[track_caller]
fn run(source: &str, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let kernels = ptx(&programs().join("kernels.cu"), folder.path(), "sm_80");
    let program = program(source, folder.path(), "cuda");
    let kernels = kernels.to_str().expect("text");
    output(&program, folder.path(), &[&[kernels], arguments].concat())
}

#[track_caller]
fn succeeds(source: &str) -> String {
    let output = run(source, &[]);
    let (text, errors) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success() && errors.is_empty(), "{:?}: {errors}", output.status);
    String::from_utf8(text).expect("text")
}

#[test]
fn memory_is_copied_filled_and_shared_with_the_host() {
    assert_eq!(succeeds("memory.c"), "memory: ok\n");
}

#[test]
fn streams_events_graphs_and_threads_work() {
    assert_eq!(succeeds("streams.c"), "streams: ok\n");
}

#[test]
fn kernels_are_launched_and_print() {
    let expected = "before\n\
                    thread 10: 0.0 text 1099511627776%\n\
                    thread 11: 0.5 text 1099511627776%\n\
                    thread 12: 1.0 text 1099511627776%\n\
                    kernels: ok\n";
    assert_eq!(succeeds("kernels.c"), expected);
}

/// Runs a kernel that faults; returns the messages.
#[track_caller]
fn fault(kernel: &str, code: &str) -> String {
    let output = run("faults.c", &[kernel, code]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    errors
}

#[test]
fn faults_poison_the_context_and_are_reported() {
    let text = fault("store", "700");
    assert!(
        text.starts_with(
            "flipwave: dispatch 0, kernel store: memory violation: write to 0x1234, lane 0"
        ),
        "{text}"
    );
    // Host memory that was not registered.
    assert!(fault("host", "700").contains("memory violation: write to 0x7"));
    assert!(fault("misaligned", "716").contains("misaligned access"));
    assert!(fault("stop", "719").contains("kernel stop: trap"));
    let text = fault("check", "710");
    let expected =
        "kernels.cu:7: check: block: [0,0,0], thread: [4,0,0] Assertion `x <= most` failed.";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn undocumented_tables_are_refused_with_a_reason() {
    let text = fault("table", "500");
    assert!(text.contains("link with `-cudart shared`") && text.lines().count() == 1, "{text}");
}
