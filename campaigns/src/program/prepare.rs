//! Prepares the program of a campaign: compiles and loads code, fills buffers, and lays out kernel
//! arguments.

use crate::file::campaign::{Argument, BufferRole, Campaign, Code, Kernels, Launch};
use crate::outputs::compare::{OutputFormat, OutputRole};
use crate::program::compile::{CompileError, Compiler};
use crate::program::object_file::{ObjectFileError, read_code_object};
use crate::run::injection_path::InjectionPath;
use flipwave_codeobj::{CodeObject, Kernel};
use flipwave_device::{
    Address, ArgumentValue, Device, DeviceError, Dispatch, KernargError, ModuleId,
    layout_with_dynamic_lds,
};
use flipwave_host::output::printable;
use flipwave_injector::{Buffer, Changes, Program, Workload, demangled_kernel, kernel_is_called};
use flipwave_isa::Target;
use flipwave_sim::EmbeddedGpu;
use std::collections::BTreeMap;
use std::path::PathBuf;

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

/// Errors returned when a campaign's program cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The workload is an application or a capture, but kernels and buffers are required.
    #[error(
        "the workload is an application or a capture; this command requires a workload of kernels, \
         `kernel` or `dispatches`"
    )]
    Application,
    /// A source cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A file contains no usable code object.
    #[error(transparent)]
    ObjectFile(#[from] ObjectFileError),
    /// The device cannot load a code object.
    #[error("{}: {reason}", path.display())]
    Load {
        /// The source or code object.
        path: PathBuf,
        /// Cause.
        reason: DeviceError,
    },
    /// A kernel does not exist.
    #[error("{} has no kernel `{wanted}`; {}", path.display(), kernel_list(present))]
    UnknownKernel {
        /// The source or code object.
        path: PathBuf,
        /// Name of the kernel.
        wanted: String,
        /// Names of the existing kernels.
        present: Vec<String>,
    },
    /// The arguments do not match the kernel.
    #[error("launch {launch}: {reason}")]
    Arguments {
        /// Index of the launch, from 0.
        launch: usize,
        /// Cause.
        reason: KernargError,
    },
    /// A buffer cannot be filled.
    #[error("buffer `{buffer}`: {reason}")]
    Buffer {
        /// The buffer.
        buffer: String,
        /// Cause.
        reason: String,
    },
    /// The device rejected a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn kernel_list(present: &[String]) -> String {
    match present {
        [] => "it has no kernels".to_owned(),
        names => format!("it has: {}", names.join(", ")),
    }
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
    let mut device = EmbeddedGpu::new(campaign.target.clone())?;
    let LoadedProgram { program, software, formats, compiler } =
        load_program(campaign, kernels, &mut device)?;
    let (guests, cancellation) = (BTreeMap::new(), campaign.cancellation.clone());
    let workload = Workload { device, program, guests, cancellation };
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
pub(crate) fn load_program<D: Device>(
    campaign: &Campaign,
    kernels: &Kernels,
    device: &mut D,
) -> Result<LoadedProgram, PrepareError> {
    let mut modules = Modules::default();
    for launch in kernels.launches.iter().chain(&kernels.software) {
        modules.load(&launch.code, &campaign.target, device)?;
    }

    let dispatches = |launches: &[Launch], addresses: &[Address]| {
        let launches = launches.iter().enumerate();
        let dispatch = |(index, launch)| modules.dispatch(index, launch, addresses);
        launches.map(dispatch).collect::<Result<Vec<Dispatch>, PrepareError>>()
    };
    // Reject invalid launches before buffers take time and memory.
    let nowhere = vec![Address(0); kernels.buffers.len()];
    dispatches(&kernels.launches, &nowhere)?;
    dispatches(&kernels.software, &nowhere)?;

    let mut addresses = Vec::new();
    let (mut buffers, mut outputs) = (Vec::new(), Vec::new());
    let mut formats = Vec::new();
    for buffer in &kernels.buffers {
        let bytes = buffer
            .contents(campaign.seed)
            .map_err(|reason| PrepareError::Buffer { buffer: buffer.name.clone(), reason })?;
        let address = device.allocate(bytes.len() as u64)?;
        device.write(address, &bytes)?;
        addresses.push(address);
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

    let software = dispatches(&kernels.software, &addresses)?;
    let dispatches = dispatches(&kernels.launches, &addresses)?;
    let compiler = modules.compiler.map(|compiler| compiler.version().to_owned());
    let program = Program { dispatches, changes: Changes::default(), buffers, outputs };
    Ok(LoadedProgram { program, software, formats, compiler })
}

/// Loaded code objects.
#[derive(Default)]
struct Modules {
    /// Set when the first source is compiled.
    compiler: Option<Compiler>,
    loaded: Vec<Module>,
}

struct Module {
    code: Code,
    object: CodeObject,
    id: ModuleId,
}

impl Modules {
    /// Loads `code`, unless an earlier launch uses it.
    fn load<D: Device>(
        &mut self,
        code: &Code,
        target: &Target,
        device: &mut D,
    ) -> Result<(), PrepareError> {
        if self.find(code).is_some() {
            return Ok(());
        }
        let (path, object) = match code {
            Code::Source { path, options } => {
                let compiler = match self.compiler.take() {
                    Some(compiler) => compiler,
                    None => Compiler::find()?,
                };
                let bytes = self.compiler.insert(compiler).compile(path, options, target)?;
                let failed = |reason| ObjectFileError::CodeObject { path: path.clone(), reason };
                (path, CodeObject::parse(&bytes).map_err(failed)?)
            }
            Code::Object { path } => (path, read_code_object(path, Some(target))?),
        };
        let id = device
            .load(&object)
            .map_err(|reason| PrepareError::Load { path: path.clone(), reason })?;
        self.loaded.push(Module { code: code.clone(), object, id });
        Ok(())
    }

    fn find(&self, code: &Code) -> Option<&Module> {
        self.loaded.iter().find(|module| module.code == *code)
    }

    fn dispatch(
        &self,
        index: usize,
        launch: &Launch,
        addresses: &[Address],
    ) -> Result<Dispatch, PrepareError> {
        let (module, kernel) = self.kernel(launch)?;
        let values: Vec<ArgumentValue> = launch
            .arguments
            .iter()
            .map(|argument| match argument {
                Argument::Buffer(buffer) => ArgumentValue::Buffer(addresses[*buffer]),
                Argument::Null => ArgumentValue::Null,
                Argument::Scalar(bytes) => ArgumentValue::Bytes(bytes.clone()),
                Argument::LocalMemory(bytes) => ArgumentValue::DynamicLds(*bytes),
            })
            .collect();
        let Launch { grid, workgroup, local_memory, .. } = *launch;
        let layout = layout_with_dynamic_lds(kernel, &values, grid, workgroup, local_memory)
            .map_err(|reason| PrepareError::Arguments { launch: index, reason })?;
        Ok(Dispatch {
            module,
            kernel: kernel.name.to_string(),
            grid,
            workgroup,
            kernarg: layout.kernarg,
            dynamic_lds: layout.dynamic_lds,
            instruction_limit: launch.instruction_limit,
            queued: None,
        })
    }

    fn kernel(&self, launch: &Launch) -> Result<(ModuleId, &Kernel), PrepareError> {
        let module = self.find(&launch.code);
        let kernel = module.and_then(|module| {
            let exact = module.object.kernel(&launch.kernel);
            let is_called = |kernel: &&Kernel| kernel_is_called(&kernel.name, &launch.kernel);
            let mut called = module.object.kernels().iter().filter(is_called);
            // An ambiguous source name matches no kernel.
            let only = called.next().filter(|_| called.next().is_none());
            Some((module.id, exact.or(only)?))
        });
        kernel.ok_or_else(|| PrepareError::UnknownKernel {
            path: match &launch.code {
                Code::Source { path, .. } | Code::Object { path } => path.clone(),
            },
            wanted: launch.kernel.clone(),
            present: module
                .map_or(&[][..], |module| module.object.kernels())
                .iter()
                .map(|kernel| printable(&demangled_kernel(&kernel.name)).into_owned())
                .collect(),
        })
    }
}
