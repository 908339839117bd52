//! Runs shards in processes on this machine.

use super::error::SubmitError;
use super::options::{MERGE_WAIT, SubmitOptions};
use super::script::Scripts;
use crate::error::CampaignError;
use crate::shards::{MergeOptions, MergedFolder, merge_folder};
use flipwave_injector::CancellationToken;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Interval of checking whether a shard has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs all shards, several at a time, and merges them.
pub(super) fn run(
    cancellation: &CancellationToken,
    scripts: &Scripts,
    options: &SubmitOptions,
) -> Result<MergedFolder, CampaignError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = (processors / options.workers.get()).max(1) as u64;
    let at_once = options.at_once.map_or(at_once, u64::from).min(options.shards.get());
    let next = AtomicU64::new(1);
    let failed = Mutex::new(Vec::new());
    let work = || {
        while !cancellation.is_stopped() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > options.shards.get() {
                break;
            }
            let ended = shard(cancellation, scripts, number);
            let is_done = ended.is_ok_and(|status| status.success());
            if !is_done && let Ok(mut failed) = failed.lock() {
                failed.push(number);
            }
        }
    };
    std::thread::scope(|scope| {
        // If the system refuses more threads, the existing ones run all shards.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let _threads: Vec<_> = (1..at_once).map_while(start).collect();
        work();
    });
    if cancellation.is_stopped() {
        return Err(CampaignError::Interrupted);
    }
    let mut shards = failed.into_inner().unwrap_or_default();
    if !shards.is_empty() {
        shards.sort_unstable();
        return Err(SubmitError::Failed { shards }.into());
    }
    let folder = scripts.folder.clone();
    let wait = Duration::from_secs(MERGE_WAIT);
    merge_folder(&MergeOptions { folders: vec![folder.clone()], out: folder, wait })
}

/// Runs a shard, and sends it SIGTERM if the campaign is cancelled.
fn shard(
    cancellation: &CancellationToken,
    scripts: &Scripts,
    number: u64,
) -> io::Result<ExitStatus> {
    let log = scripts.log(&format!("{number}.txt"));
    let log = flipwave_host::output::append(&log)?;
    let mut child = Command::new(scripts.path("shard.sh"))
        .arg(number.to_string())
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    let mut is_terminated = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if cancellation.is_stopped() && !is_terminated {
            is_terminated = true;
            terminate(&child);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn terminate(child: &Child) {
    if let Some(process) = Pid::from_raw(child.id().cast_signed()) {
        // An error means that the process has ended.
        let _ = kill_process(process, Signal::TERM);
    }
}
