//! Slurm: job arrays, and a merge job that depends on them.

use super::command::output;
use super::error::SubmitError;
use super::options::{SubmitOptions, Submitted};
use super::script::{Scripts, quoted};

const HINT: &str = "submit from a machine of the cluster, where Slurm's commands are in PATH";

/// Environment variable with the number of shards in earlier job arrays.
const BEFORE: &str = "FLIPWAVE_SHARDS_BEFORE";

/// Submits the shards to Slurm.
pub(super) fn submit(
    scripts: &mut Scripts,
    options: &SubmitOptions,
    submitted: &mut Submitted,
) -> Result<(), SubmitError> {
    scripts.add("slurm.sh", &text(scripts, options))?;
    if options.dry {
        return Ok(());
    }
    let script = scripts.path("slurm.sh").display().to_string();
    let shards = options.shards.get();
    let max_tasks = max_array_tasks()?;
    let mut before = 0;
    while before < shards {
        let tasks = (shards - before).min(max_tasks);
        let limit = options.at_once.or(options.nodes).map(|limit| format!("%{limit}"));
        let mut arguments = vec![
            "--parsable".to_owned(),
            format!("--array=1-{tasks}{}", limit.unwrap_or_default()),
            format!("--export=ALL,{BEFORE}={before}"),
        ];
        arguments.extend(options.options.iter().cloned());
        arguments.push(script.clone());
        submitted.jobs.push(job(&output("sbatch", &arguments, HINT)?));
        before += tasks;
    }
    let mut arguments = vec![
        "--parsable".to_owned(),
        format!("--dependency=afterany:{}", submitted.jobs.join(":")),
        format!("--job-name={}-merge", scripts.name),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        format!("--output={}", scripts.log("merge.txt").display()),
    ];
    arguments.extend(options.options.iter().cloned());
    arguments.push(scripts.path("merge.sh").display().to_string());
    let merge = job(&output("sbatch", &arguments, HINT)?);
    submitted.watch.push(format!("squeue --jobs {},{merge}", submitted.jobs.join(",")));
    submitted.jobs.push(merge);
    Ok(())
}

/// Returns the script that Slurm runs for each shard.
fn text(scripts: &Scripts, options: &SubmitOptions) -> String {
    let nodes = options.nodes.map_or("", |_| "#SBATCH --nodes=1\n#SBATCH --exclusive\n");
    format!(
        "#!/bin/sh\n\
         #SBATCH --job-name={name}\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task={workers}\n\
         {nodes}\
         #SBATCH --requeue\n\
         #SBATCH --open-mode=append\n\
         #SBATCH --signal=B:TERM@{grace}\n\
         #SBATCH --output={log}\n\
         # One shard of the campaign {name} for each task of the array. Written by `flipwave submit`.\n\
         exec {shard} \"$((${BEFORE} + SLURM_ARRAY_TASK_ID))\"\n",
        name = scripts.name,
        workers = options.workers,
        grace = options.grace,
        log = scripts.log("%A-%a.txt").display(),
        shard = quoted(&scripts.path("shard.sh")),
    )
}

/// Returns the maximum number of tasks in a job array. `MaxArraySize` in slurm.conf is one more than the
/// highest task number.
fn max_array_tasks() -> Result<u64, SubmitError> {
    let config = output("scontrol", &["show".to_owned(), "config".to_owned()], HINT)?;
    let size = config.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "MaxArraySize").then(|| value.trim().parse::<u64>().ok())?
    });
    Ok(size.map_or(1000, |size| size.saturating_sub(1).max(1)))
}

/// Returns the job number in the output of `sbatch --parsable`: `NUMBER` or `NUMBER;CLUSTER`.
fn job(printed: &str) -> String {
    printed.trim().split(';').next().unwrap_or_default().to_owned()
}
