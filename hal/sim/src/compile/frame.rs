//! What compiled code and the interpreter hand each other.

use super::block::{Block, Source};
use super::execute::interpret;
use super::workspace::{CachedWindow, Workspace};
use crate::dispatch::checker::Checker;
use crate::execute::control::Step;
use crate::memory::{Memory, Window};
use crate::wave::{LANES, Row, Wave};
use flipwave_device::FaultCause;
use std::mem::offset_of;

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
    pub const WINDOW_SIZE: usize = size_of::<CachedWindow>();
    pub const WINDOW_BASE: usize = offset_of!(CachedWindow, window) + offset_of!(Window, base);
    pub const WINDOW_LENGTH: usize = offset_of!(CachedWindow, window) + offset_of!(Window, length);
    pub const WINDOW_BYTES: usize = offset_of!(CachedWindow, window) + offset_of!(Window, bytes);
    pub const WINDOW_MISSING: usize = offset_of!(CachedWindow, missing);
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

/// What executes an instruction that is not compiled.
type Call = unsafe extern "C" fn(*mut Frame<'_>, u64) -> u32;

impl<'a> Frame<'a> {
    /// A frame for a wave that executes a block, and must not execute more than `until` instructions in
    /// all. The workspace is [prepared](Workspace::prepare) for the block.
    pub fn new<C: Checker>(
        block: &'a Block,
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

const _: () = assert!(LANES * 4 == size_of::<Row>(), "compiled code counts on rows without gaps");
