//! `exec --fidelity`: the table contains all operations that an application executes, each once with its
//! exactness, regardless of how the application ends.

use flipwave_tests::{Compiler, Finished, application, examples_folder, flipwave, program};
use std::collections::BTreeMap;

/// Runs a command under `exec`.
fn exec(options: &[&str], command: &[&str]) -> Finished {
    let folder = tempfile::tempdir().expect("a folder");
    flipwave(folder.path(), &[&["exec"], options, &["--"], command].concat(), &[])
}

/// Path of a HIP program for gfx90a.
fn built(name: &str) -> String {
    application(name, Compiler::Hipcc, "gfx90a").into_os_string().into_string().expect("text")
}

/// Executions and fidelity of each operation of a table.
fn operations(printed: &str) -> BTreeMap<String, (u64, String)> {
    let is_head = |line: &str| line.split_whitespace().eq(["executed", "operation", "fidelity"]);
    let rows = printed.lines().skip_while(|line| !is_head(line)).skip(1);
    rows.take_while(|line| !line.is_empty())
        .map(|line| {
            let mut cells = line.split_whitespace();
            let executed = cells.next().and_then(|cell| cell.parse().ok()).expect("a number");
            let operation = cells.next().expect("a name").to_owned();
            (operation, (executed, cells.collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

/// Sum of the executions in a table.
fn executed(finished: &Finished) -> u64 {
    operations(&finished.stderr).values().map(|(executed, _)| executed).sum()
}

/// Wave instructions by kernel, summed over all processes, from the table of `--count`. If there are
/// several processes, each line begins with the process number.
fn counts(finished: &Finished) -> BTreeMap<String, u64> {
    let is_head = |line: &&str| line.contains("kernel ") && line.contains(" dispatches ");
    let mut lines = finished.stderr.lines().skip_while(|line| !is_head(line));
    let first_cell = usize::from(lines.next().is_some_and(|line| line.starts_with("process ")));
    let mut counts = BTreeMap::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let cells: Vec<&str> = line.split_whitespace().skip(first_cell).collect();
        let [name @ .., _, instructions] = &cells[..] else { panic!("{line}") };
        let instructions: u64 = instructions.parse().expect("a number");
        *counts.entry(name.join(" ")).or_default() += instructions;
    }
    counts
}

/// Runs a program and asserts that the table contains all executed instructions, with a fidelity for each
/// operation.
#[track_caller]
fn is_reported(command: &[&str], options: &[&str]) -> Finished {
    let finished = exec(&[options, &["--fidelity", "--count"]].concat(), command);
    assert!(executed(&finished) > 0, "{finished:#?}");
    assert_eq!(executed(&finished), counts(&finished).values().sum::<u64>(), "{finished:#?}");
    for (executed, word) in operations(&finished.stderr).values() {
        assert!(*executed > 0 && (word == "exact" || word.starts_with("within ")), "{finished:#?}");
    }
    finished
}

#[test]
fn fidelity_table_names_exact_and_inexact_operations() {
    let exact = is_reported(&[&built("saxpy")], &[]).expect_success();
    assert!(exact.stdout.ends_with("passed\n"), "{exact:#?}");
    let operations_of = operations(&exact.stderr);
    assert!(operations_of.contains_key("v_fmac_f32"), "{exact:#?}");
    let line = format!("all {} operations executed are exact", operations_of.len());
    assert_eq!(exact.stderr.lines().last(), Some(&*line), "{exact:#?}");

    let inexact = is_reported(&[&built("math")], &[]).expect_success();
    let (_, word) = &operations(&inexact.stderr)["v_exp_f32"];
    assert!(word.starts_with("within "), "{inexact:#?}");
    let last = inexact.stderr.lines().last().expect("a line");
    assert!(last.contains(" within a stated error (v_"), "{last}");
}

/// The program aborts after its only kernel, without an orderly end.
#[test]
fn operations_before_an_abort_are_reported() {
    let aborted = is_reported(&[&built("failing/host_abort")], &[]);
    assert_eq!(aborted.signal, Some(libc::SIGABRT), "{aborted:#?}");
    let plain = exec(&[], &[&built("failing/host_abort")]);
    assert_eq!((aborted.code, aborted.signal), (plain.code, plain.signal));
}

/// Instructions before a fault are counted.
#[test]
fn operations_before_a_device_fault_are_reported() {
    let faulted = is_reported(&[&built("failing/wild_write")], &[]);
    assert_eq!(faulted.signal, Some(libc::SIGABRT), "{faulted:#?}");
    assert!(faulted.stderr.contains("flipwave: dispatch 0, kernel write(int*): "), "{faulted:#?}");
}

#[test]
fn table_combines_all_gpus_and_processes() {
    let devices = built("devices");
    let one = is_reported(&[&devices], &["--gpus", "2"]).expect_success();
    let two_runs = format!("{devices} & {devices}; wait");
    let two = is_reported(&["sh", "-c", &two_runs], &["--gpus", "2"]).expect_success();
    let double = |(name, (executed, word))| (name, (2 * executed, word));
    let doubled: BTreeMap<_, _> = operations(&one.stderr).into_iter().map(double).collect();
    assert_eq!(operations(&two.stderr), doubled, "{two:#?}");
}

#[test]
fn fidelity_of_a_campaign_is_equal_with_and_without_the_runtime() {
    let campaign = examples_folder().canonicalize().expect("the examples").join("quickstart.yaml");
    let campaign = campaign.to_str().expect("text");
    let folder = tempfile::tempdir().expect("a folder");
    let itself = flipwave(folder.path(), &["fidelity", campaign], &[]).expect_success();
    let launch = [program().to_str().expect("text"), "launch", campaign, "--out", "outputs"];
    let launched = is_reported(&launch, &[]).expect_success();
    let mut rest = operations(&launched.stderr);
    for (name, (executed, word)) in operations(&itself.stdout) {
        let (all, known) = rest.get_mut(&name).expect("the operation");
        assert_eq!(*known, word, "{name}");
        *all = all.checked_sub(executed).expect("as many executions");
    }
    // The rest are the runtime's copy kernels.
    let rest: u64 = rest.values().map(|(executed, _)| executed).sum();
    assert_eq!(counts(&launched)["(runtime kernels)"], rest, "{launched:#?}");
}

#[test]
fn program_without_kernels_has_no_operations() {
    let finished = exec(&["--fidelity"], &["sh", "-c", "exit 7"]);
    assert_eq!(finished.code, Some(7));
    assert!(finished.stderr.ends_with("no operation was executed\n"), "{finished:#?}");
}

#[test]
fn fidelity_excludes_other_execution_levels() {
    for level in [&["--strict"][..], &["--threads", "2"]] {
        let refused = exec(&[&["--fidelity"], level].concat(), &["true"]);
        refused.expect_refused(&["--fidelity", "cannot be used with", level[0]]);
    }
}
