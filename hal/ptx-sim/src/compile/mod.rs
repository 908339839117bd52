//! The compiled tier: blocks that waves execute often are compiled to host vector code.
//!
//! Compiled code does exactly what the interpreter does: the same results, faults and instruction counts. It calls
//! the interpreter for instructions that are not [compiled](emit), and returns where lanes
//! diverge. Calls, returns, barriers and blocks that do not fit into the rest of a turn are interpreted.

mod emit;
mod frame;

use crate::compute::{LANES, Row};
use crate::execute::Reach;
use crate::memory::Window;
use crate::program::{Blocks, Op, Program};
use crate::wave::{Path, Rows, Status, Word};
use flipwave_device::FaultCause;
use flipwave_jit::{Code, Compiler, Compiling, Extensions, InProcess, in_background};
use flipwave_ptx::{INSTRUCTION_BYTES, pc_of};
use frame::{Entry, Frame, NOWHERE};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

/// Arrivals at the blocks of a region after which it is compiled.
const HOT: u32 = 64;

/// The compiled code of a program.
pub(crate) struct Tier {
    regions: Vec<Region>,
    /// Vector extensions of this host; `None` if it lacks those that compiled code needs.
    extensions: Option<Extensions>,
}

/// Blocks that are compiled together.
#[derive(Default)]
struct Region {
    arrivals: AtomicU32,
    is_requested: AtomicBool,
    /// The code; `None` if the compilation failed.
    code: OnceLock<Option<Code>>,
}

/// Memory that compiled code uses during a run.
pub(crate) struct Workspace {
    windows: Vec<Window>,
    guards: Vec<u32>,
    /// Addresses of an access that is recorded.
    addresses: Box<Row>,
    /// Generation of the memory that the windows are valid for.
    generation: u64,
    /// By wave: positions of its threads in the workgroup. They are the same in all workgroups.
    threads: Vec<Option<Rows>>,
}

/// Limits on the execution of compiled code.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Number of instructions that may be executed.
    pub instructions: u64,
    /// Number of instructions after which no other block begins.
    pub turn: u64,
    /// First instruction of a block that is not executed.
    pub stop: Option<usize>,
    /// Treatment of device memory.
    pub memory: Recording,
}

/// Treatment of device memory by compiled code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recording {
    /// Accesses are not recorded.
    Nothing,
    /// The accessed bytes are recorded.
    Footprint,
    /// The values of written bytes are recorded: the interpreter executes all accesses.
    Writes,
}

/// Instructions that compiled code has executed.
pub(crate) struct Outcome {
    /// Their number, without the one that faulted.
    pub executed: u64,
    /// Sum of the lanes that executed them.
    pub lane_operations: u64,
    /// The instruction that faulted, if one did, and the cause.
    pub fault: Option<(usize, FaultCause)>,
}

impl Tier {
    /// A tier without compiled code for a program with these blocks.
    pub fn new(blocks: &Blocks) -> Tier {
        let regions = blocks.regions.iter().map(|_| Region::default()).collect();
        Tier { regions, extensions: Extensions::of_process() }
    }

    /// The code of a region, if it is compiled. Compiles it if it is hot.
    fn code(
        self: &Arc<Self>,
        region: usize,
        program: &Arc<Program>,
        compiling: Compiling,
    ) -> Option<&Code> {
        let found = &self.regions[region];
        if let Some(code) = found.code.get() {
            return code.as_ref();
        }
        let extensions = self.extensions?;
        let needed = match compiling {
            Compiling::Never => return None,
            Compiling::AtOnce => 1,
            Compiling::WhenHot => HOT,
        };
        if found.arrivals.fetch_add(1, Ordering::Relaxed) < needed
            || found.is_requested.swap(true, Ordering::Relaxed)
        {
            return None;
        }
        if compiling == Compiling::AtOnce {
            self.compile(region, program, extensions, compiling, &mut InProcess);
        } else {
            let (tier, program) = (Arc::clone(self), Arc::clone(program));
            in_background(move |compiler| {
                tier.compile(region, &program, extensions, compiling, compiler);
            });
        }
        found.code.get()?.as_ref()
    }

    /// Compiles a region. The interpreter executes regions that fail to compile.
    fn compile(
        &self,
        region: usize,
        program: &Program,
        extensions: Extensions,
        compiling: Compiling,
        compiler: &mut dyn Compiler,
    ) {
        let text = emit::module(program, region);
        #[cfg(test)]
        let text = match MISTAKE.get() {
            Some((right, wrong)) => text.replace(right, wrong),
            None => text,
        };
        let object = compiler.compile(&text, extensions).map_err(|error| error.to_string());
        let code = object
            .and_then(|object| Code::load(&object, emit::NAME).map_err(|error| error.to_string()));
        // Tests compile at once.
        if cfg!(debug_assertions)
            && compiling == Compiling::AtOnce
            && let Err(error) = &code
        {
            panic!("{error}\n{text}");
        }
        let _ = self.regions[region].code.set(code.ok());
    }

    /// Executes compiled code from the wave's next instruction on, which is the first of a block; `None` if it
    /// is not compiled, or if the wave cannot execute it.
    pub fn run(
        self: &Arc<Self>,
        number: usize,
        program: &Arc<Program>,
        compiling: Compiling,
        reach: &mut Reach<'_>,
        workspace: &mut Workspace,
        limits: Limits,
    ) -> Option<Outcome> {
        let (block, region) = program.blocks.at(number)?;
        let found = &program.blocks.all[block];
        if found.instructions.len() as u64 > limits.instructions || limits.stop == Some(number) {
            return None;
        }
        let code = self.code(region, program, compiling)?;
        let frame = reach.wave.frames.last_mut()?;
        // A fault may have moved the wave into another function.
        if frame.function != found.function {
            return None;
        }
        let (local, local_base) = (frame.memory.as_mut_ptr(), frame.base);
        let mut path = *frame.paths.last()?;
        let [words, predicates] = reach.wave.registers.pointers();
        workspace.prepare(reach.memory.generation());
        let threads = workspace.threads(reach);
        let mut frame = Frame {
            interpret: frame::interpret,
            touch: frame::touch,
            records: u64::from(limits.memory == Recording::Footprint),
            addresses: &raw mut *workspace.addresses,
            words,
            predicates,
            local,
            local_base,
            shared: reach.shared.as_mut_ptr(),
            shared_length: reach.shared.len() as u64,
            arguments: reach.launch.arguments.as_ptr(),
            arguments_length: reach.launch.arguments.len() as u64,
            windows: workspace.windows.as_mut_ptr(),
            guards: workspace.guards.as_mut_ptr(),
            threads,
            places: [reach.launch.workgroup, reach.launch.workgroups, reach.wave.id.workgroup],
            active: path.lanes,
            entry: (block - program.blocks.regions[region].start) as u32,
            executed: 0,
            limit: limits.instructions,
            turn: limits.turn,
            lane_operations: 0,
            until: until(&path),
            stop: limits.stop.map_or(NOWHERE, |stop| stop as u64),
            next: 0,
            taken: 0,
            block: number as u32,
            before: reach.wave.executed,
            reach,
            has_windows: limits.memory != Recording::Writes,
            sites: &program.blocks.sites,
            site_count: program.blocks.site_count,
            fault: None,
        };
        // SAFETY: the address is that of the function that `emit` wrote, which has this type.
        let entry = unsafe { std::mem::transmute::<NonNull<()>, Entry>(code.entry()) };
        let mut fault = None;
        loop {
            // SAFETY: the code was compiled for this program and for extensions that the host has. The frame
            // has the memory of the wave, whose registers are those of the program, and whose innermost call is
            // one of the region's function.
            let end = unsafe { entry(&raw mut frame) };
            let (wave, block) = (&mut *frame.reach.wave, frame.block as usize);
            wave.executed = frame.before + frame.executed;
            match end {
                frame::LEFT => {
                    if let Some(path) = wave.path_mut() {
                        path.pc = pc_of(frame.next as usize).0;
                    }
                    wave.settle();
                }
                frame::DIVERGED => diverge(block, frame.taken, frame.reach),
                _ => {
                    let (at, cause) = frame.fault.take()?;
                    let lanes = |at| workspace.lanes(program, at, path.lanes).count_ones();
                    frame.lane_operations +=
                        (block..at).map(|at| u64::from(lanes(at))).sum::<u64>();
                    frame.executed += (at - block) as u64;
                    frame.reach.wave.executed = frame.before + frame.executed;
                    fault = Some((at, cause));
                    break;
                }
            }
            let Some(next) = next_block(region, &frame) else { break };
            path = next;
            let number = (path.pc / u64::from(INSTRUCTION_BYTES)) as usize;
            let Some((block, _)) = program.blocks.at(number) else { break };
            frame.entry = (block - program.blocks.regions[region].start) as u32;
            (frame.active, frame.until) = (path.lanes, until(&path));
        }
        workspace.generation = frame.reach.memory.generation();
        let Frame { executed, lane_operations, .. } = frame;
        Some(Outcome { executed, lane_operations, fault })
    }
}

/// The path of a wave that continues in the same region, within the limits of its frame.
fn next_block(region: usize, frame: &Frame<'_, '_>) -> Option<Path> {
    let wave = &frame.reach.wave;
    let blocks = &frame.reach.program.blocks;
    let path = *wave.path().filter(|_| wave.status == Status::Running)?;
    let number = (path.pc / u64::from(INSTRUCTION_BYTES)) as usize;
    let (block, found) = blocks.at(number)?;
    let length = blocks.all[block].instructions.len() as u64;
    let fits = frame.executed + length <= frame.limit && frame.executed < frame.turn;
    (found == region && fits && frame.stop != number as u64).then_some(path)
}

/// Executes the branch at the end of a block for lanes of which some take it.
fn diverge(first: usize, taken: u32, reach: &mut Reach<'_>) {
    let Some(block) = reach.program.blocks.around(first) else { return };
    let last = block.instructions.end - 1;
    if let Op::Branch { target, meeting } = reach.program.steps[last].op {
        let others = reach.wave.active() & !taken;
        reach.diverge(&[(target, taken), (pc_of(last + 1).0, others)], meeting);
        reach.wave.settle();
    }
}

/// Number of the instruction at which the lanes of a path meet others.
fn until(path: &Path) -> u64 {
    path.until.map_or(NOWHERE, |until| until / u64::from(INSTRUCTION_BYTES))
}

impl Workspace {
    /// Memory for a program.
    pub fn new(program: &Program) -> Workspace {
        let blocks = &program.blocks;
        Workspace {
            windows: vec![Window::NONE; blocks.site_count],
            guards: vec![0; program.steps.len()],
            addresses: Box::new([0; LANES]),
            generation: 0,
            threads: Vec::new(),
        }
    }

    /// Positions of the threads of a wave, a row per dimension.
    fn threads(&mut self, reach: &Reach<'_>) -> *const Word {
        let number = reach.wave.id.wave as usize;
        if self.threads.len() <= number {
            self.threads.resize(number + 1, None);
        }
        let rows = || {
            let mut rows = Rows::new(3);
            for (element, row) in rows.iter_mut().enumerate() {
                let threads = reach.launch.threads_of(reach.wave, element);
                *row = Word(threads.map(|value| value as u32));
            }
            rows
        };
        self.threads[number].get_or_insert_with(rows).as_ptr()
    }

    /// Forgets windows that are not valid any more.
    fn prepare(&mut self, generation: u64) {
        if self.generation != generation {
            self.generation = generation;
            self.windows.fill(Window::NONE);
        }
    }

    /// Lanes that executed an instruction of the block that was executed last, if the path has these lanes.
    pub fn lanes(&self, program: &Program, number: usize, active: u32) -> u32 {
        match program.steps[number].inst.guard {
            Some(_) => self.guards[number],
            None => active,
        }
    }
}

#[cfg(test)]
thread_local! {
    /// A mistake for the tests of tests: a text in the IR, and what replaces it.
    static MISTAKE: std::cell::Cell<Option<(&'static str, &'static str)>> =
        const { std::cell::Cell::new(None) };
}

#[cfg(test)]
mod tests;
