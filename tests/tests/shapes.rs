//! Patterns of wrong elements in outputs with dimensions: known causes in a tiled matrix multiplication
//! produce characteristic patterns.

use flipwave_analysis::{ErrorShape, Outcome, Row};
use flipwave_tests::{example, flipwave, rows};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Runs a campaign on the example `matmul` that flips bit 30 in the destinations of one operation. All
/// results computed from such a value are far outside the tolerance.
fn campaign(folder: &Path, opcode: &str, shape: &str) -> Vec<Row> {
    let faults = format!("{{model: {{flip_mask: 0x40000000}}, opcodes: [{opcode}], count: 60}}");
    let file = example("matmul", &faults, folder);
    let text = fs::read_to_string(&file).expect("a file");
    let text = text
        .replace("shape: [128, 128]", &format!("shape: {shape}"))
        .replace("    grid:", "    options: [-O3, -g]\n    grid:");
    fs::write(&file, text).expect("written");
    let name = file.file_name().expect("a name").to_str().expect("text");
    flipwave(folder, &["run", name, "--force"], &[]).expect_success();
    rows(&folder.join("matmul.results"))
}

/// Patterns of SDC caused by faults in the source line with `text`.
fn shapes(rows: &[Row], text: &str) -> BTreeSet<Option<ErrorShape>> {
    let source = include_str!("../../examples/campaigns/kernels/matmul_tiled.cl");
    let number = source.lines().position(|line| line.contains(text)).expect(text) + 1;
    let end = format!("matmul_tiled.cl:{number}");
    let is_there = |row: &&Row| {
        row.outcome == Outcome::Sdc && row.line.as_deref().is_some_and(|line| line.ends_with(&end))
    };
    let found: BTreeSet<_> = rows.iter().filter(is_there).map(|row| row.error_pattern).collect();
    assert!(!found.is_empty(), "no SDC in {end}");
    found
}

const LEFT: &str = "left_tile[y][x] = left";
const RIGHT: &str = "right_tile[y][x] = right";

#[test]
fn tile_elements_corrupt_rows_or_columns_and_accumulators_one_element() {
    let folder = tempfile::tempdir().expect("a folder");
    let loaded = campaign(folder.path(), "global_load_dword", "[128, 128]");
    assert_eq!(shapes(&loaded, LEFT), [Some(ErrorShape::Row)].into());
    assert_eq!(shapes(&loaded, RIGHT), [Some(ErrorShape::Column)].into());
    let sixteen = |row: &&Row| row.outcome == Outcome::Sdc && row.elements_wrong == Some(16);
    assert!(loaded.iter().filter(sixteen).count() > 0, "a tile has 16 elements to each side");

    // With other dimensions, in which two rows form one, the same elements form no column.
    let folded = campaign(folder.path(), "global_load_dword", "[64, 256]");
    assert_eq!(shapes(&folded, LEFT), [Some(ErrorShape::Row)].into());
    assert_eq!(shapes(&folded, RIGHT), [Some(ErrorShape::Random)].into());

    let summed = campaign(folder.path(), "v_fmac_f32", "[128, 128]");
    assert_eq!(shapes(&summed, "sum = fma"), [Some(ErrorShape::Single)].into());
    let masked = summed.iter().filter(|row| row.outcome == Outcome::Masked);
    masked.for_each(|row| assert_eq!(row.error_pattern, None, "{}", row.site));

    flipwave(folder.path(), &["report", "matmul.results", "--csv", "."], &[]).expect_success();
    let table = fs::read_to_string(folder.path().join("aggregates.csv")).expect("a table");
    assert!(table.contains(",shape,single,sdc,"), "{table}");
    let page = fs::read_to_string(folder.path().join("report.html")).expect("a page");
    assert!(page.contains("Spatial patterns of wrong elements"));
}

#[test]
fn without_dimensions_there_is_no_shape() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "{model: flip_one_bit, opcodes: [v_fmac_f32], count: 20}";
    let file = example("matmul", faults, folder.path());
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace(", shape: [128, 128]", "")).expect("written");
    flipwave(folder.path(), &["run", "matmul.yaml"], &[]).expect_success();
    let rows = rows(&folder.path().join("matmul.results"));
    assert!(rows.iter().any(|row| row.outcome == Outcome::Sdc));
    assert!(rows.iter().all(|row| row.error_pattern.is_none()));
    assert!(rows.iter().all(|row| row.nan_elements.is_some() == (row.outcome != Outcome::Due)));
}
