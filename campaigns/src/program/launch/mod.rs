//! Runs kernels once on this machine's GPU through AMD's runtime or NVIDIA's driver, in a separate program that
//! campaigns treat like an application.

pub(crate) mod error;
mod gpu;
mod injection;
pub(crate) mod order;

use crate::application::{
    Application, ApplicationGpus, CommandLine, Comparison, Format, Nondeterminism, Output,
};
use crate::attached::error::AttachError;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::kernels::{BufferRole, Kernels};
use crate::program::error::PrepareError;
use crate::program::launch::error::LaunchError;
use crate::results::folder::FolderError;
use flipwave_device::Completion;
use flipwave_host::cache::cache_folder;
use flipwave_injector::{Buffer, Program};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The file with the addresses of a run's buffers, next to its outputs.
pub(crate) const ADDRESSES: &str = "addresses.json";

/// Number of golden runs of a campaign whose kernels run on hardware.
const GOLDEN_RUNS: u32 = 2;

/// Result of running a program once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Name of the GPU.
    pub gpu: String,
    /// Names of the launched kernels, in order.
    pub kernels: Vec<String>,
    /// Name of each output buffer, and the file with its content.
    pub outputs: Vec<(String, PathBuf)>,
}

/// Runs the kernels of a campaign once on this machine's first GPU, and writes the outputs to a folder.
///
/// # Errors
/// [`CampaignError`] if there is no GPU, if the program cannot be prepared or does not complete, if files
/// cannot be written, or if the campaign is cancelled.
pub fn launch(campaign: &Campaign, folder: &Path) -> Result<Launched, CampaignError> {
    campaign.unless_cancelled(run(campaign, folder))
}

fn run(campaign: &Campaign, folder: &Path) -> Result<Launched, CampaignError> {
    let kernels = campaign.kernels().ok_or(PrepareError::Application)?;
    let (mut gpu, program) = gpu::load(campaign, kernels)?;
    let Program { dispatches, buffers, outputs, .. } = program;
    std::fs::create_dir_all(folder).map_err(|reason| failed(folder, reason))?;
    let addresses: Vec<u64> = buffers.iter().map(|buffer| buffer.address.0).collect();
    // Numbers are always JSON.
    let text = serde_json::to_string(&addresses).unwrap_or_default();
    write(&folder.join(ADDRESSES), text.as_bytes())?;
    for (number, dispatch) in dispatches.iter().enumerate() {
        if let Completion::Faulted(fault) = gpu.dispatch(number as u32, dispatch)? {
            let (dispatch, kernel) = (number, dispatch.kernel.clone());
            let fault = Box::new(fault);
            return Err(LaunchError::Faulted { dispatch, kernel, fault }.into());
        }
    }
    gpu.finish();
    let mut files = Vec::new();
    for (number, Buffer { name, address, bytes }) in outputs.into_iter().enumerate() {
        let mut content = vec![0; bytes];
        gpu.read(address, &mut content).map_err(PrepareError::from)?;
        let file = folder.join(output_file(number));
        write(&file, &content)?;
        files.push((name, file));
    }
    let kernels = dispatches.into_iter().map(|dispatch| dispatch.kernel).collect();
    Ok(Launched { gpu: gpu.name(), kernels, outputs: files })
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    flipwave_host::output::replace(file, bytes).map_err(|reason| failed(file, reason))
}

fn failed(path: &Path, reason: std::io::Error) -> FolderError {
    FolderError::Access { path: path.to_owned(), reason }
}

fn output_file(number: usize) -> String {
    format!("output-{number}.bin")
}

/// Returns the output files that [`launch`] writes to its working directory.
pub(crate) fn outputs(kernels: &Kernels) -> Vec<Output> {
    let all = kernels.buffers.iter().filter(|buffer| buffer.role != BufferRole::Data);
    all.enumerate().map(|(number, _)| Output::File(output_file(number).into())).collect()
}

/// Returns the application that runs a campaign's `kernels`: `flipwave launch`.
///
/// # Errors
/// [`AttachError::NoProgram`].
pub(crate) fn application(
    campaign: &Campaign,
    kernels: &Kernels,
) -> Result<Application, AttachError> {
    let program = std::env::current_exe().unwrap_or_default();
    if program.file_name() != Some(OsStr::new("flipwave")) {
        return Err(AttachError::NoProgram { found: program });
    }
    let file = std::path::absolute(&campaign.file).unwrap_or_else(|_| campaign.file.clone());
    let seed = campaign.seed.to_string();
    let arguments = ["launch", &file.to_string_lossy(), "--seed", &seed, "--out", "."];
    let exact = |output| Comparison::Output { output, format: Format::Exact };
    // All runs share compiled kernels.
    let cache = cache_folder().to_string_lossy().into_owned();
    Ok(Application {
        device: kernels.device,
        command: CommandLine { program, arguments: arguments.map(str::to_owned).to_vec() },
        directory: std::env::current_dir().unwrap_or_default(),
        process: None,
        gpus: ApplicationGpus::default(),
        environment: BTreeMap::from([("FLIPWAVE_CACHE".to_owned(), cache)]),
        input: Vec::new(),
        stdin: None,
        exit_code: 0,
        timeout: None,
        memory: u64::MAX,
        output: u64::MAX,
        golden_runs: GOLDEN_RUNS,
        nondeterminism: Nondeterminism::Error,
        comparisons: outputs(kernels).into_iter().map(exact).collect(),
    })
}
