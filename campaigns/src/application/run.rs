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

/// A completed run of an application. Dropping it removes the folder of the run.
#[derive(Debug)]
pub struct ApplicationRun {
    /// End of the run.
    pub ended: Ended,
    /// Standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// Standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Wall-clock time of the run.
    pub elapsed: Duration,
    pub(super) scratch: Scratch,
}

impl ApplicationRun {
    /// Reads an output of the run; `None` if the run left no such file.
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
            // FIFOs and devices are not outputs.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
                Ok(None)
            }
            Err(reason) => Err(ApplicationError::Read { path, reason }),
        }
    }
}

impl Application {
    /// Reads the outputs that are compared without a check, in the order of the comparisons.
    /// Missing outputs are empty.
    ///
    /// # Errors
    /// [`ApplicationError::Read`].
    pub fn compared_outputs(&self, ran: &ApplicationRun) -> Result<Vec<Vec<u8>>, ApplicationError> {
        let outputs = self.comparisons.iter().filter_map(|comparison| match comparison {
            Comparison::Output { output, .. } => Some(output),
            Comparison::Check(_) => None,
        });
        outputs.map(|output| Ok(ran.output(output)?.unwrap_or_default().into_owned())).collect()
    }

    /// Runs the application in a new folder with copies of its inputs, with `environment` added to
    /// its environment, until it ends or exceeds a limit. Then kills all of its descendants, also
    /// those in other sessions. If this process is killed, the descendants are killed too, but the
    /// folder remains.
    ///
    /// Standard input is a file or empty, addresses are not randomized, no core file is written,
    /// and PATH is the only variable inherited from this process.
    ///
    /// # Errors
    /// [`ApplicationError`] if the run cannot be prepared, started or monitored, if the disk is
    /// full, and when `interrupt` becomes `true`.
    pub fn run(
        &self,
        environment: &BTreeMap<OsString, OsString>,
        limits: &Limits,
        interrupt: &AtomicBool,
    ) -> Result<ApplicationRun, ApplicationError> {
        let scratch = Scratch::new(&self.directory, &self.input)?;
        let mut all = self.environment(&scratch);
        all.extend(environment.clone());
        let stdin = self.stdin.as_deref();
        let finished = process::run(&self.command, &all, &scratch, stdin, limits, interrupt)?;
        if scratch.disk_is_full() {
            return Err(ApplicationError::DiskFull);
        }
        let Finished { ended, stdout, stderr, elapsed } = finished;
        let is_check = |comparison: &Comparison| matches!(comparison, Comparison::Check(_));
        if self.comparisons.iter().any(is_check) {
            let written = std::fs::write(scratch.stdout(), &stdout)
                .and_then(|()| std::fs::write(scratch.stderr(), &stderr));
            written.map_err(|reason| ApplicationError::Scratch { reason })?;
        }
        Ok(ApplicationRun { ended, stdout, stderr, elapsed, scratch })
    }

    /// The environment of a run: PATH of this process, a home folder and a folder for temporary
    /// files in the run's folder, a fixed language and time zone, and the variables in the campaign
    /// file.
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
        let added = self.environment.iter();
        environment.extend(added.map(|(name, value)| (name.into(), value.into())));
        environment
    }
}
