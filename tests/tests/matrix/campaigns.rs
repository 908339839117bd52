//! Campaigns on matrix kernels.

use super::inputs::{Inputs, Values};
use super::run::source;
use super::variants::{Kind, Variant, everyday, variants};
use flipwave_analysis::{Outcome, Row};
use flipwave_campaigns::{Campaign, InjectionPath, RunOptions, Silent, replay, run};
use flipwave_tests::{cases, is_long_run, rows, site};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

const FLIPS: usize = 1000;

/// Writes a campaign and the kernel's input files into `folder`, and reads the campaign.
fn campaign(variant: &Variant, faults: &str, folder: &Path) -> Campaign {
    let [grid, workgroup] = variant.grid();
    let [_, sum_type] = variant.sum.types();
    let elements = variant.rows() * variant.columns();
    let mut options = variant.options();
    options.extend(variant.machine.options().iter().map(|&option| option.to_owned()));
    let mut text = format!(
        "name: matrix\nseed: 7\ntarget: {}\nworkload:\n  kernel:\n    source: {}\n    \
         options: {:?}\n    name: gemm\n    grid: {grid:?}\n    workgroup: {workgroup:?}\n    \
         args:\n      - {{buffer: d, type: {sum_type}, count: {elements}, output: true}}\n",
        variant.machine.target(),
        source().display(),
        options,
    );
    for argument in variant.arguments(&Inputs::new(variant, Values::Near)) {
        let name = argument.name;
        std::fs::write(folder.join(name), &argument.bytes).expect(name);
        let (bytes, kind) = (argument.bytes.len(), "u8");
        _ = writeln!(
            text,
            "      - {{buffer: {name}, type: {kind}, count: {bytes}, init: {{file: {name}}}}}"
        );
    }
    for scalar in variant.scalars() {
        _ = writeln!(text, "      - {{scalar: {scalar}, type: u32}}");
    }
    _ = writeln!(text, "faults: {faults}");
    let file = folder.join("matrix.yaml");
    std::fs::write(&file, text).expect("a campaign file written");
    Campaign::read(&file).unwrap_or_else(|error| panic!("{variant}: {error}"))
}

/// Runs a campaign. Returns the bytes of `results.csv`, and its rows.
fn results(campaign: &Campaign, workers: usize) -> (Vec<u8>, Vec<Row>) {
    let folder = tempfile::tempdir().expect("a folder");
    let workers = NonZeroUsize::new(workers).expect("a worker");
    let options = RunOptions::new(folder.path().to_owned(), workers);
    run(campaign, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
    let bytes = std::fs::read(folder.path().join("results.csv")).expect("results.csv");
    (bytes, rows(folder.path()))
}

/// Asserts that a campaign has every outcome, does not depend on the number of workers, and can be replayed.
fn strike(variant: &Variant) {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = format!("{{model: flip_one_bit, count: {FLIPS}}}");
    let campaign = campaign(variant, &faults, folder.path());
    let start = Instant::now();
    let (one, rows) = results(&campaign, 1);
    let seconds = start.elapsed().as_secs_f64();
    let (three, _) = results(&campaign, 3);
    assert!(one == three, "{variant}: another results.csv on 3 workers");
    assert_eq!(rows.len(), FLIPS, "{variant}");
    let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    let [masked, sdc, due] = [Outcome::Masked, Outcome::Sdc, Outcome::Due].map(count);
    let of_matrix: Vec<&Row> =
        rows.iter().filter(|row| row.opcode.contains(variant.opcode())).collect();
    println!(
        "{variant}: {masked} masked, {sdc} SDC, {due} DUE; {} in matrix instructions; \
         {seconds:.1} s",
        of_matrix.len()
    );
    assert_eq!(masked + sdc + due, FLIPS, "{variant}");
    assert!(masked > 0 && sdc > 0 && due > 0, "{variant}");
    assert!(!of_matrix.is_empty(), "{variant}: no matrix instruction was struck");
    for row in rows.iter().step_by(FLIPS / 8).chain(of_matrix.first().copied()) {
        replay_one(&campaign, row);
    }
}

/// Replays a row by its site and asserts the same result.
fn replay_one(campaign: &Campaign, row: &Row) {
    let site = site(&row.site);
    assert_eq!(site.to_string(), row.site);
    let again = replay(campaign, &site, InjectionPath::Embedded)
        .unwrap_or_else(|error| panic!("{}: {error}", row.site));
    let found = (again.struck.before, again.struck.after, again.verdict.outcome());
    assert_eq!(found, (row.before, row.after, row.outcome), "{}", row.site);
    assert_eq!(again.verdict.cause(), row.cause.as_deref(), "{}", row.site);
}

/// Faults inside matrix instructions: rows do not depend on the number of workers and can be replayed.
#[test]
fn matrix_faults_do_not_depend_on_the_number_of_workers() {
    for variant in a_few().iter().filter(|variant| variant.opcode() != "dot") {
        for (target, key) in [
            ("matrix_product", "product="),
            ("matrix_partial_sum", "partial_sum="),
            ("matrix_accumulator", "accumulator="),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let faults = format!("{{target: {target}, model: flip_one_bit, count: 200}}");
            let campaign = campaign(variant, &faults, folder.path());
            let (one, rows) = results(&campaign, 1);
            let (three, _) = results(&campaign, 3);
            assert!(one == three, "{variant}: another results.csv on 3 workers");
            assert!(rows.iter().all(|row| row.location.starts_with(key) && row.lane.is_none()));
            let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
            let [masked, sdc] = [Outcome::Masked, Outcome::Sdc].map(count);
            assert_eq!(masked + sdc, 200, "{variant}: nothing is an address");
            assert!(sdc > 20, "{variant} {target}: {sdc} SDC");
            let absorbed =
                |row: &&Row| row.cause.as_deref() == Some("unchanged") && row.before != row.after;
            let absorbed = rows.iter().filter(absorbed).count();
            println!(
                "{variant} {target}: {masked} masked, {absorbed} of them in the sum, {sdc} SDC"
            );
            rows.iter().step_by(25).for_each(|row| replay_one(&campaign, row));
        }
    }
}

/// One variant of each kind for each target, without the scaled ones, which take too long.
fn a_few() -> Vec<Variant> {
    let mut few: Vec<Variant> = everyday();
    few.retain(|variant| variant.kind != Kind::Scaled);
    few.dedup_by_key(|variant| (variant.machine.target(), variant.kind));
    few
}

#[test]
fn thousand_flips_per_matrix_kernel_do_not_depend_on_the_number_of_workers() {
    let all = if is_long_run() { variants() } else { a_few() };
    cases(&all, 3).for_each(strike);
}
