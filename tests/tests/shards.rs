//! A sharded campaign produces the table of a single worker, for every split and after any failure of
//! shards.

use flipwave_tests::{
    Finished, RunningProgram, example, examples_folder, flipwave, flipwave_within,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

/// Files written by a merge that depend only on the campaign.
const TABLES: [&str; 3] = ["results.csv", "summary.csv", "rates.svg"];

fn campaign(folder: &Path, faults: &str) {
    example("vector_add", faults, folder);
}

fn faults(count: u64) -> String {
    format!("{{model: flip_one_bit, count: {count}}}")
}

fn run(folder: &Path, arguments: &[&str]) -> Finished {
    flipwave_within(PATIENCE, folder, arguments).expect("an end")
}

fn shard(folder: &Path, out: &str, part: &str) -> Finished {
    run(folder, &["run", "vector_add.yaml", "--out", out, "--shard", part])
}

fn tables(folder: &Path) -> Vec<String> {
    let read = |name| fs::read_to_string(folder.join(name)).expect(name);
    TABLES.into_iter().map(read).collect()
}

/// Runs the campaign with one worker and returns the tables.
fn whole(folder: &Path) -> Vec<String> {
    let arguments = ["run", "vector_add.yaml", "--out", "whole", "--workers", "1"];
    run(folder, &arguments).expect_success();
    tables(&folder.join("whole"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("shards")).expect("a folder");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn status(folder: &Path, out: &str) -> Value {
    let printed = run(folder, &["status", out, "--json"]).expect_success().stdout;
    serde_json::from_str(&printed).expect("JSON")
}

#[test]
fn every_split_merges_into_the_table_of_one_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (number, faults) in [
        faults(100),
        "{model: flip_one_bit, count: 90, stratify: opcode, allocation: equal}".to_owned(),
        "{model: flip_one_bit, exhaustive: true, kernels: [vector_add], lanes: [3], dispatches: \
         [0, 0], workgroups: [[1, 0, 0]], waves: [0, 0], groups: [salu]}"
            .to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        campaign(folder, &faults);
        let _ = fs::remove_dir_all(folder.join("whole"));
        let whole = whole(folder);
        for (split, parts) in [
            &["1/1"][..],
            &["3/3", "1/3", "2/3"],
            &["2/2", "0..20", "10..30", "10..30", "20..1000000"],
        ]
        .into_iter()
        .enumerate()
        {
            let out = format!("parts-{number}-{split}");
            for part in parts {
                shard(folder, &out, part).expect_success();
            }
            run(folder, &["merge", &out]).expect_success();
            assert_eq!(tables(&folder.join(&out)), whole, "{faults}: {parts:?}");
            let status = status(folder, &out);
            assert_eq!((&status["done"], &status["merged"]), (&status["planned"], &true.into()));
        }
    }
}

#[test]
fn completed_rows_are_reused_and_damaged_files_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, &faults(60));
    let whole = whole(folder);
    for part in ["1/2", "2/2"] {
        shard(folder, "out", part).expect_success();
    }
    let said = shard(folder, "out", "1/2").expect_success().stdout;
    assert!(said.contains("30 of them done before, 0 now"), "{said}");

    let path = files(&folder.join("out")).remove(0);
    let good = fs::read_to_string(&path).expect("rows");
    let row = good.lines().nth(5).expect("a row");
    let damages = [
        ("torn", good[..good.len() / 2].to_owned(), "out lacks the rows of injections 0..30"),
        ("without its last line", good[..good.rfind("{\"rows").expect("it")].to_owned(), "lacks"),
        ("with another bit", good.replacen(",valu,", ",salu,", 1), "is damaged: wrong checksum"),
        ("without a row", good.replacen(&format!("{row}\n"), "", 1), "lacks the rows"),
        ("empty", String::new(), "lacks the rows of injections 0..30"),
    ];
    for (damage, text, words) in damages {
        fs::write(&path, &text).expect("written");
        run(folder, &["merge", "out"]).expect_refused(&[words]);
        assert!(!folder.join("out/results.csv").exists(), "{damage}: half a table");
        shard(folder, "out", "1/2").expect_success();
        assert_eq!(fs::read_to_string(&path).expect("rows"), good, "{damage}");
    }
    run(folder, &["merge", "out"]).expect_success();
    assert_eq!(tables(&folder.join("out")), whole);
}

/// Negative control of the comparison during a merge: machines that compute different rows.
#[test]
fn rows_that_contradict_each_other_are_not_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, &faults(40));
    shard(folder, "out", "0..30").expect_success();
    shard(folder, "other", "20..40").expect_success();
    let foreign = files(&folder.join("other")).remove(0);
    let name = foreign.file_name().expect("a name");
    fs::copy(&foreign, folder.join("out/shards").join(name)).expect("copied");
    run(folder, &["merge", "out"]).expect_success();
    // A changed row with a correct checksum.
    let path = files(&folder.join("out")).remove(1);
    let text = fs::read_to_string(&path).expect("rows");
    let (rows, _) = text.split_at(text.rfind("{\"rows").expect("a last line"));
    let changed = rows.replacen(",1.0,", ",1.5,", 1);
    assert_ne!(changed, rows);
    let script = "head -c -0 | sha256sum | cut -d' ' -f1";
    let plain = folder.join("plain");
    fs::write(&plain, &changed).expect("written");
    let input = fs::File::open(&plain).expect("it");
    let output = Command::new("sh").args(["-c", script]).stdin(input).output().expect("a shell");
    let digest = String::from_utf8(output.stdout).expect("text");
    let end =
        format!("{{\"rows\":20,\"bytes\":{},\"sha256\":\"{}\"}}\n", changed.len(), digest.trim());
    fs::write(&path, changed + &end).expect("written");
    run(folder, &["merge", "out"])
        .expect_refused(&["row 20 differs between", "is not deterministic"]);
}

#[test]
fn interrupted_shard_keeps_its_completed_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, &faults(1_000_000_000));
    let arguments =
        ["run", "vector_add.yaml", "--out", "out", "--shard", "5000..90000000", "--workers", "1"];
    let mut first = RunningProgram::start(folder, &arguments, "first");
    first.wait_until(|| folder.join("first").exists() && first_line_of_injections(folder));
    std::thread::sleep(Duration::from_millis(300));
    let running = status(folder, "out");
    assert_eq!(running["parts"][0]["state"], "running", "{running}");
    first.send(libc::SIGTERM);
    assert_eq!(first.end(), Ok(2));
    let said = first.stderr();
    assert!(said.contains("run the same command again to continue"), "{said}");
    let stopped = status(folder, "out");
    assert_eq!(stopped["parts"][0]["state"], "interrupted", "{stopped}");
    let done = stopped["done"].as_u64().expect("a number");
    assert!(done > 0, "{stopped}");
    assert_eq!(stopped["missing"][1]["start"], 5000 + done, "{stopped}");

    let part = format!("5000..{}", 5000 + done + 10);
    let said = shard(folder, "out", &part).expect_success().stdout;
    assert!(said.contains(&format!("{done} of them done before, 10 now")), "{said}");
    // A killed shard leaves only its attempt file.
    let mut second = RunningProgram::start(folder, &arguments, "second");
    second.wait_until(|| finished_attempts(folder) == 3);
    second.send(libc::SIGKILL);
    assert_eq!(second.end(), Err(libc::SIGKILL));
    let killed = status(folder, "out");
    assert_eq!(killed["parts"][1]["state"], "lost", "{killed}");
    assert_eq!(killed["done"], done + 10);
}

/// Number of completely written attempt files.
fn finished_attempts(folder: &Path) -> usize {
    let entries = fs::read_dir(folder.join("out/attempts")).expect("a folder");
    let is_finished =
        |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    entries.map(|entry| entry.expect("an entry").path()).filter(is_finished).count()
}

fn first_line_of_injections(folder: &Path) -> bool {
    fs::read_to_string(folder.join("first")).is_ok_and(|said| said.contains("injecting"))
}

#[test]
fn a_finished_campaign_grows_with_its_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, &faults(30));
    shard(folder, "out", "1/2").expect_success();
    shard(folder, "out", "2/2").expect_success();
    run(folder, &["merge", "out"]).expect_success();
    run(folder, &["run", "vector_add.yaml", "--out", "table"]).expect_success();

    campaign(folder, &faults(50));
    let file = folder.join("vector_add.yaml");
    let text = fs::read_to_string(&file).expect("the campaign");
    fs::write(&file, format!("# More of it.\n{text}")).expect("written");
    let whole = whole(folder);
    let said = shard(folder, "out", "1/1").expect_success().stdout;
    assert!(said.contains("30 of them done before, 20 now"), "{said}");
    run(folder, &["merge", "out"]).expect_success();
    assert_eq!(tables(&folder.join("out")), whole);
    // A table without shards grows, too.
    run(folder, &["run", "vector_add.yaml", "--out", "table"])
        .expect_refused(&["(rows: 30)", "--resume"]);
    run(folder, &["run", "vector_add.yaml", "--out", "table", "--resume"]).expect_success();
    assert_eq!(tables(&folder.join("table")), whole);
}

#[test]
fn rows_of_another_campaign_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, &faults(20));
    shard(folder, "out", "1/2").expect_success();
    let before = files(&folder.join("out"));
    let file = folder.join("vector_add.yaml");
    let good = fs::read_to_string(&file).expect("the campaign");
    for (from, to, words) in [
        ("seed: 42", "seed: 43", "its seed is 42, not 43"),
        ("flip_one_bit", "flip_two_adjacent_bits", "the campaign file differs"),
        ("uniform: [-1.0, 1.0]", "uniform: [-1.0, 2.0]", "the campaign file differs"),
        ("{scalar: 4000", "{scalar: 3999", "the campaign file differs"),
        ("count: 20}", "count: 20, stratify: opcode}", "the campaign file differs"),
    ] {
        let changed = good.replacen(from, to, 1);
        assert_ne!(changed, good, "{from}");
        fs::write(&file, changed).expect("written");
        shard(folder, "out", "2/2").expect_refused(&["the folder of another campaign", words]);
    }
    // A changed kernel.
    let kernel = fs::read_to_string(examples_folder().join("kernels/vector_add.cl")).expect("it");
    fs::write(folder.join("own.cl"), &kernel).expect("written");
    let start = good.find("source: ").expect("a source");
    let end = start + good[start..].find('\n').expect("its end");
    fs::write(&file, [&good[..start], "source: own.cl", &good[end..]].concat()).expect("written");
    shard(folder, "own", "1/2").expect_success();
    fs::write(folder.join("own.cl"), kernel.replacen('+', "-", 1)).expect("written");
    shard(folder, "own", "2/2").expect_refused(&["the folder of another campaign: the program"]);

    fs::write(&file, &good).expect("written");
    shard(folder, "own", "2/2").expect_refused(&["the campaign file differs"]);
    assert_eq!(files(&folder.join("out")), before);
    // A shard is refused in a folder with other files.
    fs::create_dir(folder.join("other")).expect("a folder");
    fs::write(folder.join("other/thesis.tex"), "text").expect("written");
    shard(folder, "other", "1/2").expect_refused(&["other contains files that are not shards"]);
    // A campaign without shards is refused in a folder of shards.
    run(folder, &["run", "vector_add.yaml", "--out", "out"])
        .expect_refused(&["out contains a sharded campaign", "flipwave merge"]);
}

#[test]
fn campaigns_with_the_same_fault_space_are_pooled() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Inputs that do not depend on the seed.
    campaign(folder, &faults(40));
    let file = folder.join("vector_add.yaml");
    let text = fs::read_to_string(&file).expect("the campaign");
    let text =
        text.replace("init: {uniform: [-1.0, 1.0]}", "init: {range: {start: 0.0, step: 0.5}}");
    fs::write(&file, &text).expect("written");
    let whole = whole(folder);
    // Each of two clusters computes a part.
    shard(folder, "one", "0..25").expect_success();
    shard(folder, "other", "20..40").expect_success();
    run(folder, &["merge", "one"]).expect_refused(&["one lacks the rows of injections 25..40"]);
    run(folder, &["merge", "one", "other", "--out", "pool"]).expect_success();
    assert_eq!(tables(&folder.join("pool")), whole);

    // Rows of another seed are appended and renumbered.
    fs::write(&file, text.replace("seed: 42", "seed: 43")).expect("written");
    shard(folder, "second", "1/1").expect_success();
    run(folder, &["merge", "second"]).expect_success();
    run(folder, &["merge", "one", "other", "second", "--out", "all"]).expect_success();
    let rows = |name: &str| flipwave_tests::rows(&folder.join(name));
    let (all, first, second) = (rows("all"), rows("pool"), rows("second"));
    assert_eq!(all.len(), 80);
    assert!(all.iter().zip(0..).all(|(row, index)| row.injection == index));
    assert_eq!(all[..40], first);
    assert!(all[40..].iter().zip(&second).all(|(one, other)| one.site == other.site));

    // If inputs depend on the seed, the fault spaces differ.
    campaign(folder, &faults(40));
    let text = fs::read_to_string(&file).expect("the campaign").replace("seed: 42", "seed: 43");
    fs::write(&file, text).expect("written");
    shard(folder, "third", "1/1").expect_success();
    run(folder, &["merge", "one", "other", "third", "--out", "none"])
        .expect_refused(&["third is the folder of another campaign"]);
}

#[test]
fn failing_shard_does_not_stop_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, &faults(40));
    let submit =
        ["submit", "vector_add.yaml", "--out", "out", "--engine", "local", "--shards", "4"];
    run(folder, &[&submit[..], &["--dry-run"]].concat()).expect_success();
    // One of the four shards cannot write its rows.
    let script = folder.join("out/submit/shard.sh");
    let output = Command::new(&script).arg("2").env("TMPDIR", "/nowhere/else").output();
    let output = output.expect("a shell");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("attempt 3 of 3 ended with code 2"), "{said}");
    // None of them needs a compiler any more.
    for number in ["1", "3", "4"] {
        let status = Command::new(&script).arg(number).env("FLIPWAVE_CLANG", "/nowhere").status();
        assert!(status.expect("a shell").success(), "{number}");
    }
    let status = status(folder, "out");
    let part = &status["parts"][1];
    assert_eq!((&part["part"], &part["state"]), (&"2/4".into(), &"failed".into()), "{status}");
    assert_eq!(part["failures"], 3, "{status}");
    assert!(part["error"].as_str().is_some_and(|text| text.contains("/nowhere/else")), "{status}");
    let words = ["out lacks the rows of injections 10..20"];
    let folders = ["merge", "out"];
    run(folder, &folders).expect_refused(&words);
    let shown = run(folder, &["status", "out"]).expect_success().stdout;
    for words in ["30 of 40 injections done", "3 done, 1 failed", "2/4 failed", "missing: 10..20"] {
        assert!(shown.contains(words), "`{words}` is not in:\n{shown}");
    }
    // Submitting again computes the missing rows.
    let whole = whole(folder);
    run(folder, &submit).expect_success();
    assert_eq!(tables(&folder.join("out")), whole);
}

#[test]
fn batch_scripts_contain_the_requested_resources() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    campaign(folder, &faults(40));
    let submit = |more: &[&str]| {
        let all = ["submit", "vector_add.yaml", "--shards", "7", "--dry-run", "--out", "a b"];
        run(folder, &[&all[..], more].concat())
    };
    submit(&["--engine", "slurm", "--nodes", "2", "--grace", "9", "--workers", "3"])
        .expect_success();
    let script = |name: &str| fs::read_to_string(folder.join("a b/submit").join(name)).expect(name);
    let slurm = script("slurm.sh");
    for words in ["--requeue", "--signal=B:TERM@9", "--cpus-per-task=3", "--exclusive"] {
        assert!(slurm.contains(&format!("#SBATCH {words}\n")), "`{words}` is not in:\n{slurm}");
    }
    assert!(script("merge.sh").contains("a b' --wait"), "{}", script("merge.sh"));
    submit(&["--engine", "hyperqueue", "--container", "flip.sif"]).expect_success();
    assert_eq!(script("hyperqueue.toml").matches("[[task]]").count(), 8);
    assert!(script("hyperqueue.toml").contains("deps = [1, 2, 3, 4, 5, 6, 7]"));
    let shard = script("shard.sh");
    assert!(shard.contains("apptainer exec --bind "), "{shard}");
    assert!(shard.contains(" flip.sif flipwave run "), "{shard}");
    submit(&["--engine", "local", "--nodes", "2"])
        .expect_refused(&["--nodes is only supported by --engine slurm"]);
    submit(&["--engine", "local", "--", "--partition=x"])
        .expect_refused(&["supported by Slurm and HyperQueue"]);
    let without = flipwave(
        folder,
        &["submit", "vector_add.yaml", "--shards", "2", "--engine", "slurm", "--out", "c"],
        &[("PATH", "/nowhere"), ("FLIPWAVE_CLANG", "/usr/bin/clang-22")],
    );
    without.expect_refused(&["cannot run `scontrol`", "Slurm's commands"]);
}
