//! The service as its clients see it. This program is its own service, so it has a `main` of its own
//! and prints what libtest would.

use flipwave_jit::{Code, Compiler, Extensions, Here, Service, in_background};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

fn main() {
    flipwave_jit::serve_if_asked();
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let service = Service::start(program, folder.path().join("objects")).expect("a service");
    run("without_a_service_nothing_is_done", nothing_is_done);
    flipwave_jit::use_service(service.address().clone());
    run("the_service_gives_what_llvm_gives_and_keeps_it", || answers(folder.path()));
    run("what_cannot_be_compiled_is_refused_with_a_reason", refusals);
    run("the_alarm_of_what_takes_too_long_reaches_the_service", alarms);
    run("a_service_that_is_killed_ends_neither_client_nor_later_requests", kills);
    run("the_service_ends_with_who_started_it", || ends(service));
}

fn run(name: &str, test: impl FnOnce()) {
    let start = Instant::now();
    test();
    println!("test {name} ... ok <{:.3}s>", start.elapsed().as_secs_f64());
}

/// A function that returns a number.
fn ir(number: u32) -> String {
    format!("define i32 @f() nounwind {{\n  ret i32 {number}\n}}\n")
}

/// What the service answers, or has kept.
fn ask(ir: impl Into<String>) -> Result<Vec<u8>, String> {
    let (sender, receiver) = channel();
    let ir = ir.into();
    in_background(move |compiler| {
        let answer = compiler.compile(&ir, Extensions::Avx2).map_err(|error| error.to_string());
        sender.send(answer).expect("the test waits");
    });
    receiver.recv_timeout(Duration::from_secs(100)).expect("an answer")
}

fn nothing_is_done() {
    assert!(flipwave_jit::service().is_none());
}

fn answers(folder: &Path) {
    assert!(flipwave_jit::service().is_some());
    assert!(!folder.join("objects").exists(), "it is started only when it is needed");
    let object = ask(ir(42)).expect("IR that is right");
    let own = Here.compile(&ir(42), Extensions::Avx2).expect("IR that is right");
    assert_eq!(object, own);
    assert!(Code::load(&object, "f").is_ok());
    let kept: Vec<_> = std::fs::read_dir(folder.join("objects")).expect("a folder").collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(ask(ir(42)), Ok(own));
    assert_ne!(ask(ir(43)).expect("IR that is right"), object);
}

fn refusals() {
    let error = ask("no IR").expect_err("no IR");
    assert!(error.contains("expected top-level entity"), "{error}");
    assert!(ask(ir(44)).is_ok());
}

/// Processes that were started as a service by this one, and their children.
fn processes() -> Vec<i32> {
    let own = std::env::current_exe().expect("this program");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let is_same = std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == own);
        if is_same && process != std::process::id() as i32 {
            found.push(process);
        }
    }
    found
}

fn alarms() {
    let all = processes();
    assert!(!all.is_empty());
    for process in all {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a line");
        assert_eq!(u64::from_str_radix(blocked.trim(), 16), Ok(0), "signals are blocked");
    }
}

fn kills() {
    // The connection's process has the greater number, unless numbers have begun again.
    let mut all = processes();
    all.sort_unstable();
    let connection = *all.last().expect("a process");
    // SAFETY: it is a child of the service of this test.
    unsafe { libc::kill(connection, libc::SIGKILL) };
    assert!(ask(ir(44)).is_ok(), "what is kept needs no connection");
    let error = ask(ir(45)).expect_err("a connection that is gone");
    assert!(error.contains("no answer from the service"), "{error}");
    assert!(ask(ir(45)).is_ok(), "another connection");
}

fn ends(service: Service) {
    assert!(!processes().is_empty());
    drop(service);
    let start = Instant::now();
    // The connection's process stays until its client is gone, or is.
    while processes().len() > 1 {
        assert!(start.elapsed() < Duration::from_secs(60), "the service is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}
