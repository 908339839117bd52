//! The compiled tier of the fast level: blocks that waves execute often become code of the host.
//!
//! What a block does is the same as what the interpreter does, to the bit: results, faults, and how
//! many instructions were executed when. A block that the wave's turn has no room for is left to the
//! interpreter, and so is each instruction that is not compiled, by a call from the block's code.

mod access;
mod block;
mod emit;
mod execute;
mod frame;
mod scalar;
mod template;
mod value;
mod vector;
mod workspace;

use crate::dispatch::checker::Checker;
use crate::dispatch::policy::Compiling;
use crate::memory::Memory;
use crate::translate::program::Program;
use crate::wave::{Level, Wave};
use block::{Block, Source};
use execute::Ran;
use flipwave_jit::{Here, in_background};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
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
    /// How often waves have arrived here.
    arrivals: AtomicU32,
    /// How often its code was undone, by variant.
    undone: [AtomicU32; 2],
    /// The block; nothing if there is nothing to be compiled.
    block: OnceLock<Option<Arc<Block>>>,
}

/// Arrivals after which a block is compiled.
const HOT: u32 = 64;
/// The same of a block that notes what it touches: more, so that short campaigns, whose fault-free runs
/// need both, do not have it compiled twice.
const HOT_NOTING: u32 = 512;
/// The same where it is compiled at once.
const SECOND: u32 = 1;
/// What it counts when a block is undone: as many times must it be executed for that to be no loss.
const UNDONE: u32 = 16;
/// The count at which a block is given up.
const PATIENCE: u32 = 1024;

impl Tier {
    /// Room for code of so many bytes; nothing where nothing is compiled: what is compiled has vectors
    /// of a length that the host must have.
    pub fn new(bytes: usize, level: Level) -> Option<Tier> {
        let pages = || (0..bytes.div_ceil(4 * PAGE)).map(|_| OnceLock::new()).collect();
        let can = cfg!(target_arch = "x86_64") && level != Level::Plain;
        can.then(|| Tier { pages: pages(), sites: AtomicUsize::new(0) })
    }

    /// Executes the block at the wave's PC as far as the wave may go; nothing, and nothing is done, if
    /// the interpreter has to. The wave may execute until it has executed `until` instructions in all,
    /// and must stop where it branches when it has executed `branch_from`; `notes` says whether memory
    /// must be told what is accessed ([`Memory::notes_windows`]).
    pub fn run<C: Checker>(
        &self,
        program: &Program,
        wave: &mut Wave,
        (memory, lds): (&mut dyn Memory, &mut [u8]),
        (workspace, checker): (&mut Workspace, &mut C),
        (until, branch_from): (u64, u64),
        (compiling, notes): (Compiling, bool),
    ) -> Option<Ran> {
        let index = program.index_of(wave.pc);
        let page = self.pages.get(index / PAGE)?;
        let place = &page.get_or_init(new_page)[index % PAGE];
        let block = match place.block.get() {
            Some(block) => block.as_ref()?,
            None if !place.is_hot(compiling, notes) => return None,
            None => self.begin(program, wave.pc, place)?,
        };
        let Some(compiled) = block.compiled(notes) else {
            if place.is_hot(compiling, notes) && block.is_first_to_ask(notes) {
                compile(block, program, compiling, notes);
            }
            return None;
        };
        let times_undone = &place.undone[usize::from(notes)];
        let undone = times_undone.load(Ordering::Relaxed);
        let length = block.len() as u64;
        let has_room = wave.executed + length <= until;
        if !has_room
            || undone > PATIENCE
            || !block.suits(compiled, wave, memory, lds)
            || !checker.allows(wave, block.stretch())
        {
            return None;
        }
        let tier = std::ptr::from_ref(self) as usize;
        workspace.prepare(tier, self.sites.load(Ordering::Relaxed));
        // It branches to its start only from before `branch_from`.
        let until = until.min(branch_from.saturating_add(length - 1));
        let ran = block.execute(compiled, wave, (memory, lds), (workspace, checker), until);
        match ran.is_undone {
            true => _ = times_undone.fetch_add(UNDONE, Ordering::Relaxed),
            false if undone > 0 => times_undone.store(undone - 1, Ordering::Relaxed),
            false => {}
        }
        Some(ran)
    }

    /// The block that begins at a device address.
    #[cold]
    fn begin<'a>(&self, program: &Program, start: u64, place: &'a Place) -> Option<&'a Arc<Block>> {
        let new = || {
            let source = Source::of(program, start)?;
            // Numbers are not given twice.
            let first_site = self.sites.fetch_add(source.sites(), Ordering::Relaxed);
            Some(Arc::new(Block::new(source, first_site)))
        };
        place.block.get_or_init(new).as_ref()
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
fn compile(block: &Arc<Block>, program: &Program, compiling: Compiling, notes: bool) {
    let (machine, level) = (program.machine(), program.level());
    match compiling {
        Compiling::AtOnce => block.compile(machine, level, notes, &mut Here),
        _ => {
            let block = Arc::clone(block);
            in_background(move |compiler| block.compile(machine, level, notes, compiler));
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
    pub use super::block::{Block, LaneAccess, Plan, Source, VectorPlan};
    pub use super::scalar::{Lowering as ScalarLowering, all as scalar_lowerings};
    pub use super::vector::{Lowering, all as lowerings, of_pairs};
    pub use super::workspace::Workspace;
}
