//! An interrupted campaign keeps its completed rows, which are a prefix of the complete table.

use flipwave_campaigns::CancellableDevice;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, Device, Dispatch, FaultCause};
use flipwave_injector::{CancellationToken, Program, Workload};
use flipwave_machine::Simulator;
use flipwave_sim::EmbeddedGpu;
use flipwave_tests::{Finished, RunningProgram, assemble, example, flipwave, gfx90a, program};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// More faults than fit into memory or can be injected in a test.
const FAULTS: &str = "{model: flip_one_bit, count: 1000000000000}";

/// Complete lines of a results file that may still be written to.
fn lines(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("results.csv")).unwrap_or_default();
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().map(str::to_owned).collect()
}

/// Starts a campaign without end, and waits until it has written some rows to `stopped`.
fn started(folder: &Path) -> RunningProgram {
    started_until(20, folder, &[])
}

/// Starts a campaign without end, and waits until it has written more than `count` lines to `stopped`.
fn started_until(count: usize, folder: &Path, options: &[&str]) -> RunningProgram {
    example("vector_add", FAULTS, folder);
    let arguments = [&["run", "--out", "stopped", "vector_add.yaml"], options].concat();
    let mut run = RunningProgram::start(folder, &arguments, "stderr");
    run.wait_until(|| lines(&folder.join("stopped")).len() > count);
    run
}

/// Asserts that the rows of the stopped campaign are the first rows of an uninterrupted one.
fn expect_prefix(folder: &Path) {
    let stopped = lines(&folder.join("stopped"));
    let count = stopped.len() - 1;
    let whole = folder.join("whole");
    std::fs::create_dir(&whole).expect("a folder");
    let file = example("vector_add", &FAULTS.replace("1000000000000", &count.to_string()), &whole);
    flipwave(&whole, &["run".as_ref(), "--out".as_ref(), "out".as_ref(), file.as_os_str()], &[])
        .expect_success();
    assert_eq!(lines(&whole.join("out")), stopped);
}

#[test]
fn signals_end_a_campaign_and_keep_its_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let signals = [(libc::SIGINT, "SIGINT"), (libc::SIGTERM, "SIGTERM"), (libc::SIGHUP, "SIGHUP")];
    for (signal, name) in signals {
        let mut run = started(folder.path());
        run.send(signal);
        assert_eq!(run.end(), Ok(2), "{name}: {}", run.stderr());
        let (said, results) = (run.stderr(), folder.path().join("stopped"));
        for words in [name, "--resume", "of 1000000000000 injections"] {
            assert!(said.contains(words), "`{words}` is not in:\n{said}");
        }
        let record = std::fs::read_to_string(results.join("run.json")).expect("run.json");
        assert!(record.contains("\"status\": \"interrupted\""), "{record}");
        let rows = lines(&results).len() - 1;
        assert!(said.contains(&format!("{rows} of 1000000000000")), "{rows} rows:\n{said}");
        assert!(results.join("summary.csv").exists());
        assert!(!results.join("flipwave.lock").exists());
        if signal == libc::SIGHUP {
            expect_prefix(folder.path());
        }
        std::fs::remove_dir_all(&results).expect("removed");
    }
}

#[test]
fn killed_campaign_leaves_complete_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = started(folder.path());
    run.send(libc::SIGKILL);
    assert_eq!(run.end(), Err(libc::SIGKILL));
    expect_prefix(folder.path());
}

/// nohup(1) and shells ignore SIGHUP for programs that outlive them.
#[test]
fn initially_ignored_signals_stay_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    example("vector_add", FAULTS, folder.path());
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" run vector_add.yaml --out stopped"]).arg(program());
    let mut run = RunningProgram::from_command(shell, folder.path(), "stderr");
    let rows = || lines(&folder.path().join("stopped")).len();
    run.wait_until(|| rows() > 20);
    run.send(libc::SIGHUP);
    let before = rows();
    run.wait_until(|| rows() > before + 1000);
    run.send(libc::SIGTERM);
    assert_eq!(run.end(), Ok(2));
}

/// Writes an endless kernel and a campaign on it. The kernel counts, so its state never repeats and the
/// watchdog cannot detect a wait loop.
fn endless(folder: &Path, launch: &str) {
    let kernel = "kernel void spin(global volatile uint *word) {\n    uint count = 0;\n    \
                  while (*word == 0)\n        ++count;\n    *word = count;\n}\n";
    std::fs::write(folder.join("spin.cl"), kernel).expect("written");
    let campaign = format!(
        "name: spin\nworkload:\n  kernel:\n    source: spin.cl\n    name: spin\n    grid: 64\n    \
         workgroup: 64\n{launch}    args: [{{buffer: word, type: u32, count: 1, output: true}}]\n\
         faults: {{model: flip_one_bit, count: 10}}\n"
    );
    std::fs::write(folder.join("spin.yaml"), campaign).expect("written");
}

#[test]
fn endless_golden_run_is_reported_and_can_be_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    endless(folder.path(), "");
    for (command, signal) in
        [("run", libc::SIGINT), ("run", libc::SIGTERM), ("profile", libc::SIGINT)]
    {
        let mut run = RunningProgram::start(folder.path(), &[command, "spin.yaml"], "stderr");
        let stderr = folder.path().join("stderr");
        let said = || std::fs::read_to_string(&stderr).expect("a file");
        run.wait_until(|| said().contains("running kernel `spin`"));
        assert!(said().contains("wave instructions so far, "), "{}", said());
        run.send(signal);
        assert_eq!(run.end(), Ok(2), "{}", run.stderr());
        for words in ["ended by SIG", "dispatch 0", "kernel `spin`", "wave instructions", "pc 0x"] {
            assert!(said().contains(words), "`{words}` is not in:\n{}", said());
        }
        assert!(!folder.path().join("spin.results").exists(), "an empty results folder is left");
    }
}

/// `flipwave launch` runs through AMD's runtime on the embedded GPU.
#[test]
fn launch_can_be_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    endless(folder.path(), "");
    let flipwave = program();
    let launch =
        ["exec", "--", flipwave.to_str().expect("text"), "launch", "spin.yaml", "--out", "out"];
    let mut run = RunningProgram::start(folder.path(), &launch, "stderr");
    let stderr = folder.path().join("stderr");
    let said = || std::fs::read_to_string(&stderr).expect("a file");
    run.wait_until(|| said().contains("kernel spin has been running for "));
    run.send(libc::SIGTERM);
    assert_eq!(run.end(), Ok(2), "{}", said());
    assert!(said().contains("ended by SIGTERM: interrupted"), "{}", said());
}

/// Tools and emulated programs run dispatches through `CancellableDevice`.
#[test]
fn cancellation_ends_dispatches_of_a_cancellable_device() {
    let spin = assemble("again:\n    s_add_u32 s0, s0, 1\n    s_branch again\n");
    let mut device = EmbeddedGpu::new(gfx90a()).expect("a device");
    let object = CodeObject::parse(&spin.code_object).expect("a code object");
    let module = device.load(&object).expect("loaded");
    let cancellation = CancellationToken::default();
    cancellation.stop();
    let (simulator, program) = (Simulator::new(device.clone()), Program::default());
    let workload = Workload { device: simulator, program, cancellation };
    let mut device = CancellableDevice::new(&mut device, &workload).expect("a device");
    let end = device.dispatch(&Dispatch {
        module,
        kernel: object.kernels()[0].name.to_string(),
        grid: [64, 1, 1],
        workgroup: [64, 1, 1],
        kernarg: vec![0; 1024],
        dynamic_lds: 0,
        instruction_limit: 1 << 24,
        queued: None,
        is_cooperative: false,
    });
    let Ok(Completion::Faulted(fault)) = end else { panic!("{end:?}") };
    let FaultCause::Watchdog { executed } = fault.cause else { panic!("{fault}") };
    assert!(executed < 1 << 20, "{executed}");
}

/// Interrupts commands while a compiler writes its output.
#[test]
fn signals_leave_no_unfinished_file() {
    let folder = tempfile::tempdir().expect("a folder");
    example("vector_add", FAULTS, folder.path());
    // The script stops waiting if the test fails and removes its folder.
    let script = "#!/bin/sh\nhere=${0%/*}\ncase \" $* \" in *' -o '*)\n    touch $here/started\n    \
                  while [ -e $here/started -a ! -e $here/go ]; do sleep 0.01; done;;\nesac\n\
                  exec clang-22 \"$@\"\n";
    let compiler = executable(folder.path(), script);
    let path = |name: &str| folder.path().join(name);
    for command in ["tool", "profile"] {
        let cache = path(command);
        let options = if command == "tool" { &["instruction-count"][..] } else { &[] };
        let mut process = Command::new(program());
        process.arg(command).args(options).arg("vector_add.yaml");
        process.env("FLIPWAVE_CLANG", &compiler).env("FLIPWAVE_CACHE", &cache);
        let mut run = RunningProgram::from_command(process, folder.path(), "stderr");
        run.wait_until(|| path("started").exists());
        run.send(libc::SIGTERM);
        std::fs::write(path("go"), "").expect("written");
        assert_eq!(run.end(), Ok(2), "{command}: {}", run.stderr());
        assert!(run.stderr().contains("ended by SIGTERM: "), "{command}: {}", run.stderr());
        let is_unfinished = |file: &String| file.starts_with(".tmp");
        let left: Vec<String> = files_below(&cache).into_iter().filter(is_unfinished).collect();
        assert_eq!(left, [""; 0], "{command}");
        ["started", "go"].iter().for_each(|name| std::fs::remove_file(path(name)).expect(name));
    }
}

fn files_below(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let entries = entries.map(|entry| entry.expect("an entry"));
    let below = |entry: std::fs::DirEntry| match entry.path() {
        path if path.is_dir() => files_below(&path),
        _ => vec![entry.file_name().into_string().expect("text")],
    };
    entries.flat_map(below).collect()
}

/// Writes an executable script.
fn executable(folder: &Path, script: &str) -> PathBuf {
    let file = folder.join("compiler");
    std::fs::write(&file, script).expect("written");
    std::fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("a mode");
    file
}

#[test]
fn golden_run_has_an_instruction_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    endless(folder.path(), "    instruction_limit: 20000\n");
    for command in ["run", "profile"] {
        let finished = flipwave(folder.path(), &[command, "spin.yaml"], &[]);
        let words =
            ["does not end", "dispatch 0", "`spin`", "20000", "pc 0x", "`instruction_limit`"];
        finished.expect_refused(&words);
    }
    endless(folder.path(), "    instruction_limit: 0\n");
    let finished = flipwave(folder.path(), &["run", "spin.yaml"], &[]);
    assert!(finished.stderr.contains("instruction_limit"), "{}", finished.stderr);
}

/// The first signal ends the compiler. The program then blocks on its message, because standard error is
/// a full pipe without a reader.
#[test]
fn second_signal_ends_the_program_immediately() {
    let folder = tempfile::tempdir().expect("a folder");
    example("vector_add", FAULTS, folder.path());
    let script = "#!/bin/sh\ntouch started\nexec sleep 30\n";
    let compiler = executable(folder.path(), script);
    let pipe = folder.path().join("stderr");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo(1)").success());
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let mut pipe = options.open(pipe).expect("a pipe");
    let mut command = Command::new(program());
    command.args(["run", "vector_add.yaml"]).env("FLIPWAVE_CLANG", &compiler);
    let mut run = RunningProgram::from_command(command, folder.path(), "stderr");
    run.wait_until(|| folder.path().join("started").exists());
    while pipe.write(&[b'x'; 512]).is_ok() {}
    run.send(libc::SIGINT);
    std::thread::sleep(Duration::from_millis(300));
    run.send(libc::SIGTERM);
    assert_eq!(run.end(), Err(libc::SIGTERM));
}

/// Runs the program; `stdout` and `stderr` select streams that are pipes without a reader. Returns the
/// exit code and standard error.
fn unread(folder: &Path, arguments: &[&str], stdout: bool, stderr: bool) -> (Option<i32>, String) {
    let kept = |name: &str| Stdio::from(File::create(folder.join(name)).expect("a file"));
    let pipe = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    let status = Command::new(program())
        .current_dir(folder)
        .args(arguments)
        .stdout(if stdout { pipe() } else { kept("stdout") })
        .stderr(if stderr { pipe() } else { kept("stderr") })
        .status()
        .expect("flipwave starts");
    let said = if stderr { String::new() } else { read(folder, "stderr") };
    (status.code(), said)
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect(name)
}

#[test]
fn campaign_completes_with_closed_output_pipes() {
    let folder = tempfile::tempdir().expect("a folder");
    example("vector_add", "{model: flip_one_bit, count: 50}", folder.path());
    let run = |out: &str, stdout, stderr| {
        let arguments = ["run", "vector_add.yaml", "--self-test", "--out", out];
        let (code, _) = unread(folder.path(), &arguments, stdout, stderr);
        assert_eq!(code, Some(0), "{out}");
        read(&folder.path().join(out), "results.csv")
    };
    let whole = run("whole", false, false);
    assert_eq!(whole.lines().count(), 51);
    assert_eq!(run("errors", false, true), whole);
    assert_eq!(run("output", true, false), whole);
    assert_eq!(run("both", true, true), whole);
}

#[test]
fn commands_with_closed_output_pipes_end_quietly() {
    let folder = tempfile::tempdir().expect("a folder");
    example("vector_add", "{model: flip_one_bit, count: 1}", folder.path());
    let Finished { stdout, .. } =
        flipwave(folder.path(), &["run", "vector_add.yaml"], &[]).expect_success();
    assert!(stdout.contains("fault space"), "{stdout}");
    let rows = flipwave_tests::rows(&folder.path().join("vector_add.results"));
    let site = rows[0].site.as_str();
    let commands = [
        &["profile", "vector_add.yaml"][..],
        &["replay", "vector_add.yaml", "--site", site],
        &["trace", "vector_add.yaml", "--site", site],
        &["tool", "instruction-count", "vector_add.yaml"],
    ];
    for command in commands {
        let (code, said) = unread(folder.path(), command, true, false);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{command:?}");
    }
}

#[test]
fn killed_campaign_resumes_after_its_last_complete_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut run = started(folder.path());
    run.send(libc::SIGKILL);
    assert_eq!(run.end(), Err(libc::SIGKILL));
    let results = folder.path().join("stopped/results.csv");
    let text = std::fs::read_to_string(&results).expect("results.csv");
    let whole = text.rfind('\n').expect("a line") + 1;
    std::fs::write(&results, text[..whole].to_owned() + "77,cut o").expect("a torn line");
    let left = lines(&folder.path().join("stopped"));
    let mut run = started_until(left.len() + 20, folder.path(), &["--resume"]);
    run.send(libc::SIGINT);
    assert_eq!(run.end(), Ok(2));
    let record = std::fs::read_to_string(folder.path().join("stopped/run.json")).expect("run.json");
    assert!(record.contains("\"status\": \"interrupted\""), "{record}");
    assert_eq!(lines(&folder.path().join("stopped"))[..left.len()], left);
    expect_prefix(folder.path());
    // Negative control: rows of another plan are refused.
    let text = std::fs::read_to_string(&results).expect("results.csv");
    std::fs::write(&results, text.replacen(" lane=", " lane=6", 1)).expect("another site");
    let file = folder.path().join("vector_add.yaml");
    let run = ["run".as_ref(), "--out".as_ref(), "stopped".as_ref(), "--resume".as_ref()];
    let refused = flipwave(folder.path(), &[&run[..], &[file.as_os_str()]].concat(), &[]);
    refused.expect_refused(&["is not the planned injection"]);
}

/// Time limit for a signal to end a command, on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Returns `true` while a process runs whose command line contains `marker`.
fn is_running(marker: &str) -> bool {
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    entries
        .flat_map(|process| std::fs::read(process.path().join("cmdline")))
        .any(|line| line.windows(marker.len()).any(|part| part == marker.as_bytes()))
}

/// Starts a command, sends it a signal once a process with `marker` in its command line runs, and asserts
/// that the command and all such processes end within [`AT_ONCE`].
#[track_caller]
fn expect_end_at_once(mut command: Command, folder: &Path, marker: &str, what: &str) {
    command.env("FLIPWAVE_CACHE", folder.join("cache"));
    let mut run = RunningProgram::from_command(command, folder, "stderr");
    run.wait_until(|| is_running(marker));
    let start = Instant::now();
    run.send(libc::SIGTERM);
    let end = run.end();
    let elapsed = start.elapsed();
    assert!(elapsed < AT_ONCE, "{what}: {elapsed:?}\n{}", run.stderr());
    assert_eq!(end, Ok(2), "{what}: {}", run.stderr());
    assert!(run.stderr().contains("ended by SIGTERM"), "{what}: {}", run.stderr());
    let patience = Instant::now() + Duration::from_secs(5);
    while is_running(marker) {
        assert!(Instant::now() < patience, "{what}: a process still runs");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn signals_end_hanging_compilers_and_their_children() {
    let folder = tempfile::tempdir().expect("a folder");
    example("vector_add", FAULTS, folder.path());
    for (when, number) in [("' -o '", 61701), ("' -E '", 61702), ("'--version'", 61703)] {
        // The compiler starts a child and ignores the signals that a terminal sends.
        let sleep = format!("sleep {number}");
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *{when}*) trap '' TERM INT; {sleep} & wait; {sleep};; esac\n\
             exec clang-22 \"$@\"\n"
        );
        let compiler = executable(folder.path(), &script);
        for arguments in [
            &["run", "vector_add.yaml"][..],
            &["profile", "vector_add.yaml"],
            &["tool", "instruction-count", "vector_add.yaml"],
        ] {
            // Sources without `#include` are not preprocessed.
            if when == "' -E '" && arguments[0] != "tool" {
                continue;
            }
            let mut command = Command::new(program());
            command.args(arguments).env("FLIPWAVE_CLANG", &compiler);
            let marker = format!("sleep\0{number}");
            expect_end_at_once(command, folder.path(), &marker, &format!("{when} {arguments:?}"));
            let _ = std::fs::remove_dir_all(folder.path().join("cache"));
        }
    }
}

#[test]
fn signals_and_time_limits_end_hanging_judges() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = example("vector_add", "{model: flip_one_bit, count: 100}", folder.path());
    let text = std::fs::read_to_string(&file).expect("the campaign");
    let judged = |severity: &str| {
        std::fs::write(&file, format!("{text}severity: {severity}\n")).expect("written");
    };
    judged("{command: [sh, -c, 'sleep 61711 & sleep 61711']}");
    let mut command = Command::new(program());
    command.args(["run", "vector_add.yaml", "--out", "out"]);
    expect_end_at_once(command, folder.path(), "sleep\x0061711", "a judge");
    judged("{command: [sh, -c, 'sleep 61712'], timeout: 200 ms}");
    let finished = flipwave(folder.path(), &["run", "vector_add.yaml", "--out", "limited"], &[]);
    finished.expect_refused(&[
        "severity: `",
        "sleep 61712",
        "gave no answer within 0.2 s",
        "severity.timeout",
    ]);
}
