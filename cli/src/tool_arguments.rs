//! The command line of what looks at code, and of tools in it.

use crate::arguments::VariantArgument;
use crate::gpus::GpusArgument;
use clap::{Args, ValueEnum};
use flipwave_isa::Target;
use flipwave_tools::Options;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct InspectArguments {
    /// A code object, an offload bundle, or a HIP program
    pub file: PathBuf,
    /// Only this kernel, and what it may call
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// The target, where the file has code for several
    #[arg(long, value_name = "TARGET")]
    pub target: Option<Target>,
    /// Print the code in blocks, with edges, loops and calls
    #[arg(long)]
    pub cfg: bool,
    /// Print how many registers are free, in all and before each instruction
    #[arg(long)]
    pub registers: bool,
    /// Print the source lines beside the instructions
    #[arg(long)]
    pub lines: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "flipwave tool [OPTIONS] <NAME> <FILE>\n       \
                      flipwave tool [OPTIONS] <NAME> -- <COMMAND>...",
    after_help = "\
The table is CSV. Its first columns say which dispatch a row is of. What could not be counted, \
because a record found no place or a hook could not be placed, is said on standard error.

An application's output and exit code are its own; without --out its table goes to standard error \
at its end."
)]
pub struct ToolArguments {
    /// The tool
    pub name: ToolName,
    /// The campaign file (YAML), whose program is run once without faults
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// A HIP application and its arguments, run under AMD's own runtime
    #[arg(last = true, conflicts_with = "variant")]
    pub command: Vec<OsString>,
    /// Look at this kernel only
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Where instructions are counted
    #[arg(long, value_enum, default_value_t = PerArgument::Block)]
    pub per: PerArgument,
    /// Room for this many records of a dispatch
    #[arg(long, value_name = "N", default_value_t = Options::default().records)]
    pub records: u32,
    /// Where the tool's hooks go [default: inline where code can be moved]
    #[arg(long, value_enum)]
    pub placement: Option<PlacementArgument>,
    /// File for the table [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Seed in place of the campaign file's
    #[arg(long, value_name = "S", conflicts_with = "command")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub variant: VariantArgument,
    /// How it is found out what an application executes
    #[arg(long, value_enum, default_value_t = ByArgument::Hook, conflicts_with = "file")]
    pub by: ByArgument,
    #[command(flatten)]
    pub gpus: GpusArgument,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArgument {
    /// By hooks in rewritten code, on the embedded GPU
    Hook,
    /// Inside of the embedded GPU, which runs code as it is; for instruction-count,
    /// opcode-histogram and memory-trace
    Embedded,
    /// By hooks, on this machine's own AMD GPU
    Hardware,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PlacementArgument {
    /// Between the instructions, which move
    Inline,
    /// Elsewhere: the code stays, and branches lead to the hooks and back
    Trampoline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ToolName {
    /// Executions of each instruction
    InstructionCount,
    /// Executions of each operation
    OpcodeHistogram,
    /// Each access to memory
    MemoryTrace,
    /// Cache lines that accesses of a wave touch
    AddressDivergence,
    /// How often the lanes of a wave part
    BranchDivergence,
    /// How often lanes want the same LDS bank
    BankConflicts,
    /// Clocks where each wave begins and ends
    KernelClock,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PerArgument {
    /// Once for each basic block
    Block,
    /// At each instruction
    Instruction,
}
