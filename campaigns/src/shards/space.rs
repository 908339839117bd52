//! Site space of a campaign: everything except the seed that determines the fault site and the
//! result of each injection.

use crate::application::Application;
use crate::digest::hexadecimal;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::program::prepare::Prepared;
use crate::results::folder::FolderError;
use crate::run::injection_path::InjectionPath;
use flipwave_device::DeviceError;
use flipwave_injector::Workload;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::path::Path;

/// Size of a read in bytes.
const BLOCK: usize = 1 << 20;

/// Digests of a campaign's site space.
pub(crate) struct Space {
    /// SHA-256 of the program: its dispatches and the initial device memory.
    pub program: String,
    /// SHA-256 of everything that determines rows except the seed.
    pub sites: String,
}

impl Space {
    /// Computes the space of a campaign. `drawn` describes the properties of the sampling that
    /// determine the site of an index.
    ///
    /// # Errors
    /// [`FolderError::Unread`] for files of the workload that cannot be read.
    pub fn new(
        campaign: &Campaign,
        prepared: &Prepared,
        path: InjectionPath,
        drawn: &str,
    ) -> Result<Space, FolderError> {
        let program = match &campaign.workload {
            CampaignWorkload::Kernels(_) => memory(&prepared.workload)
                .map_err(|reason| unreadable(&campaign.file, io::Error::other(reason)))?,
            CampaignWorkload::Capture(source) => files([source.file.as_path()])?,
            CampaignWorkload::Application(application) => application_files(application)?,
        };
        let sites = sites(&campaign.content, &program, path, drawn);
        Ok(Space { program, sites })
    }

    /// Key of the campaign's stored golden run in this format.
    pub fn golden_key(&self, campaign: &Campaign, format: u32, has_footprints: bool) -> String {
        let footprints = if has_footprints { "touched" } else { "" };
        let (version, format) = (env!("CARGO_PKG_VERSION"), format.to_string());
        text_digest(&["survey", version, &format, &campaign.content, &self.program, footprints])
    }
}

/// Digest of everything that determines rows except the seed: the content of the campaign file, the
/// digest of the program, the injection mechanism, and the sampling. A change of the digest between
/// versions requires another [`ShardPlan::FORMAT`](super::ShardPlan::FORMAT).
pub(crate) fn sites(content: &str, program: &str, path: InjectionPath, drawn: &str) -> String {
    let path = match path {
        InjectionPath::Embedded => "embedded",
        InjectionPath::Hook => "hook",
    };
    text_digest(&["sites", content, program, path, drawn])
}

/// Digest of a list of texts.
fn text_digest(texts: &[&str]) -> String {
    digest(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>())
}

/// Digest of a list of words. Includes their lengths, so that different lists have different
/// digests.
pub(super) fn digest(words: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    words.iter().for_each(|word| add(&mut digest, word));
    hexadecimal(&digest.finalize())
}

fn add(digest: &mut Sha256, bytes: &[u8]) {
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}

/// Digest of the dispatches of a program, and of the initial device memory with code and data.
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

/// Digest of an application's program and inputs, without the libraries that it loads.
fn application_files(application: &Application) -> Result<String, FolderError> {
    let directory = &application.directory;
    let mut paths = vec![application.command.program.clone()];
    paths.extend(application.stdin.iter().map(|stdin| directory.join(stdin)));
    for input in &application.input {
        for entry in walkdir::WalkDir::new(directory.join(input)).sort_by_file_name() {
            let entry = entry.map_err(|error| unreadable(input, error.into()))?;
            if entry.file_type().is_file() {
                paths.push(entry.into_path());
            }
        }
    }
    files(paths.iter().map(|path| path.as_path()))
}

/// Digest of the contents of files.
fn files<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Result<String, FolderError> {
    let mut digest = Sha256::new();
    let mut block = vec![0; BLOCK];
    for path in paths {
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
        read().map_err(|reason| unreadable(path, reason))?;
    }
    Ok(hexadecimal(&digest.finalize()))
}

fn unreadable(path: &Path, reason: io::Error) -> FolderError {
    FolderError::Unread { path: path.to_owned(), reason }
}
