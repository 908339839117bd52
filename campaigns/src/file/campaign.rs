//! The validated content of a campaign file.

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

/// A validated campaign file.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Name of the campaign. The default results folder is named after it.
    pub name: String,
    /// Seed of random buffer contents and of fault sites.
    pub seed: u64,
    /// Path of the campaign file.
    pub file: PathBuf,
    /// GPU that the code is compiled for and executed on.
    pub target: Target,
    /// Program that faults are injected into.
    pub workload: CampaignWorkload,
    /// Faults to inject; `None` if the file has no `faults`.
    pub faults: Option<Faults>,
    /// Suspicious properties that are permitted.
    pub allow: Vec<Suspicion>,
    /// Judge of the severity of SDC, if any.
    pub severity: Option<JudgeSettings>,
    /// File format of the rows.
    pub format: ResultsFormat,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// SHA-256 of the file's content without comments, name, seed and the number of faults.
    pub content: String,
    /// Token that cancels runs of the campaign. A new token is created when the file is read.
    pub cancellation: CancellationToken,
}

/// Program that faults are injected into.
#[derive(Clone, Debug, PartialEq)]
pub enum CampaignWorkload {
    /// Kernels and their buffers.
    Kernels(Kernels),
    /// An application.
    Application(Application),
    /// A recorded run of an application, replayed on the embedded GPU.
    Capture(CaptureSource),
}

/// Kernels and their buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernels {
    /// Device that executes the kernels during injections.
    pub device: CampaignDevice,
    /// Buffers of all launches, in the order of definition.
    pub buffers: Vec<Buffer>,
    /// Launches, in order.
    pub launches: Vec<Launch>,
    /// Proxy instructions.
    pub instructions: Vec<Instruction>,
    /// Launches of the software version, which uses no proxy instructions.
    pub software: Vec<Launch>,
}

/// A recorded run as a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSource {
    /// The file.
    pub file: PathBuf,
    /// Numbers of the dispatches that faults are injected into. The memory that these dispatches write is
    /// compared when the last of them has ended. If `None`, faults are injected into all dispatches, and
    /// the memory that the host reads is compared.
    pub dispatches: Option<RangeInclusive<u32>>,
}

/// A buffer of the workload in device memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Name in the file.
    pub name: String,
    /// Type of its elements.
    pub element: ElementType,
    /// Number of elements.
    pub count: usize,
    /// Dimensions, if declared.
    pub extents: Option<Extents>,
    /// Content before the first launch.
    pub init: Init,
    /// Use of the content after the run.
    pub role: BufferRole,
    /// File with the expected content after the golden run, compared within the tolerance.
    pub expected: Option<PathBuf>,
}

/// Use of a buffer's content after the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BufferRole {
    /// Not used.
    Data,
    /// Results, which are compared with those of the golden run.
    Output(Tolerance),
    /// Result of an error check in the program. A difference from the golden run means that the program
    /// detected the fault.
    Detector,
}

/// One kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Source of the kernel's code.
    pub code: Code,
    /// The kernel's name.
    pub kernel: String,
    /// Label for grouping results.
    pub label: Option<String>,
    /// Work-items per dimension.
    pub grid: Dim3,
    /// Work-items per workgroup and dimension.
    pub workgroup: Dim3,
    /// Bytes of dynamic LDS that no argument points to.
    pub local_memory: u32,
    /// The explicit arguments.
    pub arguments: Vec<Argument>,
    /// Maximum number of wave instructions in the golden run.
    pub instruction_limit: u64,
}

/// Source of a kernel's code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A source file, compiled by Flipwave.
    Source {
        /// OpenCL C (`.cl`) or HIP (`.hip`).
        path: PathBuf,
        /// Compiler options.
        options: Vec<String>,
    },
    /// A compiled file: an ELF file, an offload bundle or a HIP fat binary.
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
    /// Null pointer.
    Null,
    /// A value, little-endian.
    Scalar(Vec<u8>),
    /// Pointer to dynamic LDS of this many bytes.
    LocalMemory(u32),
}

impl Buffer {
    /// Returns `true` for a buffer with results.
    pub(crate) fn is_output(&self) -> bool {
        matches!(self.role, BufferRole::Output(_))
    }

    /// Returns the content before the first launch, with little-endian elements.
    ///
    /// # Errors
    /// Returns the reason why the file with the content cannot be used.
    pub fn contents(&self, seed: u64) -> Result<Vec<u8>, String> {
        self.init.bytes(&self.name, self.element, self.count, seed)
    }
}

impl Campaign {
    /// Returns the device that executes the program during injections.
    pub fn device(&self) -> CampaignDevice {
        match &self.workload {
            CampaignWorkload::Kernels(kernels) => kernels.device,
            CampaignWorkload::Application(application) => application.device,
            CampaignWorkload::Capture(_) => CampaignDevice::Embedded,
        }
    }

    /// Returns the kernels, if the workload consists of kernels.
    pub fn kernels(&self) -> Option<&Kernels> {
        match &self.workload {
            CampaignWorkload::Kernels(kernels) => Some(kernels),
            CampaignWorkload::Application(_) | CampaignWorkload::Capture(_) => None,
        }
    }

    /// Returns the proxy instructions.
    pub(crate) fn instructions(&self) -> &[Instruction] {
        self.kernels().map_or(&[], |kernels| &kernels.instructions)
    }
}
