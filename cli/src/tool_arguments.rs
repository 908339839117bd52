//! Command-line options of `flipwave inspect` and `flipwave tool`.

use crate::arguments::VariantArgument;
use crate::gpus::GpusArgument;
use clap::{Args, ValueEnum};
use flipwave_isa::Target;
use flipwave_tools::Options;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct InspectArguments {
    /// Code object, offload bundle, or HIP program
    pub file: PathBuf,
    /// Show only this kernel, or those that match a pattern such as `gemm_*`, and what they may call
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Select a target if the file has code for several
    #[arg(long, value_name = "TARGET")]
    pub target: Option<Target>,
    /// Read the code object that begins at this byte of the file, decimal or with 0x
    #[arg(long, value_name = "BYTE", value_parser = byte_position)]
    pub at: Option<u64>,
    /// Print the control-flow graph: basic blocks, edges, loops and calls
    #[arg(long)]
    pub cfg: bool,
    /// Print the number of free registers, overall and before each instruction
    #[arg(long)]
    pub registers: bool,
    /// Print the source line of each instruction
    #[arg(long)]
    pub lines: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Parses a position in a file, decimal or hexadecimal with `0x`.
fn byte_position(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a number of bytes, for example 4096 or 0x1000".to_owned())
}

#[derive(Debug, Args)]
#[command(
    override_usage = "flipwave tool [OPTIONS] <NAME> <FILE>\n       \
                      flipwave tool [OPTIONS] <NAME> -- <COMMAND>...",
    after_help = "\
The table is CSV; its first columns identify the dispatch. Uncounted executions, because the record \
buffer was full or a hook could not be inserted, are reported on standard error.

An application keeps its output and exit code. Without --out, its table is printed to standard error \
when it ends."
)]
pub struct ToolArguments {
    /// Tool to run
    pub name: ToolName,
    /// Campaign file (YAML) whose program runs once without faults
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// HIP application and its arguments, run under AMD's own runtime
    #[arg(last = true, conflicts_with = "variant")]
    pub command: Vec<OsString>,
    /// Instrument only this kernel, or the kernels that match a pattern such as `gemm_*`
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Select where executions are counted
    #[arg(long, value_enum, default_value_t = PerArgument::Block)]
    pub per: PerArgument,
    /// Reserve a buffer for N records per dispatch
    #[arg(long, value_name = "N", default_value_t = Options::default().records)]
    pub records: u32,
    /// Select how hooks are inserted [default: inline if the code can be moved]
    #[arg(long, value_enum)]
    pub placement: Option<PlacementArgument>,
    /// Write the table to this file [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Override the seed of the campaign file
    #[arg(long, value_name = "S", conflicts_with = "command")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// Select how the kernels of an application are observed
    #[arg(long, value_enum, default_value_t = ByArgument::Hook, conflicts_with = "file")]
    pub by: ByArgument,
    #[command(flatten)]
    pub gpus: GpusArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArgument {
    /// With hooks in rewritten code, on the embedded GPU
    Hook,
    /// Inside the embedded GPU, which runs the original code; for instruction-count,
    /// opcode-histogram and memory-trace
    Embedded,
    /// With hooks in rewritten code, on this machine's AMD GPU
    Hardware,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PlacementArgument {
    /// Between the original instructions, which are moved
    Inline,
    /// Outside the original code, reached by branches
    Trampoline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ToolName {
    /// Count executions of each instruction
    InstructionCount,
    /// Count executions of each operation
    OpcodeHistogram,
    /// Record each memory access
    MemoryTrace,
    /// Count the cache lines that each access of a wave touches
    AddressDivergence,
    /// Count branches at which the lanes of a wave diverge
    BranchDivergence,
    /// Count LDS bank conflicts
    BankConflicts,
    /// Record the clock at the start and end of each wave
    KernelClock,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PerArgument {
    /// Once per basic block
    Block,
    /// At every instruction
    Instruction,
}
