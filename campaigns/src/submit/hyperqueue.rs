//! HyperQueue: a job file with a task for each shard, and a task that merges the shards.

use super::command::output;
use super::error::SubmitError;
use super::options::{SubmitOptions, Submitted};
use super::script::Scripts;

const HINT: &str = "put HyperQueue's program `hq` in PATH";

/// Submits the shards to a HyperQueue server, which must be running.
pub(super) fn submit(
    scripts: &mut Scripts,
    options: &SubmitOptions,
    submitted: &mut Submitted,
) -> Result<(), SubmitError> {
    if options.at_once.is_some() {
        let only = "the other engines, because the number of HyperQueue workers limits how much runs at once";
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
    let global_options: String =
        options.options.iter().map(|option| format!("{option} ")).collect();
    submitted.watch.push(format!("hq {global_options}job progress {job}"));
    submitted.jobs.push(job);
    Ok(())
}

/// Returns the text of the job file. A task is restarted without limit if its worker is lost.
fn text(scripts: &Scripts, options: &SubmitOptions) -> String {
    let task = |id: u64, command: &[String], log: &str, cpus: usize, before: &[String]| {
        let words: Vec<String> = command.iter().map(|word| string(word)).collect();
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
        text += &task(number, &command, &log, options.workers.get(), &[]);
    }
    let merge = [scripts.path("merge.sh").display().to_string()];
    let all: Vec<String> = (1..=shards).map(|number| number.to_string()).collect();
    text + &task(shards + 1, &merge, "merge.txt", 1, &all)
}

/// Quotes a string for TOML.
fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
