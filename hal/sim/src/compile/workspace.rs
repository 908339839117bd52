//! Host memory that compiled code uses in addition to the wave: copies of rows, and windows of
//! memory.

use super::access::Direction;
use crate::execute::vector_memory::Addresses;
use crate::execute::{scalar_memory, vector_memory};
use crate::instruction::vector_memory::Space;
use crate::instruction::{Op, Run};
use crate::memory::{Memory, PrivateNotes, TouchedNotes, TouchedRegion, Window, WindowAccess};
use crate::wave::{Row, Wave};
use flipwave_isa::LaneMask;
use std::ptr;

/// Largest number of rows that a region saves, see [`super::compiled::BailoutRegion`].
pub const SAVED_ROWS: usize = 64;

/// Largest number of rows that a loop copies so that lanes can read words of other lanes.
pub const MOVED_ROWS: usize = 8;

/// A window of device memory as compiled code reads it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CachedWindow {
    /// The window, of at least [`MIN_WINDOW`] bytes.
    pub window: Window,
    /// Nonzero if no window is known; the bytes at [`Window::bytes`] are readable but meaningless
    /// then.
    pub missing: u64,
    /// Location where compiled code records the footprint, if it does.
    pub notes: TouchedNotes,
}

/// Bytes of the widest access of a lane or of scalar registers.
const MIN_WINDOW: usize = 64;
static NO_WINDOW_BYTES: [u8; MIN_WINDOW] = [0; MIN_WINDOW];

impl CachedWindow {
    /// An unknown window. Compiled code reads from its bytes and discards them.
    fn missing() -> CachedWindow {
        let bytes = NO_WINDOW_BYTES.as_ptr().cast_mut();
        let (length, touched) = (MIN_WINDOW as u64, ptr::null_mut());
        let window = Window { base: 0, length, bytes, touched };
        CachedWindow { window, missing: 1, notes: TouchedNotes::NONE }
    }

    fn has(&self, address: u64) -> bool {
        self.missing == 0 && address.wrapping_sub(self.window.base) < self.window.length
    }
}

/// Number of windows of private memory for loads, and for stores.
pub const PRIVATE_WINDOWS: usize = 8;
/// Binary logarithm of the block size in bytes; all addresses of a block share a window slot.
pub const PRIVATE_BLOCK: u32 = 16;

/// Windows of private memory: of the last access to each slot.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct PrivateWindows {
    pub load: [CachedWindow; PRIVATE_WINDOWS],
    pub store: [CachedWindow; PRIVATE_WINDOWS],
    /// Location where compiled code records the footprint of private memory.
    pub notes: PrivateNotes,
}

impl PrivateWindows {
    /// Windows that are all unknown.
    fn missing() -> PrivateWindows {
        let none = [CachedWindow::missing(); PRIVATE_WINDOWS];
        PrivateWindows { load: none, store: none, notes: PrivateNotes::NONE }
    }
}

/// Largest number of blocks that a wave executes in a row while they are counted.
pub const LOGGED: usize = 1024;

/// Log entry: a block that a wave has completed, possibly repeatedly, before it entered another
/// one.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Logged {
    /// The block's link.
    pub block: *const (),
    /// Number of instructions that the wave had executed at that time.
    pub executed: u64,
    /// EXEC at that time.
    pub exec: u64,
}

/// Host memory of a dispatch that compiled code uses in addition to the waves.
pub struct Workspace {
    /// [`SAVED_ROWS`] rows, followed by [`MOVED_ROWS`] rows.
    saved: Box<[Row; SAVED_ROWS + MOVED_ROWS]>,
    /// Windows of device memory, by the number of the access.
    windows: Vec<CachedWindow>,
    /// Windows of private memory.
    private: Box<PrivateWindows>,
    /// Generation of the memory that the windows belong to.
    generation: Option<u64>,
    /// Address of the tier that numbers the accesses.
    tier: usize,
    /// Log of blocks; empty as long as none are counted.
    log: Vec<Logged>,
}

impl Default for Workspace {
    fn default() -> Workspace {
        let saved = Box::new([Row::ZERO; SAVED_ROWS + MOVED_ROWS]);
        let (windows, log) = (Vec::new(), Vec::new());
        let private = Box::new(PrivateWindows::missing());
        Workspace { saved, windows, private, generation: None, tier: 0, log }
    }
}

impl Workspace {
    /// Prepares for the code of a tier with this number of accesses.
    pub fn prepare(&mut self, tier: usize, accesses: usize) {
        if self.tier != tier {
            self.windows.clear();
            self.tier = tier;
        }
        if self.windows.len() < accesses {
            self.windows.resize_with(accesses, CachedWindow::missing);
        }
    }

    /// Discards the windows if the memory has moved.
    #[inline(always)]
    pub fn check_generation(&mut self, memory: &dyn Memory) {
        let generation = memory.generation();
        if generation != self.generation {
            self.windows.fill_with(CachedWindow::missing);
            self.forget_private();
            self.generation = generation;
        }
    }

    /// Discards the windows of private memory: the next workgroup has other private memory, and
    /// another footprint.
    pub fn forget_private(&mut self) {
        *self.private = PrivateWindows::missing();
    }

    /// Finds the window of access `number` for an instruction that is about to execute. Returns
    /// `true` if there was none before.
    pub fn find_window(
        &mut self,
        number: usize,
        access: WindowAccess,
        wave: &Wave,
        op: &Op,
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
        self.check_generation(memory);
        if let Some(mut window) = found.filter(|window| window.length >= MIN_WINDOW as u64) {
            window.length = window.length.min(u32::MAX.into());
            // SAFETY: a window's region lives as long as the window, and no other reference to it exists.
            let touched = unsafe { window.touched.as_mut() };
            let notes = touched.map_or(TouchedNotes::NONE, TouchedRegion::notes);
            self.windows[number] = CachedWindow { window, missing: 0, notes };
            return was_missing;
        }
        false
    }

    /// Finds the window of private memory around an address that an instruction has accessed.
    pub fn find_private_window(
        &mut self,
        direction: Direction,
        address: u64,
        memory: &mut dyn Memory,
    ) {
        let slot = (address >> PRIVATE_BLOCK) as usize % PRIVATE_WINDOWS;
        let access = match direction {
            Direction::Load => WindowAccess::Read,
            Direction::Store => WindowAccess::Write,
        };
        let found = memory.private_window(address, access);
        self.check_generation(memory);
        if let Some((window, notes)) =
            found.filter(|(window, _)| window.length >= MIN_WINDOW as u64)
        {
            let cached = CachedWindow { window, missing: 0, notes: TouchedNotes::NONE };
            self.private.load[slot] = cached;
            if direction == Direction::Store {
                self.private.store[slot] = cached;
            }
            self.private.notes = notes;
        }
    }

    /// The windows of private memory.
    pub fn private(&self) -> *const PrivateWindows {
        &raw const *self.private
    }

    /// A saved row.
    pub fn saved_row(&self, index: usize) -> &Row {
        &self.saved[index]
    }

    /// Number of accesses that have a window slot.
    #[inline(always)]
    pub fn windows(&self) -> usize {
        if self.generation.is_some() { self.windows.len() } else { 0 }
    }

    /// Start of the log.
    pub fn log(&mut self) -> *mut Logged {
        self.log.reserve(LOGGED);
        self.log.as_mut_ptr()
    }

    /// Addresses of the saved rows and of the windows.
    pub fn pointers(&mut self) -> (*mut u8, *const CachedWindow) {
        (self.saved.as_mut_ptr().cast(), self.windows.as_ptr())
    }
}
