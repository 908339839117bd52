//! Scripts that run a shard and merge all shards, for every engine.

use super::error::{ATTEMPTS, SubmitError};
use super::options::{MERGE_WAIT, SubmitOptions};
use crate::run::injection_path::InjectionPath;
use crate::vary::CampaignFile;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Scripts of a campaign file, in its results folder.
pub(super) struct Scripts {
    /// Absolute path of the results folder; if one variant is selected, that of the variant.
    pub folder: PathBuf,
    /// Name of the campaign.
    pub name: String,
    paths: Vec<PathBuf>,
}

impl Scripts {
    /// Writes the scripts that run a shard and merge the shards.
    pub fn write(
        campaign_file: &CampaignFile,
        options: &SubmitOptions,
    ) -> Result<Scripts, SubmitError> {
        let absolute = |path: &Path| {
            let failed = |reason| SubmitError::Script { path: path.to_owned(), reason };
            let path = fs::canonicalize(path).map_err(failed)?;
            check_lines(&path)?;
            Ok(path)
        };
        [Some(&options.program), options.container.as_ref()]
            .into_iter()
            .flatten()
            .try_for_each(|path| check_lines(path))?;
        let out = absolute(&options.folder)?;
        let (path, seed, target, variant) = match campaign_file {
            CampaignFile::Plain(campaign) => {
                (&campaign.file, Some(campaign.seed), Some(campaign.target.to_string()), None)
            }
            CampaignFile::Varied(all) => {
                (&all.file, all.seed, all.target.clone(), all.chosen_name())
            }
        };
        let (file, name) = (absolute(path)?, campaign_file.name().to_owned());
        let folder = variant.map_or_else(|| out.clone(), |variant| out.join(variant));
        let mut scripts = Scripts { folder, name, paths: Vec::new() };
        for name in ["submit", "logs"] {
            let path = scripts.folder.join(name);
            fs::create_dir_all(&path).map_err(|reason| SubmitError::Script { path, reason })?;
        }
        let program = scripts.program(options, &out, &file);
        let mut run = format!("{program} run {}", quoted(&file));
        seed.iter().for_each(|seed| run += &format!(" --seed {seed}"));
        target.iter().for_each(|target| run += &format!(" --target {}", quoted(Path::new(target))));
        variant
            .iter()
            .for_each(|variant| run += &format!(" --variant {}", quoted(Path::new(variant))));
        run += &format!(" --out {}", quoted(&out));
        let shard = scripts.shard(options, &run);
        scripts.add("shard.sh", &shard)?;
        let merge = scripts.merge(&program);
        scripts.add("merge.sh", &merge)?;
        Ok(scripts)
    }

    /// Returns the paths of all scripts.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.paths.clone()
    }

    /// Returns the path of a script.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join("submit").join(name)
    }

    /// Returns the path of a job's log.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(name)
    }

    /// Writes a script.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), SubmitError> {
        let path = self.path(name);
        let write = || {
            flipwave_host::output::publish(&path, text.as_bytes())?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))
        };
        write().map_err(|reason| SubmitError::Script { path: path.clone(), reason })?;
        self.paths.push(path);
        Ok(())
    }

    /// Returns the command that starts the program. A container can access the folder `out` and the
    /// folder of `file`.
    fn program(&self, options: &SubmitOptions, out: &Path, file: &Path) -> String {
        let Some(image) = &options.container else { return quoted(&options.program) };
        let sources = file.parent().unwrap_or(Path::new("/"));
        let folders = format!("{},{}", out.display(), sources.display());
        format!("apptainer exec --bind {} {} flipwave", quoted(Path::new(&folders)), quoted(image))
    }

    /// Returns the script that runs a shard with the command `run`.
    fn shard(&self, options: &SubmitOptions, run: &str) -> String {
        let by = match options.path {
            None => "",
            Some(InjectionPath::Embedded) => " --by embedded",
            Some(InjectionPath::Hook) => " --by hook",
        };
        format!(
            "#!/bin/sh\n\
             # Runs one shard of the campaign {name}: shard.sh NUMBER. Written by `flipwave submit`.\n\
             # On SIGTERM, the shard saves its progress, and continues from there when it is restarted.\n\
             number=$1\n\
             child=\n\
             stopping=\n\
             stop() {{\n\
             \x20 stopping=yes\n\
             \x20 [ -z \"$child\" ] || kill -TERM \"$child\" 2>/dev/null\n\
             }}\n\
             trap stop TERM INT\n\
             \n\
             attempt=1\n\
             while :; do\n\
             \x20 {run} \\\n\
             \x20   --shard \"$number/{shards}\" --workers {workers}{by} &\n\
             \x20 child=$!\n\
             \x20 wait \"$child\"\n\
             \x20 code=$?\n\
             \x20 # A signal ends `wait` while the shard is still running.\n\
             \x20 while kill -0 \"$child\" 2>/dev/null; do\n\
             \x20   wait \"$child\"\n\
             \x20   code=$?\n\
             \x20 done\n\
             \x20 [ \"$code\" != 0 ] || exit 0\n\
             \x20 [ -z \"$stopping\" ] || break\n\
             \x20 echo \"shard $number: attempt $attempt of {ATTEMPTS} ended with code $code\" >&2\n\
             \x20 if [ \"$attempt\" -ge {ATTEMPTS} ]; then\n\
             \x20   # The error is in the folder. HyperQueue would skip the merge after a failed task.\n\
             \x20   [ -z \"${{HQ_TASK_ID:-}}\" ] || exit 0\n\
             \x20   exit \"$code\"\n\
             \x20 fi\n\
             \x20 attempt=$((attempt + 1))\n\
             done\n\
             # Requeue the job at the end of its time limit; Slurm requeues preempted jobs itself.\n\
             [ -z \"${{SLURM_JOB_ID:-}}\" ] || scontrol requeue \"$SLURM_JOB_ID\" || :\n\
             exit 143\n",
            name = self.name,
            shards = options.shards,
            workers = options.workers,
        )
    }

    fn merge(&self, program: &str) -> String {
        format!(
            "#!/bin/sh\n\
             # Merges the shards of the campaign {}. Written by `flipwave submit`.\n\
             exec {program} merge {} --wait {MERGE_WAIT}\n",
            self.name,
            quoted(&self.folder),
        )
    }
}

/// Checks that a path fits in one line. Batch systems parse lines of scripts as options, regardless of
/// shell quoting.
fn check_lines(path: &Path) -> Result<(), SubmitError> {
    match path.to_str() {
        Some(text) if !text.contains(char::is_control) => Ok(()),
        _ => Err(SubmitError::Lines { path: path.to_owned() }),
    }
}

/// Quotes a path as a word of a shell command.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-,+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn shell_reads_quoted_paths_verbatim() {
        for path in ["plain/a-b_c.yaml", "two words", "it's $HOME; rm *", "\"\\", ""] {
            let line = format!("printf %s {}", quoted(Path::new(path)));
            let output = Command::new("sh").args(["-c", &line]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), path);
        }
    }
}
