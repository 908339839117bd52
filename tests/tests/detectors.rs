//! Tools as detectors of campaigns.

use flipwave_analysis::{Outcome, Row};
use flipwave_tests::{Finished, examples_folder, flipwave, rows};
use std::path::{Path, PathBuf};

/// Writes `examples/campaigns/quickstart.yaml` with these faults and more keys.
fn campaign(folder: &Path, target: &str, faults: &str, more: &str) -> PathBuf {
    let file = flipwave_tests::example("quickstart", faults, folder);
    let text = std::fs::read_to_string(&file).expect("a campaign");
    let lines = text.lines().filter(|line| !line.starts_with("target:"));
    let text = lines.fold(format!("target: {target}\n"), |text, line| text + line + "\n");
    std::fs::write(&file, format!("{text}{more}")).expect("written");
    file
}

fn example_tool(name: &str) -> PathBuf {
    examples_folder().canonicalize().expect("a folder").join("../tools").join(name)
}

fn run(file: &Path, more: &[&str]) -> Finished {
    let folder = file.parent().expect("a folder");
    let mut arguments = vec!["run", "quickstart.yaml", "--out", "out", "--force"];
    arguments.extend(more);
    flipwave(folder, &arguments, &[])
}

const FAULTS: &str = "{model: flip_one_bit, groups: [valu], count: 300}";

/// The range check finds a fault if the struck result or a later one is too large. The values of struck
/// results are in the rows, so those that are too large must be detected.
#[test]
fn range_check_detects_large_results() {
    for target in ["gfx90a", "sm_80"] {
        range_check_detects(target);
    }
}

fn range_check_detects(target: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let plain_file = campaign(folder, target, FAULTS, "");
    run(&plain_file, &[]).expect_success();
    let plain = rows(&folder.join("out"));
    let tool = example_tool("range_check.c");
    let detector = format!("detector: {{c: {}, set: {{exponent: 30}}}}\n", tool.display());
    let file = campaign(folder, target, FAULTS, &detector);
    run(&file, &[]).expect_success();
    let table = || std::fs::read(folder.join("out/results.csv")).expect("a table");
    let (checked, bytes) = (rows(&folder.join("out")), table());
    assert_eq!(plain.len(), checked.len());
    let mut detected = 0;
    for (plain, checked) in plain.iter().zip(&checked) {
        let fault = |row: &Row| (row.site.clone(), row.before, row.after, row.line.clone());
        assert_eq!(fault(plain), fault(checked));
        let is_single = ["_f32", ".f32"].iter().any(|end| checked.opcode.ends_with(end));
        let is_float = is_single && !checked.opcode.contains("cvt");
        let is_large = checked.after >> 23 & 0xff > 157;
        match checked.outcome {
            Outcome::Detected => {
                assert_eq!(checked.cause.as_deref(), Some("range"));
                detected += 1;
            }
            outcome => {
                assert_eq!(outcome, plain.outcome, "{}", checked.site);
                assert!(!(is_float && is_large && outcome != Outcome::Due), "{}", checked.site);
            }
        }
    }
    // On PTX, fewer of these instructions compute in floating point.
    assert!(detected > 3, "{target}: {detected}");
    for way in ["dead-values", "saved-states", "convergence"] {
        run(&file, &["--without", way]).expect_success();
        assert!(table() == bytes, "{way}");
    }
}

#[test]
fn invalid_detectors_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let tool = |text: &str| std::fs::write(folder.join("tool.c"), text).expect("written");
    let detector = "detector: {c: tool.c}\n";
    let refused = |more: &str, words: &[&str]| {
        run(&campaign(folder, "gfx90a", FAULTS, more), &[]).expect_refused(words);
    };
    refused("detector: {c: none.c}\n", &["quickstart.yaml:", "detector.c", "none.c"]);
    tool(
        "#include <flipwave.h>\nstruct n { uint64_t n; };\nFLIPWAVE_TABLE(counts, struct n)\n\
         void flipwave_instrument(const flipwave_inst *inst) {}\n",
    );
    refused(detector, &["tool.c declares no detector", "FLIPWAVE_DETECTOR"]);
    tool(
        "#include <flipwave.h>\nFLIPWAVE_DETECTOR(always)\nvoid hook(void)\n{\n    \
         flipwave_detect(&always);\n}\nvoid flipwave_instrument(const flipwave_inst *inst)\n{\n    \
         if (inst->is_kernel_entry)\n        flipwave_insert_call(inst, \"hook\", FLIPWAVE_BEFORE);\n}\n",
    );
    refused(detector, &["detector `always` finds", "golden_detection"]);
    refused("detector: {c: tool.c, set: {limit: 3}}\n", &["unknown parameter `limit`"]);
    refused("detector: {c: tool.c, set: {limit: 3.5}}\n", &["detector.set.limit"]);
    // Runs with another number of detections are detected.
    let allowed = format!("{detector}allow: [golden_detection]\n");
    run(&campaign(folder, "gfx90a", FAULTS, &allowed), &[]).expect_success();
    assert!(rows(&folder.join("out")).iter().all(|row| row.outcome != Outcome::Detected));
    run(&campaign(folder, "gfx90a", FAULTS, &allowed), &["--by", "hook"])
        .expect_refused(&["already contains hooks"]);
    run(&campaign(folder, "sm_80", FAULTS, &allowed), &["--by", "hook"])
        .expect_refused(&["already contains hooks"]);
    let harden = flipwave(folder, &["harden", "quickstart.yaml"], &[]);
    harden.expect_refused(&["does not support detectors"]);
    tool("#include <flipwave.h>\nFLIPWAVE_DETECTOR(x)\nvoid flipwave_instrument(int inst) {}\n");
    refused(detector, &["tool.c:3", "flipwave_instrument"]);
}
