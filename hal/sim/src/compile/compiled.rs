//! Compiled blocks and their links: the code of a block jumps to the code of the next one if that
//! is known and its entry guard accepts the wave.

use super::block::Block;
use super::frame::{Entry, Frame};
use super::workspace::{CachedWindow, Workspace};
use crate::instruction::{Flow, Traits};
use crate::memory::WindowAccess;
use crate::wave::{Mode, RowIndex, Wave};
use flipwave_jit::Code;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Bits of MODE that compiled code depends on, and their required values: rounding to nearest even,
/// denormals preserved, half-precision overflow to infinity, no indexing or skipping of vector
/// registers.
const MODE_BITS: u32 = 0xff | Mode::GPR_INDEX | Mode::SKIP_VECTORS | Mode::FP16_OVERFLOW;
const MODE: u32 = 0xf0;

/// Bytes of LDS that compiled code reads whatever the addresses are.
const MIN_LDS: usize = 64;

/// Increase of the bailout score per bailout; each complete execution decreases it by 1. So a
/// bailout costs as much as 16 executions gain.
const BAILOUT_COST: u32 = 16;
/// Bailout score above which the interpreter executes the block.
const DISABLE_SCORE: u32 = 1024;
/// Bailout score above which another variant is tried.
const FREQUENT_SCORE: u32 = DISABLE_SCORE / 4;

/// Resources that a block's entry guard requires, or that a wave has available. The counts are
/// packed into one word with a zero bit above each, so that compiled code compares all of them at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Resources(u64);

impl Resources {
    /// Bits of the counts, from the lowest: the tier's windows up to the block's last one, bytes of
    /// LDS, VGPRs, AccVGPRs.
    const BITS: [u32; 4] = [31, 7, 11, 11];
    /// The bits above the counts.
    pub const GUARD_BITS: u64 = Resources::guard_bits();

    const fn guard_bits() -> u64 {
        let [windows, lds, vgprs, acc_vgprs] = Resources::BITS;
        let lds = windows + 1 + lds;
        let vgprs = lds + 1 + vgprs;
        1 << windows | 1 << lds | 1 << vgprs | 1 << (vgprs + 1 + acc_vgprs)
    }

    /// Packs counts. Counts that exceed their field saturate: no block requires more.
    #[inline(always)]
    fn new(windows: usize, lds: usize, vgprs: u16, acc_vgprs: u16) -> Resources {
        let counts = [windows as u64, lds as u64, vgprs.into(), acc_vgprs.into()];
        let (mut word, mut shift) = (0, 0);
        for (count, bits) in counts.into_iter().zip(Resources::BITS) {
            word |= count.min((1 << bits) - 1) << shift;
            shift += bits + 1;
        }
        Resources(word)
    }

    /// Resources available to a wave.
    #[inline(always)]
    pub fn of_wave(wave: &Wave, lds: &[u8], workspace: &Workspace) -> Resources {
        Resources::new(workspace.windows(), lds.len(), wave.vgpr_count, wave.acc_vgpr_count)
    }

    /// Returns `true` if all counts are available.
    #[inline(always)]
    fn are_available(self, available: Resources) -> bool {
        ((available.0 | Resources::GUARD_BITS) - self.0) & Resources::GUARD_BITS
            == Resources::GUARD_BITS
    }
}

/// Header of a compiled block: the data that compiled code, of this and other blocks, reads to
/// enter it. One cache line of the host. Compiled code finds the fields at the offsets in
/// [`offset`](super::frame::offset).
#[repr(C, align(64))]
pub struct Link {
    pub required: Resources,
    /// Number of instructions that the wave's turn must have left; [`UNREACHABLE_BUDGET`] while
    /// other blocks must not jump to this one.
    pub required_budget: AtomicU64,
    pub entry: Entry,
    /// Device address of the block's first instruction.
    pub start: u64,
    /// Byte offset of the block's first window from the tier's first one.
    pub first_window: u64,
    /// Next blocks: after the last instruction, and at its branch target. [`UNLINKED`] as long as
    /// they are not known.
    pub next: [AtomicPtr<Link>; 2],
}

/// Exceeds every turn, and is small enough to be added to the instructions that a wave has
/// executed.
const UNREACHABLE_BUDGET: u64 = i64::MAX as u64;
/// The longest turn, in instructions.
pub const LONGEST_TURN: u64 = UNREACHABLE_BUDGET - 1;

/// A link that no wave can enter.
static UNLINKED: Link = Link {
    required: Resources(0),
    required_budget: AtomicU64::new(UNREACHABLE_BUDGET),
    entry: unlinked,
    start: 0,
    first_window: 0,
    next: [const { AtomicPtr::new(ptr::null_mut()) }; 2],
};

/// Entry of [`UNLINKED`]; never called.
unsafe extern "C" fn unlinked(_: *mut Frame<'_, '_>) -> u32 {
    0
}

/// A block's compiled code and its properties.
#[repr(C)]
pub struct Compiled {
    /// The first field, so that a pointer to it is a pointer to the whole struct.
    link: Link,
    /// Traits of the block, at a place that compiled code can read.
    traits: Traits,
    /// Number of instructions.
    pub length: u64,
    /// Flow of the last instruction.
    pub flow: Flow,
    /// Device address of the last instruction.
    pub last_address: u64,
    /// Score of recent bailouts, see [`BAILOUT_COST`].
    bailout_score: AtomicU32,
    pub block: Arc<Block>,
    /// Regions that can bail out.
    pub regions: Vec<BailoutRegion>,
    /// Accesses to device memory, in instruction order.
    pub sites: Vec<Site>,
    /// Device addresses of [`Link::next`].
    exits: [u64; 2],
    /// Owns the host code.
    _code: Code,
}

/// Instructions that can bail out together: the code restores the rows that they wrote, and the
/// interpreter executes them again.
#[derive(Clone, Debug)]
pub struct BailoutRegion {
    /// The vector instructions, and scalar instructions between them.
    pub instructions: Range<usize>,
    /// Rows saved before the region, in order of their copies.
    pub saved: Vec<RowIndex>,
}

/// Properties of compiled code that the emitter decides.
#[derive(Default)]
pub struct Contents {
    /// Regions that can bail out.
    pub regions: Vec<BailoutRegion>,
    /// Accesses to device memory, in instruction order.
    pub sites: Vec<Site>,
    /// `true` if the code accesses LDS.
    pub uses_lds: bool,
}

/// An access to device memory.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    pub instruction: usize,
    /// Direction of the access.
    pub access: WindowAccess,
    /// Bytes per lane.
    pub bytes: u32,
}

impl Compiled {
    /// Offset of the block's [`Traits`] from its link.
    pub const TRAITS: usize = offset_of!(Compiled, traits);

    /// `code` is compiled from the module whose contents are `contents`.
    pub fn new(block: Arc<Block>, contents: Contents, code: Code) -> Compiled {
        let Contents { regions, sites, uses_lds } = contents;
        let ops = || block.source.ops.iter();
        let windows = if sites.is_empty() { 0 } else { block.first_site + sites.len() };
        let link = Link {
            required: Resources::new(
                windows,
                if uses_lds { MIN_LDS } else { 0 },
                ops().map(|op| op.vgprs_named).max().unwrap_or(0),
                ops().map(|op| op.acc_vgprs_named).max().unwrap_or(0),
            ),
            required_budget: AtomicU64::new(block.len() as u64),
            // SAFETY: the address is that of the function that `emit` wrote, which has this type.
            entry: unsafe { std::mem::transmute::<NonNull<()>, Entry>(code.entry()) },
            start: block.source.start,
            first_window: (block.first_site * size_of::<CachedWindow>()) as u64,
            next: std::array::from_fn(|_| AtomicPtr::new(ptr::from_ref(&UNLINKED).cast_mut())),
        };
        let exits = block.source.exits();
        let length = block.len() as u64;
        let (flow, last_address) = (block.source.flow(), block.source.addresses[block.len() - 1]);
        Compiled {
            link,
            traits: block.traits,
            length,
            flow,
            last_address,
            bailout_score: AtomicU32::new(0),
            block,
            regions,
            sites,
            exits,
            _code: code,
        }
    }

    /// Returns `true` if the block's entry guard accepts a wave: the wave has the registers, MODE
    /// is as the code expects it, and compiled code can access its memory.
    #[inline(always)]
    pub fn accepts(&self, wave: &Wave, available: Resources) -> bool {
        wave.mode.0 & MODE_BITS == MODE && self.link.required.are_available(available)
    }

    /// The block's header, as other blocks refer to it.
    pub fn link(&self) -> *const Link {
        ptr::from_ref(self).cast()
    }

    /// Links the exit at `pc` to the block compiled there. Both blocks belong to one tier.
    pub fn link_to(&self, pc: u64, next: &Compiled) {
        for (exit, link) in self.exits.iter().zip(&self.link.next) {
            let next = next.link().cast_mut();
            if *exit == pc && link.load(Ordering::Relaxed) != next {
                link.store(next, Ordering::Release);
            }
        }
    }

    /// Returns `true` if bailouts are so frequent that the interpreter is faster.
    #[inline(always)]
    pub fn is_disabled(&self) -> bool {
        self.bailout_score.load(Ordering::Relaxed) > DISABLE_SCORE
    }

    /// Returns `true` if the block will be disabled unless bailouts become rarer.
    pub fn has_frequent_bailouts(&self) -> bool {
        self.bailout_score.load(Ordering::Relaxed) > FREQUENT_SCORE
    }

    /// Records a bailout. No other block jumps to this one until it has been executed completely
    /// often enough.
    pub fn record_bailout(&self) {
        self.bailout_score.fetch_add(BAILOUT_COST, Ordering::Relaxed);
        self.link.required_budget.store(UNREACHABLE_BUDGET, Ordering::Relaxed);
    }

    /// Records a complete execution.
    #[inline(always)]
    pub fn record_completion(&self) {
        match self.bailout_score.load(Ordering::Relaxed) {
            0 if self.link.required_budget.load(Ordering::Relaxed) == UNREACHABLE_BUDGET => {
                self.link.required_budget.store(self.length, Ordering::Relaxed);
            }
            0 => {}
            score => self.bailout_score.store(score - 1, Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Resources;

    #[test]
    fn waves_that_lack_one_resource_are_rejected() {
        let counts = [40, 64, 128, 96];
        let resources = |[windows, lds, vgprs, acc_vgprs]: [usize; 4]| {
            Resources::new(windows, lds, vgprs as u16, acc_vgprs as u16)
        };
        let required = resources(counts);
        assert!(required.are_available(required) && Resources(0).are_available(Resources(0)));
        for lacking in 0..counts.len() {
            // The other resources are abundant.
            let mut available = [usize::MAX; 4];
            assert!(required.are_available(resources(available)));
            available[lacking] = counts[lacking] - 1;
            assert!(!required.are_available(resources(available)), "{lacking}");
            available[lacking] = 0;
            assert!(!required.are_available(resources(available)), "{lacking}");
        }
    }
}
