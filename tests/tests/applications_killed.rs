//! Applications that are killed, and applications that run concurrently.

use flipwave_tests::{Compiler, application, flipwave_within, program};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Time limit, far above the duration of any program.
const PATIENCE: Duration = Duration::from_secs(300);

/// IDs of the processes that run an executable.
fn processes_of(program: &Path) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("processes");
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let is_match = std::fs::read_link(entry.path().join("exe")).ok()? == program;
        entry.file_name().to_str()?.parse().ok().filter(|_| is_match)
    };
    all.filter_map(number).collect()
}

/// Waits until `holds` returns `true`.
#[track_caller]
fn expect_soon(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills the program in the middle of a kernel, or the `flipwave` process that started it.
#[test]
fn killed_applications_leave_no_processes_or_files() {
    let endless = application("failing/endless", Compiler::Hipcc, "gfx90a");
    for kills_program in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        // A copy identifies the processes of this test.
        let copy = folder.path().join("endless");
        std::fs::copy(&endless, &copy).expect("a copy");
        let temporary = folder.path().join("temporary");
        std::fs::create_dir(&temporary).expect("a folder");
        let mut run = std::process::Command::new(program())
            .args(["exec".as_ref(), "--".as_ref(), copy.as_os_str()])
            .env("TMPDIR", &temporary)
            .stderr(Stdio::piped())
            .spawn()
            .expect("flipwave starts");
        let stderr = BufReader::new(run.stderr.take().expect("a pipe"));
        let line = stderr.lines().next().expect("a line").expect("text");
        assert!(line.contains("has been running"), "{line}");
        let named = |name: &str| {
            let entries = std::fs::read_dir(name).expect("a folder");
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).count()
        };
        let temporary = temporary.display().to_string();
        assert!(named(&temporary) > 0, "the program has no temporary files");
        let [victim] = processes_of(&copy)[..] else { panic!("one process is expected") };
        let victim = if kills_program { victim } else { run.id() as i32 };
        // SAFETY: the process belongs to this test.
        assert_eq!(unsafe { libc::kill(victim, libc::SIGKILL) }, 0);
        let status = run.wait().expect("an end");
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
        expect_soon("a process is left", || processes_of(&copy).is_empty());
        expect_soon("a file is left", || named(&temporary) == 0);
    }
}

/// Each program has a separate GPU.
#[test]
fn programs_run_side_by_side() {
    std::thread::scope(|scope| {
        for name in ["processes", "jacobi", "forked", "jacobi"] {
            scope.spawn(move || {
                let program = application(name, Compiler::Hipcc, "gfx90a").into_os_string();
                let folder = tempfile::tempdir().expect("a folder");
                let arguments = ["exec".into(), "--".into(), program];
                let finished = flipwave_within(PATIENCE, folder.path(), &arguments);
                let finished = finished.expect("an end").expect_success();
                assert!(finished.stdout.ends_with("passed\n"), "{name}: {finished:#?}");
            });
        }
    });
}
