//! Campaigns on unmodified applications, and on their captures.

use flipwave_analysis::{Outcome, Row, read_rows};
use flipwave_tests::{
    Compiler, Finished, RunningProgram, Straggler, application, create_full_device, flipwave,
    flipwave_within, program,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(300);

/// Writes a campaign file for a program built by hipcc. `app` is added to the key `app` after the
/// command, and `faults` is the content of the key `faults`.
fn campaign(folder: &Path, name: &str, argument: &str, app: &str, compare: &str, faults: &str) {
    let program = application(name, Compiler::Hipcc, "gfx90a");
    let text = format!(
        "name: application\nseed: 3\nworkload:\n  app:\n    command: [\"{}\", {argument}]\n    \
         golden_runs: 1\n{app}compare: {compare}\nfaults:\n{faults}",
        program.display()
    );
    std::fs::write(folder.join("campaign.yaml"), text).expect("written");
}

#[track_caller]
fn run(folder: &Path, options: &[&str]) -> Finished {
    let mut arguments = vec!["run", "campaign.yaml", "--out", "results", "--force"];
    arguments.extend(options);
    flipwave_within(PATIENCE, folder, &arguments).expect("an end")
}

#[track_caller]
fn rows(folder: &Path) -> Vec<Row> {
    let file = std::fs::File::open(folder.join("results/results.csv")).expect("results");
    read_rows(file).expect("rows")
}

const STDOUT: &str = "[{stdout: exact}]";
/// Faults that make the result wrong.
const WRONG: &str = "  model: {flip_mask: 0x40000000}\n  opcodes: [v_fma_f32]\n  count: 2\n";

/// Runs a campaign on a program that reacts to wrong results as `reaction` names. Returns outcome and
/// cause of each fault.
#[track_caller]
fn outcomes(reaction: &str, app: &str, compare: &str, faults: &str) -> Vec<(Outcome, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    campaign(folder.path(), "campaigns/reactions", reaction, app, compare, faults);
    // Run every fault, even if its outcome is known in advance.
    run(folder.path(), &["--without", "dead-values"]).expect_success();
    let outcome = |row: Row| (row.outcome, row.cause.unwrap_or_default());
    rows(folder.path()).into_iter().map(outcome).collect()
}

#[track_caller]
fn are_all(found: &[(Outcome, String)], outcome: Outcome, cause: &str) {
    assert!(!found.is_empty());
    assert!(found.iter().all(|result| *result == (outcome, cause.to_owned())), "{found:?}");
}

/// The runtime's message names neither the kernel nor the address.
#[test]
fn device_fault_in_the_golden_run_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    campaign(folder.path(), "failing/wild_write", "", "", STDOUT, WRONG);
    let finished = run(folder.path(), &[]);
    let named = "the device stopped a golden run: in dispatch 0, kernel \
                 write(int*): memory violation: write to 0x123450000000, lane 0, at pc 0x";
    finished.expect_refused(&[named]);
}

/// A fault model in C runs in the agent, or in hooks that the agent loads.
#[test]
fn fault_models_in_c_strike_applications_alike_on_both_paths() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = "double flipwave_fault_number(double value, flipwave_fault fault)\n\
                 {\n    return value + (double)(fault.random % 1000);\n}\n";
    std::fs::write(folder.path().join("model.c"), model).expect("written");
    let faults = "  model: {c: model.c}\n  opcodes: [v_fma_f32]\n  count: 4\n";
    campaign(folder.path(), "campaigns/reactions", "print", "", STDOUT, faults);
    let rows_by = |by: &str| {
        run(folder.path(), &["--by", by]).expect_success();
        let timeless = |row: Row| Row { instructions: None, timing_changed: None, ..row };
        rows(folder.path()).into_iter().map(timeless).collect::<Vec<_>>()
    };
    let embedded = rows_by("embedded");
    assert_eq!(rows_by("hook"), embedded);
    for row in &embedded {
        let random = row.site.split("random=0x").nth(1).expect("a random number");
        let random = u64::from_str_radix(random, 16).expect("digits");
        let number = |bits: u64| f64::from(f32::from_bits(bits as u32));
        let expected = (number(row.before) + (random % 1000) as f64) as f32;
        assert_eq!(number(row.after), f64::from(expected), "{}", row.site);
    }
}

#[test]
fn wrong_output_is_sdc() {
    are_all(&outcomes("print", "", STDOUT, WRONG), Outcome::Sdc, "");
    let file = "[{file: result.txt}]";
    are_all(&outcomes("file", "", file, WRONG), Outcome::Sdc, "");
    let filtered = "[{stdout: {ignore: [\".*\"]}}]";
    let allowed = format!("{WRONG}allow: [unwritten_output]\n");
    are_all(&outcomes("print", "", filtered, &allowed), Outcome::Masked, "logical");
}

#[test]
fn application_that_exits_or_aborts_is_due_with_cause() {
    are_all(&outcomes("exit", "", STDOUT, WRONG), Outcome::Due, "exit_code");
    are_all(&outcomes("abort", "", STDOUT, WRONG), Outcome::Due, "signal");
    are_all(&outcomes("misuse", "", STDOUT, WRONG), Outcome::Due, "runtime_error");
}

#[test]
fn application_that_hangs_or_exceeds_limits_is_due() {
    let hang = outcomes("hang", "    timeout: 4 s\n", STDOUT, WRONG);
    are_all(&hang, Outcome::Due, "timeout");
    let flood = outcomes("flood", "    output: 1 MiB\n", STDOUT, WRONG);
    are_all(&flood, Outcome::Due, "output_too_large");
    let hoard = outcomes("hoard", "    memory: 1 GiB\n", STDOUT, WRONG);
    are_all(&hoard, Outcome::Due, "out_of_memory");
}

#[test]
fn device_fault_takes_precedence_over_application_exit() {
    let wild = "  model: {flip_mask: 0x00008000}\n  opcodes: [v_addc_co_u32]\n  \
                registers: [v1]\n  count: 2\n";
    are_all(&outcomes("print", "", STDOUT, wild), Outcome::Due, "memory_violation");
    let endless = "  model: {flip_mask: 0x40000000}\n  opcodes: [s_add_i32]\n  count: 2\n";
    are_all(&outcomes("print", "", STDOUT, endless), Outcome::Due, "watchdog");
}

#[test]
fn harmless_faults_are_masked_with_cause() {
    let dead =
        "  model: flip_one_bit\n  opcodes: [v_addc_co_u32]\n  registers: [vcc]\n  count: 3\n";
    are_all(&outcomes("exit", "", STDOUT, dead), Outcome::Masked, "dead");
}

/// Runs every fault of a campaign on a program that prints its result. Returns the rows.
#[track_caller]
fn printed(faults: &str, app: &str, options: &[&str]) -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    campaign(folder.path(), "campaigns/reactions", "print", app, STDOUT, faults);
    run(folder.path(), &[&["--without", "dead-values"], options].concat()).expect_success();
    rows(folder.path())
}

/// Faults injected by the embedded GPU and by hooks have the same sites, values and outcomes, for all
/// fault models that hooks support. The tools library inserts the hooks into the application's code, as
/// on hardware.
#[test]
fn faults_in_an_application_are_equal_with_hooks() {
    let wild = "  model: {flip_mask: 0x00008000}\n  opcodes: [v_addc_co_u32]\n  \
                registers: [v1]\n  count: 2\n";
    let source = "  model: flip_one_bit\n  target: source_operand\n  count: 3\n";
    let permanent = "  model: flip_one_bit\n  duration: {permanent: {units: 2}}\n  count: 3\n";
    for (faults, count) in [(ANY, 12), (wild, 2), (source, 3), (permanent, 3)] {
        let inside = printed(faults, "", &[]);
        assert_eq!(inside.len(), count, "{faults}");
        assert_eq!(printed(faults, "", &["--by", "hook"]), inside, "{faults}");
        if count == 12 {
            assert_ne!(printed(faults, "", &["--by", "hook", "--seed", "4"]), inside, "{faults}");
        }
    }
}

/// Branches cannot reach code behind the end of a large library. A kernel is therefore rewritten
/// separately and loaded next to the original code.
#[test]
fn hooks_rewrite_single_kernels_of_a_large_library() {
    let results = |options: &[&str]| {
        let folder = tempfile::tempdir().expect("a folder");
        campaign(folder.path(), "campaigns/library", "", "", STDOUT, ANY);
        run(folder.path(), options).expect_success();
        rows(folder.path())
    };
    let inside = results(&[]);
    let kernels: BTreeSet<&str> = inside.iter().filter_map(|row| row.kernel.as_deref()).collect();
    assert!(kernels.len() > 5, "{kernels:?}");
    assert!(inside.iter().any(|row| row.outcome == Outcome::Sdc));
    assert_eq!(results(&["--by", "hook"]), inside);
}

/// With hooks, as on hardware, instructions are not counted, so the watchdog uses the time.
#[test]
fn endless_kernel_with_hooks_is_detected_by_time() {
    let endless = "  model: {flip_mask: 0x40000000}\n  opcodes: [s_add_i32]\n  count: 1\n";
    let inside = printed(endless, "", &[]);
    let hooked = printed(endless, "    timeout: 8 s\n", &["--by", "hook"]);
    assert_eq!(hooked, inside);
    assert_eq!(hooked[0].cause.as_deref(), Some("watchdog"));
}

#[test]
fn faults_that_hooks_do_not_support_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let faults = "  model: flip_one_bit\n  target: program_counter\n  count: 1\n";
    campaign(folder.path(), "campaigns/reactions", "print", "", STDOUT, faults);
    let refused = run(folder.path(), &["--by", "hook", "--without", "dead-values"]);
    refused.expect_refused(&["hooks cannot strike program_counter"]);
}

const ANY: &str = "  model: flip_one_bit\n  count: 12\n";

/// The table does not depend on the number of workers, nor on an interruption by SIGKILL.
#[test]
fn killed_campaign_on_an_application_resumes_to_the_same_table() {
    let folder = tempfile::tempdir().expect("a folder");
    campaign(folder.path(), "campaigns/reactions", "print", "", STDOUT, ANY);
    let results = folder.path().join("results/results.csv");
    run(folder.path(), &["--workers", "3"]).expect_success();
    let whole = std::fs::read(&results).expect("results");

    std::fs::remove_dir_all(folder.path().join("results")).expect("removed");
    let mut child = Command::new(program())
        .args(["run", "campaign.yaml", "--out", "results", "--workers", "1"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("flipwave starts");
    let lines = || std::fs::read_to_string(&results).map_or(0, |text| text.lines().count());
    while lines() < 4 {
        assert!(
            child.try_wait().expect("its state").is_none(),
            "the campaign ended before the kill"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("its end");
    assert!(lines() < 13, "the campaign was complete before the kill");
    run(folder.path(), &["--resume", "--workers", "2"]).expect_success();
    assert_eq!(std::fs::read(&results).expect("results"), whole);

    // Rows of another plan are refused.
    let text = String::from_utf8(whole).expect("text");
    std::fs::write(&results, text.replacen("lane=", "lane=6", 1)).expect("written");
    let refused = run(folder.path(), &["--resume"]);
    refused.expect_refused(&["is not the planned injection"]);
}

/// Runs a shell script in `folder`, with the program in `$flipwave`. `by` is a command that runs the
/// shell.
fn script(by: &[&str], folder: &Path, script: &str) -> Finished {
    let output = Command::new(by[0])
        .args(&by[1..])
        .args(["sh", "-c", script])
        .current_dir(folder)
        .env("flipwave", program())
        .output()
        .expect("a shell");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Finished { code: output.status.code(), signal: None, stdout, stderr }
}

/// Runs a shell script while a temporary file system of size `room` is mounted at the folder `disk`.
/// Returns `None` if mounting is not possible.
fn on_a_small_disk(folder: &Path, room: &str, commands: &str) -> Option<Finished> {
    let mount = format!("mkdir -p disk && mount -t tmpfs -o size={room} small disk");
    // As root, or as the root of a user namespace.
    let ways = [&["unshare", "--mount"][..], &["unshare", "--mount", "--map-root-user"]];
    let way = ways.into_iter().find(|way| script(way, folder, &mount).code == Some(0));
    if way.is_none() {
        println!("skipped: no file system can be mounted here");
    }
    Some(script(way?, folder, &format!("{mount} || exit 9\n{commands}")))
}

/// Command lines of all processes that mention a folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().expect("text");
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(folder)).collect()
}

/// If the disk becomes full while a campaign runs, the completed rows stay and no process is left. With
/// free space again, the resumed campaign writes the same table as an uninterrupted one.
#[test]
fn campaign_on_a_full_disk_resumes_with_free_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let any = "  model: flip_one_bit\n  count: 32\n";
    campaign(folder, "campaigns/reactions", "print", "", STDOUT, any);
    // A copy, so that no other test runs processes of this path.
    let program = application("campaigns/reactions", Compiler::Hipcc, "gfx90a");
    std::fs::copy(&program, folder.join("application")).expect("a copy");
    let file = folder.join("campaign.yaml");
    let text = std::fs::read_to_string(&file).expect("the campaign");
    let application = folder.join("application").display().to_string();
    std::fs::write(&file, text.replace(&program.display().to_string(), &application))
        .expect("written");
    run(folder, &["--workers", "2"]).expect_success();
    let whole = std::fs::read_to_string(folder.join("results/results.csv")).expect("results");

    let campaign = "\"$flipwave\" run campaign.yaml --out disk/results --workers 2";
    let commands = format!(
        "{campaign}
         code=$?
         cp disk/results/results.csv part.csv
         mount -o remount,size=1m disk && {campaign} --resume >resumed.txt 2>&1 || exit 9
         cp disk/results/results.csv resumed.csv
         exit $code"
    );
    let Some(finished) = on_a_small_disk(folder, "12k", &commands) else { return };
    finished.expect_refused(&["disk/results/results.csv: No space left on device"]);
    assert_eq!(processes_of(folder), Vec::<String>::new());
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let part = read("part.csv");
    assert!(part.ends_with('\n') && whole.starts_with(&part), "{part}");
    let rows = part.lines().count();
    assert!(2 < rows && rows < 33, "{rows} rows had room");
    assert_eq!(read("resumed.csv"), whole);
}

/// If the disk becomes full, the capture contains the steps saved so far and is marked incomplete.
#[test]
fn capture_on_a_full_disk_is_marked_incomplete() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = application("copies", Compiler::Hipcc, "gfx90a");
    std::fs::copy(&program, folder.join("application")).expect("a copy");
    let application = folder.join("application");
    let capture =
        |out: &str| format!("\"$flipwave\" capture --out {out} -- {}", application.display());
    script(&["env"], folder, &capture("whole.capture")).expect_success();
    let list = |file| {
        flipwave(folder, &["capture", "--list", file, "--maps"], &[]).expect_success().stdout
    };
    let commands = format!(
        "{}
         code=$?
         cp disk/run.capture part.capture
         exit $code",
        capture("disk/run.capture")
    );
    let Some(cut) = on_a_small_disk(folder, "512k", &commands) else { return };
    cut.expect_refused(&[
        "disk/run.capture: database or disk is full",
        "(the application was terminated)",
    ]);
    assert_eq!(processes_of(folder), Vec::<String>::new());
    let (some, all) = (list("part.capture"), list("whole.capture"));
    let (first, steps) = some.split_once('\n').expect("lines");
    assert!(first.ends_with("(the application was terminated)"), "{first}");
    let all = all.split_once('\n').expect("lines").1;
    assert!(steps.len() < all.len(), "{some}");
    let kinds = |list: &str| -> Vec<String> {
        let lines = list.lines().filter(|line| !line.starts_with("code object"));
        lines.map(|line| line.split(' ').next().expect("a word").to_owned()).collect()
    };
    let (some, all) = (kinds(steps), kinds(all));
    assert!(some.len() > 1 && all.starts_with(&some), "{some:?} of {all:?}");
}

/// Runs `flipwave` with a limit of 4 MiB per file: later writes fail as on a full disk, without
/// privileges. A smaller limit is not enough for the runtime's own compilations.
fn with_small_files(folder: &Path, arguments: &str) -> Finished {
    let limited = format!("trap '' XFSZ; ulimit -f 8192; exec \"$flipwave\" {arguments}");
    script(&["env"], folder, &limited)
}

/// If the disk becomes full, a tool's table ends with a complete row, and a message says so.
#[test]
fn table_on_a_full_disk_is_reported_incomplete() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = application("jacobi", Compiler::Hipcc, "gfx90a");
    let tool = |out: &str| {
        let tool = "tool memory-trace --by embedded --out";
        format!("{tool} {out} -- {}", program.display())
    };
    let free = |out: &str| script(&["env"], folder, &format!("\"$flipwave\" {}", tool(out)));
    let whole = free("whole.csv").expect_success();
    let cut = with_small_files(folder, &tool("cut.csv"));
    // The exit status and output are those of the application.
    assert_eq!((cut.code, &cut.stdout), (whole.code, &whole.stdout));
    let said = "the table is incomplete, it ends before dispatch ";
    assert!(cut.stderr.contains(said) && !whole.stderr.contains(said), "{cut:?}");
    assert!(cut.stderr.contains("cut.csv: File too large"), "{cut:?}");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    let (whole, cut) = (read("whole.csv"), read("cut.csv"));
    assert!(cut.ends_with('\n'), "{} bytes", cut.len());
    // Addresses of host memory differ between runs.
    let without_address = |line: &str| -> Vec<String> {
        let columns = line.rsplitn(3, ',').enumerate().filter(|(index, _)| *index != 1);
        columns.map(|(_, text)| text.to_owned()).collect()
    };
    let lines = |table: &str| table.lines().map(without_address).collect::<Vec<_>>();
    let (whole, cut) = (lines(&whole), lines(&cut));
    assert!(1000 < cut.len() && cut.len() < whole.len(), "{} rows", cut.len());
    assert!(whole.starts_with(&cut));

    if create_full_device(&folder.join("full")) {
        let nothing = free("full");
        assert!(nothing.stderr.contains("full: No space left on device"), "{nothing:?}");
    }
}

/// Captures a program and writes a campaign on the capture.
#[track_caller]
fn capture(folder: &Path, name: &str, faults: &str) {
    let program = application(name, Compiler::Hipcc, "gfx90a").into_os_string();
    let arguments = ["capture".into(), "--out".into(), "run.capture".into(), "--".into(), program];
    flipwave(folder, &arguments, &[]).expect_success();
    let text = format!(
        "name: capture\nseed: 3\nworkload:\n  capture: {{file: run.capture}}\nfaults:\n{faults}"
    );
    std::fs::write(folder.join("campaign.yaml"), text).expect("written");
}

/// `flipwave profile` runs the capture and compares it with the recording: the instructions of each
/// dispatch, and every byte that the host read.
#[test]
fn captures_reproduce_the_recorded_run() {
    let programs = [
        "copies",
        "default_stream",
        "functions",
        "jacobi",
        "managed_memory",
        "matrix_cores",
        "reduction",
        "scan",
        "sort",
        "streams",
        "symbols",
        "vector_types",
    ];
    for name in programs {
        let folder = tempfile::tempdir().expect("a folder");
        // Some programs have no kernels except the runtime's, which copy and fill.
        capture(folder.path(), name, &format!("{ANY}  runtime_kernels: true\n"));
        let profile = flipwave(folder.path(), &["profile", "campaign.yaml"], &[]);
        assert_eq!(profile.code, Some(0), "{name}: {profile:#?}");
        let list = |more: &[&str]| {
            let arguments = [&["capture", "--list", "run.capture"], more].concat();
            flipwave(folder.path(), &arguments, &[]).expect_success().stdout
        };
        let all = list(&["--maps"]);
        let words = ["\ndispatch  0 ", "\noutput ", "\nmap "];
        assert!(words.iter().all(|word| all.contains(word)), "{name}: {all}");
        // Without the option, dispatches come first, and memory is only counted.
        let short = list(&[]);
        assert!(
            short.lines().nth(1).is_some_and(|line| line.starts_with("dispatch  0 ")),
            "{short}"
        );
        assert!(!words[1..].iter().any(|word| short.contains(word)), "{name}: {short}");
        let maps = all.lines().filter(|line| line.starts_with("map ")).count();
        assert!(short.contains(&format!("\nmemory: {maps} maps, ")), "{name}: {short}");
    }
}

/// Tools have the same rows for an application and for its capture, although the host changes memory between
/// the dispatches.
#[test]
fn tools_on_a_capture_agree_with_the_application() {
    for name in ["jacobi", "scan", "sort", "streams"] {
        let folder = tempfile::tempdir().expect("a folder");
        capture(folder.path(), name, ANY);
        let program = application(name, Compiler::Hipcc, "gfx90a");
        let program = program.to_str().expect("UTF-8");
        let table = |arguments: &[&str]| {
            let arguments = [&["tool", "--out", "table.csv"], arguments].concat();
            flipwave(folder.path(), &arguments, &[]).expect_success();
            std::fs::read_to_string(folder.path().join("table.csv")).expect("a table")
        };
        for tool in ["opcode-histogram", "address-divergence"] {
            let direct = table(&[tool, "--", program]);
            assert!(direct.lines().count() > 1, "{name} {tool}");
            assert_eq!(table(&[tool, "campaign.yaml"]), direct, "{name} {tool}");
        }
    }
}

/// Equal faults in an application and in its capture have equal sites, values and device faults,
/// and wrong results are wrong in both. The programs check their results; captures do not contain
/// these checks.
#[test]
fn campaign_on_a_capture_agrees_with_the_application() {
    for name in ["saxpy", "scan"] {
        let folder = tempfile::tempdir().expect("a folder");
        campaign(folder.path(), name, "", "", STDOUT, ANY);
        run(folder.path(), &[]).expect_success();
        let direct = rows(folder.path());
        capture(folder.path(), name, ANY);
        run(folder.path(), &[]).expect_success();
        let captured = rows(folder.path());
        assert_eq!(direct.len(), captured.len());
        for (direct, captured) in direct.iter().zip(&captured) {
            assert_eq!(
                (&direct.site, direct.before, direct.after),
                (&captured.site, captured.before, captured.after)
            );
            let outcome = |row: &Row| (row.outcome, row.cause.clone().unwrap_or_default());
            match outcome(direct) {
                (Outcome::Due, cause) if cause == "exit_code" => {
                    assert_eq!(captured.outcome, Outcome::Sdc, "{name}: {}", direct.site);
                }
                own_outcome => {
                    assert_eq!(own_outcome, outcome(captured), "{name}: {}", direct.site)
                }
            }
        }
    }
}

/// Rows of a capture are labelled with the ranges that the application marked.
#[test]
fn dispatches_are_labelled_with_their_range() {
    let folder = tempfile::tempdir().expect("a folder");
    capture(folder.path(), "ranges", "  model: flip_one_bit\n  count: 60\n");
    let list = flipwave(folder.path(), &["capture", "--list", "run.capture"], &[]);
    let list = list.expect_success().stdout;
    let dispatches = list.lines().filter(|line| line.starts_with("dispatch "));
    let ranges: Vec<Option<&str>> =
        dispatches.map(|line| line.split_once(" range=").map(|(_, range)| range)).collect();
    let [first, second] = ["model/layer 0", "model/layer 1"].map(Some);
    let expected = [Some("setup"), None, first, first, second, second, Some("model"), None];
    assert_eq!(ranges, expected, "{list}");

    run(folder.path(), &[]).expect_success();
    let rows = rows(folder.path());
    for row in &rows {
        let dispatch = row.dispatch.expect("a dispatch") as usize;
        assert_eq!(row.label.as_deref(), expected[dispatch], "{}", row.site);
    }
    let labelled = rows.iter().filter(|row| row.label.is_some()).count();
    assert!(0 < labelled && labelled < rows.len(), "{labelled} of {}", rows.len());
    let rates = ["rates", "results", "--by", "label"];
    let rates = flipwave(folder.path(), &rates, &[]).expect_success().stdout;
    assert!(rates.contains("model/layer 1"), "{rates}");
}

#[test]
fn capture_that_cannot_be_reproduced_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    capture(folder.path(), "saxpy", ANY);
    let database = rusqlite::Connection::open(folder.path().join("run.capture")).expect("opened");
    database.execute("PRAGMA foreign_keys = OFF", ()).expect("set");
    for (change, reason) in [
        ("instructions = instructions + 1", "the run cannot be repeated: dispatch 0"),
        ("code_object = 77", "run.capture: missing code object 77 of a dispatch"),
    ] {
        database.execute(&format!("UPDATE dispatch SET {change}"), ()).expect("changed");
        let refused = flipwave(folder.path(), &["profile", "campaign.yaml"], &[]);
        refused.expect_refused(&[reason]);
    }
}

/// The device executes the packet in memory, but fault sites are drawn for the grid in the record.
#[test]
fn capture_with_inconsistent_grid_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    capture(folder.path(), "saxpy", ANY);
    let profile = || flipwave(folder.path(), &["profile", "campaign.yaml"], &[]);
    profile().expect_success();
    let database = rusqlite::Connection::open(folder.path().join("run.capture")).expect("opened");
    let query = "SELECT packet FROM dispatch WHERE number = 0";
    let packet: Vec<u8> = database.query_row(query, (), |row| row.get(0)).expect("a packet");
    // `workgroup_size_x` and `grid_size_x` of a dispatch packet (HSA Platform System Architecture,
    // "Kernel dispatch packet").
    for offset in [4, 12] {
        let mut changed = packet.clone();
        changed[offset] ^= 0x40;
        let update = "UPDATE dispatch SET packet = ?1 WHERE number = 0";
        database.execute(update, [changed]).expect("changed");
        let refused = profile();
        let repeated = "run.capture: the run cannot be repeated";
        refused.expect_refused(&[repeated, "dispatch 0", "recorded with grid"]);
    }
}

/// A capture of a killed application contains what was recorded before.
#[test]
fn campaign_on_an_incomplete_capture_warns() {
    let folder = tempfile::tempdir().expect("a folder");
    capture(folder.path(), "saxpy", "  model: flip_one_bit\n  count: 2\n");
    let warning = "warning: run.capture is incomplete";
    let whole = run(folder.path(), &[]).expect_success();
    assert!(!whole.stderr.contains("is incomplete"), "{whole:?}");
    let database = rusqlite::Connection::open(folder.path().join("run.capture")).expect("opened");
    // The state in which a killed process leaves the file.
    let update = "UPDATE about SET value = 0 WHERE name = 'is_complete'";
    assert_eq!(database.execute(update, ()).expect("changed"), 1);
    let cut = run(folder.path(), &[]).expect_success();
    assert!(cut.stderr.contains(warning), "{cut:?}");
}

/// A campaign that receives a signal ends its application and all processes of it, and removes its
/// temporary folders.
#[test]
fn ended_campaign_leaves_no_process_and_no_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let temporary = folder.path().join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    let straggler = Straggler::new(folder.path());
    let text = format!(
        "name: long\nworkload:\n  app:\n    command: [sh, \"-c\", \"{}; exec sleep 600\"]\nfaults:\n{ANY}",
        straggler.command()
    );
    std::fs::write(folder.path().join("campaign.yaml"), text).expect("written");
    for (command, signal) in
        [("run", libc::SIGTERM), ("run", libc::SIGHUP), ("profile", libc::SIGINT)]
    {
        let mut process = Command::new(program());
        process.args([command, "campaign.yaml"]).env("TMPDIR", &temporary);
        let mut run = RunningProgram::from_command(process, folder.path(), "stderr");
        let folders = || std::fs::read_dir(&temporary).expect("a folder").count();
        // One folder for all runs, and one for this run.
        run.wait_until(|| folders() == 2 && straggler.has_started());
        run.send(signal);
        assert_eq!(run.end(), Ok(2), "{}", run.stderr());
        straggler.expect_gone();
        assert_eq!(folders(), 0, "{command}: temporary folders are left");
    }
}

/// A slow golden run reports its progress.
#[test]
fn long_kernel_in_the_golden_run_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    campaign(folder.path(), "failing/endless", "\"\"", "", STDOUT, ANY);
    let mut run = RunningProgram::start(folder.path(), &["run", "campaign.yaml"], "stderr");
    let stderr = folder.path().join("stderr");
    let said = || std::fs::read_to_string(&stderr).expect("a file");
    run.wait_until(|| said().contains("running kernel `wait(int volatile*)`: "));
    assert!(said().contains(" wave instructions so far, "), "{}", said());
    run.send(libc::SIGINT);
    assert_eq!(run.end(), Ok(2), "{}", said());
    assert!(said().contains("ended by SIGINT: interrupted"), "{}", said());
}

#[test]
fn invalid_workloads_are_reported_with_their_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let cases = [
        ("capture: {file: missing.capture}", "missing.capture: "),
        ("capture: {file: campaign.yaml}", "campaign.yaml: "),
        ("capture: {file: a, dispatches: [3, 1]}", "ends before it begins"),
        ("app: {command: [./missing]}", "campaign.yaml:3:18: workload.app.command"),
        ("app: {command: sh}\n  capture: {file: a}", "expected exactly one of `kernel`"),
    ];
    for (workload, reason) in cases {
        let text = format!("name: wrong\nworkload:\n  {workload}\nfaults:\n{ANY}");
        std::fs::write(folder.path().join("campaign.yaml"), text).expect("written");
        let refused = run(folder.path(), &[]);
        refused.expect_refused(&[reason]);
    }
    let text = format!("name: cpu\nworkload:\n  app: {{command: [echo, hello]}}\nfaults:\n{ANY}");
    std::fs::write(folder.path().join("campaign.yaml"), text).expect("written");
    let refused = run(folder.path(), &[]);
    assert!(refused.stderr.contains("did not use a GPU"), "{refused:?}");
}

/// Before each of its kernels, the Jacobi program clears a word with a kernel of the runtime.
#[test]
fn runtime_kernels_are_struck_only_if_requested() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernels = |faults: &str| {
        capture(folder.path(), "jacobi", faults);
        run(folder.path(), &[]).expect_success();
        std::fs::remove_file(folder.path().join("run.capture")).expect("removed");
        let of_runtime = |row: &Row| {
            row.kernel.as_deref().is_some_and(|kernel| kernel.starts_with("__amd_rocclr_"))
        };
        let rows = rows(folder.path());
        (rows.iter().filter(|row| of_runtime(row)).count(), rows.len())
    };
    let many = "  model: flip_one_bit\n  groups: [salu]\n  count: 200\n";
    assert_eq!(kernels(many), (0, 200));
    let (of_runtime, _) = kernels(&format!("{many}  runtime_kernels: true\n"));
    assert!((1..200).contains(&of_runtime), "{of_runtime}");
    let named = "  model: flip_one_bit\n  kernels: [__amd_rocclr_fillBufferAligned]\n  count: 5\n";
    assert_eq!(kernels(named), (5, 5));
}

#[test]
fn range_of_a_capture_is_struck_and_its_writes_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    capture(folder.path(), "jacobi", "  model: flip_one_bit\n  count: 100\n");
    let file = folder.path().join("campaign.yaml");
    let text = std::fs::read_to_string(&file).expect("the file");
    let part = text.replace("run.capture}", "run.capture, dispatches: [4, 7]}");
    std::fs::write(&file, part).expect("written");
    run(folder.path(), &[]).expect_success();
    let rows = rows(folder.path());
    assert!(
        rows.iter().all(|row| row.dispatch.is_some_and(|dispatch| (4..=7).contains(&dispatch)))
    );
    assert!(rows.iter().any(|row| row.outcome == Outcome::Sdc));

    std::fs::write(&file, text.replace("run.capture}", "run.capture, dispatches: [4, 7000]}"))
        .expect("written");
    let refused = run(folder.path(), &[]);
    refused.expect_refused(&["no dispatches 4 to 7000; it has 98"]);
}

/// Hundreds of faults in applications, each in a separate process. The results do not depend on the
/// number of workers, contain every outcome, and agree with those of the captures for applications
/// that check their results.
#[test]
#[ignore = "half an hour"]
fn five_hundred_faults_in_each_of_three_applications_agree_with_captures() {
    let many = "  model: flip_one_bit\n  count: 500\n";
    let mut outcomes = BTreeSet::new();
    for (name, argument) in [("campaigns/reactions", "print"), ("scan", ""), ("sort", "")] {
        let folder = tempfile::tempdir().expect("a folder");
        campaign(folder.path(), name, argument, "", STDOUT, many);
        let run = |workers| {
            let line =
                ["run", "campaign.yaml", "--out", "results", "--force", "--workers", workers];
            flipwave_within(10 * PATIENCE, folder.path(), &line).expect("an end").expect_success();
            std::fs::read(folder.path().join("results/results.csv")).expect("results")
        };
        assert_eq!(run("2"), run("3"), "{name}: results depend on the number of workers");
        let direct = rows(folder.path());
        assert_eq!(direct.len(), 500);
        let count = |outcome| direct.iter().filter(|row| row.outcome == outcome).count();
        let all =
            [Outcome::Masked, Outcome::Sdc, Outcome::Due].map(|outcome| (outcome, count(outcome)));
        println!("{name}: {all:?}");
        outcomes.extend(
            all.into_iter().filter(|(_, count)| *count > 0).map(|(outcome, _)| outcome.name()),
        );
        if !argument.is_empty() {
            continue;
        }
        capture(folder.path(), name, many);
        run("2");
        for (direct, captured) in direct.iter().zip(&rows(folder.path())) {
            let is_wrong = direct.cause.as_deref() == Some("exit_code");
            let expected = if is_wrong { Outcome::Sdc } else { direct.outcome };
            assert_eq!((&direct.site, expected), (&captured.site, captured.outcome), "{name}");
        }
    }
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), ["due", "masked", "sdc"]);
}
