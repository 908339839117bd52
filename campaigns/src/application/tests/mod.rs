//! Tests with applications that are short shell scripts.

mod file;
mod golden;
mod judged;
mod killed;
mod runs;

use super::{Application, ApplicationError, ApplicationRun, Limits};
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::location::FileError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

static GO_ON: AtomicBool = AtomicBool::new(false);

const LIMITS: Limits =
    Limits { timeout: Duration::from_secs(60), memory: 1 << 30, output: 1 << 20 };

/// Parses a campaign whose application has the keys `keys`, followed by the text `others`.
fn parse(directory: &Path, keys: &str, others: &str) -> Result<Campaign, FileError> {
    let text = format!("name: app\nworkload:\n  app: {keys}\n{others}");
    Campaign::parse(&text, &directory.join("app.yaml"))
}

/// The application of a campaign.
fn application(campaign: Campaign) -> Application {
    match campaign.workload {
        CampaignWorkload::Application(application) => application,
        workload => panic!("{workload:?}"),
    }
}

/// An application that runs `script`, with additional keys, followed by the text `others`.
fn shell(script: &str, keys: &str, others: &str) -> Application {
    let script = serde_json::to_string(script).expect("text");
    let keys = format!("{{command: [sh, -c, {script}]{keys}}}");
    application(parse(Path::new("/"), &keys, others).expect("a campaign"))
}

fn run_within(
    application: &Application,
    limits: &Limits,
) -> Result<ApplicationRun, ApplicationError> {
    application.run(&BTreeMap::new(), limits, &GO_ON)
}

fn run(script: &str) -> ApplicationRun {
    run_within(&shell(script, "", ""), &LIMITS).expect("a run")
}

/// A unique command that sleeps for most of a day. Its argument contains the number of the test and
/// the ID of this process.
fn sleep(number: u32) -> String {
    format!("sleep {number}.{}", std::process::id())
}

/// Returns `true` if a process is running whose command line contains `text`.
fn is_running(text: &str) -> bool {
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut lines = entries.flat_map(|entry| std::fs::read(entry.path().join("cmdline")));
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(text))
}

/// Waits until a process whose command line contains `text` is running. Returns `false` after a
/// timeout.
fn starts(text: &str) -> bool {
    wait_until(|| is_running(text))
}

/// Waits until no process whose command line contains `text` is running. Returns `false` after a
/// timeout.
fn ends(text: &str) -> bool {
    wait_until(|| !is_running(text))
}

fn wait_until(condition: impl Fn() -> bool) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        condition()
    })
}
