//! Prepares the program of a campaign: compiles and loads code, fills buffers, and lays out kernel
//! arguments.

use crate::file::campaign::Campaign;
use crate::file::kernels::{BufferRole, Kernels, Launch};
use crate::outputs::compare::{OutputFormat, OutputRole};
use crate::platform::{Addresses, ProgramLoader};
use crate::program::buffers::Init;
use crate::program::error::PrepareError;
use crate::run::injection_path::InjectionPath;
use flipwave_device::{Address, Dispatch};
use flipwave_injector::{Buffer, Changes, Program, Workload};

/// A campaign's program, ready to run.
#[derive(Clone)]
pub struct Prepared {
    /// The device with loaded code and filled buffers, and the launches.
    pub workload: Workload,
    /// Format of each output of the workload, in order.
    pub formats: Vec<OutputFormat>,
    /// Label of each dispatch, by index. Dispatches beyond the end have none.
    pub labels: Vec<Option<String>>,
    /// Index of the process that faults are injected into, if several processes of an application dispatch
    /// kernels.
    pub process: Option<u32>,
    /// Injection path.
    pub path: InjectionPath,
    /// Source of the program.
    pub origin: Origin,
}

/// Source of a prepared program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Kernels.
    Kernels {
        /// Version of the compiler, if one was used.
        compiler: Option<String>,
    },
    /// A recorded run.
    Recording {
        /// Warnings about the meaning of the results.
        warnings: Vec<String>,
    },
}

/// Prepares a campaign's program.
///
/// # Errors
/// [`PrepareError`].
pub fn prepare(campaign: &Campaign) -> Result<Prepared, PrepareError> {
    Ok(prepare_with_software(campaign)?.0)
}

/// Prepares a campaign's program, and on the same device the launches of its software version, which does
/// the same work without emulated instructions.
///
/// # Errors
/// [`PrepareError`].
pub(crate) fn prepare_with_software(
    campaign: &Campaign,
) -> Result<(Prepared, Vec<Dispatch>), PrepareError> {
    let kernels = campaign.kernels().ok_or(PrepareError::Application)?;
    let target = &campaign.target;
    let mut machine = target.platform().machine(target.architecture())?;
    let LoadedProgram { program, software, formats, compiler } =
        load_program(campaign, kernels, &mut *machine)?;
    let (device, cancellation) = (machine.into_simulator(), campaign.cancellation.clone());
    let workload = Workload { device, program, cancellation };
    let labels = kernels.launches.iter().map(|launch| launch.label.clone()).collect();
    let (path, origin) = (InjectionPath::Embedded, Origin::Kernels { compiler });
    Ok((Prepared { workload, formats, labels, path, process: None, origin }, software))
}

/// A campaign's kernels and buffers, loaded to a device.
pub(crate) struct LoadedProgram {
    pub program: Program,
    pub software: Vec<Dispatch>,
    pub formats: Vec<OutputFormat>,
    pub compiler: Option<String>,
}

/// Loads the code of a campaign's `kernels` to a device, and fills the buffers.
///
/// # Errors
/// [`PrepareError`].
pub(crate) fn load_program(
    campaign: &Campaign,
    kernels: &Kernels,
    loader: &mut dyn ProgramLoader,
) -> Result<LoadedProgram, PrepareError> {
    for launch in kernels.launches.iter().chain(&kernels.software) {
        loader.load(&launch.code)?;
    }

    // Reject invalid launches before buffers take time and memory.
    let nowhere = Addresses::new(kernels, vec![Address(0); kernels.buffers.len()]);
    dispatches(loader, &kernels.launches, &nowhere)?;
    dispatches(loader, &kernels.software, &nowhere)?;

    // Buffers can contain addresses of later buffers.
    let mut addresses = Vec::new();
    for buffer in &kernels.buffers {
        let size = buffer.element.bytes_of(buffer.count as u64).unwrap_or_default();
        addresses.push(loader.allocate(size)?);
    }
    let addresses = Addresses::new(kernels, addresses);
    loader.create_heap(kernels.heap)?;
    let (mut buffers, mut outputs) = (Vec::new(), Vec::new());
    let mut formats = Vec::new();
    for (buffer, &address) in kernels.buffers.iter().zip(addresses.buffers()) {
        let mut bytes = buffer
            .contents(campaign.seed)
            .map_err(|reason| PrepareError::Buffer { buffer: buffer.name.clone(), reason })?;
        if let Init::Image(image) = &buffer.init {
            bytes = addresses.value(image);
        }
        loader.write(address, &bytes)?;
        let (name, bytes) = (buffer.name.clone(), bytes.len());
        let memory = Buffer { name, address, bytes };
        let role = match buffer.role {
            BufferRole::Data => None,
            BufferRole::Output(tolerance) => Some(OutputRole::Result(tolerance)),
            BufferRole::Detector => Some(OutputRole::Detector(buffer.name.clone())),
        };
        if let Some(role) = role {
            outputs.push(memory.clone());
            let (element, extents) = (buffer.element, buffer.extents);
            formats.push(OutputFormat { element, extents, role });
        }
        buffers.push(memory);
    }

    let software = dispatches(loader, &kernels.software, &addresses)?;
    let dispatches = dispatches(loader, &kernels.launches, &addresses)?;
    let compiler = loader.compiler();
    let program = Program { dispatches, changes: Changes::default(), buffers, outputs };
    Ok(LoadedProgram { program, software, formats, compiler })
}

/// Lays out launches whose code is loaded.
fn dispatches(
    loader: &dyn ProgramLoader,
    launches: &[Launch],
    addresses: &Addresses,
) -> Result<Vec<Dispatch>, PrepareError> {
    let launches = launches.iter().enumerate();
    launches.map(|(index, launch)| loader.dispatch(index, launch, addresses)).collect()
}
