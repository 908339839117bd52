//! HyperQueue: a job file with a task for each shard, and one that merges when they have ended.

use super::command::output;
use super::error::SubmitError;
use super::options::{SubmitOptions, Submitted};
use super::script::Scripts;

const HINT: &str = "put HyperQueue's program `hq` in PATH";

/// Hands the shards to a HyperQueue server, which must run.
pub(super) fn submit(
    scripts: &mut Scripts,
    options: &SubmitOptions,
    submitted: &mut Submitted,
) -> Result<(), SubmitError> {
    if options.at_once.is_some() {
        let only = "the other engines: HyperQueue's workers say how much runs at once";
        return Err(SubmitError::Unsupported { what: "--at-once", only });
    }
    scripts.add("hyperqueue.toml", &text(scripts, options))?;
    if options.dry {
        return Ok(());
    }
    let file = scripts.path("hyperqueue.toml").display().to_string();
    let mut arguments = options.options.clone();
    arguments.extend(["--output-mode=quiet", "job", "submit-file"].map(str::to_owned));
    arguments.push(file);
    let job = output("hq", &arguments, HINT)?.trim().to_owned();
    let before: String = options.options.iter().map(|own| format!("{own} ")).collect();
    submitted.watch.push(format!("hq {before}job progress {job}"));
    submitted.jobs.push(job);
    Ok(())
}

/// The job file. A task whose worker is lost is started again, however often.
fn text(scripts: &Scripts, options: &SubmitOptions) -> String {
    let task = |id: u64, command: &[String], log: &str, (cpus, before): (usize, &[String])| {
        let words: Vec<String> = command.iter().map(|own| string(own)).collect();
        let log = string(&scripts.log(log).display().to_string());
        let (words, before) = (words.join(", "), before.join(", "));
        format!(
            "\n[[task]]\nid = {id}\ncommand = [{words}]\nstdout = \"none\"\nstderr = {log}\n\
             crash_limit = \"unlimited\"\ndeps = [{before}]\n\
             [[task.request]]\nresources = {{ \"cpus\" = {cpus} }}\n"
        )
    };
    let (name, shards) = (&scripts.name, options.shards.get());
    let mut text = format!(
        "# The shards of the campaign {name}, and their merge. Written by `flipwave submit`.\n\
         name = {}\n",
        string(name),
    );
    let shard = scripts.path("shard.sh").display().to_string();
    for number in 1..=shards {
        let (command, log) = ([shard.clone(), number.to_string()], format!("{number}.txt"));
        text += &task(number, &command, &log, (options.workers.get(), &[]));
    }
    let merge = [scripts.path("merge.sh").display().to_string()];
    let all: Vec<String> = (1..=shards).map(|number| number.to_string()).collect();
    text + &task(shards + 1, &merge, "merge.txt", (1, &all))
}

/// A text as TOML has it.
fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
