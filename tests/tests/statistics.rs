//! The sample size that a campaign takes, and the intervals that it reports.

use flipwave_analysis::Outcome;
use flipwave_tests::{example, flipwave, rows};

/// R. Leveugle et al., "Statistical Fault Injection: Quantified Error and Confidence", DATE
/// 2009: 385 injections for 5 percentage points at 95 %, 664 at 99 %, 955 at 99.8 %, for large
/// populations. vector_add is large enough: millions of places.
#[test]
fn margin_and_confidence_take_the_published_count() {
    let folder = tempfile::tempdir().expect("a folder");
    for (confidence, published) in [("0.95", 385), ("0.99", 664), ("0.998", 955)] {
        let faults = format!("{{model: flip_one_bit, margin: 0.05, confidence: {confidence}}}");
        let file = example("vector_add", &faults, folder.path());
        let out = folder.path().join(confidence);
        let run = ["run".as_ref(), file.as_path(), "--out".as_ref(), &out];
        flipwave(folder.path(), &run, &[]).expect_success();
        assert_eq!(rows(&out).len(), published, "{confidence}");
    }
}

/// E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22
/// (1927), worked out here again.
fn wilson(count: f64, total: f64) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let rate = count / total;
    let scale = 1.0 + Z * Z / total;
    let centre = (rate + Z * Z / (2.0 * total)) / scale;
    let half = Z * (rate * (1.0 - rate) / total + Z * Z / (4.0 * total * total)).sqrt() / scale;
    (centre - half, centre + half)
}

#[test]
fn the_summary_counts_the_rows_and_gives_wilson_s_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("saxpy", "{model: flip_one_bit, count: 200}", folder.path());
    let out = folder.path().join("out");
    let run = ["run".as_ref(), file.as_path(), "--out".as_ref(), &out];
    flipwave(folder.path(), &run, &[]).expect_success();
    let rows = rows(&out);
    let summary = std::fs::read_to_string(out.join("summary.csv")).expect("summary.csv");
    for outcome in [Outcome::Masked, Outcome::Sdc, Outcome::Due] {
        let count = rows.iter().filter(|row| row.outcome == outcome).count();
        assert!(count > 0, "no {outcome} to check");
        let line = summary.lines().find(|line| line.starts_with(&format!("all,{outcome},")));
        let fields: Vec<f64> = line
            .unwrap_or_else(|| panic!("no line for {outcome}:\n{summary}"))
            .split(',')
            .filter_map(|field| field.parse().ok())
            .collect();
        let (low, high) = wilson(count as f64, 200.0);
        let expected = [count as f64, 200.0, count as f64 / 200.0, low, high];
        assert_eq!(fields.len(), expected.len(), "{summary}");
        for (field, expected) in fields.iter().zip(expected) {
            assert!((field - expected).abs() < 1e-6, "{outcome}: {fields:?}, not {expected:?}");
        }
    }
}
