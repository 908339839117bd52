//! Command-line options of `flipwave inspect` and `flipwave tool`.

use crate::arguments::VariantArgument;
use crate::gpus::GpusArgument;
use clap::{Args, ValueEnum};
use flipwave_isa::Target;
use flipwave_tools::{Options, ToolError, ToolFile};
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
    override_usage = "flipwave tool [OPTIONS] <TOOL> <FILE>\n       \
                      flipwave tool [OPTIONS] <TOOL> -- <COMMAND>...",
    after_help = "\
TOOL is a C file (docs/tools.md), or a shipped tool:
  instruction-count   executions of each instruction
  opcode-histogram    executions of each operation
  sampled-histogram   executions of each operation, from some dispatches
  thread-count        executed instructions by waves and by lanes
  memory-trace        each memory access
  address-divergence  cache lines that each access of a wave touches
  memory-efficiency   bytes that lanes request and bytes of the cache lines that they touch
  line-accesses       loads and stores of each cache line
  branch-divergence   branches at which the lanes of a wave diverge
  bank-conflicts      LDS bank conflicts
  register-trace      values that instructions write to vector registers
  kernel-clock        clocks at the start and end of each wave

The table is CSV; its first columns identify the dispatch. Uncounted executions, because the record \
buffer was full or a hook could not be inserted, are reported on standard error.

An application keeps its output and exit code. Without --out, its table is printed to standard error \
when it ends."
)]
pub struct ToolArguments {
    /// C file of a tool, or name of a shipped tool
    #[arg(value_name = "TOOL")]
    pub tool: PathBuf,
    /// Campaign file (YAML) whose program runs once without faults
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub file: Option<PathBuf>,
    /// HIP application, or CUDA application with --gpu sm_90, and its arguments
    #[arg(last = true, conflicts_with = "variant")]
    pub command: Vec<OsString>,
    /// Set a parameter of the tool (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub set: Vec<(String, String)>,
    /// Instrument only this kernel, or the kernels that match a pattern such as `gemm_*`
    #[arg(long, value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Select where instruction-count and opcode-histogram count; short for --set per=...
    #[arg(long, value_enum)]
    pub per: Option<PerArgument>,
    /// Reserve a buffer for N records per dispatch
    #[arg(long, value_name = "N", default_value_t = Options::default().records)]
    pub records: u32,
    /// Select how hooks are inserted [default: inline if the code can be moved]
    #[arg(long, value_enum)]
    pub placement: Option<PlacementArgument>,
    /// Write the table to this CSV or Parquet file [default: standard output]
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

/// Parses `NAME=VALUE`.
fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(format!("`{name}` is not the name of a parameter"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

impl ToolArguments {
    /// The tool with its parameters, and the name of a shipped tool.
    pub fn tool_file(&self) -> Result<(ToolFile, Option<String>), ToolError> {
        let name = self.tool.to_str().filter(|name| ToolFile::names().any(|known| known == *name));
        let is_file = self.tool.extension().is_some() || self.tool.components().count() > 1;
        let mut file = match name {
            Some(name) => ToolFile::shipped(name)?,
            None if is_file || self.tool.exists() => ToolFile::read(&self.tool)?,
            None => ToolFile::shipped(&self.tool.to_string_lossy())?,
        };
        // For other tools, the option has no meaning.
        if let Some(per) = self.per.filter(|_| file.text.contains("FLIPWAVE_PARAMETER(per,")) {
            let value = match per {
                PerArgument::Block => "block",
                PerArgument::Instruction => "instruction",
            };
            file = file.with("per", value);
        }
        for (name, value) in &self.set {
            file = file.with(name, value);
        }
        Ok((file, name.map(str::to_owned)))
    }
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum PerArgument {
    /// Once per basic block
    Block,
    /// At every instruction
    Instruction,
}
