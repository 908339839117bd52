//! A campaign, checked: what its file says, with every value in range and every name known.

use crate::application::Application;
use crate::file::device::CampaignDevice;
use crate::file::element::ElementType;
use crate::file::faults::Faults;
use crate::file::schema::ResultsFormat;
use crate::golden::suspicion::Suspicion;
use crate::outputs::compare::Tolerance;
use crate::outputs::extents::Extents;
use crate::program::buffers::Init;
use crate::severity::JudgeSettings;
use flipwave_device::Dim3;
use flipwave_emulator::Instruction;
use flipwave_injector::CancellationToken;
use flipwave_isa::Target;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What a campaign file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Name of the campaign; results are called after it.
    pub name: String,
    /// Seed of buffer contents and of the fault sites.
    pub seed: u64,
    /// The file.
    pub file: PathBuf,
    /// The GPU that code is compiled for and run on.
    pub target: Target,
    /// What faults are injected into.
    pub workload: CampaignWorkload,
    /// What to inject; nothing where the file says nothing of faults.
    pub faults: Option<Faults>,
    /// What the fault-free run may do though it is suspicious.
    pub allow: Vec<Suspicion>,
    /// Who judges how bad SDC is; nobody where the file says nothing of that.
    pub severity: Option<JudgeSettings>,
    /// In what form rows are written.
    pub format: ResultsFormat,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// SHA-256 of what the file says but for comments, name, seed and the number of faults.
    pub content: String,
    /// Who looks after its runs; nobody as it comes from the file.
    pub cancellation: CancellationToken,
}

/// What faults are injected into.
#[derive(Clone, Debug, PartialEq)]
pub enum CampaignWorkload {
    /// Kernels, and the buffers that they work on.
    Kernels(Kernels),
    /// An application.
    Application(Application),
    /// The recorded run of an application. It is replayed on the embedded GPU.
    Capture(CaptureSource),
}

/// Kernels, and the buffers that they work on.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernels {
    /// What they run on while faults are injected.
    pub device: CampaignDevice,
    /// The buffers of all launches, in the order of their definition.
    pub buffers: Vec<Buffer>,
    /// What to launch, in order.
    pub launches: Vec<Launch>,
    /// Instructions that the target lacks.
    pub instructions: Vec<Instruction>,
    /// The same work without them, to be compared.
    pub software: Vec<Launch>,
}

/// A recorded run as a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSource {
    /// The file.
    pub file: PathBuf,
    /// The dispatches that count, by number: faults strike in them, and what they have written is
    /// compared when the last of them has ended. All, and what the host read, if not said.
    pub dispatches: Option<RangeInclusive<u32>>,
}

/// Device memory of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Its name in the file.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
    /// Number of elements.
    pub count: usize,
    /// Its dimensions, where they are declared.
    pub extents: Option<Extents>,
    /// What it holds before the first launch.
    pub init: Init,
    /// What it is looked at for afterwards.
    pub role: BufferRole,
    /// The file of what it must hold after the fault-free run, within the tolerance.
    pub expected: Option<PathBuf>,
}

/// What a buffer is looked at for after the program has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferRole {
    /// Nothing.
    Data,
    /// Results: they are compared with those of the fault-free run.
    Output(Tolerance),
    /// The verdict of the program's own check: anything else than in the fault-free run means that
    /// the program noticed the fault.
    Detector,
}

/// One kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Where the kernel's code comes from.
    pub code: Code,
    /// The kernel's name.
    pub kernel: String,
    /// What it is a part of, in the words of the file.
    pub label: Option<String>,
    /// Work-items per dimension.
    pub grid: Dim3,
    /// Work-items of a workgroup per dimension.
    pub workgroup: Dim3,
    /// Bytes of dynamic LDS to which no argument points.
    pub local_memory: u32,
    /// The explicit arguments.
    pub arguments: Vec<Argument>,
    /// Wave instructions after which a fault-free run of it is said not to end.
    pub instruction_limit: u64,
}

/// Where a kernel's code comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Compiled on the fly.
    Source {
        /// OpenCL C (`.cl`) or HIP (`.hip`).
        path: PathBuf,
        /// The compiler's flags.
        options: Vec<String>,
    },
    /// Compiled before: an ELF file, an offload bundle or a HIP fat binary.
    Object {
        /// The file.
        path: PathBuf,
    },
}

/// An explicit kernel argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// Pointer to a buffer, by its index in [`Kernels::buffers`].
    Buffer(usize),
    /// Pointer to nothing.
    Null,
    /// A value, little-endian.
    Scalar(Vec<u8>),
    /// Pointer to this many bytes of dynamic LDS.
    LocalMemory(u32),
}

impl Buffer {
    /// Whether it holds results.
    pub(crate) fn is_output(&self) -> bool {
        matches!(self.role, BufferRole::Output(_))
    }

    /// The bytes it holds before the first launch, elements little-endian.
    ///
    /// # Errors
    /// Says what is wrong with the file that they should come from.
    pub fn contents(&self, seed: u64) -> Result<Vec<u8>, String> {
        self.init.bytes(&self.name, self.element, self.count, seed)
    }
}

impl Campaign {
    /// What the program runs on while faults are injected.
    pub fn device(&self) -> CampaignDevice {
        match &self.workload {
            CampaignWorkload::Kernels(kernels) => kernels.device,
            CampaignWorkload::Application(application) => application.device,
            CampaignWorkload::Capture(_) => CampaignDevice::Embedded,
        }
    }

    /// The kernels, if that is the workload.
    pub fn kernels(&self) -> Option<&Kernels> {
        match &self.workload {
            CampaignWorkload::Kernels(kernels) => Some(kernels),
            CampaignWorkload::Application(_) | CampaignWorkload::Capture(_) => None,
        }
    }

    /// The instructions that the target lacks.
    pub(crate) fn instructions(&self) -> &[Instruction] {
        self.kernels().map_or(&[], |kernels| &kernels.instructions)
    }
}
