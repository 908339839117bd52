//! Variants of a file with `vary` equal campaigns written by hand, and their tables do not depend on how
//! they are run.

use flipwave_tests::{Finished, RunningProgram, example, flipwave_within};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// Files of a variant that depend only on its campaign.
const TABLES: [&str; 3] = ["results.csv", "summary.csv", "rates.svg"];

/// Tables that combine all variants.
const TABLES_OF_ALL: [&str; 2] = ["results.csv", "variants.csv"];

const VARY: &str = "\
vary:
  faults.model: [flip_one_bit, zero_value]
  size:
    small: {}
    large: {workload.kernel.grid: 8192, seed: 5}
";

const NAMES: [&str; 4] = [
    "model=flip_one_bit,size=small",
    "model=flip_one_bit,size=large",
    "model=zero_value,size=small",
    "model=zero_value,size=large",
];

/// Writes a campaign of `count` faults for each variant.
fn campaign(folder: &Path, count: u64, vary: &str) {
    let file = example("vector_add", &format!("{{model: flip_one_bit, count: {count}}}"), folder);
    let text = fs::read_to_string(&file).expect("the campaign");
    fs::write(folder.join("all.yaml"), format!("{text}{vary}")).expect("written");
}

fn run(folder: &Path, arguments: &[&str]) -> Finished {
    flipwave_within(PATIENCE, folder, arguments).expect("an end")
}

fn read(folder: &Path, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| fs::read_to_string(folder.join(name)).expect(name)).collect()
}

fn status(folder: &Path, out: &str) -> Value {
    let printed = run(folder, &["status", out, "--json"]).expect_success().stdout;
    serde_json::from_str(&printed).expect("JSON")
}

#[test]
fn variants_equal_campaigns_written_by_hand() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, 60, VARY);
    let said = run(folder, &["run", "all.yaml", "--out", "all"]).expect_success().stdout;
    assert!(said.contains("results: all/variants.csv"), "{said}");
    let base = fs::read_to_string(folder.join("vector_add.yaml")).expect("the campaign");
    let (mut rows, mut summaries) = (0, 0);
    for name in NAMES {
        assert!(said.lines().any(|line| line.starts_with(&format!("{name} "))), "{said}");
        let mut text = base.clone();
        let (model, size) = name.split_once(",size=").expect("two dimensions");
        text = text.replacen("flip_one_bit", model.strip_prefix("model=").expect("it"), 1);
        if size == "large" {
            text = text.replacen("grid: 4096", "grid: 8192", 1).replacen("seed: 42", "seed: 5", 1);
        }
        fs::write(folder.join("one.yaml"), text).expect("written");
        let arguments = ["run", "one.yaml", "--out", "one", "--force", "--workers", "1"];
        run(folder, &arguments).expect_success();
        let (swept, by_hand) = (folder.join("all").join(name), folder.join("one"));
        assert_eq!(read(&swept, &TABLES), read(&by_hand, &TABLES), "{name}");
        let content = |folder: &Path| {
            let text = fs::read_to_string(folder.join("run.json")).expect("run.json");
            serde_json::from_str::<Value>(&text).expect("JSON")["campaign"]["content"].clone()
        };
        assert_eq!(content(&swept), content(&by_hand), "{name}");
        rows += read(&swept, &["results.csv"])[0].lines().count() - 1;
        summaries += read(&swept, &["summary.csv"])[0].lines().count() - 1;
    }
    // The combined tables contain the rows of each variant, with its dimensions.
    let tables = read(&folder.join("all"), &TABLES_OF_ALL);
    assert!(
        tables[0].starts_with("variant,faults.model,size,injection,site,kernel,"),
        "{}",
        tables[0]
    );
    assert!(tables[1].starts_with("variant,faults.model,size,scope,outcome,cause,count,"));
    assert_eq!((tables[0].lines().count(), tables[1].lines().count()), (rows + 1, summaries + 1));
    let last = read(&folder.join("all").join(NAMES[3]), &["results.csv"])[0].clone();
    let (last_row, all) = (last.lines().last().expect("a row"), tables[0].lines().last());
    let before = format!("\"{}\",zero_value,large,", NAMES[3]);
    assert_eq!(all, Some(format!("{before}{last_row}").as_str()));
}

#[test]
fn shards_of_variants_merge_into_the_tables_of_one_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, 50, VARY);
    run(folder, &["run", "all.yaml", "--out", "whole", "--workers", "1"]).expect_success();
    let whole = read(&folder.join("whole"), &TABLES_OF_ALL);

    let shard = |out: &str, part: &str| {
        run(folder, &["run", "all.yaml", "--out", out, "--shard", part]).expect_success();
    };
    shard("shards", "3/3");
    shard("shards", "1/3");
    let half = status(folder, "shards");
    // Thirds of 50 are 16, 17 and 17.
    assert_eq!((&half["planned"], &half["done"]), (&200.into(), &132.into()), "{half}");
    assert_eq!(half["variants"][1]["variant"], NAMES[1]);
    assert_eq!(half["variants"][1]["status"]["missing"][0]["start"], 16, "{half}");
    run(folder, &["merge", "shards"]).expect_refused(&[NAMES[0], "injections 16..33"]);
    assert!(!folder.join("shards/results.csv").exists(), "half a table");
    // A shard of one variant, and a range beyond the end of all variants.
    let one = ["run", "all.yaml", "--out", "shards", "--variant", NAMES[2], "--shard", "2/3"];
    run(folder, &one).expect_success();
    assert_eq!(status(folder, "shards")["done"], 149);
    shard("shards", "10..1000000");
    run(folder, &["merge", "shards"]).expect_success();
    assert_eq!(read(&folder.join("shards"), &TABLES_OF_ALL), whole);
    for name in NAMES {
        let tables = |out: &str| read(&folder.join(out).join(name), &TABLES);
        assert_eq!(tables("shards"), tables("whole"), "{name}");
    }
    let shown = run(folder, &["status", "shards"]).expect_success().stdout;
    assert!(shown.contains("200 of 200 injections of 4 variants done (100.0 %)"), "{shown}");
    assert!(shown.contains("merged: results.csv has all rows"), "{shown}");

    let submit = ["submit", "all.yaml", "--out", "local", "--engine", "local", "--shards", "3"];
    let said = run(folder, &submit).expect_success().stdout;
    assert!(said.contains("vector_add: 200 injections of 4 variants in 3 shards"), "{said}");
    assert_eq!(read(&folder.join("local"), &TABLES_OF_ALL), whole);
    // Shards of two clusters are merged variant by variant.
    for (out, part) in [("one", "0..30"), ("other", "30..50")] {
        shard(out, part);
    }
    run(folder, &["merge", "one", "other", "--out", "pool"]).expect_success();
    assert_eq!(read(&folder.join("pool"), &TABLES_OF_ALL), whole);
    // Negative control: different variants.
    campaign(folder, 50, "vary: {seed: [1, 2]}\n");
    shard("seeds", "1/1");
    run(folder, &["merge", "one", "seeds", "--out", "none"])
        .expect_refused(&["seeds is the folder of another campaign", "its variants differ"]);
    run(folder, &["run", "all.yaml", "--out", "one", "--shard", "1/2"])
        .expect_refused(&["contains the variants of campaign vector_add by faults.model, size"]);
}

#[test]
fn failing_variant_is_named_and_completed_rows_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let options = |last: &str| format!("vary: {{workload.kernel.options: [[-O1], [{last}]]}}\n");
    campaign(folder, 40, &options("-Onone"));
    let failed = run(folder, &["run", "all.yaml", "--out", "out"]);
    failed.expect_refused(&[
        "variant `options=-Onone` (workload.kernel.options: [-Onone]): ",
        "does not compile",
    ]);
    assert!(failed.stdout.lines().any(|line| line.starts_with("options=-O1 ")), "{failed:#?}");
    assert!(!failed.stdout.contains("variants.csv") && !folder.join("out/variants.csv").exists());
    let first = read(&folder.join("out/options=-O1"), &TABLES);
    // A shard runs the variants that compile.
    let shard = run(folder, &["run", "all.yaml", "--out", "shards", "--shard", "1/1"]);
    shard.expect_refused(&["variant `options=-Onone`"]);
    assert!(shard.stdout.contains("shard 1/1 of options=-O1: 40 injections"), "{shard:#?}");

    // In the corrected file, a variant of the folder is missing.
    campaign(folder, 40, &options("-O2"));
    run(folder, &["run", "all.yaml", "--out", "out", "--resume"])
        .expect_refused(&["contains the variant `options=-Onone`", "--force"]);
    campaign(folder, 40, "vary: {workload.kernel.options: [[-O1], [-Onone], [-O2]]}\n");
    run(folder, &["run", "all.yaml", "--out", "out"]).expect_refused(&["(rows: 40)", "--resume"]);
    let o2 = ["run", "all.yaml", "--out", "out", "--variant", "options=-O2"];
    let said = run(folder, &o2).expect_success().stdout;
    assert!(said.contains("results: out/options=-O2/results.csv"), "{said}");
    assert_eq!(read(&folder.join("out/options=-O1"), &TABLES), first);
}

#[test]
fn killed_sweep_resumes_to_the_same_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, 3000, "vary: {seed: [1, 2]}\n");
    run(folder, &["run", "all.yaml", "--out", "whole"]).expect_success();
    let arguments = ["run", "all.yaml", "--out", "out", "--workers", "1"];
    let mut killed = RunningProgram::start(folder, &arguments, "stderr");
    let second = folder.join("out/seed=2/results.csv");
    killed.wait_until(|| fs::read_to_string(&second).is_ok_and(|table| table.lines().count() > 10));
    killed.send(libc::SIGKILL);
    assert_eq!(killed.end(), Err(libc::SIGKILL));
    let rows = fs::read_to_string(&second).expect("rows").lines().count();
    assert!(rows < 3000, "killed too late: {rows} rows");
    run(folder, &[&arguments[..], &["--resume"]].concat()).expect_success();
    let tables = |out: &str| read(&folder.join(out), &TABLES_OF_ALL);
    assert_eq!(tables("out"), tables("whole"));
}

#[test]
fn commands_for_one_campaign_take_a_variant() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, 20, VARY);
    run(folder, &["run", "all.yaml", "--out", "out", "--variant", NAMES[1]]).expect_success();
    let row = flipwave_tests::rows(&folder.join("out").join(NAMES[1])).remove(7);
    let site = ["--site", row.site.as_str()];
    let one = ["--variant", NAMES[1]];
    let commands = [
        &["replay", "all.yaml"][..],
        &["trace", "all.yaml"],
        &["profile", "all.yaml"],
        &["fidelity", "all.yaml"],
        &["tool", "opcode-histogram", "all.yaml"],
    ];
    for (number, command) in commands.iter().enumerate() {
        let command = [*command, if number < 2 { &site[..] } else { &[] }].concat();
        run(folder, &command).expect_refused(&["all.yaml: has `vary`", "--variant", NAMES[0]]);
        let said = run(folder, &[&command[..], &one].concat()).expect_success().stdout;
        assert!(
            number > 0 || said.contains(&format!("outcome:        {}\n", row.outcome)),
            "{said}"
        );
    }
    let wrong = ["profile", "all.yaml", "--variant", "size=small"];
    run(folder, &wrong).expect_refused(&["has no variant `size=small`", NAMES[3]]);
    let plain = ["profile", "vector_add.yaml", "--variant", NAMES[0]];
    run(folder, &plain).expect_refused(&["vector_add.yaml: has no `vary`"]);
    let seed = ["run", "all.yaml", "--seed", "3"];
    run(folder, &seed).expect_refused(&["the dimension `size` of `vary` sets the seed"]);
}
