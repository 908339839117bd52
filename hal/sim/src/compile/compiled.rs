//! Compiled blocks, and how they follow each other: the code of one goes on to the code of the next,
//! where that is known and the wave can execute it, without coming back in between.

use super::block::Block;
use super::emit::{self, Module};
use super::frame::{Entry, Frame};
use super::value::Shape;
use super::workspace::{CachedWindow, Workspace};
use crate::instruction::{Flow, Traits};
use crate::memory::WindowAccess;
use crate::wave::{Level, Machine, Mode, RowIndex, Wave};
use flipwave_jit::{Code, Compiler, Extensions};
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The bits of MODE that compiled code depends on, and what they must be: to nearest even, denormals
/// kept, infinities of half precision, vector registers where they are named.
const MODE_BITS: u32 = 0xff | Mode::GPR_INDEX | Mode::SKIP_VECTORS | Mode::FP16_OVERFLOW;
const MODE: u32 = 0xf0;

/// Bytes of LDS that compiled code reads whatever the addresses are.
const SHORTEST_LDS: usize = 64;

/// What a block counts when it is undone: as many times must it be executed for that to be no loss.
const UNDONE: u32 = 16;
/// The count at which it is given up, and that at which another way to compile it is looked for.
const PATIENCE: u32 = 1024;
const DOUBT: u32 = PATIENCE / 4;

/// A block and what it is compiled to, in each way.
pub struct Candidate {
    pub block: Arc<Block>,
    variants: [Variant; How::COUNT],
}

/// How a block is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// It notes what it touches of device memory.
    pub notes: bool,
    /// Its arithmetic makes NaNs those of the interpreter. Otherwise it is undone where it meets one,
    /// which costs nothing where there are none.
    pub settles_nans: bool,
    /// Flat accesses that have led elsewhere than to device memory are code of their own, see
    /// [`Block::elsewhere`]. Otherwise it is undone where they do.
    pub parts_flat: bool,
}

impl How {
    const COUNT: usize = 8;

    fn index(self) -> usize {
        usize::from(self.notes)
            | usize::from(self.settles_nans) << 1
            | usize::from(self.parts_flat) << 2
    }

    /// This one, and those that do for it as long as it is not there: those that are undone more often.
    pub fn with_others(self) -> [How; 4] {
        let settles_none = How { settles_nans: false, ..self };
        let parts_none = How { parts_flat: false, ..self };
        [self, settles_none, parts_none, How { parts_flat: false, ..settles_none }]
    }
}

/// A block as code of the host.
#[derive(Default)]
struct Variant {
    /// Whether it is compiled, or being compiled.
    is_asked_for: AtomicBool,
    /// What was compiled; nothing if that did not succeed.
    compiled: OnceLock<Option<Compiled>>,
}

impl Candidate {
    pub fn new(block: Block) -> Candidate {
        Candidate { block: Arc::new(block), variants: Default::default() }
    }

    /// Whether it is compiled so, or is to be. Waves that wait for it do not write to what others read.
    pub fn is_asked_for(&self, how: How) -> bool {
        self.variants[how.index()].is_asked_for.load(Ordering::Relaxed)
    }

    /// Whether nobody has asked before for what is compiled so.
    pub fn is_first_to_ask(&self, how: How) -> bool {
        !self.variants[how.index()].is_asked_for.swap(true, Ordering::Relaxed)
    }

    /// Has it compiled.
    pub fn compile(&self, machine: Machine, level: Level, how: How, compiler: &mut dyn Compiler) {
        let (shape, extensions) = match level {
            Level::Avx512 => (Shape::Sixteen, Extensions::Avx512),
            _ => (Shape::Eight, Extensions::Avx2),
        };
        let elsewhere = if how.parts_flat { self.block.elsewhere() } else { Vec::new() };
        let module = emit::module(&self.block.source, elsewhere, machine, shape, how);
        let object = compiler.compile(&module.text, extensions).map_err(|error| error.to_string());
        let code = object
            .and_then(|object| Code::load(&object, emit::NAME).map_err(|error| error.to_string()));
        // The interpreter executes what is not compiled; a test says why not.
        #[cfg(test)]
        if let Err(error) = &code {
            panic!("{error}\n{}", module.text);
        }
        let compiled = code.ok().map(|code| Compiled::new(Arc::clone(&self.block), module, code));
        let _ = self.variants[how.index()].compiled.set(compiled);
    }

    /// What was compiled so; nothing as long as it is not, or if that did not succeed.
    #[inline(always)]
    pub fn compiled(&self, how: How) -> Option<&Compiled> {
        self.variants[how.index()].compiled.get()?.as_ref()
    }
}

/// What a block demands of a wave, or what a wave has: at most as much of each may be demanded. The
/// counts stand in one word, each with a bit above it that is zero, so that compiled code compares all of
/// them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Demands(u64);

impl Demands {
    /// Bits of the counts, from the lowest on: windows of the tier up to the last one of the block's own,
    /// bytes of LDS, VGPRs, AccVGPRs.
    const BITS: [u32; 4] = [31, 7, 11, 11];
    /// The bits above the counts.
    pub const ABOVE: u64 = Demands::above();

    const fn above() -> u64 {
        let [windows, lds, vgprs, acc_vgprs] = Demands::BITS;
        let lds = windows + 1 + lds;
        let vgprs = lds + 1 + vgprs;
        1 << windows | 1 << lds | 1 << vgprs | 1 << (vgprs + 1 + acc_vgprs)
    }

    /// Of more than there are bits for, as many as these can say: nothing demands more.
    #[inline(always)]
    fn new(windows: usize, lds: usize, vgprs: u16, acc_vgprs: u16) -> Demands {
        let counts = [windows as u64, lds as u64, vgprs.into(), acc_vgprs.into()];
        let (mut word, mut shift) = (0, 0);
        for (count, bits) in counts.into_iter().zip(Demands::BITS) {
            word |= count.min((1 << bits) - 1) << shift;
            shift += bits + 1;
        }
        Demands(word)
    }

    /// What a wave has.
    #[inline(always)]
    pub fn of_wave(wave: &Wave, lds: &[u8], workspace: &Workspace) -> Demands {
        Demands::new(workspace.windows(), lds.len(), wave.vgpr_count, wave.acc_vgpr_count)
    }

    /// Whether a wave has it.
    #[inline(always)]
    fn are_met_by(self, has: Demands) -> bool {
        ((has.0 | Demands::ABOVE) - self.0) & Demands::ABOVE == Demands::ABOVE
    }
}

/// What other blocks' code uses to go on to a block, and what its own code knows of itself: a line of the
/// host's cache. Compiled code finds it at the offsets that [`offset`](super::frame::offset) names.
#[repr(C, align(64))]
pub struct Link {
    pub demands: Demands,
    /// Instructions that the wave's turn must have room for; more than any turn has where other blocks
    /// must not go on to it.
    pub room: AtomicU64,
    pub entry: Entry,
    /// The device address of the block.
    pub start: u64,
    /// Where its windows begin: bytes from the tier's first one on.
    pub first_window: u64,
    /// Where it goes on: after its last instruction, and where that branches to. [`NOWHERE`] as long as
    /// that is not known.
    pub next: [AtomicPtr<Link>; 2],
}

/// More than any turn has, and so little that it can be added to what a wave has executed.
const NO_ROOM: u64 = i64::MAX as u64;
/// The longest turn.
pub const LAST: u64 = NO_ROOM - 1;

/// What is never gone on to.
static NOWHERE: Link = Link {
    demands: Demands(0),
    room: AtomicU64::new(NO_ROOM),
    entry: nowhere,
    start: 0,
    first_window: 0,
    next: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
};

/// Is never called.
unsafe extern "C" fn nowhere(_: *mut Frame<'_, '_>) -> u32 {
    0
}

/// What is known of a block once it is compiled.
#[repr(C)]
pub struct Compiled {
    /// The first field: a pointer to it is one to the whole.
    link: Link,
    /// Those of its block, where compiled code finds them.
    traits: Traits,
    /// Instructions.
    pub length: u64,
    /// That of the last of them: a branch, if that parts blocks.
    pub flow: Flow,
    /// The device address of the last of them.
    pub last: u64,
    /// How often it was undone lately.
    undone: AtomicU32,
    pub block: Arc<Block>,
    /// The stretches of code over lanes that can be undone.
    pub segments: Vec<Segment>,
    /// Accesses to device memory, in the order of instructions.
    pub sites: Vec<Site>,
    /// Where [`Link::next`] leads to: device addresses.
    exits: [u64; 2],
    /// Keeps the code where it is.
    _code: Code,
}

/// A stretch of code over lanes that can be undone: where it meets what it does not do right, the rows
/// that it has written are those of the wave again, and the interpreter executes it.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its instructions, and scalar ones between them.
    pub instructions: Range<usize>,
    /// The rows of which there are copies, in their order.
    pub kept: Vec<RowIndex>,
}

/// An access to device memory.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    pub instruction: usize,
    /// What the window is for.
    pub access: WindowAccess,
    /// Bytes of a lane.
    pub bytes: u32,
}

impl Compiled {
    /// Where compiled code finds [`Traits`] of a block, from its link on.
    pub const TRAITS: usize = offset_of!(Compiled, traits);

    fn new(block: Arc<Block>, module: Module, code: Code) -> Compiled {
        let Module { segments, sites, uses_lds, .. } = module;
        let ops = || block.source.ops.iter();
        let windows = if sites.is_empty() { 0 } else { block.first_site + sites.len() };
        let link = Link {
            demands: Demands::new(
                windows,
                if uses_lds { SHORTEST_LDS } else { 0 },
                ops().map(|op| op.vgprs_named).max().unwrap_or(0),
                ops().map(|op| op.acc_vgprs_named).max().unwrap_or(0),
            ),
            room: AtomicU64::new(block.len() as u64),
            // SAFETY: the address is that of the function that `emit` has written, which is of this
            // type.
            entry: unsafe { std::mem::transmute::<NonNull<()>, Entry>(code.entry()) },
            start: block.source.start,
            first_window: (block.first_site * size_of::<CachedWindow>()) as u64,
            next: std::array::from_fn(|_| AtomicPtr::new(ptr::from_ref(&NOWHERE).cast_mut())),
        };
        let exits = block.source.exits();
        let (length, undone) = (block.len() as u64, AtomicU32::new(0));
        let (flow, last) = (block.source.flow(), block.source.places[block.len() - 1]);
        Compiled {
            link,
            traits: block.traits,
            length,
            flow,
            last,
            undone,
            block,
            segments,
            sites,
            exits,
            _code: code,
        }
    }

    /// Whether a wave can execute it: it has the registers, MODE is as the code expects it, and memory
    /// is what compiled code can access.
    #[inline(always)]
    pub fn suits(&self, wave: &Wave, has: Demands) -> bool {
        wave.mode.0 & MODE_BITS == MODE && self.link.demands.are_met_by(has)
    }

    /// A pointer to it as other blocks have it.
    pub fn link(&self) -> *const Link {
        ptr::from_ref(self).cast()
    }

    /// Has the code go on to what is compiled where the wave is now, after this block. Both are of one
    /// tier.
    pub fn go_on_to(&self, pc: u64, next: &Compiled) {
        for (exit, link) in self.exits.iter().zip(&self.link.next) {
            let next = next.link().cast_mut();
            if *exit == pc && link.load(Ordering::Relaxed) != next {
                link.store(next, Ordering::Release);
            }
        }
    }

    /// Whether it is undone so often that the interpreter is faster.
    #[inline(always)]
    pub fn is_given_up(&self) -> bool {
        self.undone.load(Ordering::Relaxed) > PATIENCE
    }

    /// Whether it will be, if that goes on.
    pub fn is_often_undone(&self) -> bool {
        self.undone.load(Ordering::Relaxed) > DOUBT
    }

    /// Notes that it was undone. Until it has been executed often enough again, nothing goes on to it
    /// without asking.
    pub fn note_undone(&self) {
        self.undone.fetch_add(UNDONE, Ordering::Relaxed);
        self.link.room.store(NO_ROOM, Ordering::Relaxed);
    }

    /// Notes that it was executed to its end.
    #[inline(always)]
    pub fn note_done(&self) {
        match self.undone.load(Ordering::Relaxed) {
            0 if self.link.room.load(Ordering::Relaxed) == NO_ROOM => {
                self.link.room.store(self.length, Ordering::Relaxed);
            }
            0 => {}
            undone => self.undone.store(undone - 1, Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Demands;

    #[test]
    fn a_block_is_refused_to_a_wave_that_lacks_one_of_what_it_demands() {
        let counts = [40, 64, 128, 96];
        let demands = |[windows, lds, vgprs, acc_vgprs]: [usize; 4]| {
            Demands::new(windows, lds, vgprs as u16, acc_vgprs as u16)
        };
        let own = demands(counts);
        assert!(own.are_met_by(own) && Demands(0).are_met_by(Demands(0)));
        for lacking in 0..counts.len() {
            // However much there is of the others.
            let mut has = [usize::MAX; 4];
            assert!(own.are_met_by(demands(has)));
            has[lacking] = counts[lacking] - 1;
            assert!(!own.are_met_by(demands(has)), "{lacking}");
            has[lacking] = 0;
            assert!(!own.are_met_by(demands(has)), "{lacking}");
        }
    }
}
