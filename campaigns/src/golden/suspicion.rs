//! What of a fault-free run would make outcomes mean nothing.

use flipwave_sim::strict::Violation;
use schemars::JsonSchema;
use serde::Deserialize;

/// What a campaign may do only if its file says so, under `allow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "the name of what is allowed, for example `unwritten_output`")]
pub enum Suspicion {
    /// Access LDS beyond what the workgroup has.
    OutsideLocalMemory,
    /// Access private memory beyond what a work-item has.
    OutsidePrivateMemory,
    /// Leave an output as it is: of an application all that is compared empty.
    UnwrittenOutput,
    /// Leave no number in an output, only NaN.
    NanOutput,
    /// Have a tolerance that calls every number right.
    UnlimitedTolerance,
    /// Have `options` with which the compiler writes other files or loads code.
    CompilerPlugins,
}

/// A fault-free run beside which outcomes would mean nothing.
#[derive(Debug, thiserror::Error)]
pub enum SuspicionError {
    /// It reads zero where the program expects its data, or loses what it writes.
    #[error(
        "the fault-free run leaves its LDS in dispatch {dispatch} (kernel `{kernel}`): {}, at \
         {}{}, {}; hardware reads zero there and drops what is written. Give the launch the dynamic \
         LDS that the host code asks for, `local_memory: BYTES`; if the kernel is meant to do \
         this, say so with `allow: [outside_local_memory]`",
        violation.finding, violation.place, line(violation), violation.wave
    )]
    OutsideLocalMemory {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// The first such access.
        violation: Box<Violation>,
    },
    /// It reads or overwrites what belongs to other work-items.
    #[error(
        "the fault-free run leaves its private memory in dispatch {dispatch} (kernel `{kernel}`): {}, \
         at {}{}, {}; other work-items have theirs there. Mend the index; if the kernel is meant to do \
         this, say so with `allow: [outside_private_memory]`",
        violation.finding, violation.place, line(violation), violation.wave
    )]
    OutsidePrivateMemory {
        /// Index of the dispatch.
        dispatch: u32,
        /// Its kernel.
        kernel: String,
        /// The first such access.
        violation: Box<Violation>,
    },
    /// Nothing to compare.
    #[error(
        "the fault-free run writes nothing to the output `{buffer}`: faulty runs would be right \
         whatever they compute; mark the buffer that holds results, or if it is meant, say so with \
         `allow: [unwritten_output]`"
    )]
    UnwrittenOutput {
        /// The output.
        buffer: String,
    },
    /// Nothing to compare, of an application.
    #[error(
        "all that is compared is empty after a run without a fault: {outputs}; runs with faults would \
         be right whatever they compute. Compare what holds results, or if it is meant, say so with \
         `allow: [unwritten_output]`"
    )]
    NothingCompared {
        /// What is compared.
        outputs: String,
    },
    /// No numbers to compare.
    #[error(
        "the fault-free run leaves nothing but NaN in the output `{buffer}`: every NaN is as right \
         as another; look at the buffers' contents, or if it is meant, say so with `allow: \
         [nan_output]`"
    )]
    NanOutput {
        /// The output.
        buffer: String,
    },
    /// Nothing is wrong.
    #[error(
        "the tolerance of the output `{buffer}` calls every number right; narrow it under `compare`, \
         or if it is meant, say so with `allow: [unlimited_tolerance]`"
    )]
    UnlimitedTolerance {
        /// The output.
        buffer: String,
    },
}

/// Where in the source a violation is, in brackets.
fn line(violation: &Violation) -> String {
    let line = violation.line.as_ref();
    line.map(|own| format!(" ({}:{})", own.file, own.line)).unwrap_or_default()
}
