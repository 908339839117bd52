//! A results folder has one writer at a time, and rows are only lost with `--force`.

use flipwave_tests::{Finished, RunningProgram, example, flipwave_within};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// More faults than can be injected in a test.
const WITHOUT_END: u64 = 1_000_000_000_000;

fn campaign(folder: &Path, count: u64) {
    example("vector_add", &format!("{{model: flip_one_bit, count: {count}}}"), folder);
}

fn run(folder: &Path, options: &[&str]) -> Finished {
    let arguments = [&["run", "vector_add.yaml", "--out", "results"], options].concat();
    flipwave_within(PATIENCE, folder, &arguments).expect("an end")
}

fn table(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("results/results.csv")).unwrap_or_default()
}

#[test]
fn rows_are_only_overwritten_with_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, 30);
    run(folder, &[]).expect_success();
    let whole = table(folder);
    let refused = ["results contains results of this campaign (rows: 30)", "--resume", "--force"];
    run(folder, &[]).expect_refused(&refused);
    assert_eq!(table(folder), whole);

    let part: String = whole.split_inclusive('\n').take(8).collect();
    std::fs::write(folder.join("results/results.csv"), part.clone() + "7,disp").expect("written");
    run(folder, &[]).expect_refused(&["rows: 7"]);
    run(folder, &["--resume"]).expect_success();
    assert_eq!(table(folder), whole);
    run(folder, &["--resume"]).expect_success();
    assert_eq!(table(folder), whole);

    std::fs::write(folder.join("results/results.csv"), part).expect("written");
    run(folder, &["--force"]).expect_success();
    assert_eq!(table(folder), whole);
    // A table without rows may be overwritten.
    let header = whole.split_inclusive('\n').next().expect("a header");
    std::fs::write(folder.join("results/results.csv"), header).expect("written");
    run(folder, &[]).expect_success();
    assert_eq!(table(folder), whole);
}

#[test]
fn folder_in_use_is_refused_with_any_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, WITHOUT_END);
    let arguments = ["run", "vector_add.yaml", "--out", "results", "--workers", "1"];
    let mut first = RunningProgram::start(folder, &arguments, "stderr");
    first.wait_until(|| table(folder).lines().count() > 20);
    let process = format!("process {} on ", first.id());
    let words = ["results is in use", &process, " since 20", "run vector_add.yaml --out results"];
    for options in [&[][..], &["--resume"], &["--force"], &["--resume", "--take-over"]] {
        run(folder, options).expect_refused(&words);
    }
    // The first run continues undisturbed; after it is killed, another run resumes.
    let rows = table(folder).lines().count();
    first.wait_until(|| table(folder).lines().count() > rows + 100);
    first.send(libc::SIGKILL);
    assert_eq!(first.end(), Err(libc::SIGKILL));
    assert!(folder.join("results/flipwave.lock").exists(), "nothing was left to be found");
    let rows = table(folder).lines().count();
    let arguments = [&arguments[..], &["--resume"]].concat();
    let mut second = RunningProgram::start(folder, &arguments, "stderr");
    second.wait_until(|| table(folder).lines().count() > rows + 100);
    second.send(libc::SIGTERM);
    assert_eq!(second.end(), Ok(2));
    assert_eq!(first_wrong_row(&table(folder)), None);
}

/// The first complete line of a table that is not the expected row.
fn first_wrong_row(table: &str) -> Option<&str> {
    let whole = table.rfind('\n').map_or("", |end| &table[..end]);
    let mut rows = whole.lines().skip(1).enumerate();
    rows.find(|(index, line)| !line.starts_with(&format!("{index},\"dispatch=")))
        .map(|(_, line)| line)
}

#[test]
fn lock_of_another_machine_is_respected_until_force() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, 5);
    std::fs::create_dir(folder.join("results")).expect("a folder");
    let owner = r#"{"host": "node17", "boot": "b", "process": 4711, "started": 1,
        "command": "flipwave run other.yaml", "since": "2026-01-02T03:04:05Z", "token": "t"}"#;
    std::fs::write(folder.join("results/flipwave.lock"), owner).expect("written");
    let words = [
        "process 4711 on node17 since 2026-01-02T03:04:05Z",
        "--take-over",
        "results/flipwave.lock",
    ];
    run(folder, &[]).expect_refused(&words);
    run(folder, &["--force"]).expect_refused(&words);
    run(folder, &["--take-over"]).expect_success();
    assert!(!folder.join("results/flipwave.lock").exists());
    assert_eq!(table(folder).lines().count(), 6);
}

/// Negative control: without a common lock, two processes damage the table. Here, two folders with
/// separate locks share a table.
#[test]
fn two_processes_with_separate_locks_damage_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, WITHOUT_END);
    let arguments = |out| ["run", "vector_add.yaml", "--workers", "1", "--resume", "--out", out];
    let mut first = RunningProgram::start(folder, &arguments("results"), "first");
    first.wait_until(|| table(folder).lines().count() > 20);
    assert_eq!(first_wrong_row(&table(folder)), None);
    std::fs::create_dir(folder.join("other")).expect("a folder");
    std::fs::copy(folder.join("results/run.json"), folder.join("other/run.json")).expect("copied");
    let table_of = |out: &str| folder.join(out).join("results.csv");
    std::fs::hard_link(table_of("results"), table_of("other")).expect("a second name");
    let mut second = RunningProgram::start(folder, &arguments("other"), "second");
    second.wait_until(|| first_wrong_row(&table(folder)).is_some());
}

#[test]
fn run_stops_writing_after_its_folder_is_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, WITHOUT_END);
    let arguments = ["run", "vector_add.yaml", "--out", "results", "--workers", "1"];
    let mut first = RunningProgram::start(folder, &arguments, "first");
    first.wait_until(|| table(folder).lines().count() > 20);
    std::fs::remove_file(folder.join("results/flipwave.lock")).expect("there");
    assert_eq!(first.end(), Ok(2));
    assert!(first.stderr().contains("was taken over"), "{}", first.stderr());
    // The run must not write its final files either, because they would replace those of the new owner.
    assert!(!folder.join("results/summary.csv").exists());
    let record = std::fs::read_to_string(folder.join("results/run.json")).expect("there");
    assert!(record.contains("\"status\": \"running\""), "{record}");
}

/// Runs a random interleaving: processes resume a campaign, two at a time, and are ended in random ways at
/// random times, until the campaign is complete. Returns the table.
fn interleaving(folder: &Path, seed: u32) -> String {
    campaign(folder, 2000);
    let mut state = u64::from(seed) + 1;
    // Knuth's MMIX generator, of which only the high bits are used.
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let start = |name: &str| {
        let arguments =
            ["run", "vector_add.yaml", "--out", "results", "--workers", "1", "--resume"];
        RunningProgram::start(folder, &arguments, name)
    };
    for round in 0..2 {
        let mut processes = Vec::new();
        for name in ["first", "second"] {
            processes.push(start(&format!("{name}-{round}")));
            std::thread::sleep(Duration::from_millis(next(300)));
        }
        for process in &mut processes {
            std::thread::sleep(Duration::from_millis(next(300)));
            let signal = [libc::SIGKILL, libc::SIGKILL, libc::SIGTERM, 0][next(4) as usize];
            process.send(signal);
        }
        for process in &mut processes {
            let end = process.end();
            let said = process.stderr();
            let is_refused =
                said.contains("is in use") || said.contains("keep taking and releasing");
            let is_stopped = said.contains("ended by SIGTERM");
            match end {
                Ok(0) => {}
                Ok(2) if is_refused || is_stopped => {}
                // Before the signal handler is installed, or by SIGKILL.
                Err(libc::SIGTERM | libc::SIGKILL) => {}
                end => panic!("seed {seed}: {end:?}\n{said}"),
            }
        }
    }
    run(folder, &["--resume"]).expect_success();
    let left: Vec<PathBuf> = std::fs::read_dir(folder.join("results"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    assert_eq!(left.len(), 4, "seed {seed}: files are left: {left:?}");
    table(folder)
}

fn expect_undisturbed(seeds: std::ops::Range<u32>) {
    let folder = tempfile::tempdir().expect("a folder");
    campaign(folder.path(), 2000);
    run(folder.path(), &[]).expect_success();
    let whole = table(folder.path());
    for seed in seeds {
        let temporary = tempfile::tempdir().expect("a folder");
        assert_eq!(interleaving(temporary.path(), seed), whole, "seed {seed}");
    }
}

#[test]
fn interleaved_processes_write_the_table_of_one_process() {
    expect_undisturbed(0..4);
}

#[test]
#[ignore = "for make test-long: more interleavings than every day takes"]
fn fifty_interleavings_write_the_table_of_one_process() {
    expect_undisturbed(0..50);
}

#[test]
fn symbolic_links_in_results_are_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let elsewhere = tempfile::tempdir().expect("another folder");
    campaign(folder, 30);
    run(folder, &[]).expect_success();
    let whole = table(folder);
    let link = folder.join("results/results.csv");
    let target = elsewhere.path().join("rows.csv");
    std::fs::rename(&link, &target).expect("moved");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    let is_link = || std::fs::symlink_metadata(&link).expect("it is there").is_symlink();
    run(folder, &[]).expect_refused(&["rows: 30"]);
    campaign(folder, 12);
    run(folder, &["--force"]).expect_success();
    let part: String = whole.split_inclusive('\n').take(13).collect();
    assert!(is_link(), "the link is gone");
    assert_eq!(std::fs::read_to_string(&target).expect("rows"), part);
    campaign(folder, 30);
    run(folder, &["--resume"]).expect_success();
    assert!(is_link(), "the link is gone");
    assert_eq!(std::fs::read_to_string(&target).expect("rows"), whole);
    // The target of a dangling link is created.
    std::fs::remove_file(&target).expect("removed");
    run(folder, &["--force"]).expect_success();
    assert_eq!((is_link(), std::fs::read_to_string(&target).expect("rows")), (true, whole));
}
