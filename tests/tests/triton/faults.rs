//! Faults in kernels compiled by Triton.

use super::{CHOSEN, each_chosen};
use flipwave_analysis::{Outcome, Row};
use flipwave_tests::{flipwave, rows};
use std::collections::BTreeMap;
use std::path::Path;

/// Runs a campaign with `count` faults. Returns its rows without instruction counts.
fn run(folder: &Path, by: &str, count: u32) -> Vec<Row> {
    let count = count.to_string();
    let arguments = ["run", "campaign.yaml", "--by", by, "--count", &count, "--out", by, "--force"];
    flipwave(folder, &arguments, &[]).expect_success();
    let timeless = |row: Row| Row { instructions: None, timing_changed: None, ..row };
    rows(&folder.join(by)).into_iter().map(timeless).collect()
}

/// Injects faults, and asserts that hooks give the same rows for the first ones.
fn inject(kernels: &[&str], embedded: u32, hooks: u32) {
    let mut silent: BTreeMap<String, usize> = BTreeMap::new();
    each_chosen(|_, kernel, folder| {
        if !kernels.contains(&kernel) {
            return;
        }
        let all = run(folder, "embedded", embedded);
        assert_eq!(all.len(), embedded as usize);
        assert_eq!(run(folder, "hook", hooks), all[..hooks as usize]);
        *silent.entry(kernel.to_owned()).or_default() +=
            all.iter().filter(|row| row.outcome == Outcome::Sdc).count();
    });
    // Each kernel has SDC.
    assert!(silent.values().all(|count| *count > 0), "{silent:?}");
}

#[test]
fn faults_in_two_kernels_are_equal_with_hooks() {
    inject(&["matmul_f16", "histogram"], 20, 6);
}

#[test]
#[ignore = "for test-long: tens of thousands of faults"]
fn many_faults_in_chosen_kernels_are_equal_with_hooks() {
    inject(&CHOSEN, 1000, 200);
}
