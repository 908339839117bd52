//! What is left when this process is killed and cannot clean up.

use super::*;
use std::process::Command;

/// The variable with the script of the run that is killed.
const SCRIPT: &str = "FLIPWAVE_TEST_SCRIPT";

/// Not a test: what [`nothing_is_left_when_this_process_is_killed`] kills.
#[test]
#[ignore = "another test runs it and kills it"]
fn a_run_to_be_killed() {
    if let Ok(script) = std::env::var(SCRIPT) {
        run(&script);
    }
}

#[test]
fn nothing_is_left_when_this_process_is_killed() {
    let program = std::env::current_exe().expect("this program");
    let folder = tempfile::tempdir().expect("a folder");
    // The second is in a session of its own.
    let sleepers = [sleep(71101), sleep(71102)];
    let name = "application::tests::killed::a_run_to_be_killed";
    let mut tool = Command::new(program)
        .args(["--ignored", "--exact", name])
        // Its folder stays.
        .env("TMPDIR", folder.path())
        .env(SCRIPT, sleepers.join(" & setsid "))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("this program again");
    for sleeper in &sleepers {
        assert!(comes_to_run(sleeper, true), "{sleeper} never ran");
    }
    tool.kill().expect("killed");
    tool.wait().expect("ended");
    for sleeper in &sleepers {
        assert!(comes_to_run(sleeper, false), "{sleeper} is left");
    }
}
