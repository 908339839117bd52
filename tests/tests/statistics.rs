//! Sample sizes and confidence intervals of campaigns.

use flipwave_analysis::Outcome;
use flipwave_tests::{example, flipwave, rows};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// R. Leveugle et al., "Statistical Fault Injection: Quantified Error and Confidence", DATE 2009: for
/// large fault spaces, a margin of 5 percentage points takes 385 injections at 95 % confidence, 664 at
/// 99 %, and 955 at 99.8 %. vector_add has millions of fault sites.
#[test]
fn margin_and_confidence_give_published_sample_sizes() {
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

/// Faults are drawn with replacement, so a small fault space needs as many injections.
#[test]
fn margin_holds_for_a_small_fault_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "{model: flip_one_bit, workgroups: [[0, 0, 0]], waves: [0, 0], lanes: [0], \
                  margin: 0.05, confidence: 0.95}";
    let lines = summary(&example("vector_add", faults, folder.path()), &folder.path().join("out"));
    let all: Vec<&Line> = lines.iter().filter(|line| line.scope == "all").collect();
    assert!(!all.is_empty());
    for line in all {
        assert!((381..=385).contains(&line.total), "{line:?}");
        assert!(line.half_width() <= 0.05, "{line:?}");
    }
}

/// Every stratum is reported, so the margin holds for each. All files report the requested confidence.
#[test]
fn margin_holds_for_every_stratum_with_the_requested_confidence() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "{model: flip_one_bit, stratify: opcode, margin: 0.1, confidence: 0.99}";
    let file = example("vector_add", faults, folder.path());
    let out = folder.path().join("out");
    let run = ["run".as_ref(), file.as_path(), "--out".as_ref(), &out];
    let finished = flipwave(folder.path(), &run, &[]).expect_success();
    let lines = read_summary(&out);
    let strata: BTreeSet<&str> =
        lines.iter().filter_map(|line| line.scope.strip_prefix("stratum:")).collect();
    let rows = rows(&out);
    let drawn: BTreeSet<&str> = rows.iter().filter_map(|row| row.stratum.as_deref()).collect();
    assert!(drawn.len() > 5 && strata == drawn, "{strata:?}, not {drawn:?}");
    for line in &lines {
        assert_eq!(line.confidence, 0.99);
        if line.scope.starts_with("stratum:") {
            assert!((160..=166).contains(&line.total), "{line:?}");
        }
        if line.scope.starts_with("stratum:") || line.scope == "all" {
            assert!(line.half_width() <= 0.1, "{line:?}");
        }
    }
    // The combined rate of all strata, weighted with their sizes.
    let places: BTreeMap<&str, f64> = rows
        .iter()
        .filter_map(|row| Some((row.stratum.as_deref()?, row.weight / drawn.len() as f64)))
        .collect();
    assert!((places.values().sum::<f64>() - 1.0).abs() < 1e-9, "{places:?}");
    let sdc = |scope: &str| {
        let mut found = lines.iter().filter(|line| line.scope == scope && line.outcome == "sdc");
        found.next().expect("a line").rate
    };
    let weighted = places.iter().map(|(name, share)| share * sdc(&format!("stratum:{name}")));
    assert!((weighted.sum::<f64>() - sdc("all")).abs() < 1e-5);

    let plot = std::fs::read_to_string(out.join("rates.svg")).expect("rates.svg");
    let record = std::fs::read_to_string(out.join("run.json")).expect("run.json");
    for text in [&finished.stdout, &plot] {
        assert!(text.contains("99 % Wilson") && !text.contains("95 % Wilson"), "{text}");
    }
    assert!(record.contains("\"confidence\": 0.99"), "{record}");
}

/// A line of `summary.csv`.
#[derive(Debug)]
struct Line {
    scope: String,
    outcome: String,
    total: u64,
    rate: f64,
    low: f64,
    high: f64,
    confidence: f64,
}

impl Line {
    fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

fn read_summary(out: &Path) -> Vec<Line> {
    let mut table = csv::Reader::from_path(out.join("summary.csv")).expect("summary.csv");
    assert_eq!(
        table.headers().expect("a header"),
        vec!["scope", "outcome", "cause", "count", "total", "rate", "low", "high", "confidence"]
    );
    let line = |record: csv::Result<(String, String, String, u64, u64, [f64; 4])>| {
        let (scope, outcome, _, _, total, [rate, low, high, confidence]) = record.expect("a line");
        Line { scope, outcome, total, rate, low, high, confidence }
    };
    table.deserialize().map(line).collect()
}

/// Runs a campaign and returns the lines of its summary.
fn summary(file: &Path, out: &Path) -> Vec<Line> {
    let run = ["run".as_ref(), file, "--out".as_ref(), out];
    flipwave(out.parent().expect("a folder"), &run, &[]).expect_success();
    read_summary(out)
}

/// Independent implementation of the interval of E. B. Wilson, "Probable Inference, the Law of Succession,
/// and Statistical Inference", JASA 22 (1927).
fn wilson(count: f64, total: f64) -> (f64, f64) {
    const Z: f64 = 1.959_963_984_540_054;
    let rate = count / total;
    let scale = 1.0 + Z * Z / total;
    let centre = (rate + Z * Z / (2.0 * total)) / scale;
    let half = Z * (rate * (1.0 - rate) / total + Z * Z / (4.0 * total * total)).sqrt() / scale;
    (centre - half, centre + half)
}

#[test]
fn summary_has_row_counts_and_wilson_intervals() {
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
        let expected = [count as f64, 200.0, count as f64 / 200.0, low, high, 0.95];
        assert_eq!(fields.len(), expected.len(), "{summary}");
        for (field, expected) in fields.iter().zip(expected) {
            assert!((field - expected).abs() < 1e-6, "{outcome}: {fields:?}, not {expected:?}");
        }
    }
}
