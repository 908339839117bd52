//! Applications that are small shell programs, one for each way in which a run can go.

mod file;
mod golden;
mod judged;
mod killed;
mod runs;

use super::{Application, ApplicationError, Limits, Ran};
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::location::FileError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

static GO_ON: AtomicBool = AtomicBool::new(false);

const LIMITS: Limits =
    Limits { timeout: Duration::from_secs(60), memory: 1 << 30, output: 1 << 20 };

/// Reads a campaign whose application has these keys, and these others after it.
fn parse(directory: &Path, keys: &str, others: &str) -> Result<Campaign, FileError> {
    let text = format!("name: app\nworkload:\n  app: {keys}\n{others}");
    Campaign::parse(&text, &directory.join("app.yaml"))
}

/// The application of a campaign that has one.
fn application(campaign: Campaign) -> Application {
    match campaign.workload {
        CampaignWorkload::Application(application) => application,
        other => panic!("{other:?}"),
    }
}

/// The application that runs `script`, with these other keys, and these after it.
fn shell(script: &str, keys: &str, others: &str) -> Application {
    let script = serde_json::to_string(script).expect("text");
    let keys = format!("{{command: [sh, -c, {script}]{keys}}}");
    application(parse(Path::new("/"), &keys, others).expect("a campaign"))
}

fn run_within(application: &Application, limits: &Limits) -> Result<Ran, ApplicationError> {
    application.run(&BTreeMap::new(), limits, &GO_ON)
}

fn run(script: &str) -> Ran {
    run_within(&shell(script, "", ""), &LIMITS).expect("a run")
}

/// A command that ends in a day, and is no other's: `number` is of the test, and the process of
/// the tests.
fn sleep(number: u32) -> String {
    format!("sleep {number}.{}", std::process::id())
}

/// Whether a process runs whose command line has `text` in it.
fn is_running(text: &str) -> bool {
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut lines = entries.flat_map(|entry| std::fs::read(entry.path().join("cmdline")));
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(text))
}

/// Waits until that process runs, or no longer does; says whether it came to that.
fn comes_to_run(text: &str, wanted: bool) -> bool {
    (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_running(text) == wanted
    })
}
