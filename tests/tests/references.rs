//! Expected outputs in files, and `flipwave golden`, which writes the outputs of the golden run.

use flipwave_tests::{Finished, flipwave, to_bytes};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Multiplies sixteen numbers by three, and writes sixteen 4-bit numbers.
const SOURCE: &str = "
kernel void triple(global float *product, global const float *numbers, global uint *nibbles) {
    uint i = get_global_id(0);
    product[i] = numbers[i] * 3.0f;
    if (i < 2) {
        nibbles[i] = 0x76543210u;
    }
}
";

fn folder(expected: &str, compare: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "name: triple
workload:
  kernel:
    source: triple.cl
    name: triple
    grid: {{workgroups: [2]}}
    workgroup: 8
    args:
      - {{buffer: product, type: f32, count: 16, output: true, shape: [4, 4]{expected}}}
      - {{buffer: numbers, type: f32, count: 16, init: {{range: {{start: 0.0, step: 0.5}}}}}}
      - {{buffer: nibbles, type: u4, count: 16, output: true}}
faults: {{model: flip_one_bit, count: 10}}
{compare}"
    );
    fs::write(folder.path().join("triple.cl"), SOURCE).expect("a source");
    fs::write(folder.path().join("triple.yaml"), text).expect("a campaign file");
    let right: Vec<f32> = (0..16u8).map(|i| f32::from(i) * 1.5).collect();
    fs::write(folder.path().join("right.bin"), to_bytes(&right)).expect("a file");
    let mut wrong = right;
    wrong[9] += 0.25;
    fs::write(folder.path().join("wrong.bin"), to_bytes(&wrong)).expect("a file");
    folder
}

fn golden(folder: &Path) -> Finished {
    flipwave(folder, &["golden", "triple.yaml", "--out", "golden"], &[])
}

fn said(folder: &Path) -> Value {
    let text = fs::read(folder.join("golden/golden.json")).expect("a file");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn golden_writes_outputs_and_compares_them_with_expected_files() {
    let temporary = folder(", expected: right.bin", "");
    let path = temporary.path();
    golden(path).expect_success();
    let read = |name: &str| fs::read(path.join(name)).expect("a file");
    assert_eq!(read("golden/product.bin"), read("right.bin"));
    let nibbles = [0x10, 0x32, 0x54, 0x76, 0x10, 0x32, 0x54, 0x76];
    assert_eq!(read("golden/nibbles.bin"), nibbles);
    let outputs = &said(path)["outputs"];
    assert_eq!(outputs[0]["shape"], json!([4, 4]));
    assert_eq!(outputs[0]["expected"]["elements_wrong"], 0);
    assert_eq!((&outputs[1]["type"], &outputs[1]["count"]), (&json!("u4"), &json!(16)));
    assert!(!path.join("golden/numbers.bin").exists(), "an input");
    let all = ["golden", "triple.yaml", "--out", "all", "--all"];
    flipwave(path, &all, &[]).expect_success();
    assert_eq!(read("all/numbers.bin").len(), 64);
    flipwave(path, &["run", "triple.yaml"], &[]).expect_success();
}

#[test]
fn campaign_with_wrong_golden_run_is_refused() {
    let temporary = folder(", expected: wrong.bin", "");
    let words = ["product", "wrong.bin", "1 of", "element 9", "13.5, expected 13.75"];
    let wrong = golden(temporary.path());
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    for word in words {
        assert!(wrong.stderr.contains(word), "{word}: {}", wrong.stderr);
    }
    let difference = &said(temporary.path())["outputs"][0]["expected"];
    assert_eq!(
        (&difference["elements_wrong"], &difference["max_abs_error"]),
        (&json!(1), &json!(0.25))
    );
    flipwave(temporary.path(), &["run", "triple.yaml"], &[]).expect_refused(&words);
    assert!(!temporary.path().join("triple.results/results.csv").exists());

    // Within the tolerance of `compare`, it is right.
    let temporary = folder(", expected: wrong.bin", "compare: {product: {absolute: 0.3}}\n");
    golden(temporary.path()).expect_success();
    flipwave(temporary.path(), &["run", "triple.yaml"], &[]).expect_success();
}

#[test]
fn expected_files_of_wrong_size_or_for_inputs_are_refused() {
    let temporary = folder(", expected: triple.cl", "");
    golden(temporary.path()).expect_refused(&["triple.cl", "64"]);
    let temporary = folder(", expected: nothing.bin", "");
    golden(temporary.path()).expect_refused(&["nothing.bin"]);
    let temporary = folder("", "");
    let file = temporary.path().join("triple.yaml");
    let text = fs::read_to_string(&file).expect("a campaign file");
    fs::write(&file, text.replace("step: 0.5}}", "step: 0.5}}, expected: right.bin"))
        .expect("written");
    golden(temporary.path()).expect_refused(&[
        "triple.yaml:10",
        "args[1].expected",
        "requires an output",
    ]);
}
