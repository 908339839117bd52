//! Workloads of kernels: buffers, launches and their code.

use crate::file::device::CampaignDevice;
use crate::file::element::ElementType;
use crate::outputs::compare::Tolerance;
use crate::outputs::extents::Extents;
use crate::program::buffers::Init;
use crate::program::image::Image;
use flipwave_device::Dim3;
use flipwave_emulator::Instruction;
use flipwave_tools::ToolFile;
use std::path::PathBuf;

/// Kernels and their buffers.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernels {
    /// Device that executes the kernels during injections.
    pub device: CampaignDevice,
    /// Buffers of all launches, in the order of definition.
    pub buffers: Vec<Buffer>,
    /// Pointers in arguments and in buffers.
    pub pointers: Vec<Pointer>,
    /// Bytes of memory for device-side `malloc`; `None` for the default.
    pub heap: Option<u64>,
    /// Launches, in order.
    pub launches: Vec<Launch>,
    /// Proxy instructions.
    pub instructions: Vec<Instruction>,
    /// Tool that checks the program, if any.
    pub detector: Option<ToolFile>,
    /// Launches of the software version, which uses no proxy instructions.
    pub software: Vec<Launch>,
}

/// A pointer to a buffer or into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Index of the buffer in [`Kernels::buffers`].
    pub buffer: usize,
    /// Distance from the start of the buffer, in bytes.
    pub offset: u64,
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
    /// Pointer into a buffer, by its index in [`Kernels::pointers`].
    Pointer(usize),
    /// A value: a scalar, an array, a struct or bytes.
    Value(Image),
    /// Pointer to dynamic LDS of this many bytes.
    LocalMemory(u32),
}

impl Buffer {
    /// Returns `true` for a buffer with results.
    pub(crate) fn is_output(&self) -> bool {
        matches!(self.role, BufferRole::Output(_))
    }

    /// Returns the content before the first launch, with little-endian elements. Addresses of buffers are
    /// zero.
    ///
    /// # Errors
    /// Returns the reason why the file with the content cannot be used.
    pub fn contents(&self, seed: u64) -> Result<Vec<u8>, String> {
        self.init.bytes(&self.name, self.element, self.count, seed)
    }
}
