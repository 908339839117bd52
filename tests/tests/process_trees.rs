//! Applications with several processes that use a GPU each: sequential, concurrent, forked, MPI ranks, and
//! programs started with exec.

use flipwave_analysis::{Outcome, Row, read_rows};
use flipwave_tests::{
    Compiler, Finished, RunningProgram, Straggler, application, flipwave_within, mpi_application,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(300);

/// A folder with the programs `worker` and `forked`.
struct Tree {
    folder: TempDir,
}

impl Tree {
    fn new() -> Tree {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["worker", "forked"] {
            let path = application(&format!("trees/{name}"), Compiler::Hipcc, "gfx90a");
            std::fs::copy(path, folder.path().join(name)).expect("a copy");
        }
        Tree { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect(name)
    }

    #[track_caller]
    fn run(&self, command: &[&str], application: &[&str]) -> Finished {
        let arguments = [command, &["--"], application].concat();
        flipwave_within(PATIENCE, self.path(), &arguments).expect("an end")
    }

    /// Runs a script under a command of `flipwave`.
    #[track_caller]
    fn script(&self, command: &[&str], script: &str) -> Finished {
        self.run(command, &["sh", "-c", script])
    }

    /// Runs a tool on an application. Returns `process,dispatch,executions` of each row.
    #[track_caller]
    fn counted(&self, by: &str, application: &[&str]) -> Vec<String> {
        let tool = ["tool", "instruction-count", "--out", "table.csv", "--by", by];
        self.run(&tool, application).expect_success();
        rows_of(&self.text("table.csv"))
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("a folder");
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
            .filter(|name| !["worker", "forked", "campaign.yaml"].contains(&name.as_str()))
            .collect();
        names.sort();
        names
    }

    /// Writes a campaign on an application, with `keys` added to the key `app`.
    fn write_campaign(&self, command: &[&str], keys: &str) {
        let command = serde_json::to_string(command).expect("text");
        let text = format!(
            "name: tree\nseed: 5\nworkload:\n  app:\n    command: {command}\n    \
             input: [worker, forked]\n    golden_runs: 1\n{keys}faults:\n  \
             model: {{flip_mask: 0x40000000}}\n  opcodes: [v_fma_f32]\n  count: 2\n"
        );
        std::fs::write(self.file("campaign.yaml"), text).expect("written");
    }

    #[track_caller]
    fn campaign(&self, command: &[&str], keys: &str, options: &[&str]) -> Finished {
        self.write_campaign(command, keys);
        let run =
            ["run", "campaign.yaml", "--out", "results", "--force", "--without", "dead-values"];
        flipwave_within(PATIENCE, self.path(), &[&run, options].concat()).expect("an end")
    }

    fn results(&self) -> Vec<Row> {
        let file = std::fs::File::open(self.file("results/results.csv")).expect("results");
        read_rows(file).expect("rows")
    }
}

/// The first two columns and the last of a table, without its header.
fn rows_of(table: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let records = reader.records().map(|row| row.expect("a row"));
    let row = |row: csv::StringRecord| {
        let last = row.get(row.len() - 1).unwrap_or_default().to_owned();
        format!("{},{},{last}", &row[0], &row[1])
    };
    records.map(row).collect()
}

/// Rows of one process in a table of several, without the process column.
fn of_process(table: &str, process: &str) -> Vec<String> {
    let begin = format!("{process},");
    table.lines().filter_map(|line| line.strip_prefix(&begin)).map(str::to_owned).collect()
}

const SEQUENTIAL: &str = "./worker 1; ./worker 2";
/// The first worker is created first but starts second.
const CONCURRENT: &str = "sh -c 'sleep 0.4; exec ./worker 1' & ./worker 2 & wait";

/// Workers of a Python program, which starts all of them before it waits.
const PYTHON: &str = "exec python3 -c 'import subprocess as s; \
                      [w.wait() for w in [s.Popen([\"./worker\", n]) for n in \"12\"]]'";

#[test]
fn tool_table_has_the_rows_of_each_process() {
    let tree = Tree::new();
    let alone = |number: &str| {
        let tool = ["tool", "instruction-count", "--out", "alone.csv"];
        tree.run(&tool, &["./worker", number]).expect_success();
        tree.text("alone.csv")
    };
    let (one, two) = (alone("1"), alone("2"));
    // Negative control: the tables differ, and the table of a single process has no process column.
    assert_ne!(one, two);
    assert!(one.starts_with("dispatch,"), "{one}");
    std::fs::remove_file(tree.file("alone.csv")).expect("there");
    for by in ["hook", "embedded"] {
        for script in [SEQUENTIAL, CONCURRENT, PYTHON] {
            let tool = ["tool", "instruction-count", "--out", "table.csv", "--by", by];
            let finished = tree.script(&tool, script).expect_success();
            let table = tree.text("table.csv");
            assert!(table.starts_with("process,dispatch,"), "{table}");
            for (process, single) in [("0", &one), ("1", &two)] {
                let expected: Vec<&str> = single.lines().skip(1).collect();
                assert_eq!(of_process(&table, process), expected, "{by}: {script}");
            }
            assert!(finished.stderr.contains("process 1: pid "), "{finished:?}");
            assert_eq!(tree.files(), ["table.csv"]);
        }
    }
    // Without a file, the table is printed.
    let finished = tree.script(&["tool", "instruction-count"], SEQUENTIAL).expect_success();
    assert_eq!(of_process(&finished.stderr, "1"), two.lines().skip(1).collect::<Vec<_>>());
}

#[test]
fn output_of_several_processes_to_a_device_is_refused() {
    let tree = Tree::new();
    let tool = ["tool", "instruction-count", "--out", "/dev/stdout"];
    let finished = tree.script(&tool, "./worker 1; ./worker 2 || exit 7");
    assert_eq!(finished.code, Some(7), "{finished:?}");
    let words = "cannot write the output of several processes to /dev/stdout";
    assert!(finished.stderr.contains(words), "{finished:?}");
    tree.run(&tool, &["./worker", "1"]).expect_success();
}

#[test]
fn exec_counts_by_process() {
    let tree = Tree::new();
    let finished = tree.script(&["exec", "--count"], CONCURRENT).expect_success();
    let lines: Vec<&str> = finished.stderr.lines().collect();
    let counts = |process: &str| {
        let begin = format!("{process} ");
        let work = lines
            .iter()
            .find(|line| line.trim_start().starts_with(&begin) && line.contains("work"));
        let words = work.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        words.unwrap_or_default()
    };
    assert!(lines[0].starts_with("process "), "{lines:?}");
    let (one, two) = (counts("0"), counts("1"));
    assert_eq!((one.len(), two.len()), (4, 4), "{lines:?}");
    assert_ne!(one[3], two[3]);
    assert!(finished.stderr.contains("process 0: pid "), "{lines:?}");
    let alone = tree.run(&["exec", "--count"], &["./worker", "2"]).expect_success();
    assert!(alone.stderr.starts_with("kernel "), "{alone:?}");
    assert!(alone.stderr.contains(&two[3]) && !alone.stderr.contains("pid"), "{alone:?}");
}

#[test]
fn each_process_has_a_capture_for_campaigns() {
    let tree = Tree::new();
    let capture = ["capture", "--out", "run.capture"];
    let finished = tree.script(&capture, SEQUENTIAL).expect_success();
    assert!(finished.stderr.contains("recorded in run.0.capture"), "{finished:?}");
    assert_eq!(tree.files(), ["run.0.capture", "run.1.capture"]);
    let list = |file: &str| {
        let arguments = ["capture", "--list", file];
        flipwave_within(PATIENCE, tree.path(), &arguments).expect("an end").expect_success().stdout
    };
    for (file, command) in [("run.0.capture", "./worker 1"), ("run.1.capture", "./worker 2")] {
        assert!(list(file).starts_with(&format!("{command} on gfx90a\n")), "{}", list(file));
    }
    tree.script(&capture, SEQUENTIAL).expect_refused(&["run.0.capture exists; use --force"]);
    // Captures of a previous run with several processes are removed.
    let force = [&capture[..], &["--force"]].concat();
    tree.run(&force, &["./worker", "1"]).expect_success();
    assert_eq!(tree.files(), ["run.capture"]);
    tree.script(&force, CONCURRENT).expect_success();
    let text = "name: recorded\nseed: 5\nworkload:\n  capture: {file: run.1.capture}\nfaults:\n  \
                model: {flip_mask: 0x40000000}\n  opcodes: [v_fma_f32]\n  count: 2\n";
    std::fs::write(tree.file("campaign.yaml"), text).expect("written");
    let run = ["run", "campaign.yaml", "--out", "results", "--force"];
    flipwave_within(PATIENCE, tree.path(), &run).expect("an end").expect_success();
    assert!(
        tree.results().iter().all(|row| row.outcome == Outcome::Sdc && row.site.starts_with("dis"))
    );
}

/// The fault changes the output of the selected process only.
#[test]
fn campaign_strikes_the_selected_process() {
    let tree = Tree::new();
    let command = ["sh", "-c", SEQUENTIAL];
    let names = ["{index: 0}", "{rank: 0}", "./worker 1", "./worker 2"];
    tree.campaign(&command, "", &[]).expect_refused(&names);
    tree.campaign(&command, "    process: {index: 2}\n", &[])
        .expect_refused(&["no process that dispatches kernels matches `process: {index: 2}`"]);
    tree.campaign(&command, "    process: {command: worker}\n", &[]).expect_refused(&[
        "several processes that dispatch kernels match `process: {command: worker}`",
    ]);
    tree.campaign(&command, "    process: {index: 1, rank: 1}\n", &[]).expect_refused(&[
        "campaign.yaml",
        "expected exactly one of `rank`, `index` and `command`",
    ]);
    // If one process's lines are ignored, the outcome shows which process was struck.
    let compare = |other: &str| format!("compare: [{{stdout: {{ignore: [\"^{other}:\"]}}}}]\n");
    for (process, path) in [("{index: 1}", "embedded"), ("{command: worker 2}", "hook")] {
        for (ignored, outcome) in [("1", Outcome::Sdc), ("2", Outcome::Masked)] {
            let keys = format!("    process: {process}\n{}", compare(ignored));
            tree.campaign(&command, &keys, &["--by", path]).expect_success();
            let results = tree.results();
            assert_eq!(results.len(), 2);
            for row in &results {
                assert_eq!(row.outcome, outcome, "{process} {path}: {}", row.site);
                assert!(row.site.starts_with("process=1 dispatch=0 "), "{}", row.site);
            }
        }
    }
    // The campaign can be resumed, and rows can be replayed.
    let first = tree.results()[0].clone();
    let replay = |site: &str| {
        let arguments = ["replay", "campaign.yaml", "--site", site];
        flipwave_within(PATIENCE, tree.path(), &arguments).expect("an end")
    };
    let replayed = replay(&first.site).expect_success();
    assert!(replayed.stdout.starts_with(&format!("site:           {}\n", first.site)));
    let moved = first.site.replace("process=1", "process=0");
    replay(&moved)
        .expect_refused(&["process=0", "is in process 0, but the campaign strikes process 1"]);
    let table = tree.text("results/results.csv");
    let shorter: Vec<&str> = table.lines().take(2).collect();
    std::fs::write(tree.file("results/results.csv"), format!("{}\n", shorter.join("\n")))
        .expect("cut");
    let resume = [
        "run",
        "campaign.yaml",
        "--out",
        "results",
        "--resume",
        "--by",
        "hook",
        "--without",
        "dead-values",
    ];
    flipwave_within(PATIENCE, tree.path(), &resume).expect("an end").expect_success();
    assert_eq!(tree.text("results/results.csv"), table);
}

#[test]
fn forked_processes_are_numbered_by_creation() {
    let tree = Tree::new();
    for by in ["hook", "embedded"] {
        let rows = tree.counted(by, &["./forked"]);
        // Process `n` dispatches n + 1 kernels; the last process starts first.
        let mut counts = [0; 5];
        for row in &rows {
            let (process, rest) = row.split_once(',').expect("columns");
            if rest.ends_with(",0") {
                continue;
            }
            let dispatch: usize =
                rest.split(',').next().expect("a column").parse().expect("a number");
            let count = &mut counts[process.parse::<usize>().expect("a number")];
            *count = (*count).max(dispatch + 1);
        }
        assert_eq!(counts, [1, 2, 3, 4, 5], "{by}: {rows:?}");
    }
    let finished = tree.run(&["capture", "--out", "f.capture"], &["./forked"]).expect_success();
    for process in 0..5 {
        let words = format!("{} dispatches recorded in f.{process}.capture", process + 1);
        assert!(finished.stderr.contains(&words), "{finished:?}");
    }
}

/// A process forked from one with a GPU has a copy of the data to be written at the end, and must not
/// write it.
#[test]
fn forked_processes_do_not_write_data_of_their_parent() {
    let tree = Tree::new();
    let late = ["./forked", "late", "./worker"];
    let finished =
        tree.run(&["tool", "instruction-count", "--out", "t.csv"], &late).expect_success();
    let table = tree.text("t.csv");
    let processes: Vec<&str> =
        finished.stderr.lines().filter(|line| line.contains("pid")).collect();
    // The parent, the program that its second child executes, and the program that it executes itself.
    assert_eq!(processes.len(), 3, "{finished:?}");
    assert!(processes[0].ends_with("./forked late ./worker"), "{processes:?}");
    assert!(processes[1].ends_with("./worker 9") && processes[2].ends_with("./worker 5"));
    let dispatches = |process: &str| {
        let rows = of_process(&table, process);
        let numbers = rows.iter().map(|row| row.split(',').next().unwrap_or_default().to_owned());
        numbers.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(["0", "1", "2"].map(dispatches), [3, 1, 1], "{table}");
    tree.run(&["capture", "--out", "l.capture"], &late).expect_success();
    assert_eq!(tree.files(), ["l.0.capture", "l.1.capture", "l.2.capture", "t.csv"]);
}

#[test]
fn process_without_dispatches_has_no_index() {
    let tree = Tree::new();
    let script = "./worker open; ./worker 2";
    tree.script(&["tool", "instruction-count", "--out", "both.csv"], script).expect_success();
    tree.run(&["tool", "instruction-count", "--out", "one.csv"], &["./worker", "2"])
        .expect_success();
    assert_eq!(tree.text("both.csv"), tree.text("one.csv"));
    tree.script(&["capture", "--out", "run.capture"], script).expect_success();
    assert_eq!(tree.files(), ["both.csv", "one.csv", "run.capture"]);
    // The process need not be named.
    tree.campaign(&["sh", "-c", script], "", &[]).expect_success();
    assert!(tree.results().iter().all(|row| row.site.starts_with("dispatch=0 ")));
}

#[test]
fn crashed_child_keeps_its_partial_capture() {
    let tree = Tree::new();
    let script = "./worker crash; ./worker 2";
    let finished = tree.script(&["capture", "--out", "run.capture"], script).expect_success();
    for words in [
        "1 dispatches recorded in run.0.capture (the application was terminated)",
        "1 dispatches recorded in run.1.capture\n",
    ] {
        assert!(finished.stderr.contains(words), "{finished:?}");
    }
    let rows = tree.counted("embedded", &["sh", "-c", script]);
    assert!(rows.iter().any(|row| row.starts_with("0,0,")), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("1,0,")), "{rows:?}");
    let rule = tree.script(&["exec", "--strict"], script);
    assert_eq!(rule.code, Some(0), "{rule:?}");
}

/// Runs `mpirun` with four ranks.
fn ranks(program: &str) -> Vec<&str> {
    let mut command = vec!["env"];
    command.extend(["OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]);
    command.extend(["mpirun", "--oversubscribe", "-n", "4", program]);
    command
}

#[test]
fn mpi_ranks_are_process_numbers() {
    let Some(program) = mpi_application("trees/ranks", "gfx90a") else { return };
    let tree = Tree::new();
    std::fs::copy(program, tree.file("ranks")).expect("a copy");
    let command = ranks("./ranks");
    let finished = tree.run(&["exec", "--count"], &command).expect_success();
    assert_eq!(finished.stdout.lines().count(), 1, "{finished:?}");
    for rank in 0..4 {
        let words = format!("process {rank}: rank {rank}, pid ");
        assert!(finished.stderr.contains(&words), "{finished:?}");
    }
    let rows = tree.counted("hook", &command);
    let first: Vec<u64> = (0..4)
        .map(|rank| {
            let begin = format!("{rank},0,");
            let counts = rows.iter().filter_map(|row| row.strip_prefix(&begin));
            counts.map(|count| count.parse::<u64>().expect("a number")).sum()
        })
        .collect();
    // Each rank executes one iteration more than the previous rank.
    assert!(first[0] > 0 && first.windows(2).all(|pair| pair[0] < pair[1]), "{first:?}");
    assert_eq!(tree.counted("embedded", &command), tree.counted("embedded", &command));
    std::fs::remove_file(tree.file("table.csv")).expect("there");
    tree.run(&["capture", "--out", "m.capture"], &command).expect_success();
    let captures = ["m.0.capture", "m.1.capture", "m.2.capture", "m.3.capture", "ranks"];
    assert_eq!(tree.files(), captures);
    let path = tree.file("ranks");
    let command = ranks(path.to_str().expect("text"));
    tree.campaign(&command, "    process: {rank: 2}\n", &[]).expect_success();
    for row in tree.results() {
        assert!(row.site.starts_with("process=2 dispatch=0 "), "{}", row.site);
        assert_eq!(row.outcome, Outcome::Sdc, "{}", row.site);
    }
}

/// A script that ignores signals, with a process that outlives it.
fn stubborn(straggler: &Straggler) -> String {
    format!("trap '' TERM INT HUP; {}; sleep 600 & sleep 600", straggler.command())
}

#[test]
fn process_tree_that_ignores_signals_is_killed() {
    let tree = Tree::new();
    let straggler = Straggler::new(tree.path());
    let script = stubborn(&straggler);
    let application = ["--", "sh", "-c", &script];
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        for (command, end) in [
            (&["capture", "--out", "none.capture"][..], Ok(128 + libc::SIGKILL)),
            (&["tool", "instruction-count", "--out", "none.csv"], Err(libc::SIGKILL)),
        ] {
            let arguments = [command, &application].concat();
            let mut run = RunningProgram::start(tree.path(), &arguments, "stderr");
            run.wait_until(|| straggler.has_started());
            let start = Instant::now();
            run.send(signal);
            assert_eq!(run.end(), end, "{command:?}: {}", run.stderr());
            // Takes two seconds on an idle machine.
            assert!(start.elapsed() < Duration::from_secs(20), "{command:?}");
            straggler.expect_gone();
        }
    }
    // Under `exec`, the application handles signals itself.
    let mut run =
        RunningProgram::start(tree.path(), &[&["exec"][..], &application].concat(), "stderr");
    run.wait_until(|| straggler.has_started());
    run.send(libc::SIGTERM);
    let start = Instant::now();
    run.wait_until(|| start.elapsed() > Duration::from_secs(3));
}

/// The campaign is ended during a golden run, the recorded run, a faulty run, and a check of the results.
#[test]
fn campaign_ends_process_trees_that_ignore_signals() {
    let tree = Tree::new();
    let straggler = Straggler::new(tree.path());
    let script = stubborn(&straggler);
    let count = tree.file("count");
    // Runs are counted: the first is golden, the second is recorded, the third is faulty.
    let counting = |run: u32| {
        let count = count.display();
        format!(
            "echo x >> {count}; ./worker 1; [ $(wc -l < {count}) -lt {run} ] || {{ {script}; }}"
        )
    };
    let check = format!("    timeout: 500 s\ncompare: [{{check: [sh, -c, {script:?}]}}]\n");
    for (run, keys) in [
        (1, "    timeout: 500 s\n"),
        (2, "    timeout: 500 s\n"),
        (3, "    timeout: 500 s\n"),
        (9, &check),
    ] {
        let _ = std::fs::remove_file(&count);
        tree.write_campaign(&["sh", "-c", &counting(run)], keys);
        let command = ["run", "campaign.yaml", "--out", "results", "--force", "--workers", "1"];
        let mut run = RunningProgram::start(tree.path(), &command, "stderr");
        run.wait_until(|| straggler.has_started());
        let start = Instant::now();
        run.send(libc::SIGTERM);
        assert_eq!(run.end(), Ok(2), "{}", run.stderr());
        assert!(start.elapsed() < Duration::from_secs(20), "{}", run.stderr());
        assert!(run.stderr().contains("ended by SIGTERM"), "{}", run.stderr());
        straggler.expect_gone();
    }
}
