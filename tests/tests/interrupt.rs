//! A campaign that is stopped keeps what it has done, and what it has done is the beginning of
//! what it would have done.

use flipwave_tests::{example, flipwave, program};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const FAULTS: &str = "{model: flip_one_bit, count: 200000}";

/// Complete lines of a results file that may still be written to.
fn lines(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("results.csv")).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(str::to_owned).collect()
}

/// Starts a long campaign, sends it `signal` when it has written some rows, and waits for it.
fn stop(folder: &Path, signal: i32) -> ExitStatus {
    let file = example("vector_add", FAULTS, folder);
    let mut child: Child = Command::new(program())
        .current_dir(folder)
        .args(["run", "--out", "stopped"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("flipwave starts");
    let patience = Instant::now() + Duration::from_secs(300);
    while lines(&folder.join("stopped")).len() < 20 {
        assert!(Instant::now() < patience, "no rows after five minutes");
        assert_eq!(child.try_wait().expect("its state"), None, "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = i32::try_from(child.id()).expect("a process number");
    // SAFETY: a signal to a child of this process that has not been waited for.
    assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    child.wait().expect("its end")
}

/// Demands that the rows of the stopped campaign are the first rows of one that was not stopped.
fn expect_prefix(folder: &Path) {
    let stopped = lines(&folder.join("stopped"));
    let count = stopped.len() - 1;
    let whole = folder.join("whole");
    std::fs::create_dir(&whole).expect("a folder");
    let file = example("vector_add", &FAULTS.replace("200000", &count.to_string()), &whole);
    flipwave(&whole, &["run".as_ref(), "--out".as_ref(), "out".as_ref(), file.as_os_str()], &[])
        .expect_success();
    assert_eq!(lines(&whole.join("out")), stopped);
}

#[test]
fn an_interrupt_ends_a_campaign_cleanly_with_its_rows_on_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let status = stop(folder.path(), libc::SIGINT);
    assert_eq!(status.code(), Some(2));
    let record = std::fs::read_to_string(folder.path().join("stopped/run.json")).expect("run.json");
    assert!(record.contains("\"status\": \"interrupted\""), "{record}");
    assert!(folder.path().join("stopped/summary.csv").exists());
    expect_prefix(folder.path());
}

#[test]
fn a_killed_campaign_leaves_whole_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let status = stop(folder.path(), libc::SIGKILL);
    assert_eq!(status.code(), None);
    expect_prefix(folder.path());
}
