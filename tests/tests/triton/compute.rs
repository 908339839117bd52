//! Results of kernels without faults.

use super::{CHOSEN, TARGETS, campaigns, kernels};
use flipwave_tests::{Python, cases, flipwave};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/triton.md");

/// Header of the table in docs/triton.md.
const BEGIN: &str = "| kernel | gfx90a | gfx942 | gfx950 | gfx1100 | gfx1201 | sm_80 | sm_90 |\n\
                     |---|---|---|---|---|---|---|---|\n";

/// Runs a campaign's kernels without a fault and asserts the expected outputs. Returns the number of wave
/// instructions.
fn instructions(folder: &Path) -> u64 {
    let finished = flipwave(folder, &["golden", "campaign.yaml", "--out", "golden"], &[]);
    assert_eq!(finished.code, Some(0), "{}:\n{finished:#?}", folder.display());
    let golden = std::fs::read_to_string(folder.join("golden/golden.json")).expect("golden.json");
    let golden: Value = serde_json::from_str(&golden).expect("JSON");
    let outputs = golden["outputs"].as_array().expect("outputs");
    assert!(!outputs.is_empty() && outputs.iter().all(|output| output["expected"].is_object()));
    let launches = golden["wave_instructions"].as_array().expect("launches");
    launches.iter().map(|launch| launch.as_u64().expect("a number")).sum()
}

/// The table of the page: for each kernel, a cell per target.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let (_, table) = page.split_once(BEGIN).expect("a table of kernels");
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        (cells.next().unwrap_or_default(), cells.collect())
    };
    table.lines().take_while(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn chosen_kernels_agree_with_numpy_and_documentation() {
    let Some(python) = Python::find() else { return };
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let rows = rows(&page);
    let known: BTreeMap<String, Vec<String>> = kernels(python).into_iter().collect();
    assert!(rows.keys().eq(known.keys()), "docs/triton.md does not list the existing kernels");
    for (kernel, cells) in &rows {
        for (target, cell) in TARGETS.iter().zip(cells) {
            let is_there = known[kernel].iter().any(|known_target| known_target == target);
            assert_eq!(cell != "-", is_there, "docs/triton.md: {kernel} on {target}");
        }
    }
    for (place, target) in cases(TARGETS.iter().enumerate(), 3) {
        let folder = campaigns(python, target, false);
        for kernel in CHOSEN.into_iter().filter(|kernel| rows[*kernel][place] != "-") {
            let found = instructions(&folder.join(kernel)).to_string();
            assert_eq!(rows[kernel][place], found, "docs/triton.md: {kernel} on {target}");
        }
    }
}

/// Run with `FLIPWAVE_BLESS=1` to update the table.
#[test]
#[ignore = "for test-long: hundreds of kernels"]
fn all_kernels_agree_with_numpy_and_documentation() {
    let Some(python) = Python::find() else { return };
    let cell = |target: &&str, kernel: &str, targets: &[String]| match targets
        .iter()
        .any(|known_target| known_target == target)
    {
        true => instructions(&campaigns(python, target, true).join(kernel)).to_string(),
        false => "-".to_owned(),
    };
    let row = |(kernel, targets): &(String, Vec<String>)| {
        let cells: Vec<String> =
            TARGETS.iter().map(|target| cell(target, kernel, targets)).collect();
        format!("| {kernel} | {} |\n", cells.join(" | "))
    };
    let mut all = kernels(python);
    all.sort();
    let table: String = all.iter().map(row).collect();
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (before, after) = page.split_once(BEGIN).expect("a table of kernels");
    let rest: String =
        after.split_inclusive('\n').skip_while(|line| line.starts_with('|')).collect();
    let expected = format!("{before}{BEGIN}{table}{rest}");
    if std::env::var_os("FLIPWAVE_BLESS").is_some() {
        std::fs::write(PAGE, expected).expect("written");
    } else {
        assert!(
            page == expected,
            "docs/triton.md has other numbers; write it anew with FLIPWAVE_BLESS=1 cargo test -p \
             flipwave-tests --release all_kernels_compute -- --ignored"
        );
    }
}

#[test]
fn unexpected_outputs_are_refused() {
    let Some(python) = Python::find() else { return };
    let folder = campaigns(python, "gfx90a", false).join("softmax");
    let copies = tempfile::tempdir().expect("a folder");
    for (name, change) in [("right", 0), ("wrong", 1 << 6)] {
        let copy = copies.path().join(name);
        for part in ["", "kernels", "inputs", "expected"] {
            std::fs::create_dir(copy.join(part)).expect("a folder");
            for entry in folder.join(part).read_dir().expect("a folder") {
                let file = entry.expect("an entry");
                if file.file_type().expect("a type").is_file() {
                    std::fs::copy(file.path(), copy.join(part).join(file.file_name()))
                        .expect("copied");
                }
            }
        }
        let expected = copy.join("expected/y.bin");
        let mut bytes = std::fs::read(&expected).expect("what is expected");
        bytes[3] ^= change;
        std::fs::write(&expected, bytes).expect("written");
        let golden = flipwave(&copy, &["golden", "campaign.yaml", "--out", "golden"], &[]);
        let run = flipwave(&copy, &["run", "campaign.yaml", "--count", "2"], &[]);
        if change == 0 {
            assert_eq!((golden.code, run.code), (Some(0), Some(0)), "{golden:#?} {run:#?}");
        } else {
            assert_eq!(golden.code, Some(1), "{golden:#?}");
            run.expect_refused(&["y"]);
        }
    }
}
