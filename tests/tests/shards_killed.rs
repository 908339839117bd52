//! On a slow shared folder, killing any process at any time loses, duplicates or tears no row.

use flipwave_tests::{
    RunningProgram, example, flipwave_within, program, random_words, slow_folder,
};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Faults drawn at once, and in stages, each of which depends on the results of the previous one.
const ALL: &str = "{model: flip_one_bit, count: 2000}";
const STAGES: &str = "{model: flip_one_bit, until: {margin: 0.04}, stratify: opcode, \
                      allocation: {optimal: {pilot: 200}}, known_masked: counted}";

const SHARDS: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Kills `kills` processes that run, merge or submit shards. Then completes the campaign, and asserts
/// that its tables equal those of one worker.
fn expect_undisturbed(faults: &str, kills: usize, seed: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    example("vector_add", faults, folder);
    let run = |arguments: &[&str]| {
        flipwave_within(PATIENCE, folder, arguments).expect("an end").expect_success()
    };
    run(&["run", "vector_add.yaml", "--out", "whole"]);
    let tables = |name: &str| {
        ["results.csv", "summary.csv"]
            .map(|file| fs::read(folder.join(name).join(file)).expect(file))
    };
    let mut random = random_words(seed + 8 * kills).into_iter().skip(seed);
    let mut next = |below: u64| random.next().expect("a word") % below;
    let mut running: Vec<RunningProgram> = Vec::new();
    let mut signalled = 0;
    while signalled < kills {
        let shard = format!("{}/{SHARDS}", 1 + next(SHARDS));
        let start = format!("{}..{}", next(1000), 1000 + next(1000));
        let arguments: Vec<&str> = match next(12) {
            0 | 1 => vec!["merge", "out"],
            2 => {
                let command = ["submit", "vector_add.yaml", "--out", "out", "--engine", "local"];
                [&command[..], &["--shards", "20", "--at-once", "2"]].concat()
            }
            3 => {
                vec!["run", "vector_add.yaml", "--out", "out", "--workers", "1", "--shard", &start]
            }
            _ => {
                vec!["run", "vector_add.yaml", "--out", "out", "--workers", "1", "--shard", &shard]
            }
        };
        let mut command = Command::new(program());
        command.args(&arguments).envs(slow_folder(&folder.join("out")));
        running.push(RunningProgram::from_command(
            command,
            folder,
            &format!("stderr-{}", running.len() % 3),
        ));
        std::thread::sleep(Duration::from_millis(next(120)));
        if running.len() == 3 {
            let mut victim = running.remove(next(3) as usize);
            victim.send(
                [libc::SIGKILL, libc::SIGKILL, libc::SIGKILL, libc::SIGTERM][next(4) as usize],
            );
            signalled += 1;
            match victim.end() {
                // The process had finished; it was stopped; or a file that it needs was missing.
                Ok(0 | 2) | Err(libc::SIGKILL | libc::SIGTERM) => {}
                end => panic!("seed {seed}: {end:?}\n{}", victim.stderr()),
            }
        }
        // At any time, an existing table is complete and correct.
        if let Ok(table) = fs::read(folder.join("out/results.csv")) {
            assert_eq!(table, tables("whole")[0], "seed {seed}: a wrong table");
        }
    }
    drop(running);
    wait_for_orphans(folder);
    for number in 1..=SHARDS {
        let part = format!("{number}/{SHARDS}");
        run(&["run", "vector_add.yaml", "--out", "out", "--shard", &part]);
    }
    run(&["merge", "out"]);
    assert_eq!(tables("out"), tables("whole"), "seed {seed}");
}

/// Waits for the shards of killed `submit` processes to end.
fn wait_for_orphans(folder: &Path) {
    let sign = folder.join("out").display().to_string();
    let is_there = || {
        let processes = fs::read_dir("/proc").expect("processes");
        processes.flatten().any(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&sign)
        })
    };
    for _ in 0..6000 {
        if !is_there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("shards do not end");
}

#[test]
fn kills_on_a_slow_shared_folder_do_not_change_the_table() {
    expect_undisturbed(ALL, 30, 0);
}

#[test]
fn kills_in_sampling_stages_do_not_change_the_table() {
    expect_undisturbed(STAGES, 15, 7);
}

#[test]
#[ignore = "for make test-long: a thousand kills take minutes"]
fn thousand_kills_on_a_slow_shared_folder_do_not_change_the_table() {
    for seed in 0..10 {
        expect_undisturbed(if seed % 3 == 2 { STAGES } else { ALL }, 100, seed * 1000);
    }
}
