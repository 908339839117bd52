//! What compiled code has besides the wave: room for copies of rows, and where it finds device memory.

use super::access::Direction;
use crate::execute::vector_memory::Addresses;
use crate::execute::{scalar_memory, vector_memory};
use crate::instruction::vector_memory::Space;
use crate::instruction::{Op, Run};
use crate::memory::{Memory, PrivateNotes, TouchedNotes, TouchedRegion, Window, WindowAccess};
use crate::wave::{Row, Wave};
use flipwave_isa::LaneMask;
use std::ptr;

/// Rows that a segment can have copies of, see [`super::compiled::Segment`].
pub const KEPT_ROWS: usize = 64;

/// Rows of which a segment can have copies for lanes to take words from.
pub const MOVED_ROWS: usize = 8;

/// A stretch of device memory as compiled code has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CachedWindow {
    /// Where it is; at least [`SHORTEST`] bytes.
    pub window: Window,
    /// Not zero if there is none: what can be read at [`Window::bytes`] is of no meaning then.
    pub missing: u64,
    /// Where what notes what it touches has that, if something does.
    pub notes: TouchedNotes,
}

/// The widest access of a lane, or to scalar registers.
const SHORTEST: usize = 64;
static NOTHING: [u8; SHORTEST] = [0; SHORTEST];

impl CachedWindow {
    /// No window. Compiled code reads from it all the same, and makes nothing of that.
    fn missing() -> CachedWindow {
        let bytes = NOTHING.as_ptr().cast_mut();
        let (length, touched) = (SHORTEST as u64, ptr::null_mut());
        let window = Window { base: 0, length, bytes, touched };
        CachedWindow { window, missing: 1, notes: TouchedNotes::NONE }
    }

    fn has(&self, address: u64) -> bool {
        self.missing == 0 && address.wrapping_sub(self.window.base) < self.window.length
    }
}

/// Windows of private memory to load from, or to store to.
pub const PRIVATE_WINDOWS: usize = 8;
/// Bytes, as a power of two, of which all have the same one of them.
pub const PRIVATE_BLOCK: u32 = 16;

/// Where private memory is: what was accessed last of those addresses that have the same window.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PrivateWindows {
    pub load: [CachedWindow; PRIVATE_WINDOWS],
    pub store: [CachedWindow; PRIVATE_WINDOWS],
    /// Where it is noted what is touched there.
    pub notes: PrivateNotes,
}

impl PrivateWindows {
    /// None are known.
    fn missing() -> PrivateWindows {
        let none = [CachedWindow::missing(); PRIVATE_WINDOWS];
        PrivateWindows { load: none, store: none, notes: PrivateNotes::NONE }
    }
}

/// Blocks that a wave can execute in a row where they are counted.
pub const LOGGED: usize = 1024;

/// A block that a wave has executed to its end, once or more often, before it has gone on to another.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Logged {
    /// Where its link is, as compiled code has it.
    pub block: *const (),
    /// Instructions that the wave had executed then.
    pub executed: u64,
    /// EXEC then.
    pub exec: u64,
}

/// What compiled code of a dispatch has besides the waves.
pub struct Workspace {
    /// Those of [`KEPT_ROWS`], then those of [`MOVED_ROWS`].
    kept: Box<[Row; KEPT_ROWS + MOVED_ROWS]>,
    /// By the number of the access.
    windows: Vec<CachedWindow>,
    /// Those of private memory.
    private: Box<PrivateWindows>,
    /// Of the memory whose windows they are.
    generation: Option<u64>,
    /// The tier whose accesses they belong to, by its address.
    tier: usize,
    /// Room for blocks of a row; empty as long as none are counted.
    log: Vec<Logged>,
}

impl Default for Workspace {
    fn default() -> Workspace {
        let kept = Box::new([Row::ZERO; KEPT_ROWS + MOVED_ROWS]);
        let (windows, log) = (Vec::new(), Vec::new());
        let private = Box::new(PrivateWindows::missing());
        Workspace { kept, windows, private, generation: None, tier: 0, log }
    }
}

impl Workspace {
    /// Makes ready for code of a tier that has so many accesses in all.
    pub fn prepare(&mut self, tier: usize, accesses: usize) {
        if self.tier != tier {
            self.windows.clear();
            self.tier = tier;
        }
        if self.windows.len() < accesses {
            self.windows.resize_with(accesses, CachedWindow::missing);
        }
    }

    /// Forgets windows if memory is not where it was.
    #[inline(always)]
    pub fn follow(&mut self, memory: &dyn Memory) {
        let generation = memory.generation();
        if generation != self.generation {
            self.windows.fill_with(CachedWindow::missing);
            self.forget_private();
            self.generation = generation;
        }
    }

    /// Forgets windows of private memory: the next workgroup has other private memory, and what it touches
    /// of that is noted elsewhere.
    pub fn forget_private(&mut self) {
        *self.private = PrivateWindows::missing();
    }

    /// Finds window number `number` for what an instruction is about to access; whether there was none
    /// before.
    pub fn find(
        &mut self,
        number: usize,
        access: WindowAccess,
        (wave, op): (&Wave, &Op),
        memory: &mut dyn Memory,
    ) -> bool {
        let was_missing = self.windows[number].missing != 0;
        let address = match op.run {
            Run::ScalarMemory(access) => scalar_memory::first_address(wave, op, access),
            Run::VectorMemory(access) if matches!(access.space, Space::Buffer { .. }) => {
                vector_memory::first_address(wave, op, access)
            }
            _ => {
                let exec = wave.exec();
                (exec != LaneMask::EMPTY).then(|| Addresses::of(wave, op, exec).first(exec))
            }
        };
        let Some(address) = address else { return false };
        if self.windows[number].has(address) {
            return false;
        }
        let found = memory.window(address, access);
        self.follow(memory);
        if let Some(mut window) = found.filter(|window| window.length >= SHORTEST as u64) {
            window.length = window.length.min(u32::MAX.into());
            // SAFETY: a window's region is there as long as the window, and nobody else uses it now.
            let touched = unsafe { window.touched.as_mut() };
            let notes = touched.map_or(TouchedNotes::NONE, TouchedRegion::notes);
            self.windows[number] = CachedWindow { window, missing: 0, notes };
            return was_missing;
        }
        false
    }

    /// Finds windows of the private memory that an instruction has accessed at an address.
    pub fn find_private(&mut self, direction: Direction, address: u64, memory: &mut dyn Memory) {
        let slot = (address >> PRIVATE_BLOCK) as usize % PRIVATE_WINDOWS;
        let access = match direction {
            Direction::Load => WindowAccess::Read,
            Direction::Store => WindowAccess::Write,
        };
        let found = memory.private_window(address, access);
        self.follow(memory);
        if let Some((window, notes)) = found.filter(|(own, _)| own.length >= SHORTEST as u64) {
            let own = CachedWindow { window, missing: 0, notes: TouchedNotes::NONE };
            self.private.load[slot] = own;
            if direction == Direction::Store {
                self.private.store[slot] = own;
            }
            self.private.notes = notes;
        }
    }

    /// Windows of private memory.
    pub fn private(&self) -> *const PrivateWindows {
        &raw const *self.private
    }

    /// A copy of a row.
    pub fn kept_row(&self, index: usize) -> &Row {
        &self.kept[index]
    }

    /// How many accesses it has windows for.
    #[inline(always)]
    pub fn windows(&self) -> usize {
        if self.generation.is_some() { self.windows.len() } else { 0 }
    }

    /// Room to log blocks in.
    pub fn log(&mut self) -> *mut Logged {
        self.log.reserve(LOGGED);
        self.log.as_mut_ptr()
    }

    /// The addresses of what compiled code uses: of the copies, and of the windows.
    pub fn pointers(&mut self) -> (*mut u8, *const CachedWindow) {
        (self.kept.as_mut_ptr().cast(), self.windows.as_ptr())
    }
}
