//! Tests of the service through its client. This program also runs as the service, so it defines its
//! own `main` and prints results in the format of libtest.

use flipwave_jit::{Code, Compiler, Extensions, InProcess, Service, in_background};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

fn main() {
    flipwave_jit::serve_if_requested();
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let service = Service::start(program, folder.path().join("objects")).expect("a service");
    run("process_has_no_service_by_default", no_service);
    flipwave_jit::use_service(service.address().clone());
    run("service_returns_and_caches_the_code_of_llvm", || answers(folder.path()));
    run("invalid_ir_is_rejected_with_a_reason", invalid_ir);
    run("service_does_not_block_the_alarm_signal", signal_mask);
    run("client_survives_a_killed_connection", killed_connection);
    run("service_ends_with_its_starter", || service_end(service));
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

/// Compiles IR through the service or its cache.
fn compile(ir: impl Into<String>) -> Result<Vec<u8>, String> {
    let (sender, receiver) = channel();
    let ir = ir.into();
    in_background(move |compiler| {
        let answer = compiler.compile(&ir, Extensions::Avx2).map_err(|error| error.to_string());
        sender.send(answer).expect("the test waits");
    });
    receiver.recv_timeout(Duration::from_secs(100)).expect("an answer")
}

fn no_service() {
    assert!(flipwave_jit::service().is_none());
}

fn answers(folder: &Path) {
    assert!(flipwave_jit::service().is_some());
    assert!(!folder.join("objects").exists(), "the service starts at the first request");
    let object = compile(ir(42)).expect("valid IR");
    let in_process = InProcess.compile(&ir(42), Extensions::Avx2).expect("valid IR");
    assert_eq!(object, in_process);
    assert!(Code::load(&object, "f").is_ok());
    let cached: Vec<_> = std::fs::read_dir(folder.join("objects")).expect("a folder").collect();
    assert_eq!(cached.len(), 1);
    assert_eq!(compile(ir(42)), Ok(in_process));
    assert_ne!(compile(ir(43)).expect("valid IR"), object);
}

fn invalid_ir() {
    let error = compile("no IR").expect_err("no IR");
    assert!(error.contains("expected top-level entity"), "{error}");
    assert!(compile(ir(44)).is_ok());
}

/// Processes of the service that this program started.
fn service_processes() -> Vec<i32> {
    let program = std::env::current_exe().expect("this program");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let exe = std::fs::read_link(entry.path().join("exe"));
        let is_same = exe.is_ok_and(|exe| exe == program);
        if is_same && process != std::process::id() as i32 {
            found.push(process);
        }
    }
    found
}

fn signal_mask() {
    let all = service_processes();
    assert!(!all.is_empty());
    for process in all {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a line");
        assert_eq!(u64::from_str_radix(blocked.trim(), 16), Ok(0), "signals are blocked");
    }
}

fn killed_connection() {
    // The connection's process has the highest process ID, unless the IDs have wrapped.
    let mut all = service_processes();
    all.sort_unstable();
    let connection = *all.last().expect("a process");
    // SAFETY: the process is a child of this test's service.
    unsafe { libc::kill(connection, libc::SIGKILL) };
    assert!(compile(ir(44)).is_ok(), "cached code needs no connection");
    let error = compile(ir(45)).expect_err("a killed connection");
    assert!(error.contains("no answer from the service"), "{error}");
    assert!(compile(ir(45)).is_ok(), "a new connection");
}

fn service_end(service: Service) {
    assert!(!service_processes().is_empty());
    drop(service);
    let start = Instant::now();
    // The connection's process stays until its client disconnects.
    while service_processes().len() > 1 {
        assert!(start.elapsed() < Duration::from_secs(60), "the service is still running");
        std::thread::sleep(Duration::from_millis(10));
    }
}
