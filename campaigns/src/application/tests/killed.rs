//! Tests that no process remains when this process is killed.

use super::*;
use std::process::Command;

/// Variable with the script of the killed run.
const SCRIPT: &str = "FLIPWAVE_TEST_SCRIPT";

/// Not a test: the process that [`processes_end_when_this_process_is_killed`] kills.
#[test]
#[ignore = "another test runs it and kills it"]
fn killed_run() {
    if let Ok(script) = std::env::var(SCRIPT) {
        run(&script);
    }
}

#[test]
fn processes_end_when_this_process_is_killed() {
    let program = std::env::current_exe().expect("this program");
    let folder = tempfile::tempdir().expect("a folder");
    // The second one is in another session.
    let sleepers = [sleep(71101), sleep(71102)];
    let name = "application::tests::killed::killed_run";
    let mut tool = Command::new(program)
        .args(["--ignored", "--exact", name])
        // The folder of the run remains.
        .env("TMPDIR", folder.path())
        .env(SCRIPT, sleepers.join(" & setsid "))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("this program again");
    for sleeper in &sleepers {
        assert!(starts(sleeper), "{sleeper} never ran");
    }
    tool.kill().expect("killed");
    tool.wait().expect("ended");
    for sleeper in &sleepers {
        assert!(ends(sleeper), "{sleeper} still runs");
    }
}
