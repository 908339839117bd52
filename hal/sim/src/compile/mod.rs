//! The compiled tier of the fast level: blocks that waves execute often become code of the host.
//!
//! What a block does is the same as what the interpreter does, to the bit: results, faults, and how
//! many instructions were executed when. A block that the wave's turn has no room for is left to the
//! interpreter, and so is each instruction that is not compiled, by a call from the block's code.

mod access;
mod block;
mod compiled;
mod emit;
mod execute;
mod frame;
mod plan;
mod scalar;
mod template;
mod value;
mod vector;
mod workspace;

use crate::dispatch::checker::{Checker, Counting};
use crate::dispatch::policy::Compiling;
use crate::dispatch::turns::TurnEnd;
use crate::instruction::Flow;
use crate::memory::Memory;
use crate::translate::code::DecodedCode;
use crate::wave::{Level, Status, Wave};
use block::Block;
use compiled::{Candidate, Compiled, Demands, How, LAST};
use execute::Ending;
pub use execute::Outcome;
use flipwave_jit::{InProcess, in_background};
use frame::Room;
use plan::Source;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use workspace::LOGGED;
pub use workspace::Workspace;

/// Compiled code of a program, by where it begins.
pub struct Tier {
    /// The code in pages.
    pages: Box<[OnceLock<Page>]>,
    /// Accesses to device memory in all blocks.
    sites: AtomicUsize,
}

/// A place for each dword of a part of the code.
type Page = Box<[Place; PAGE]>;
/// Dwords of a page.
const PAGE: usize = 256;

/// A place where a block may begin.
#[derive(Default)]
struct Place {
    /// The code that waves execute, as far as it is known: what does not note what it touches, and what
    /// does.
    ready: [AtomicPtr<Compiled>; 2],
    /// How often waves have arrived here.
    arrivals: AtomicU32,
    /// The block; nothing if there is nothing to be compiled.
    candidate: OnceLock<Option<Arc<Candidate>>>,
}

/// Arrivals after which a block is compiled.
const HOT: u32 = 64;
/// The same of a block that notes what it touches: more, so that short campaigns, whose fault-free runs
/// need both, do not have it compiled twice.
const HOT_NOTING: u32 = 512;
/// The same where it is compiled at once.
const SECOND: u32 = 1;

impl Tier {
    /// Room for code of so many bytes; nothing where nothing is compiled: what is compiled has vectors
    /// of a length that the host must have.
    pub fn new(bytes: usize, level: Level) -> Option<Tier> {
        let pages = || (0..bytes.div_ceil(4 * PAGE)).map(|_| OnceLock::new()).collect();
        let can = cfg!(target_arch = "x86_64") && level != Level::Plain;
        can.then(|| Tier { pages: pages(), sites: AtomicUsize::new(0) })
    }

    /// Executes blocks from the wave's PC on as far as the wave may go, and adds what they did to
    /// `outcome`. The wave may execute until it has executed `until` instructions in all, and to the end
    /// of its turn; `notes` says whether memory must be told what is accessed
    /// ([`Memory::notes_windows`]). What is not compiled, or does not fit, is left to the interpreter.
    pub fn run<C: Checker>(
        &self,
        code: &DecodedCode,
        wave: &mut Wave,
        (memory, lds): (&mut dyn Memory, &mut [u8]),
        (workspace, checker): (&mut Workspace, &mut C),
        (until, end, outcome): (u64, &mut TurnEnd, &mut Outcome),
        (compiling, notes): (Compiling, bool),
    ) {
        let mut last: Option<&Compiled> = None;
        let counting = checker.counting();
        let chains = counting != Counting::Each;
        let tier = std::ptr::from_ref(self) as usize;
        while let Some(compiled) = self.compiled(code, wave.pc, (compiling, notes)) {
            end.begin_run(compiled.block.source.begins_run(), wave.executed);
            if end.is_over {
                break;
            }
            let until = until.min(LAST);
            if wave.executed + compiled.length > until {
                break;
            }
            workspace.prepare(tier, self.sites.load(Ordering::Relaxed));
            workspace.follow(memory);
            let has = Demands::of_wave(wave, lds, workspace);
            if !compiled.suits(wave, has) {
                break;
            }
            let times = checker.allows(wave, compiled.block.stretch());
            if times == 0 {
                break;
            }
            let most = times.saturating_mul(compiled.length).min(counting.most());
            let until = until.min(wave.executed.saturating_add(most));
            let room = Room { until, turn: *end, counting };
            if let Some(last) = last.take() {
                last.go_on_to(wave.pc, compiled);
            }
            let state = (&mut *workspace, &mut *checker);
            match compiled.execute(wave, (memory, lds), state, (has, room), outcome) {
                Ending::Done(own) => {
                    compiled.note_done();
                    match own.flow {
                        Flow::Parts => {
                            end.branch(wave.executed);
                            end.arrive(code, wave);
                        }
                        Flow::LastOfPage => end.leave(wave.executed),
                        Flow::Waits => wave.wait(Status::AtBarrier, own.last),
                        Flow::Inside => {}
                    }
                    if end.is_over || wave.status != Status::Ready {
                        break;
                    }
                    last = chains.then_some(own);
                }
                Ending::Undone(own) => {
                    own.note_undone();
                    // Where they mostly lead to device memory, it is better as it is.
                    if own.is_often_undone() && own.block.is_often_elsewhere() {
                        own.block.part_flat();
                    }
                    if own.block.has_better_code() {
                        self.look_again(code, own.block.source.start);
                    }
                }
                Ending::Begun => {}
                Ending::Faulted => break,
            }
        }
    }

    /// The code at a device address; nothing as long as there is none, or if it is not to be executed.
    #[inline(always)]
    fn compiled(
        &self,
        code: &DecodedCode,
        pc: u64,
        (compiling, notes): (Compiling, bool),
    ) -> Option<&Compiled> {
        let index = code.index_of(pc);
        let page = self.pages.get(index / PAGE)?;
        let place = &page.get_or_init(new_page)[index % PAGE];
        let ready = &place.ready[usize::from(notes)];
        // SAFETY: what is noted there belongs to the place's candidate, which is there as long as the
        // place.
        let compiled = match unsafe { ready.load(Ordering::Acquire).as_ref() } {
            Some(compiled) => compiled,
            None => self.find(code, pc, place, (compiling, notes))?,
        };
        (!compiled.is_given_up()).then_some(compiled)
    }

    /// The same where it is not known. What is compiled in the way that is best is noted.
    fn find<'a>(
        &self,
        code: &DecodedCode,
        pc: u64,
        place: &'a Place,
        (compiling, notes): (Compiling, bool),
    ) -> Option<&'a Compiled> {
        let candidate = match place.candidate.get() {
            Some(candidate) => candidate.as_ref()?,
            None if !place.is_hot(compiling, notes) => return None,
            None => self.begin(code, pc, place)?,
        };
        let block = &candidate.block;
        let (settles_nans, parts_flat) = (block.is_often_unsettled(), block.parts_flat());
        let how = How { notes, settles_nans, parts_flat };
        if let Some(compiled) = candidate.compiled(how) {
            let compiled = std::ptr::from_ref(compiled).cast_mut();
            place.ready[usize::from(notes)].store(compiled, Ordering::Release);
        } else if !candidate.is_asked_for(how)
            && place.is_hot(compiling, notes)
            && candidate.is_first_to_ask(how)
        {
            compile(candidate, code, compiling, how);
        }
        how.with_others().into_iter().find_map(|how| candidate.compiled(how))
    }

    /// Forgets what is compiled at a device address, so that it is found again when waves arrive there.
    #[cold]
    fn look_again(&self, code: &DecodedCode, start: u64) {
        let index = code.index_of(start);
        if let Some(page) = self.pages.get(index / PAGE).and_then(OnceLock::get) {
            for ready in &page[index % PAGE].ready {
                ready.store(std::ptr::null_mut(), Ordering::Release);
            }
        }
    }

    /// The block that begins at a device address.
    #[cold]
    fn begin<'a>(
        &self,
        code: &DecodedCode,
        start: u64,
        place: &'a Place,
    ) -> Option<&'a Arc<Candidate>> {
        let new = || {
            let source = Source::of(code, start)?;
            // Numbers are not given twice.
            let first_site = self.sites.fetch_add(source.sites(), Ordering::Relaxed);
            Some(Arc::new(Candidate::new(Block::new(source, first_site, code.machine()))))
        };
        place.candidate.get_or_init(new).as_ref()
    }
}

impl Counting {
    /// Instructions that a wave may execute in a row: no more blocks than can be logged.
    fn most(self) -> u64 {
        match self {
            Counting::Rows(_) => LOGGED as u64,
            _ => u64::MAX,
        }
    }
}

impl Place {
    /// Counts an arrival; whether there were so many that it is worth to compile the block.
    fn is_hot(&self, compiling: Compiling, notes: bool) -> bool {
        let needed = match (compiling, notes) {
            (Compiling::AtOnce, _) => SECOND,
            (_, false) => HOT,
            (_, true) => HOT_NOTING,
        };
        self.arrivals.fetch_add(1, Ordering::Relaxed) >= needed
    }
}

/// Has a block compiled.
#[cold]
fn compile(candidate: &Arc<Candidate>, code: &DecodedCode, compiling: Compiling, how: How) {
    let (machine, level) = (code.machine(), code.level());
    match compiling {
        Compiling::AtOnce => candidate.compile(machine, level, how, &mut InProcess),
        _ => {
            let candidate = Arc::clone(candidate);
            in_background(move |compiler| candidate.compile(machine, level, how, compiler));
        }
    }
}

#[cold]
fn new_page() -> Page {
    Box::new(std::array::from_fn(|_| Place::default()))
}

/// What the unit tests see of it.
#[cfg(test)]
pub mod testing {
    pub use super::access::Direction;
    pub use super::block::Block;
    pub use super::compiled::{Candidate, Demands, How};
    pub use super::frame::Room;
    pub use super::plan::{Exchange, LaneAccess, Plan, Source, VectorPlan};
    pub use super::scalar::{Lowering as ScalarLowering, all as scalar_lowerings};
    pub use super::vector::{Lowering, Stored, all as lowerings, of_pairs};
    pub use super::workspace::Workspace;
}
