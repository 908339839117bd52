//! Outputs replace only regular files; devices and FIFOs are neither replaced nor removed. The tests
//! create their own devices and FIFOs.

use flipwave_tests::{Finished, create_full_device, example, flipwave_within, rows};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

fn flipwave(folder: &Path, arguments: &[&str]) -> Finished {
    flipwave_within(PATIENCE, folder, arguments).expect("an end")
}

/// Creates a FIFO.
fn fifo(path: &Path) {
    let status = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(status.success());
}

/// Creates a device like `/dev/full`, or a FIFO if that is not possible.
fn full(path: &Path) {
    if !create_full_device(path) {
        fifo(path);
    }
}

#[track_caller]
fn assert_kept(path: &Path) {
    let kind = fs::symlink_metadata(path).expect("still there").file_type();
    assert!(kind.is_fifo() || kind.is_char_device(), "{} was replaced", path.display());
}

#[test]
fn no_command_replaces_a_device_or_a_fifo() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    example("vector_add", "{model: flip_one_bit, count: 5}", folder);
    flipwave(folder, &["run", "vector_add.yaml", "--out", "first"]).expect_success();
    let site = rows(&folder.join("first"))[0].site.clone();

    for name in ["results.csv", "summary.csv", "rates.svg", "run.json"] {
        let out = format!("out-{name}");
        fs::create_dir(folder.join(&out)).expect("a folder");
        let special = folder.join(&out).join(name);
        full(&special);
        let run = flipwave(folder, &["run", "vector_add.yaml", "--force", "--out", &out]);
        run.expect_refused(&[&format!("{out}/{name}"), "expected a regular file"]);
        assert_kept(&special);
    }
    for name in ["trace.csv", "trace.svg"] {
        let out = format!("out-{name}");
        fs::create_dir(folder.join(&out)).expect("a folder");
        let special = folder.join(&out).join(name);
        fifo(&special);
        let arguments = ["trace", "vector_add.yaml", "--site", &site, "--out", &out];
        flipwave(folder, &arguments).expect_refused(&[name, "it is a FIFO"]);
        assert_kept(&special);
    }
    let device = folder.join("device");
    full(&device);
    for force in [&["--force"][..], &[]] {
        let arguments = [&["capture", "--out", "device"], force, &["--", "touch", "started"]];
        flipwave(folder, &arguments.concat()).expect_refused(&["expected a regular file"]);
    }
    assert_kept(&device);
    assert!(!folder.join("started").exists(), "the application ran for nothing");
}

#[test]
fn unwritable_capture_is_refused_before_the_application_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let capture = |out| flipwave(folder, &["capture", "--out", out, "--", "touch", "started"]);
    capture("missing/a.capture")
        .expect_refused(&["missing/a.capture", "the folder missing does not exist"]);
    fs::write(folder.join("file"), "").expect("written");
    capture("file/a.capture").expect_refused(&["file/a.capture"]);
    capture("file").expect_refused(&["the file exists; use --force"]);
    assert!(!folder.join("started").exists(), "the application ran for nothing");
}

#[test]
fn tables_can_be_written_to_pipes_and_links() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    example("vector_add", "{model: flip_one_bit, count: 5}", folder);
    let tool =
        |out| flipwave(folder, &["tool", "instruction-count", "vector_add.yaml", "--out", out]);
    tool("file").expect_success();
    let whole = fs::read_to_string(folder.join("file")).expect("a table");
    assert!(whole.lines().count() > 1, "{whole}");

    fifo(&folder.join("fifo"));
    let reader = std::thread::spawn({
        let fifo = folder.join("fifo");
        move || std::io::read_to_string(File::open(fifo).expect("the FIFO")).expect("read")
    });
    tool("fifo").expect_success();
    assert_eq!(reader.join().expect("read"), whole);
    assert_kept(&folder.join("fifo"));

    fs::write(folder.join("file"), "old").expect("written");
    symlink("file", folder.join("link")).expect("a link");
    tool("link").expect_success();
    assert!(fs::symlink_metadata(folder.join("link")).expect("there").is_symlink());
    assert_eq!(fs::read_to_string(folder.join("file")).expect("a table"), whole);

    full(&folder.join("full"));
    if fs::metadata(folder.join("full")).expect("there").file_type().is_char_device() {
        tool("full").expect_refused(&["No space left"]);
        assert_kept(&folder.join("full"));
    }
}
