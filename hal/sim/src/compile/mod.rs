//! The compiled tier: blocks that waves execute often are compiled to host vector code.
//!
//! A compiled block does exactly what the interpreter does: the same results, faults and instruction
//! counts. The interpreter executes blocks that do not fit into the rest of a wave's turn, and
//! instructions that are not compiled, for which the block's code calls it.

mod access;
mod block;
mod candidate;
mod compiled;
mod emit;
mod execute;
mod frame;
mod plan;
mod scalar;
mod template;
mod value;
mod variant;
mod vector;
mod workspace;

use crate::dispatch::checker::{Checker, Counting};
use crate::dispatch::turns::CurrentTurn;
use crate::instruction::Flow;
use crate::translate::code::DecodedCode;
use crate::wave::{Level, Status};
use block::Block;
use candidate::Candidate;
use compiled::{Compiled, LONGEST_TURN, Resources};
use execute::Ending;
pub use execute::{Outcome, WaveContext};
use flipwave_jit::{Compiling, InProcess, in_background};
use frame::Limits;
use plan::Source;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use variant::Variant;
use workspace::LOGGED;
pub use workspace::Workspace;

/// The compiled blocks of a code object, by their first instruction.
pub struct Tier {
    /// Entry points, in pages of [`PAGE`] dwords.
    pages: Box<[OnceLock<Page>]>,
    /// Number of accesses to device memory in all blocks.
    sites: AtomicUsize,
}

/// Entry points of a part of the code, one for each dword.
type Page = Box<[EntryPoint; PAGE]>;
/// Dwords of a page.
const PAGE: usize = 256;

/// A dword where a block may begin.
#[derive(Default)]
struct EntryPoint {
    /// The best variant compiled so far, cached: without and with footprint recording.
    ready: [AtomicPtr<Compiled>; 2],
    /// Number of times that waves arrived here.
    arrivals: AtomicU32,
    /// The block; `None` if no block begins here.
    candidate: OnceLock<Option<Arc<Candidate>>>,
}

/// Arrivals after which a block is compiled.
const HOT: u32 = 64;
/// Arrivals after which the footprint variant of a block is compiled. It is higher than [`HOT`] so that
/// short campaigns, whose golden runs need both variants, compile only one.
const HOT_FOOTPRINT: u32 = 512;
/// Arrivals after which a block is compiled with [`Compiling::AtOnce`].
const HOT_AT_ONCE: u32 = 1;

/// The code that a wave executes, and how its blocks are compiled.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The code of the tier.
    pub code: &'a DecodedCode,
    /// When blocks are compiled.
    pub compiling: Compiling,
    /// `true` if the memory records what is accessed
    /// ([`notes_windows`](crate::memory::Memory::notes_windows)), so that the wave executes
    /// footprint variants.
    pub footprint: bool,
}

impl Tier {
    /// A tier for code of `bytes` bytes; `None` if the host lacks the vector extensions that compiled
    /// code needs.
    pub fn new(bytes: usize, level: Level) -> Option<Tier> {
        let pages = || (0..bytes.div_ceil(4 * PAGE)).map(|_| OnceLock::new()).collect();
        let is_supported = cfg!(target_arch = "x86_64") && level != Level::Plain;
        is_supported.then(|| Tier { pages: pages(), sites: AtomicUsize::new(0) })
    }

    /// Executes compiled blocks from the wave's PC for the rest of its turn, and adds their results to
    /// `outcome`. Returns at the first block that is not compiled or does not fit into the turn, which
    /// the interpreter executes.
    pub fn run<C: Checker>(
        &self,
        request: Request<'_>,
        mut context: WaveContext<'_>,
        workspace: &mut Workspace,
        checker: &mut C,
        turn: CurrentTurn<'_>,
        outcome: &mut Outcome,
    ) {
        let CurrentTurn { until, end } = turn;
        let mut previous: Option<&Compiled> = None;
        let counting = checker.counting();
        let chains = counting != Counting::Each;
        let tier = std::ptr::from_ref(self) as usize;
        while let Some(compiled) = self.compiled(request, context.wave.pc) {
            let wave = &mut *context.wave;
            end.begin_run(compiled.block.source.begins_run(), wave.executed);
            if end.is_over {
                break;
            }
            let until = until.min(LONGEST_TURN);
            if wave.executed + compiled.length > until {
                break;
            }
            workspace.prepare(tier, self.sites.load(Ordering::Relaxed));
            workspace.check_generation(context.memory);
            let resources = Resources::of_wave(wave, context.lds, workspace);
            if !compiled.accepts(wave, resources) {
                break;
            }
            let times = checker.allows(wave, compiled.block.stretch());
            if times == 0 {
                break;
            }
            let most = times.saturating_mul(compiled.length).min(counting.most_instructions());
            let until = until.min(wave.executed.saturating_add(most));
            let limits = Limits { until, turn: *end, counting };
            if let Some(previous) = previous.take() {
                previous.link_to(wave.pc, compiled);
            }
            let block_context = context.reborrow();
            match compiled.execute(block_context, workspace, checker, resources, limits, outcome) {
                Ending::Completed(last) => {
                    last.record_completion();
                    let wave = &mut *context.wave;
                    match last.flow {
                        Flow::Parts => {
                            end.branch(wave.executed);
                            end.arrive(request.code, wave);
                        }
                        Flow::LastOfPage => end.leave(wave.executed),
                        Flow::Waits => wave.wait(Status::AtBarrier, last.last_address),
                        Flow::Inside => {}
                    }
                    if end.is_over || wave.status != Status::Ready {
                        break;
                    }
                    previous = chains.then_some(last);
                }
                Ending::BailedOut(last) => {
                    last.record_bailout();
                    // If flat accesses mostly reach device memory, the current code is better.
                    if last.has_frequent_bailouts() && last.block.has_frequent_non_global() {
                        last.block.request_flat_private();
                    }
                    if last.block.wants_special_variant() {
                        self.forget_ready(request.code, last.block.source.start);
                    }
                }
                Ending::WindowMissed => {}
                Ending::Faulted => break,
            }
        }
    }

    /// The compiled block at a device address; `None` if there is none yet or it is disabled.
    #[inline(always)]
    fn compiled(&self, request: Request<'_>, pc: u64) -> Option<&Compiled> {
        let index = request.code.index_of(pc);
        let page = self.pages.get(index / PAGE)?;
        let entry = &page.get_or_init(new_page)[index % PAGE];
        let ready = &entry.ready[usize::from(request.footprint)];
        // SAFETY: the pointer is null or to a block of the entry point's candidate, which lives as long
        // as the entry point.
        let compiled = match unsafe { ready.load(Ordering::Acquire).as_ref() } {
            Some(compiled) => compiled,
            None => self.find(request, pc, entry)?,
        };
        (!compiled.is_disabled()).then_some(compiled)
    }

    /// Finds the compiled block of an entry point without a cached one, and has it compiled if it is
    /// hot. Caches the block if it is the best variant.
    fn find<'a>(
        &self,
        request: Request<'_>,
        pc: u64,
        entry: &'a EntryPoint,
    ) -> Option<&'a Compiled> {
        let candidate = match entry.candidate.get() {
            Some(candidate) => candidate.as_ref()?,
            None if !entry.count_arrival(request) => return None,
            None => self.create_candidate(request.code, pc, entry)?,
        };
        let block = &candidate.block;
        let variant = Variant {
            footprint: request.footprint,
            nan_exact: block.has_frequent_nan_bailouts(),
            flat_private: block.wants_flat_private(),
        };
        if let Some(compiled) = candidate.compiled(variant) {
            let compiled = std::ptr::from_ref(compiled).cast_mut();
            entry.ready[usize::from(request.footprint)].store(compiled, Ordering::Release);
        } else if !candidate.is_requested(variant)
            && entry.count_arrival(request)
            && candidate.request(variant)
        {
            compile(candidate, request, variant);
        }
        variant.with_fallbacks().into_iter().find_map(|variant| candidate.compiled(variant))
    }

    /// Clears the cached blocks at a device address, so that the best variant is searched again.
    #[cold]
    fn forget_ready(&self, code: &DecodedCode, start: u64) {
        let index = code.index_of(start);
        if let Some(page) = self.pages.get(index / PAGE).and_then(OnceLock::get) {
            for ready in &page[index % PAGE].ready {
                ready.store(std::ptr::null_mut(), Ordering::Release);
            }
        }
    }

    /// Creates the block that begins at a device address.
    #[cold]
    fn create_candidate<'a>(
        &self,
        code: &DecodedCode,
        start: u64,
        entry: &'a EntryPoint,
    ) -> Option<&'a Arc<Candidate>> {
        let new = || {
            let source = Source::of(code, start)?;
            // Each access of the tier gets a unique number.
            let first_site = self.sites.fetch_add(source.sites(), Ordering::Relaxed);
            Some(Arc::new(Candidate::new(Block::new(source, first_site, code.machine()))))
        };
        entry.candidate.get_or_init(new).as_ref()
    }
}

impl Counting {
    /// Number of instructions that a wave may execute in a row: no more blocks than can be logged.
    fn most_instructions(self) -> u64 {
        match self {
            Counting::Rows(_) => LOGGED as u64,
            _ => u64::MAX,
        }
    }
}

impl EntryPoint {
    /// Counts an arrival, and returns `true` once the block is hot enough to be compiled.
    fn count_arrival(&self, request: Request<'_>) -> bool {
        let needed = match request.compiling {
            Compiling::AtOnce => HOT_AT_ONCE,
            _ if request.footprint => HOT_FOOTPRINT,
            _ => HOT,
        };
        self.arrivals.fetch_add(1, Ordering::Relaxed) >= needed
    }
}

/// Compiles a block, in the background unless it is needed at once.
#[cold]
fn compile(candidate: &Arc<Candidate>, request: Request<'_>, variant: Variant) {
    let (machine, level) = (request.code.machine(), request.code.level());
    match request.compiling {
        Compiling::AtOnce => candidate.compile(machine, level, variant, &mut InProcess),
        _ => {
            let candidate = Arc::clone(candidate);
            in_background(move |compiler| candidate.compile(machine, level, variant, compiler));
        }
    }
}

#[cold]
fn new_page() -> Page {
    Box::new(std::array::from_fn(|_| EntryPoint::default()))
}

/// Items that the unit tests of the crate use.
#[cfg(test)]
pub mod testing {
    pub use super::access::Direction;
    pub use super::block::Block;
    pub use super::candidate::Candidate;
    pub use super::compiled::Resources;
    pub use super::frame::Limits;
    pub use super::plan::{Exchange, LaneAccess, Plan, Source, VectorPlan};
    pub use super::scalar::{Lowering as ScalarLowering, all as scalar_lowerings};
    pub use super::variant::Variant;
    pub use super::vector::{Lowering, Stored, all as lowerings, pair_element};
    pub use super::workspace::Workspace;
}
