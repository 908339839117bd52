//! The site space of a campaign: all that determines where its injection of an index strikes and what
//! comes of it, but the seed.

use crate::application::Application;
use crate::digest::hexadecimal;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::program::prepare::Prepared;
use crate::results::folder::FolderError;
use crate::run::injection_path::InjectionPath;
use flipwave_device::{Device, DeviceError};
use flipwave_injector::Workload;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;

/// How many bytes of device memory are read at once.
const BLOCK: usize = 1 << 20;

/// Digests of what a campaign's program is.
pub(crate) struct Space {
    /// SHA-256 of the program alone: what it executes, and what is in memory before.
    pub program: String,
    /// SHA-256 of all that determines rows but the seed.
    pub sites: String,
}

impl Space {
    /// The space of a campaign. `drawn` says how its sites are drawn from the population, as far as a
    /// site of an index depends on that.
    ///
    /// # Errors
    /// [`FolderError::Access`] for files of the workload that cannot be read.
    pub fn of(
        campaign: &Campaign,
        prepared: &Prepared,
        path: InjectionPath,
        drawn: &str,
    ) -> Result<Space, FolderError> {
        let program = match &campaign.workload {
            CampaignWorkload::Kernels(_) => memory(&prepared.workload)
                .map_err(|reason| access(&campaign.file, io::Error::other(reason)))?,
            CampaignWorkload::Capture(source) => files([source.file.as_path()])?,
            CampaignWorkload::Application(application) => of_application(application)?,
        };
        let sites = sites(&campaign.content, &program, path, drawn);
        Ok(Space { program, sites })
    }

    /// The name that the golden run of a campaign is kept under, which is in format `format`.
    pub fn survey(&self, campaign: &Campaign, format: u32, touched: bool) -> String {
        let touched = if touched { "touched" } else { "" };
        let (version, format) = (env!("CARGO_PKG_VERSION"), format.to_string());
        words(&["survey", version, &format, &campaign.content, &self.program, touched])
    }
}

/// Digest of all that determines rows but the seed: the content of the campaign file, the digest of the
/// program, how faults are injected, and how sites are drawn. It stays the same from version to version,
/// or [`ShardPlan::FORMAT`](super::ShardPlan::FORMAT) is raised.
pub(crate) fn sites(content: &str, program: &str, path: InjectionPath, drawn: &str) -> String {
    let path = match path {
        InjectionPath::Embedded => "embedded",
        InjectionPath::Hook => "hook",
    };
    words(&["sites", content, program, path, drawn])
}

/// Digest of texts.
fn words(words: &[&str]) -> String {
    digest(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>())
}

/// Digest of words, of which no two lists have the same.
pub(super) fn digest(words: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    words.iter().for_each(|word| add(&mut digest, word));
    hexadecimal(&digest.finalize())
}

fn add(digest: &mut Sha256, bytes: &[u8]) {
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}

/// Digest of what a program launches, and of all device memory before: code and data.
fn memory(workload: &Workload) -> Result<String, DeviceError> {
    let mut digest = Sha256::new();
    for dispatch in &workload.program.dispatches {
        add(&mut digest, dispatch.kernel.as_bytes());
        let shape = dispatch.grid.iter().chain(&dispatch.workgroup).chain([&dispatch.dynamic_lds]);
        shape.for_each(|size| digest.update(size.to_le_bytes()));
        add(&mut digest, &dispatch.kernarg);
        digest.update(dispatch.instruction_limit.to_le_bytes());
    }
    let mut block = vec![0; BLOCK];
    for (start, bytes) in workload.device.allocations() {
        digest.update(start.0.to_le_bytes());
        digest.update(bytes.to_le_bytes());
        let mut done = 0;
        while done < bytes {
            let length = (bytes - done).min(BLOCK as u64) as usize;
            let part = &mut block[..length];
            workload.device.read(flipwave_device::Address(start.0 + done), part)?;
            digest.update(&*part);
            done += length as u64;
        }
    }
    Ok(hexadecimal(&digest.finalize()))
}

/// Digest of an application's program and inputs. What it loads besides is the system's.
fn of_application(application: &Application) -> Result<String, FolderError> {
    let directory = &application.directory;
    let mut all = vec![application.command.program.clone()];
    all.extend(application.stdin.iter().map(|own| directory.join(own)));
    for input in &application.input {
        for entry in walkdir::WalkDir::new(directory.join(input)).sort_by_file_name() {
            let entry = entry.map_err(|error| access(input, error.into()))?;
            if entry.file_type().is_file() {
                all.push(entry.into_path());
            }
        }
    }
    files(all.iter().map(|own| own.as_path()))
}

fn files<'a>(all: impl IntoIterator<Item = &'a Path>) -> Result<String, FolderError> {
    let mut digest = Sha256::new();
    let mut block = vec![0; BLOCK];
    for path in all {
        let mut read = || -> io::Result<()> {
            let mut file = flipwave_host::input::open(path)?;
            digest.update(file.metadata()?.len().to_le_bytes());
            loop {
                match file.read(&mut block)? {
                    0 => return Ok(()),
                    bytes => digest.update(&block[..bytes]),
                }
            }
        };
        read().map_err(|reason| access(path, reason))?;
    }
    Ok(hexadecimal(&digest.finalize()))
}

fn access(path: &Path, reason: io::Error) -> FolderError {
    FolderError::Unread { path: path.to_owned(), reason }
}
