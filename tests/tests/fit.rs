//! `flipwave failures`: failure rates from a campaign's probabilities and raw fault rates.

use flipwave_analysis::Outcome;
use flipwave_tests::{Finished, example, flipwave, rows};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs a campaign on an example with `faults`. Returns the results folder.
fn campaign(folder: &Path, faults: &str) -> PathBuf {
    let file = example("saxpy", faults, folder);
    let out = folder.join("out");
    flipwave(folder, &["run".as_ref(), file.as_path(), "--out".as_ref(), &out], &[])
        .expect_success();
    out
}

fn failures(folder: &Path, rates: &str) -> Finished {
    fs::write(folder.join("device.yaml"), rates).expect("written");
    let arguments = ["fit", "out", "--rates", "device.yaml", "--csv", "failures.csv"];
    flipwave(folder, &arguments, &[])
}

type Line = BTreeMap<String, String>;

/// Lines of the table, by scope, structure and outcome.
fn table(folder: &Path) -> BTreeMap<[String; 3], Line> {
    let mut reader = csv::Reader::from_path(folder.join("failures.csv")).expect("a table");
    let lines = reader.deserialize().map(|line| -> Line { line.expect("a line") });
    let key = |line: &Line| ["scope", "structure", "outcome"].map(|name| line[name].clone());
    lines.map(|line| (key(&line), line)).collect()
}

fn near(line: &Line, name: &str, expected: f64) {
    let found: f64 = line[name].parse().expect(name);
    assert!((found / expected - 1.0).abs() < 1e-5, "{name}: {found}, not {expected}: {line:?}");
}

const RATES: &str = "
devices: 20
flux: 26
structures:
  vectors: {fit_per_bit: 1.0e-4, bits: 1000000, uncertainty: 0.2, rows: {class: VGPR}}
  everything: {cross_section: 1.0e-15, bits: 1000000}
";

#[test]
fn failure_rates_are_raw_rates_times_failure_probability() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let out = campaign(folder, "{model: flip_one_bit, target: register, count: 300}");
    let said = failures(folder, RATES).expect_success();
    assert!(said.stdout.contains("(AVF)") && !said.stdout.contains("PVF"), "{}", said.stdout);
    assert!(said.stdout.contains("all 20 devices"), "{}", said.stdout);

    let rows = rows(&out);
    let part = |outcome: Outcome, is_meant: &dyn Fn(&str) -> bool| {
        let selected: Vec<_> = rows.iter().filter(|row| is_meant(&row.location)).collect();
        let hits = selected.iter().filter(|row| row.outcome == outcome).count();
        assert!(hits > 0, "no {outcome} to check");
        hits as f64 / selected.len() as f64
    };
    let table = table(folder);
    let line = |scope: &str, structure: &str, outcome: &str| {
        &table[&[scope, structure, outcome].map(str::to_owned)]
    };
    let mut sums = [0.0; 2];
    for (sum, outcome) in sums.iter_mut().zip([Outcome::Sdc, Outcome::Due]) {
        let vector_share = part(outcome, &|place| {
            place.starts_with('v') && place != "vcc_lo" && place != "vcc_hi"
        });
        let vectors = line("structure", "vectors", outcome.name());
        near(vectors, "fit", 100.0 * vector_share);
        near(vectors, "mtbf_hours", 1e9 / (100.0 * vector_share));
        // 10^-15 cm^2 x 26 / (cm^2 h) x 10^9 h x 10^6 bits.
        let share = part(outcome, &|_| true);
        near(line("structure", "everything", outcome.name()), "fit", 26.0 * share);
        *sum = 100.0 * vector_share + 26.0 * share;
        near(line("device", "", outcome.name()), "fit", *sum);
        near(line("devices", "", outcome.name()), "fit", 20.0 * *sum);
    }
    near(line("device", "", "failure"), "fit", sums[0] + sums[1]);

    // The uncertainty widens the interval. Without it, the interval depends only on the rows.
    let width = |table: &BTreeMap<[String; 3], Line>| {
        let line = &table[&["structure", "vectors", "sdc"].map(str::to_owned)];
        let [low, high] =
            ["fit_low", "fit_high"].map(|name| line[name].parse::<f64>().expect(name));
        high - low
    };
    failures(folder, &RATES.replace("uncertainty: 0.2, ", "")).expect_success();
    let certain = self::table(folder);
    assert!(width(&table) > 1.05 * width(&certain));
    let sdc = &certain[&["structure", "vectors", "sdc"].map(str::to_owned)];
    let high: f64 = sdc["probability_high"].parse().expect("a number");
    near(sdc, "fit_high", 100.0 * high);
}

#[test]
fn invalid_rates_are_refused_with_their_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, "{model: flip_one_bit, groups: [valu], count: 20}");
    // A valid file, with a warning that these probabilities are not averages over bits and time.
    let said = failures(folder, RATES).expect_success();
    assert!(
        said.stdout.contains("PVF") && said.stdout.contains("overestimates"),
        "{}",
        said.stdout
    );

    let vectors = "structures.vectors";
    for (from, to, at, says) in [
        ("devices: 20", "devices: 0", "2:10", "devices: is 0; expected 1 or more"),
        ("devices: 20", "device: 20", "2:1", "unknown key `device`, expected one of `devices`"),
        ("flux: 26", "flux: -1", "3:7", "flux: -1; expected particles per cm^2 and hour, above 0"),
        ("flux: 26", "flux: much", "3:7", "flux: expected a number, found the text \"much\""),
        ("1.0e-4", ".nan", "5:26", &format!("{vectors}.fit_per_bit: NaN; expected faults")),
        ("fit_per_bit: 1.0e-4, ", "", "5:12", &format!("{vectors}: expected exactly one of")),
        ("bits: 1000000, unc", "bits: 1.5, unc", "5:40", "bits: expected a whole number"),
        ("bits: 1000000, unc", "bits: 0, unc", "5:40", &format!("{vectors}.bits: is 0")),
        ("0.2", "-0.2", "5:62", &format!("{vectors}.uncertainty: invalid relative")),
        ("class: VGPR", "clas: VGPR", "5:74", "unknown key `clas`, expected one of `class`"),
        ("class: VGPR", "class: VGPR, group: valu", "5:73", "not several"),
        (
            "class: VGPR",
            "class: LDS",
            "5:81",
            &format!("{vectors}.rows.class: no injections of class LDS in out; expected one of: "),
        ),
        ("  everything:", "  vectors:", "5:3", "duplicate key `vectors`"),
    ] {
        assert!(RATES.contains(from), "{from}");
        let said = failures(folder, &RATES.replacen(from, to, 1));
        assert_eq!(said.code, Some(2), "{to}: {}", said.stderr);
        let stderr = &said.stderr;
        assert!(
            stderr.contains(&format!("device.yaml:{at}: ")) && stderr.contains(says),
            "{to}: {stderr}; expected {at} and {says}"
        );
    }
    let said = failures(folder, &RATES.replacen("class: VGPR", "class: LDS", 1));
    assert!(said.stderr.contains("VGPR"), "{}", said.stderr);
    let said = failures(folder, "structures: {}");
    assert!(said.stderr.contains("device.yaml:1:13: structures: is empty"), "{}", said.stderr);
    let said = flipwave(folder, &["fit", "out", "--rates", "none.yaml"], &[]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("none.yaml: cannot read the file"), "{}", said.stderr);
}
