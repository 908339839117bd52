//! Tests of the ends and remains of runs.

use super::*;
use crate::application::{Ended, Output};
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use std::time::Instant;

#[test]
fn exit_codes_and_output_are_captured() {
    let ran = run("echo out; echo problem >&2; exit 3");
    assert_eq!(ran.ended, Ended::Exited(3));
    assert_eq!((&ran.stdout[..], &ran.stderr[..]), (&b"out\n"[..], &b"problem\n"[..]));
    assert_eq!(run("true").ended, Ended::Exited(0));
}

#[test]
fn signals_are_reported() {
    assert_eq!(run("kill -SEGV $$").ended, Ended::Signalled(11));
    assert_eq!(run("kill -KILL $$").ended, Ended::Signalled(9));
}

/// `flipwave` blocks signals in all of its threads.
#[test]
fn signals_are_unblocked_in_programs() {
    let blocking = std::thread::spawn(|| {
        let mut all = MaybeUninit::uninit();
        // SAFETY: fills a signal set on the stack and blocks its signals in this thread.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
        }
        ["TERM", "USR1"].map(|signal| run(&format!("kill -{signal} $$; echo on")))
    });
    let ran = blocking.join().expect("two runs");
    let ended = ran.each_ref().map(|ran| (ran.ended, &ran.stdout[..]));
    let signals = [libc::SIGTERM, libc::SIGUSR1];
    let expected = signals.map(|signal| (Ended::Signalled(signal), &b""[..]));
    assert_eq!(ended, expected);
}

#[test]
fn programs_are_killed_at_the_time_limit() {
    let limits = Limits { timeout: Duration::from_millis(200), ..LIMITS };
    let script = format!("echo begun; {}", sleep(71001));
    let ran = run_within(&shell(&script, "", ""), &limits).expect("a run");
    assert_eq!(ran.ended, Ended::TimedOut);
    assert_eq!(ran.stdout, b"begun\n");
    assert!(ran.elapsed >= limits.timeout && ran.elapsed < Duration::from_secs(30));
    assert!(!is_running(&sleep(71001)));
}

#[test]
fn programs_that_ignore_signals_are_killed_at_the_time_limit() {
    let limits = Limits { timeout: Duration::from_millis(200), ..LIMITS };
    let script = format!("trap '' TERM INT HUP; while :; do {}; done", sleep(71002));
    let ran = run_within(&shell(&script, "", ""), &limits).expect("a run");
    assert_eq!(ran.ended, Ended::TimedOut);
    assert!(!is_running(&sleep(71002)));
}

/// Processes in the program's process group and in others, with open pipes.
#[test]
fn child_processes_are_killed() {
    let clock = Instant::now();
    let [one, two, three, four] = [71003, 71004, 71005, 71006].map(sleep);
    let ran = run(&format!("{one} & (trap '' TERM; {two}) & echo done"));
    assert_eq!((ran.ended, &ran.stdout[..]), (Ended::Exited(0), &b"done\n"[..]));
    // With job control, each command has a process group. Shells other than bash require a
    // terminal.
    let ran = run(&format!("exec bash -c 'set -m; {three} & {four} & echo done'"));
    assert_eq!((ran.ended, &ran.stdout[..]), (Ended::Exited(0), &b"done\n"[..]));
    for sleeper in [one, two, three, four] {
        assert!(!is_running(&sleeper), "{sleeper}");
    }
    assert!(clock.elapsed() < Duration::from_secs(30));
}

/// Processes in other sessions whose parent has ended, started by a program that ends and by one
/// that is killed.
#[test]
fn daemons_are_killed() {
    let [one, two] = [71008, 71009].map(sleep);
    let daemon = |sleeper: &str| {
        let seconds = sleeper.trim_start_matches("sleep ");
        format!(
            "(setsid sh -c 'echo away > away; exec sleep {seconds}' &); until [ -s away ]; do sleep 0.01; done; echo done"
        )
    };
    let ran = run(&daemon(&one));
    assert_eq!((ran.ended, &ran.stdout[..]), (Ended::Exited(0), &b"done\n"[..]));
    assert!(!is_running(&one));
    let limits = Limits { timeout: Duration::from_secs(3), ..LIMITS };
    let script = format!("{}; {}", daemon(&two), sleep(71010));
    let ran = run_within(&shell(&script, "", ""), &limits).expect("a run");
    assert_eq!((ran.ended, &ran.stdout[..]), (Ended::TimedOut, &b"done\n"[..]));
    assert!(!is_running(&two) && !is_running(&sleep(71010)));
}

/// Negative control of the searches in other tests.
#[test]
fn running_processes_are_found() {
    let command = sleep(71007);
    let seconds = command.trim_start_matches("sleep ");
    let mut sleeper = std::process::Command::new("sleep").arg(seconds).spawn().expect("sleep");
    assert!(starts(&command));
    sleeper.kill().expect("killed");
    sleeper.wait().expect("ended");
    assert!(!is_running(&command));
}

#[test]
fn programs_are_killed_at_the_limit_of_printed_output() {
    for script in ["yes", "yes >&2", "head -c 10000000000 /dev/zero"] {
        let ran = run_within(&shell(script, "", ""), &LIMITS).expect("a run");
        assert_eq!(ran.ended, Ended::OutputTooLarge, "{script}");
        assert!(
            ran.stdout.len() as u64 <= LIMITS.output && ran.stderr.len() as u64 <= LIMITS.output
        );
    }
    // The limit is also checked at the end of a run.
    assert_eq!(run("head -c 1048577 /dev/zero").ended, Ended::OutputTooLarge);
    let ran = run("head -c 1048576 /dev/zero");
    assert_eq!((ran.ended, ran.stdout.len()), (Ended::Exited(0), 1 << 20));
}

#[test]
fn programs_are_killed_at_the_limit_of_files() {
    let ran = run("while :; do head -c 2000000 /dev/zero >> big; sleep 0.1; done");
    assert_eq!(ran.ended, Ended::OutputTooLarge);
    assert_eq!(run("head -c 2000000 /dev/zero > big").ended, Ended::OutputTooLarge);
    assert_eq!(run("head -c 1000000 /dev/zero > big").ended, Ended::Exited(0));
}

/// Up to 64 MiB in the program itself, and in a child process.
#[test]
fn programs_are_killed_at_the_memory_limit() {
    let limits = Limits { memory: 32 << 20, ..LIMITS };
    // `tail` stores a line without an end in memory.
    let hog = format!("(head -c 67108864 /dev/zero; {}) | tail -n 1", sleep(71011));
    for script in [hog.clone(), format!("exec sh -c '{hog}'")] {
        let ran = run_within(&shell(&script, "", ""), &limits).expect("a run");
        assert_eq!(ran.ended, Ended::OutOfMemory, "{script}");
        assert!(!is_running(&sleep(71011)));
    }
    assert_eq!(run("head -c 67108864 /dev/zero | tail -n 1 > /dev/null").ended, Ended::Exited(0));
}

#[test]
fn interrupts_end_a_run() {
    let interrupt = AtomicBool::new(false);
    let application = shell(&sleep(71012), "", "");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| application.run(&BTreeMap::new(), &LIMITS, &interrupt));
        assert!(starts(&sleep(71012)));
        interrupt.store(true, Ordering::Relaxed);
        let error = running.join().expect("a result").expect_err("interrupted");
        assert!(matches!(error, ApplicationError::Interrupted), "{error}");
    });
    assert!(!is_running(&sleep(71012)));
}

#[test]
fn environment_contains_only_the_documented_variables() {
    let application = shell("env | sed 's/=.*//' | sort", ", environment: {B: '2'}", "");
    let extra = BTreeMap::from([(OsString::from("A"), OsString::from("1"))]);
    let ran = application.run(&extra, &LIMITS, &GO_ON).expect("a run");
    let names = String::from_utf8(ran.stdout).expect("text");
    // The shell adds some variables itself.
    let names: Vec<&str> =
        names.lines().filter(|&name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(&name)).collect();
    assert_eq!(names, ["A", "B", "HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ"]);
    let both = shell("echo $A", ", environment: {A: file}", "");
    let ran = both.run(&extra, &LIMITS, &GO_ON).expect("a run");
    assert_eq!(ran.stdout, b"1\n", "variables of the run take precedence over the file");
}

#[test]
fn addresses_are_fixed_and_core_files_disabled() {
    // The address of the stack would be random otherwise.
    let stack = "grep stack /proc/self/maps; ulimit -c";
    let (first, second) = (run(stack), run(stack));
    assert!(first.stdout.ends_with(b"\n0\n"));
    assert_eq!(first.stdout, second.stdout);
    // The program leads a session without a terminal.
    assert_eq!(run("test $(cut -d' ' -f6 /proc/self/stat) = $$").ended, Ended::Exited(0));
}

#[test]
fn standard_input_is_a_file_or_empty() {
    assert_eq!(run("cat").ended, Ended::Exited(0));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("in.txt"), "text\n").expect("a file");
    let keys = "{command: cat, stdin: in.txt}";
    let application = application(parse(folder.path(), keys, "").expect("good"));
    assert_eq!(run_within(&application, &LIMITS).expect("a run").stdout, b"text\n");
}

#[test]
fn runs_use_copies_of_inputs_and_leave_files() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("data"), "0\n").expect("a file");
    let keys = "{command: [sh, -c, 'echo 1 >> data; cp data out; mkdir dir'], input: [data]}";
    let application = application(parse(folder.path(), keys, "").expect("good"));
    for _ in 0..2 {
        let ran = run_within(&application, &LIMITS).expect("a run");
        let output = |name: &str| ran.output(&Output::File(name.into())).expect("readable");
        assert_eq!(output("out").as_deref(), Some(&b"0\n1\n"[..]));
        assert_eq!((output("missing"), output("dir")), (None, None));
    }
    assert_eq!(std::fs::read(folder.path().join("data")).expect("a file"), b"0\n");
}

#[test]
fn errors_describe_programs_that_cannot_be_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("program");
    let make = |text: &str| {
        std::fs::write(&path, text).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("a mode");
        let campaign = parse(folder.path(), "{command: ./program}", "").expect("good");
        (application(campaign), path.clone())
    };
    let (application, path) = make("#!/no/such/shell\n");
    let error = run_within(&application, &LIMITS).expect_err("no program").to_string();
    assert!(error.contains("`#!`") && error.contains(&path.display().to_string()), "{error}");
    let (application, path) = make("#!/bin/sh\n");
    std::fs::remove_file(path).expect("removed");
    let error = run_within(&application, &LIMITS).expect_err("no program").to_string();
    assert!(error.contains("missing"), "{error}");
}
