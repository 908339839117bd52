//! Options of `flipwave run`.

use flipwave_tests::{example, flipwave};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const FIVE: &str = "{model: flip_one_bit, count: 5}";

fn run(file: &Path, out: &Path, others: &[&str]) -> flipwave_tests::Finished {
    let run: [&OsStr; 4] = ["run".as_ref(), file.as_ref(), "--out".as_ref(), out.as_ref()];
    let all: Vec<&OsStr> = run.into_iter().chain(others.iter().map(OsStr::new)).collect();
    flipwave(file.parent().expect("a folder"), &all, &[])
}

fn table(out: &Path) -> Vec<u8> {
    std::fs::read(out.join("results.csv")).expect("results.csv")
}

#[test]
fn count_option_replaces_the_count_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = |name: &str| folder.path().join(name);
    let twelve = "{model: flip_one_bit, count: 12}";
    run(&example("saxpy", twelve, folder.path()), &out("said"), &[]).expect_success();
    let file = example("saxpy", FIVE, folder.path());
    let printed = run(&file, &out("given"), &["--count", "12"]).expect_success().stdout;
    assert_eq!(table(&out("given")), table(&out("said")));
    let record = std::fs::read_to_string(out("given").join("run.json")).expect("run.json");
    assert!(record.contains("\"planned\": 12"), "{record}");
    // The output names all files written.
    let files: std::collections::BTreeSet<PathBuf> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("results: ").or(line.strip_prefix("other files: ")))
        .flat_map(|files| files.split(' ').map(PathBuf::from))
        .collect();
    let there = std::fs::read_dir(out("given")).expect("a folder");
    assert_eq!(files, there.map(|entry| entry.expect("an entry").path()).collect());
    // A larger count extends the table.
    run(&file, &out("more"), &[]).expect_success();
    assert_ne!(table(&out("more")), table(&out("said")));
    run(&file, &out("more"), &["--resume", "--count", "12"]).expect_success();
    assert_eq!(table(&out("more")), table(&out("said")));
    // In shards, with a merge.
    let shards = out("shards");
    for part in ["1/2", "2/2"] {
        run(&file, &shards, &["--count", "12", "--shard", part]).expect_success();
    }
    let merge: [&OsStr; 2] = ["merge".as_ref(), shards.as_ref()];
    flipwave(folder.path(), &merge, &[]).expect_success();
    assert_eq!(table(&shards), table(&out("said")));
}

#[test]
fn count_option_conflicts_with_other_sample_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |file: &PathBuf, count: &str, word: &str| {
        let finished = run(file, &folder.path().join("out"), &["--count", count]);
        assert_eq!(finished.code, Some(2));
        assert!(finished.stderr.contains(word), "{}", finished.stderr);
        assert!(!folder.path().join("out").exists());
    };
    let file = |faults: &str| example("saxpy", faults, folder.path());
    refused(&file("{model: flip_one_bit, exhaustive: true}"), "3", "exhaustive");
    let margin = "{model: flip_one_bit, margin: 0.1, confidence: 0.9}";
    refused(&file(margin), "3", "margin");
    let pilot = "{model: flip_one_bit, count: 9, stratify: opcode, \
                 allocation: {optimal: {pilot: 4}}}";
    refused(&file(pilot), "4", "pilot of 4");
    refused(&file(FIVE), "0", "--count");
    let varied = file(FIVE);
    let text = std::fs::read_to_string(&varied).expect("a file");
    std::fs::write(&varied, text + "vary: {faults.count: [5, 6]}\n").expect("written");
    refused(&varied, "3", "varies");
}

#[test]
fn dry_run_prints_the_plan_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("saxpy", FIVE, folder.path());
    let out = folder.path().join("out");
    let printed = run(&file, &out, &["--dry-run", "--count", "7"]).expect_success().stdout;
    for line in ["fault space: ", "injections: 7", "golden run: ", "whole campaign: about "] {
        assert!(
            printed.lines().any(|printed_line| printed_line.starts_with(line)),
            "`{line}`:\n{printed}"
        );
    }
    assert!(printed.contains("(average of 7 trials)"), "{printed}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
    // The dry run and the run print the same fault space.
    let ran = run(&file, &out, &["--count", "7"]).expect_success().stdout;
    let fault_space = printed.lines().next().expect("a line");
    assert!(ran.contains(fault_space), "{ran}");
}
