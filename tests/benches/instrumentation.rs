//! Speed of instrumentation: original instructions per second of thread time, for reading and
//! rewriting, with a hook before every instruction and once per basic block, and the additional time of
//! the checker. Hooks are compiled in advance. Also the cost of the shipped tools: instructions that examples
//! execute with and without their hooks, and thread time. Prints medians of several runs.
//!
//! Run with `make bench`.

use flipwave_campaigns::{Campaign, Compiler, prepare};
use flipwave_codeobj::CodeObject;
use flipwave_hooks::hook::HookCompiler;
use flipwave_hooks::rewrite::Instrumentation;
use flipwave_tests::{gfx90a, gpu};
use flipwave_tools::{Options, Tool, ToolFile, ToolScope, measure};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

const RUNS: usize = 5;

const SOURCES: [&str; 5] = [
    "tests/kernels/numbers.cl",
    "tests/kernels/control.cl",
    "tests/kernels/lanes.hip",
    "tests/kernels/pressure.hip",
    "examples/campaigns/kernels/matmul_tiled.cl",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:<15} {:<5} {:<12} {:>8} {:>9} {:>12} {:>12} {:>12}",
        "code", "level", "hook per", "inst.", "placed", "inst./s", "of that read", "checker"
    );
    let compiler = HookCompiler::find()?;
    for source in SOURCES {
        for level in ["-O3", "-O0"] {
            let bytes =
                Compiler::find()?.compile(&root().join(source), &[level.to_owned()], &gfx90a())?;
            let object = CodeObject::parse(&bytes)?;
            for per in ["block", "instruction"] {
                rewriting(source, level, &object, per, &compiler)?;
            }
        }
    }
    println!(
        "\n{:<12} {:<32} {:>10} {:>10} {:>8} {:>8}",
        "example", "tool", "without", "with", "ratio", "of time"
    );
    for example in ["matmul.yaml", "stencil.yaml"] {
        for per in ["block", "instruction"] {
            executed(
                example,
                &ToolFile::shipped("instruction-count")?.with("per", per),
                &compiler,
            )?;
        }
        for name in ToolFile::names().filter(|name| *name != "instruction-count") {
            executed(example, &ToolFile::shipped(name)?, &compiler)?;
        }
    }
    println!(
        "\nPublished, of time on hardware: NVBit's opcode histogram 36 times, 2.3 times with sampling; \
         Luthier's about 50 times."
    );
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Size and duration of one rewrite.
struct Cost {
    instructions: usize,
    placed: usize,
    reading: Duration,
    rewriting: Duration,
}

/// Reads and rewrites a code object, with hooks from the compiler's cache.
fn rewrite(
    object: &CodeObject,
    per: &str,
    is_checked: bool,
    compiler: &HookCompiler,
) -> Result<Cost, Box<dyn Error>> {
    let start = thread_time();
    let mut instrumentation = Instrumentation::new(object)?;
    let reading = thread_time() - start;
    let program = instrumentation.program().clone();
    let scope = ToolScope::new(object, &program, None);
    let file = ToolFile::shipped("instruction-count")?.with("per", per);
    let tool = Tool::start(&file, compiler, &program.target, program.wave_size)?;
    let (options, lines) = (Options::default(), object.lines()?);
    tool.request_hooks(&mut instrumentation, compiler, &options, &scope, &lines)?;
    instrumentation.set_checked(is_checked);
    let start = thread_time();
    let report = instrumentation.rewrite(compiler)?.report;
    let rewriting = thread_time() - start;
    let instructions = program.instructions.len();
    Ok(Cost { instructions, placed: report.placed, reading, rewriting })
}

/// CPU time of this thread, which is independent of other programs on the machine.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists on Linux, and `time` is writable for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Measures rewriting a code object and prints its line.
fn rewriting(
    source: &str,
    level: &str,
    object: &CodeObject,
    per: &str,
    compiler: &HookCompiler,
) -> Result<(), Box<dyn Error>> {
    // The first run compiles the hooks.
    let Cost { instructions, placed, .. } = rewrite(object, per, true, compiler)?;
    let (mut reading, mut all, mut checked) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let times = rewrite(object, per, false, compiler)?;
        reading.push(times.reading);
        all.push(times.reading + times.rewriting);
        let times = rewrite(object, per, true, compiler)?;
        checked.push(times.reading + times.rewriting);
    }
    let [reading, all, checked] = [reading, all, checked].map(|times| median(times).as_secs_f64());
    println!(
        "{:<15} {level:<5} {:<12} {instructions:>8} {placed:>9} {:>12.0} {:>11.0}% {:>11.0}%",
        Path::new(source).file_name().unwrap_or_default().to_string_lossy(),
        per,
        instructions as f64 / all,
        100.0 * reading / all,
        100.0 * (checked - all) / all,
    );
    Ok(())
}

/// Counts the instructions that an example executes with and without a tool, and compares the time. The
/// time without hooks is that of the tool's own program with hooks that are never inserted.
fn executed(example: &str, file: &ToolFile, compiler: &HookCompiler) -> Result<(), Box<dyn Error>> {
    let campaign = Campaign::read(&root().join("examples/campaigns").join(example))?;
    let workload = prepare(&campaign)?.workload;
    let run = |file: &ToolFile| -> Result<(u64, Duration), Box<dyn Error>> {
        let code_of = |module| gpu(&workload.device).code_object(module);
        let mut times = Vec::new();
        let mut instructions = 0;
        // The first run compiles hooks and blocks.
        for number in 0..=RUNS {
            let mut device = gpu(&workload.device).clone();
            let dispatches = &workload.program.dispatches;
            let start = thread_time();
            let found =
                measure(&mut device, code_of, dispatches, file, &Options::default(), compiler)?;
            times.extend((number > 0).then(|| thread_time() - start));
            let executed = found.tables.iter().map(|table| table.statistics.wave_instructions);
            instructions = executed.sum();
        }
        Ok((instructions, median(times)))
    };
    let nothing = ToolFile {
        name: "nothing.c".into(),
        text: NO_HOOKS.into(),
        include: Vec::new(),
        parameters: Vec::new(),
    };
    let (without, plain) = run(&nothing)?;
    let (with, time) = run(file)?;
    let name = Path::new(&file.name).file_stem().unwrap_or_default().to_string_lossy();
    let name = match &file.parameters[..] {
        [(_, value), ..] => format!("{name} per {value}"),
        [] => name.into_owned(),
    };
    println!(
        "{:<12} {name:<32} {without:>10} {with:>10} {:>8.2} {:>8.2}",
        example.trim_end_matches(".yaml"),
        with as f64 / without as f64,
        time.as_secs_f64() / plain.as_secs_f64()
    );
    Ok(())
}

/// A tool without hooks.
const NO_HOOKS: &str = "#include <flipwave.h>\nFLIPWAVE_DETECTOR(none)\n\
                        void flipwave_instrument(const flipwave_inst *inst) { (void)inst; }\n";

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
