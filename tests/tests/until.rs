//! Campaigns that end at a margin of error, and sampling schemes: rows do not depend on how the work is
//! split.

use flipwave_tests::{Finished, example, flipwave_within, rows};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(300);

/// Files that depend only on the campaign.
const TABLES: [&str; 3] = ["results.csv", "summary.csv", "rates.svg"];

fn run(folder: &Path, arguments: &[&str]) -> Finished {
    flipwave_within(PATIENCE, folder, arguments).expect("an end")
}

fn tables(folder: &Path) -> Vec<String> {
    let read = |name| fs::read_to_string(folder.join(name)).expect(name);
    TABLES.into_iter().map(read).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

/// Faults drawn in stages, each of which may depend on the previous one.
const STAGED: [&str; 3] = [
    "{model: flip_one_bit, until: {margin: 0.1, outcomes: [sdc, due], per: [all, opcode]}, count: 700}",
    "{model: flip_one_bit, count: 300, stratify: opcode, allocation: {optimal: {pilot: 70}}, \
     known_masked: counted}",
    "{model: flip_one_bit, until: {margin: 0.08}, stratify: opcode, replacement: false, \
     allocation: {optimal: {pilot: 90}}, intervals: clopper_pearson}",
];

#[test]
fn campaigns_end_at_the_same_row_for_every_split() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (number, faults) in STAGED.into_iter().enumerate() {
        example("vector_add", faults, folder);
        let out_name = |name: &str| format!("{name}-{number}");
        let one = ["run", "vector_add.yaml", "--workers", "1", "--out", &out_name("one")];
        let said = run(folder, &one).expect_success();
        let whole = tables(&folder.join(out_name("one")));
        let record = json(&folder.join(out_name("one")).join("run.json"));
        assert_eq!(record["status"], "complete", "{faults}");
        let done = rows(&folder.join(out_name("one"))).len() as u64;
        if faults.contains("until") {
            let look = record["looks"].as_array().and_then(|all| all.last()).expect("a look");
            assert_eq!(look["injections"], done, "{faults}");
            assert!(said.stdout.contains("reached after"), "{}", said.stdout);
            // Rates near one half need all planned injections.
            let planned = record["planned"].as_u64().expect("a number");
            assert!(done <= planned, "{faults}: {done} of {planned}");
        }
        let three = ["run", "vector_add.yaml", "--workers", "3", "--out", &out_name("three")];
        run(folder, &three).expect_success();
        assert_eq!(tables(&folder.join(out_name("three"))), whole, "{faults}");

        // Interrupted in the middle of a row, before and after the pilot, and resumed.
        for part in [0.2, 0.7] {
            let text = &whole[0];
            let cut = &text[..(text.len() as f64 * part) as usize];
            fs::write(folder.join(out_name("three")).join("results.csv"), cut).expect("written");
            let resumed = [
                "run",
                "vector_add.yaml",
                "--workers",
                "2",
                "--resume",
                "--out",
                &out_name("three"),
            ];
            run(folder, &resumed).expect_success();
            assert_eq!(tables(&folder.join(out_name("three"))), whole, "{faults}");
        }

        for (split, parts) in [&["3/3", "1/3", "2/3"][..], &["100..2000", "0..100", "2/2", "1/2"]]
            .into_iter()
            .enumerate()
        {
            let out = out_name(&format!("parts-{split}"));
            for part in parts {
                run(folder, &["run", "vector_add.yaml", "--out", &out, "--shard", part])
                    .expect_success();
            }
            run(folder, &["merge", &out]).expect_success();
            assert_eq!(tables(&folder.join(&out)), whole, "{faults}: {parts:?}");
            let status = run(folder, &["status", &out, "--json"]).expect_success().stdout;
            let status: Value = serde_json::from_str(&status).expect("JSON");
            assert_eq!((&status["done"], &status["merged"]), (&done.into(), &true.into()));
        }
        let local = ["submit", "vector_add.yaml", "--engine", "local", "--shards", "4"];
        let out = out_name("local");
        let local = [&local[..], &["--at-once", "2", "--out", &out]].concat();
        run(folder, &local).expect_success();
        assert_eq!(tables(&folder.join(out_name("local"))), whole, "{faults}");
    }
}

/// A merge before the goal names the missing rows. Rows after the goal are neither computed nor required.
#[test]
fn merge_needs_only_rows_before_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    example("vector_add", "{model: flip_one_bit, until: {margin: 0.1}}", folder);
    let shard = |part: &str| {
        run(folder, &["run", "vector_add.yaml", "--out", "out", "--shard", part]).expect_success()
    };
    shard("0..60");
    let refused = run(folder, &["merge", "out"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("lacks the rows of injections 60.."), "{}", refused.stderr);
    let status = run(folder, &["status", "out"]).expect_success().stdout;
    assert!(status.contains("after 50 injections: 0 of 2 rates"), "{status}");
    let said = shard("60..100000").stdout;
    assert!(said.contains("2 of 2 rates within the margin"), "{said}");
    let status = run(folder, &["status", "out"]).expect_success().stdout;
    assert!(status.contains("goal reached") && status.contains("(100.0 %)"), "{status}");
    let said = shard("200..100000").stdout;
    assert!(said.contains(" 0 now"), "{said}");
    run(folder, &["merge", "out"]).expect_success();
    // Another goal in the same folder changes the end.
    example("vector_add", "{model: flip_one_bit, until: {margin: 0.05}}", folder);
    shard("1/1");
    run(folder, &["merge", "out"]).expect_success();
    let more = rows(&folder.join("out")).len();
    assert!(more > 300, "{more}");
    let record = json(&folder.join("out/run.json"));
    assert_eq!(record["done"].as_object().expect("counts").len(), 4);
}

/// With `known_masked: counted`, no fault is injected at known-masked sites, and the rates still refer to
/// the complete fault space.
#[test]
fn known_masked_sites_are_counted_and_not_injected() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let rate = |name: &str, faults: &str| {
        example("reduction", faults, folder);
        run(folder, &["run", "reduction.yaml", "--out", name]).expect_success();
        let summary = fs::read_to_string(folder.join(name).join("summary.csv")).expect("a table");
        let line = summary.lines().find(|line| line.starts_with("all,masked,,")).expect("a line");
        let rates: Vec<f64> = line.split(',').skip(5).take(3).flat_map(str::parse).collect();
        rates
    };
    let sampled = rate("sampled", "{model: flip_one_bit, count: 3000}");
    let counted = rate("counted", "{model: flip_one_bit, count: 3000, known_masked: counted}");
    let known = rows(&folder.join("sampled"));
    let is_known =
        |cause: &Option<String>| matches!(cause.as_deref(), Some("dead" | "overwritten"));
    let seen = known.iter().filter(|row| is_known(&row.cause)).count();
    assert!(!rows(&folder.join("counted")).iter().any(|row| is_known(&row.cause)));
    let record = json(&folder.join("counted/run.json"));
    let all = &record["design"]["known"]["all"];
    let number = |key: &str| all[key].as_f64().expect(key);
    let share = (number("overwritten") + number("dead")) / number("sites");
    println!("known {share:.4}, seen {seen} of 3000; masked {sampled:?} {counted:?}");
    // Within four standard deviations.
    let away = 4.0 * (3000.0 * share * (1.0 - share)).sqrt();
    assert!((seen as f64 - 3000.0 * share).abs() < away, "{seen} {share}");
    assert!(sampled[1] < counted[2] && counted[1] < sampled[2], "the intervals overlap");
    assert!(share > 0.01 && counted[1] > share, "{share}");
}
