//! One run of an application.

use super::Application;
use super::comparison::{Comparison, Output};
use super::error::ApplicationError;
use super::process::{self, Ended, Finished, Limits};
use super::scratch::Scratch;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// An application that ran. The folder that it ran in is removed when this is dropped.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Wall-clock time that it took.
    pub elapsed: Duration,
    pub(super) scratch: Scratch,
}

impl Ran {
    /// What the run put out; nothing if it left no such file.
    ///
    /// # Errors
    /// [`ApplicationError::Read`].
    pub fn output(&self, output: &Output) -> Result<Option<Cow<'_, [u8]>>, ApplicationError> {
        let path = match output {
            Output::Stdout => return Ok(Some(Cow::from(&self.stdout))),
            Output::Stderr => return Ok(Some(Cow::from(&self.stderr))),
            Output::File(path) => self.scratch.files().join(path),
        };
        match flipwave_host::input::read(&path, flipwave_host::input::BINARY) {
            Ok(bytes) => Ok(Some(Cow::from(bytes))),
            // A FIFO or a device is no output either.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
                Ok(None)
            }
            Err(reason) => Err(ApplicationError::Read { path, reason }),
        }
    }
}

impl Application {
    /// What of a run is compared without a check, in the order of the comparisons; empty where it is missing.
    ///
    /// # Errors
    /// [`ApplicationError::Read`].
    pub fn compared_outputs(&self, ran: &Ran) -> Result<Vec<Vec<u8>>, ApplicationError> {
        let outputs = self.comparisons.iter().filter_map(|own| match own {
            Comparison::Output { output, .. } => Some(output),
            Comparison::Check(_) => None,
        });
        outputs.map(|output| Ok(ran.output(output)?.unwrap_or_default().into_owned())).collect()
    }

    /// Runs the application in a new folder with copies of its inputs, with `environment` added to
    /// its own. Ends when it does, or at a limit; nothing that it started is left then, in whatever
    /// session it is. Where this process is killed itself, the same holds; the folder stays.
    ///
    /// Standard input is a file or empty, addresses are not randomised, no core file is written,
    /// and no variable of this process is passed on but PATH.
    ///
    /// # Errors
    /// [`ApplicationError`] if the run cannot be prepared, started or watched, if the disk is
    /// full, and when `interrupt` becomes true.
    pub fn run(
        &self,
        environment: &BTreeMap<OsString, OsString>,
        limits: &Limits,
        interrupt: &AtomicBool,
    ) -> Result<Ran, ApplicationError> {
        let scratch = Scratch::new(&self.directory, &self.input)?;
        let mut all = self.environment(&scratch);
        all.extend(environment.clone());
        let stdin = self.stdin.as_deref();
        let finished = process::run(&self.command, &all, &scratch, stdin, limits, interrupt)?;
        if scratch.disk_is_full() {
            return Err(ApplicationError::DiskFull);
        }
        let Finished { ended, stdout, stderr, elapsed } = finished;
        if self.comparisons.iter().any(|own| matches!(own, Comparison::Check(_))) {
            let kept = std::fs::write(scratch.stdout(), &stdout)
                .and_then(|()| std::fs::write(scratch.stderr(), &stderr));
            kept.map_err(|reason| ApplicationError::Scratch { reason })?;
        }
        Ok(Ran { ended, stdout, stderr, elapsed, scratch })
    }

    /// The environment of a run: PATH as this process has it, so that programs are found; a home
    /// and a folder for temporary files that are the run's own; the language and time zone in
    /// which output is the same everywhere; and what the campaign file adds.
    pub(super) fn environment(&self, scratch: &Scratch) -> BTreeMap<OsString, OsString> {
        let files = scratch.files().into_os_string();
        let mut environment = BTreeMap::from([
            ("HOME".into(), files.clone()),
            ("TMPDIR".into(), files),
            ("LANG".into(), "C".into()),
            ("LC_ALL".into(), "C".into()),
            ("TZ".into(), "UTC".into()),
        ]);
        environment.extend(std::env::var_os("PATH").map(|path| ("PATH".into(), path)));
        let own = self.environment.iter();
        environment.extend(own.map(|(name, value)| (name.into(), value.into())));
        environment
    }
}
