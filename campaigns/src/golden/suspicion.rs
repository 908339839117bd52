//! Properties of a campaign that usually mean a mistake, and the errors that report them.

use flipwave_device::demangled_kernel;
use flipwave_machine::OutsideSegment;
use schemars::JsonSchema;
use serde::Deserialize;

/// Suspicious properties that a campaign file must permit with `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "the name of what is allowed, for example `unwritten_output`")]
pub enum Suspicion {
    /// The golden run accesses LDS outside the allocation of its workgroup.
    OutsideLocalMemory,
    /// The golden run accesses private memory outside the allocation of a work-item.
    OutsidePrivateMemory,
    /// The golden run writes nothing to an output. For applications, everything compared is empty.
    UnwrittenOutput,
    /// An output of the golden run contains only NaN.
    NanOutput,
    /// A tolerance accepts every number.
    UnlimitedTolerance,
    /// `options` may make the compiler write other files or load code.
    CompilerPlugins,
    /// The detector finds violations in the golden run.
    GoldenDetection,
}

/// Errors returned when a golden run makes outcomes meaningless.
#[derive(Debug, thiserror::Error)]
pub enum SuspicionError {
    /// A kernel accesses LDS outside the allocation of its workgroup. Hardware reads zeros there and drops
    /// writes.
    #[error(
        "the golden run accesses LDS outside its allocation in dispatch {dispatch} (kernel `{}`): \
         {violation}; hardware reads zero there and drops writes. Give the launch the dynamic LDS \
         that the host code requests with `local_memory: BYTES`; if the access is intended, use \
         `allow: [outside_local_memory]`",
        demangled_kernel(kernel)
    )]
    OutsideLocalMemory {
        /// Index of the dispatch.
        dispatch: u32,
        /// Name of the kernel.
        kernel: String,
        /// The first invalid access.
        violation: Box<OutsideSegment>,
    },
    /// A work-item accesses private memory outside its allocation, which belongs to other work-items.
    #[error(
        "the golden run accesses private memory outside its allocation in dispatch {dispatch} (kernel \
         `{}`): {violation}; that memory belongs to other work-items. Correct the index; if the \
         access is intended, use `allow: [outside_private_memory]`",
        demangled_kernel(kernel)
    )]
    OutsidePrivateMemory {
        /// Index of the dispatch.
        dispatch: u32,
        /// Name of the kernel.
        kernel: String,
        /// The first invalid access.
        violation: Box<OutsideSegment>,
    },
    /// The golden run writes nothing to an output, so every faulty run would be masked.
    #[error(
        "the golden run writes nothing to the output `{buffer}`, so every faulty run would look correct; \
         mark the buffer that contains results, or if this is intended, use `allow: [unwritten_output]`"
    )]
    UnwrittenOutput {
        /// Name of the output.
        buffer: String,
    },
    /// Everything that is compared is empty after the golden run of an application.
    #[error(
        "everything that is compared is empty after the golden run: {outputs}; every faulty run would look \
         correct. Compare outputs that contain results, or if this is intended, use \
         `allow: [unwritten_output]`"
    )]
    NothingCompared {
        /// The outputs that are compared.
        outputs: String,
    },
    /// An output contains only NaN, and all NaNs compare as equal.
    #[error(
        "the output `{buffer}` contains only NaN after the golden run, and all NaNs compare as equal; check \
         the contents of the buffers, or if this is intended, use `allow: [nan_output]`"
    )]
    NanOutput {
        /// Name of the output.
        buffer: String,
    },
    /// The detector finds violations without a fault.
    #[error(
        "the detector `{name}` finds {detections} violations in the golden run; correct its check, or if runs \
         with another number shall be detected, use `allow: [golden_detection]`"
    )]
    GoldenDetection {
        /// Name of the detector.
        name: String,
        /// The number of violations.
        detections: u64,
    },
    /// A tolerance accepts every number.
    #[error(
        "the tolerance of the output `{buffer}` accepts every number; reduce it under `compare`, or if \
         this is intended, use `allow: [unlimited_tolerance]`"
    )]
    UnlimitedTolerance {
        /// Name of the output.
        buffer: String,
    },
}
