//! What compiled code and the interpreter hand each other.

use super::block::{Block, Compiled, Site, Source};
use super::execute::interpret;
use super::workspace::{CachedWindow, Workspace};
use crate::dispatch::checker::Checker;
use crate::execute::control::Step;
use crate::memory::{Memory, TouchedRegion, Window};
use crate::wave::{LANES, Row, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use std::mem::{MaybeUninit, offset_of};

/// A wave while compiled code executes it. Compiled code reads and writes the fields above `wave`, at
/// the offsets that [`offset`] names.
#[repr(C)]
pub struct Frame<'a> {
    /// The vector registers.
    rows: *mut u8,
    /// The scalar registers.
    scalars: *mut u32,
    /// SCC, a byte that is 0 or 1.
    scc: *mut u8,
    /// Instructions that the wave has executed, up to the beginning of the block.
    pub executed: u64,
    /// Instructions after which it must not begin the block again.
    until: u64,
    /// Where the wave continues.
    pub pc: u64,
    /// Which instruction of the block was reached, where the block was not executed to its end.
    pub index: u64,
    /// Lanes of a segment whose accesses to memory it does not do right.
    doubts: u64,
    /// Copies of rows from before a segment.
    kept: *mut u8,
    /// Stretches of device memory: those of the block's accesses.
    windows: *const CachedWindow,
    /// The workgroup's LDS.
    lds: *mut u8,
    lds_length: u64,
    /// The device address of the block.
    start: u64,
    /// [`call`] for the checker, which code that is kept on disk cannot have in it.
    call: Call,
    /// Where lanes store that are not to store anything.
    nowhere: [u32; 4],
    /// [`touch`] and [`touch_each`], for code that notes what it touches.
    touch: Touch,
    touch_each: TouchEach,
    /// Where the latter's lanes are.
    places: MaybeUninit<[u64; 16]>,
    sites: *const Site,
    source: *const Source,
    wave: *mut Wave,
    memory: &'a mut dyn Memory,
    workspace: *mut Workspace,
    /// Of the type that [`call`] is for.
    checker: *mut (),
    /// Why the block was not executed to its end.
    pub fault: Option<FaultCause>,
}

/// Where compiled code finds what.
pub mod offset {
    use super::{CachedWindow, Frame, Window, offset_of};

    pub const ROWS: usize = offset_of!(Frame<'_>, rows);
    pub const SCALARS: usize = offset_of!(Frame<'_>, scalars);
    pub const SCC: usize = offset_of!(Frame<'_>, scc);
    pub const EXECUTED: usize = offset_of!(Frame<'_>, executed);
    pub const UNTIL: usize = offset_of!(Frame<'_>, until);
    pub const PC: usize = offset_of!(Frame<'_>, pc);
    pub const INDEX: usize = offset_of!(Frame<'_>, index);
    pub const DOUBTS: usize = offset_of!(Frame<'_>, doubts);
    pub const KEPT: usize = offset_of!(Frame<'_>, kept);
    pub const WINDOWS: usize = offset_of!(Frame<'_>, windows);
    pub const LDS: usize = offset_of!(Frame<'_>, lds);
    pub const LDS_LENGTH: usize = offset_of!(Frame<'_>, lds_length);
    pub const START: usize = offset_of!(Frame<'_>, start);
    pub const CALL: usize = offset_of!(Frame<'_>, call);
    pub const NOWHERE: usize = offset_of!(Frame<'_>, nowhere);
    pub const TOUCH: usize = offset_of!(Frame<'_>, touch);
    pub const TOUCH_EACH: usize = offset_of!(Frame<'_>, touch_each);
    pub const PLACES: usize = offset_of!(Frame<'_>, places);
    pub const WINDOW_SIZE: usize = size_of::<CachedWindow>();
    pub const WINDOW_BASE: usize = offset_of!(CachedWindow, window) + offset_of!(Window, base);
    pub const WINDOW_LENGTH: usize = offset_of!(CachedWindow, window) + offset_of!(Window, length);
    pub const WINDOW_BYTES: usize = offset_of!(CachedWindow, window) + offset_of!(Window, bytes);
    pub const WINDOW_MISSING: usize = offset_of!(CachedWindow, missing);
    pub const WINDOW_BITS: usize = offset_of!(CachedWindow, bits);
}

/// How compiled code came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// The block is executed, and the PC is [`Frame::pc`].
    Done,
    /// The instruction [`Frame::index`] has faulted.
    Faulted,
    /// A segment met what it does not do right. It is number [`Frame::index`], and must be executed by
    /// the interpreter once rows are restored of which there are copies.
    Undone,
}

/// A compiled block.
pub type Entry = unsafe extern "C" fn(*mut Frame<'_>) -> u32;

/// What notes that lanes touch bytes of a window that lie regularly.
type Touch = unsafe extern "C" fn(*mut Frame<'_>, u64, u64, u64, u64);

/// The same of bytes anywhere.
type TouchEach = unsafe extern "C" fn(*mut Frame<'_>, u64, u64);

/// What executes an instruction that is not compiled.
type Call = unsafe extern "C" fn(*mut Frame<'_>, u64) -> u32;

impl<'a> Frame<'a> {
    /// A frame for a wave that executes a block, and must not execute more than `until` instructions in
    /// all. The workspace is [prepared](Workspace::prepare) for the block.
    pub fn new<C: Checker>(
        (block, compiled): (&'a Block, &'a Compiled),
        (wave, memory, lds): (&'a mut Wave, &'a mut dyn Memory, &'a mut [u8]),
        (workspace, checker): (&'a mut Workspace, &'a mut C),
        until: u64,
    ) -> Frame<'a> {
        let (kept, windows) = workspace.pointers(block.first_site);
        Frame {
            executed: wave.executed,
            until,
            pc: wave.pc,
            index: 0,
            doubts: 0,
            kept,
            windows,
            rows: wave.rows.as_mut_ptr().cast(),
            scalars: wave.scalars.as_mut_ptr(),
            scc: (&raw mut wave.scc).cast(),
            wave,
            memory,
            lds: lds.as_mut_ptr(),
            lds_length: lds.len() as u64,
            start: block.source.start,
            call: call::<C>,
            nowhere: [0; 4],
            touch,
            touch_each,
            places: MaybeUninit::uninit(),
            sites: compiled.sites.as_ptr(),
            source: &raw const block.source,
            workspace,
            checker: (&raw mut *checker).cast(),
            fault: None,
        }
    }

    /// Executes a block.
    ///
    /// # Safety
    /// `entry` is a block that was compiled for the wave's program and for the features this host
    /// has; the wave fulfils what the block demands ([`super::block::Block::suits`]), and the workspace
    /// is prepared for it.
    pub unsafe fn enter(&mut self, entry: Entry) -> Return {
        // SAFETY: promised by the caller; the frame's pointers are to what it has borrowed.
        match unsafe { entry(self) } {
            0 => Return::Done,
            1 => Return::Faulted,
            _ => Return::Undone,
        }
    }
}

/// Executes an instruction that is not compiled: called by compiled code. `index` is its number in the
/// block. Gives 1 if it faulted.
///
/// # Safety
/// `frame` is the frame with which the caller was entered, made for a checker of this type.
unsafe extern "C" fn call<C: Checker>(frame: *mut Frame<'_>, index: u64) -> u32 {
    // SAFETY: compiled code passes on the pointer that it was given, and no reference to the frame is
    // alive while it runs.
    let frame = unsafe { &mut *frame };
    // SAFETY: the frame has borrowed block, wave, LDS, workspace and checker.
    let (source, wave, lds, workspace, checker) = unsafe {
        let lds = std::slice::from_raw_parts_mut(frame.lds, frame.lds_length as usize);
        let checker = &mut *frame.checker.cast::<C>();
        (&*frame.source, &mut *frame.wave, lds, &mut *frame.workspace, checker)
    };
    let (op, place) = (&source.ops[index as usize], source.places[index as usize]);
    wave.executed = frame.executed + index;
    let step = interpret(wave, (op, place), frame.memory, lds, checker);
    workspace.follow(frame.memory);
    match step {
        Step::Fault(cause) => {
            frame.fault = Some(cause);
            frame.index = index;
            frame.pc = wave.pc;
            1
        }
        _ => 0,
    }
}

/// Notes that the lanes that `lanes` has a bit of touch the bytes of an access to device memory: the
/// first lane those at an offset of its window, each next one those so many bytes after them.
///
/// # Safety
/// `frame` is the frame with which the caller was entered, `site` the number of one of the block's
/// accesses whose window is not missing, and memory is such that windows have regions to note it in.
unsafe extern "C" fn touch(frame: *mut Frame<'_>, site: u64, offset: u64, lanes: u64, apart: u64) {
    // SAFETY: promised by the caller; see `region`.
    let (region, bytes) = unsafe { region(frame, site) };
    if apart == bytes && (lanes + 1).is_power_of_two() {
        return region.touch(offset, bytes * u64::from(lanes.count_ones()));
    }
    let lanes = LaneMask(if apart == 0 { u64::from(lanes != 0) } else { lanes });
    for lane in lanes.lanes() {
        region.touch(offset + u64::from(lane.0) * apart, bytes);
    }
}

/// The same of lanes whose bytes are at the offsets in [`Frame::places`].
///
/// # Safety
/// As [`touch`], if there are any lanes; the caller has written the offsets of these lanes.
unsafe extern "C" fn touch_each(frame: *mut Frame<'_>, site: u64, lanes: u64) {
    if lanes == 0 {
        return;
    }
    // SAFETY: promised by the caller; see `region`.
    let (region, bytes) = unsafe { region(frame, site) };
    for lane in LaneMask(lanes).lanes() {
        // SAFETY: the place of an active lane was written; a turn of a loop has 16 lanes at most.
        let place = unsafe {
            let places = (&raw const (*frame).places).cast::<u64>();
            places.add(usize::from(lane.0)).read()
        };
        region.touch(place, bytes);
    }
}

/// The region of an access's window, and the bytes of a lane.
///
/// # Safety
/// As [`touch`].
unsafe fn region<'a>(frame: *mut Frame<'_>, site: u64) -> (&'a mut TouchedRegion, u64) {
    // SAFETY: the windows and the sites of the block are there while it is executed, and its region is
    // as long as its window; nobody else has a reference to it while compiled code runs.
    unsafe {
        let window = &(*(*frame).windows.add(site as usize)).window;
        (&mut *window.touched, (*(*frame).sites.add(site as usize)).bytes.into())
    }
}

const _: () = assert!(LANES * 4 == size_of::<Row>(), "compiled code counts on rows without gaps");
