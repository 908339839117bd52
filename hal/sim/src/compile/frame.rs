//! What compiled code and the interpreter hand each other.

use super::access::PrivateAccess;
use super::compiled::{Compiled, Demands, Link};
use super::execute::interpret;
use super::plan::Plan;
use super::workspace::{CachedWindow, Logged, PrivateWindows, Workspace};
use crate::dispatch::checker::{Checker, Counting, Unchecked};
use crate::dispatch::turns::TurnEnd;
use crate::execute::control::Step;
use crate::execute::vector_memory;
use crate::instruction::{Run, Traits};
use crate::memory::{
    LINE, Memory, PrivateNotes, TouchedNotes, TouchedPrivate, TouchedRegion, Window, WindowAccess,
};
use crate::wave::{LANES, Row, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::ptr;

/// A wave while compiled code executes it. Compiled code reads and writes the fields above `wave`, at
/// the offsets that [`offset`] names.
#[repr(C)]
pub struct Frame<'a, 'tier> {
    /// The vector registers.
    rows: *mut u8,
    /// The scalar registers.
    scalars: *mut u32,
    /// SCC, a byte that is 0 or 1.
    scc: *mut u8,
    /// What the wave has.
    has: Demands,
    /// The block under way.
    current: *const Link,
    /// Instructions that the wave has executed, up to the beginning of the block.
    pub executed: u64,
    /// What those count as that it has executed as compiled code, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub lane_operations: u64,
    /// Instructions after which it must not begin a block again.
    until: u64,
    /// Instructions after which it must stop where it branches. It stands apart from `leave_from`: both
    /// were just written one by one, and a host that copies them as one vector waits for that.
    branch_from: u64,
    /// Instructions after which it must not begin another block: zero where it must not go on to any.
    chain_until: u64,
    /// Instructions after which it must stop where it leaves a page of code.
    leave_from: u64,
    /// Instructions after which it must not begin a run of writes to LDS.
    write_until: u64,
    /// The same of reads.
    read_until: u64,
    /// Where the wave continues.
    pub pc: u64,
    /// Which instruction of the block was reached, where the block was not executed to its end.
    pub index: u64,
    /// Lanes of a segment whose accesses to memory it does not do right.
    doubts: u64,
    /// Copies of rows from before a segment.
    kept: *mut u8,
    /// Stretches of device memory: those of the tier's accesses.
    windows: *const CachedWindow,
    /// The workgroup's LDS.
    lds: *mut u8,
    lds_length: u64,
    /// [`call`] for the checker, which code that is kept on disk cannot have in it.
    call: Call,
    /// Where the next block is logged that is executed to its end; null where none are.
    log: *mut Logged,
    /// Traits of blocks that it must not go on to where blocks are logged.
    stops: Traits,
    /// Where lanes store that are not to store anything.
    nowhere: [u32; 4],
    /// [`touch`] and [`touch_each`], for code that notes what it touches.
    touch: Touch,
    touch_each: TouchEach,
    /// [`touch_private`] and [`touch_each_private`], for the same.
    touch_private: TouchPrivate,
    touch_each_private: TouchPrivate,
    /// Where lanes are that touch what lies anywhere.
    places: MaybeUninit<[u64; 16]>,
    /// Device address of the wave's own private memory, and how many bytes all lanes have there.
    own_private: u64,
    own_private_bytes: u64,
    /// Where private memory is.
    private: *const PrivateWindows,
    /// Not zero if the window of private memory around what is accessed is not known.
    lacks_private: u64,
    wave: *mut Wave,
    memory: &'a mut dyn Memory,
    workspace: *mut Workspace,
    /// Of the type that [`call`] is for.
    checker: *mut (),
    /// How that counts blocks.
    counting: Counting,
    /// Where logging began, and what the checker has seen of the row: up to how many instructions, and
    /// EXEC then.
    seen: (*mut Logged, u64, LaneMask),
    /// The lanes that the wave's [row of active lanes](Wave::exec_row) has: compiled code writes EXEC
    /// alone.
    lanes: LaneMask,
    /// Why the block was not executed to its end.
    pub fault: Option<FaultCause>,
    /// What was entered.
    tier: PhantomData<&'tier Compiled>,
}

/// Where compiled code finds what.
pub mod offset {
    use super::{
        CachedWindow, Compiled, Frame, Link, Logged, PrivateNotes, PrivateWindows, TouchedNotes,
        Window, offset_of,
    };

    pub const ROWS: usize = offset_of!(Frame<'_, '_>, rows);
    pub const SCALARS: usize = offset_of!(Frame<'_, '_>, scalars);
    pub const SCC: usize = offset_of!(Frame<'_, '_>, scc);
    pub const EXECUTED: usize = offset_of!(Frame<'_, '_>, executed);
    pub const LANE_OPERATIONS: usize = offset_of!(Frame<'_, '_>, lane_operations);
    pub const UNTIL: usize = offset_of!(Frame<'_, '_>, until);
    pub const CHAIN_UNTIL: usize = offset_of!(Frame<'_, '_>, chain_until);
    pub const BRANCH_FROM: usize = offset_of!(Frame<'_, '_>, branch_from);
    pub const LEAVE_FROM: usize = offset_of!(Frame<'_, '_>, leave_from);
    pub const WRITE_UNTIL: usize = offset_of!(Frame<'_, '_>, write_until);
    pub const READ_UNTIL: usize = offset_of!(Frame<'_, '_>, read_until);
    pub const HAS: usize = offset_of!(Frame<'_, '_>, has);
    pub const CURRENT: usize = offset_of!(Frame<'_, '_>, current);
    pub const PC: usize = offset_of!(Frame<'_, '_>, pc);
    pub const INDEX: usize = offset_of!(Frame<'_, '_>, index);
    pub const DOUBTS: usize = offset_of!(Frame<'_, '_>, doubts);
    pub const KEPT: usize = offset_of!(Frame<'_, '_>, kept);
    pub const WINDOWS: usize = offset_of!(Frame<'_, '_>, windows);
    pub const LDS: usize = offset_of!(Frame<'_, '_>, lds);
    pub const LDS_LENGTH: usize = offset_of!(Frame<'_, '_>, lds_length);
    pub const CALL: usize = offset_of!(Frame<'_, '_>, call);
    pub const LOG: usize = offset_of!(Frame<'_, '_>, log);
    pub const STOPS: usize = offset_of!(Frame<'_, '_>, stops);
    pub const LOGGED_BLOCK: usize = offset_of!(Logged, block);
    pub const LOGGED_EXECUTED: usize = offset_of!(Logged, executed);
    pub const LOGGED_EXEC: usize = offset_of!(Logged, exec);
    pub const LOGGED_SIZE: usize = size_of::<Logged>();
    pub const NOWHERE: usize = offset_of!(Frame<'_, '_>, nowhere);
    pub const TOUCH: usize = offset_of!(Frame<'_, '_>, touch);
    pub const TOUCH_EACH: usize = offset_of!(Frame<'_, '_>, touch_each);
    pub const TOUCH_PRIVATE: usize = offset_of!(Frame<'_, '_>, touch_private);
    pub const TOUCH_EACH_PRIVATE: usize = offset_of!(Frame<'_, '_>, touch_each_private);
    pub const PLACES: usize = offset_of!(Frame<'_, '_>, places);
    pub const OWN_PRIVATE: usize = offset_of!(Frame<'_, '_>, own_private);
    pub const OWN_PRIVATE_BYTES: usize = offset_of!(Frame<'_, '_>, own_private_bytes);
    pub const PRIVATE: usize = offset_of!(Frame<'_, '_>, private);
    pub const LACKS_PRIVATE: usize = offset_of!(Frame<'_, '_>, lacks_private);
    pub const PRIVATE_LOAD: usize = offset_of!(PrivateWindows, load);
    pub const PRIVATE_STORE: usize = offset_of!(PrivateWindows, store);
    const PRIVATE_NOTES: usize = offset_of!(PrivateWindows, notes);
    pub const PRIVATE_BASE: usize = PRIVATE_NOTES + offset_of!(PrivateNotes, base);
    pub const PRIVATE_READ: usize = PRIVATE_NOTES + offset_of!(PrivateNotes, read);
    pub const PRIVATE_WRITTEN: usize = PRIVATE_NOTES + offset_of!(PrivateNotes, written);
    pub const LINK_DEMANDS: usize = offset_of!(Link, demands);
    pub const LINK_ROOM: usize = offset_of!(Link, room);
    pub const LINK_ENTRY: usize = offset_of!(Link, entry);
    pub const LINK_START: usize = offset_of!(Link, start);
    pub const LINK_FIRST_WINDOW: usize = offset_of!(Link, first_window);
    pub const LINK_TRAITS: usize = Compiled::TRAITS;
    pub const LINK_NEXT: usize = offset_of!(Link, next);
    pub const WINDOW_SIZE: usize = size_of::<CachedWindow>();
    pub const WINDOW_BASE: usize = offset_of!(CachedWindow, window) + offset_of!(Window, base);
    pub const WINDOW_LENGTH: usize = offset_of!(CachedWindow, window) + offset_of!(Window, length);
    pub const WINDOW_BYTES: usize = offset_of!(CachedWindow, window) + offset_of!(Window, bytes);
    pub const WINDOW_MISSING: usize = offset_of!(CachedWindow, missing);
    pub const NOTED_BITS: usize = offset_of!(CachedWindow, notes) + offset_of!(TouchedNotes, bits);
    pub const NOTED_PAGES: usize =
        offset_of!(CachedWindow, notes) + offset_of!(TouchedNotes, pages);
    pub const NOTED_CHAPTERS: usize =
        offset_of!(CachedWindow, notes) + offset_of!(TouchedNotes, chapters);
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
    /// The same, because of a NaN or another number that it does not do right.
    Unsettled,
}

/// What compiled code gives back for [`Return::Undone`].
pub const UNDONE: u32 = 2;
/// The same for [`Return::Unsettled`].
pub const UNSETTLED: u32 = 3;

/// How far a wave may go.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Instructions that it may have executed at most: [`LAST`](super::compiled::LAST), at most.
    pub until: u64,
    /// Where its turn ends.
    pub turn: TurnEnd,
    /// How a checker counts blocks: where it asks before each, the wave must not go on to others.
    pub counting: Counting,
}

/// A compiled block.
pub type Entry = unsafe extern "C" fn(*mut Frame<'_, '_>) -> u32;

/// What notes that lanes touch bytes of a window that lie regularly.
type Touch = unsafe extern "C" fn(*mut Frame<'_, '_>, u64, u64, u64, u64);

/// The same of bytes anywhere.
type TouchEach = unsafe extern "C" fn(*mut Frame<'_, '_>, u64, u64);

/// What notes that lanes touch private memory.
type TouchPrivate = unsafe extern "C" fn(*mut Frame<'_, '_>, u64, u64, u64, u64);

/// What executes an instruction that is not compiled.
type Call = unsafe extern "C" fn(*mut Frame<'_, '_>, u64) -> u32;

impl<'a, 'tier> Frame<'a, 'tier> {
    /// A frame for a wave that has `has` and begins with a block. The workspace is
    /// [prepared](Workspace::prepare) for all blocks that this one goes on to.
    pub fn new<C: Checker>(
        compiled: &'tier Compiled,
        (wave, memory, lds): (&'a mut Wave, &'a mut dyn Memory, &'a mut [u8]),
        (workspace, checker): (&'a mut Workspace, &'a mut C),
        (has, room): (Demands, Room),
    ) -> Frame<'a, 'tier> {
        let (kept, windows) = workspace.pointers();
        let (log, stops) = match room.counting {
            Counting::Rows(stops) => (workspace.log(), stops),
            _ => (ptr::null_mut(), Traits(0)),
        };
        Frame {
            has,
            current: compiled.link(),
            executed: wave.executed,
            lane_operations: 0,
            until: room.until,
            chain_until: if room.counting == Counting::Each { 0 } else { room.until },
            branch_from: room.turn.branch_from,
            leave_from: room.turn.leave_from,
            write_until: room.turn.write_until,
            read_until: room.turn.read_until,
            pc: wave.pc,
            index: 0,
            doubts: 0,
            kept,
            windows,
            rows: wave.rows.as_mut_ptr().cast(),
            scalars: wave.scalars.as_mut_ptr(),
            scc: (&raw mut wave.scc).cast(),
            lanes: wave.exec(),
            own_private: wave.private.base,
            own_private_bytes: u64::from(wave.private.bytes) * u64::from(wave.machine.lanes),
            wave,
            memory,
            lds: lds.as_mut_ptr(),
            lds_length: lds.len() as u64,
            call: call::<C>,
            log,
            stops,
            counting: room.counting,
            seen: (log, wave.executed, wave.exec()),
            nowhere: [0; 4],
            touch,
            touch_each,
            touch_private,
            touch_each_private,
            places: MaybeUninit::uninit(),
            private: workspace.private(),
            lacks_private: 0,
            workspace,
            checker: (&raw mut *checker).cast(),
            fault: None,
            tier: PhantomData,
        }
    }

    /// Executes the block, and those that it goes on to.
    ///
    /// # Safety
    /// The block was compiled for the wave's program and for the features this host has; the wave
    /// fulfils what it demands ([`Compiled::suits`]), and the workspace is prepared for it.
    pub unsafe fn enter(&mut self) -> Return {
        // SAFETY: the block that was entered is there.
        let entry = unsafe { (*self.current).entry };
        // SAFETY: promised by the caller; the frame's pointers are to what it has borrowed.
        match unsafe { entry(self) } {
            0 => Return::Done,
            1 => Return::Faulted,
            UNDONE => Return::Undone,
            _ => Return::Unsettled,
        }
    }

    /// The block that was executed last.
    pub fn current(&self) -> &'tier Compiled {
        // SAFETY: it is the block that was entered or one that others have gone on to, and so belongs
        // to the same tier, which is there as long as the first; a link is the beginning of a block.
        unsafe { &*self.current.cast::<Compiled>() }
    }

    /// Has the checker count the blocks of the row that were executed to their end and that it has not
    /// seen yet; EXEC as it was when the wave began with the one that is under way.
    ///
    /// # Safety
    /// The frame was made for a checker of this type, and nobody else has a reference to it now.
    pub unsafe fn count<C: Checker>(&mut self) -> LaneMask {
        let (begin, mut executed, mut exec) = self.seen;
        // SAFETY: the frame has borrowed wave and checker; the caller says whose they are.
        let (wave, checker) = unsafe { (&*self.wave, &mut *self.checker.cast::<C>()) };
        let mut count = |compiled: &Compiled, until: u64, after: LaneMask| {
            let times = (until - executed) / compiled.length;
            if times > 0 {
                checker.executed(wave, compiled.block.stretch(), times, [exec, after]);
                (executed, exec) = (until, after);
            }
        };
        let mut entry = begin;
        while entry != self.log {
            // SAFETY: compiled code has written the entries up to there, of blocks of its tier.
            let (compiled, own) = unsafe { (&*(*entry).block.cast::<Compiled>(), *entry) };
            count(compiled, own.executed, LaneMask(own.exec));
            // SAFETY: there is another one, or the end of them.
            entry = unsafe { entry.add(1) };
        }
        count(self.current(), self.executed, wave.exec());
        self.log = begin;
        self.seen = (begin, executed, exec);
        exec
    }

    /// Has the wave's row of active lanes follow EXEC, where compiled code has written that.
    pub fn follow_exec(&mut self) {
        // SAFETY: the frame has borrowed the wave, and no other reference to it is alive.
        let wave = unsafe { &mut *self.wave };
        if wave.exec() != self.lanes {
            wave.set_exec(wave.exec());
            self.lanes = wave.exec();
        }
    }
}

/// Executes an instruction that is not compiled: called by compiled code. `index` is its number in the
/// block. Gives 1 if it faulted.
///
/// # Safety
/// `frame` is the frame with which the caller was entered, made for a checker of this type.
unsafe extern "C" fn call<C: Checker>(frame: *mut Frame<'_, '_>, index: u64) -> u32 {
    // SAFETY: compiled code passes on the pointer that it was given, and no reference to the frame is
    // alive while it runs.
    let frame = unsafe { &mut *frame };
    frame.follow_exec();
    let plan = frame.current().block.source.plans[index as usize];
    // Others count as parts of their stretch.
    let (counts, is_seen) = (frame.counting != Counting::Nothing, plan.is_seen_alone());
    if counts && is_seen {
        // SAFETY: it was made for this checker, to which there is no reference yet.
        unsafe { frame.count::<C>() };
    }
    let source = &frame.current().block.source;
    // SAFETY: the frame has borrowed wave, LDS, workspace and checker.
    let (wave, lds, workspace, checker) = unsafe {
        let lds = std::slice::from_raw_parts_mut(frame.lds, frame.lds_length as usize);
        let checker = &mut *frame.checker.cast::<C>();
        (&mut *frame.wave, lds, &mut *frame.workspace, checker)
    };
    if counts && is_seen {
        checker.enters(frame.current().block.stretch());
    }
    let (op, place) = (&source.ops[index as usize], source.places[index as usize]);
    wave.executed = frame.executed + index;
    // What it loads may overwrite the address.
    let private = match plan {
        Plan::Private(own) => Some(own),
        Plan::Access(own) => PrivateAccess::of_flat(op, own),
        _ => None,
    };
    let private = match (private, op.run) {
        (Some(PrivateAccess { direction, .. }), Run::VectorMemory(access))
            if frame.lacks_private != 0 =>
        {
            vector_memory::first_address(wave, op, access).map(|address| (direction, address))
        }
        _ => None,
    };
    let step = if is_seen {
        interpret(wave, (op, place), frame.memory, lds, checker)
    } else {
        wave.pc = place;
        checker.leaves(wave, op);
        interpret(wave, (op, place), frame.memory, lds, &mut Unchecked)
    };
    workspace.follow(frame.memory);
    if let Some((direction, address)) = private {
        workspace.find_private(direction, address, frame.memory);
    }
    frame.lanes = wave.exec();
    match step {
        Step::Fault(cause) => {
            frame.fault = Some(cause);
            frame.index = index;
            frame.pc = wave.pc;
            if counts && !is_seen {
                // As a part of its stretch it does not count, which was not executed to its end.
                (wave.pc, wave.executed) = (place, frame.executed + index);
                checker.before(wave, op, frame.memory);
            }
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
unsafe extern "C" fn touch(
    frame: *mut Frame<'_, '_>,
    site: u64,
    offset: u64,
    lanes: u64,
    apart: u64,
) {
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
unsafe extern "C" fn touch_each(frame: *mut Frame<'_, '_>, site: u64, lanes: u64) {
    if lanes == 0 {
        return;
    }
    // SAFETY: promised by the caller; see `region`.
    let (region, bytes) = unsafe { region(frame, site) };
    // SAFETY: promised by the caller.
    for place in unsafe { places(frame, lanes) } {
        region.touch(place, bytes);
    }
}

/// Notes that the lanes that `lanes` has a bit of touch private memory, so many words each, by an access
/// that is [`PRIVATE_LOAD`] or [`PRIVATE_STORE`]: the words of all lanes are side by side, from the
/// beginning of a line on.
///
/// # Safety
/// `frame` is the frame with which the caller was entered, and a window of private memory was found whose
/// memory notes what is touched.
unsafe extern "C" fn touch_private(
    frame: *mut Frame<'_, '_>,
    access: u64,
    line: u64,
    words: u64,
    lanes: u64,
) {
    // SAFETY: promised by the caller; see `private`.
    let (touched, wave_lanes) = unsafe { private(frame) };
    // Lanes whose words fill a line.
    const IN_LINE: u64 = LINE / 4;
    let lines = wave_lanes / IN_LINE;
    for at in 0..words * lines {
        let lanes = lanes >> (at % lines * IN_LINE) & ((1 << IN_LINE) - 1);
        touched.touch_bytes(private_access(access), (line + at) as usize, bytes_of_words(lanes));
    }
}

/// The same of lanes whose first words are at the offsets in [`Frame::places`].
///
/// # Safety
/// As [`touch_private`]; the caller has written the offsets of these lanes.
unsafe extern "C" fn touch_each_private(
    frame: *mut Frame<'_, '_>,
    access: u64,
    _: u64,
    words: u64,
    lanes: u64,
) {
    // SAFETY: promised by the caller; see `private`.
    let (touched, wave_lanes) = unsafe { private(frame) };
    // SAFETY: promised by the caller.
    for place in unsafe { places(frame, lanes) } {
        for word in 0..words {
            touched.touch(private_access(access), place + word * wave_lanes * 4, 4);
        }
    }
}

/// What compiled code calls accesses to private memory.
pub const PRIVATE_LOAD: u64 = 0;
/// The same of those that write.
pub const PRIVATE_STORE: u64 = 1;

fn private_access(access: u64) -> WindowAccess {
    match access {
        PRIVATE_LOAD => WindowAccess::Read,
        _ => WindowAccess::Write,
    }
}

/// The bytes of 16 words, a bit each, of which those count that have a bit.
fn bytes_of_words(words: u64) -> u64 {
    // Each bit moves to where its word begins, by halves.
    const STEPS: [(u32, u64); 4] = [
        (24, 0xff_0000_00ff),
        (12, 0xf_000f_000f_000f),
        (6, 0x0303_0303_0303_0303),
        (3, 0x1111_1111_1111_1111),
    ];
    STEPS.iter().fold(words, |words, (by, mask)| (words | words << by) & mask) * 0xf
}

/// Where it is noted what is touched of private memory, and how many lanes a wave has.
///
/// # Safety
/// As [`touch_private`].
unsafe fn private<'a>(frame: *mut Frame<'_, '_>) -> (&'a mut TouchedPrivate, u64) {
    // SAFETY: the frame has borrowed the wave and has windows of the workspace; what notes is there as long
    // as these are known, and nobody else has a reference to it while compiled code runs.
    unsafe { (&mut *(*(*frame).private).notes.touched, (*(*frame).wave).machine.lanes.into()) }
}

/// Where lanes are, those that `lanes` has a bit of.
///
/// # Safety
/// The caller has written that, of a turn of a loop, which has 16 lanes at most.
unsafe fn places(frame: *mut Frame<'_, '_>, lanes: u64) -> impl Iterator<Item = u64> {
    // SAFETY: promised by the caller.
    let all = unsafe { (&raw const (*frame).places).cast::<u64>() };
    // SAFETY: as before.
    LaneMask(lanes).lanes().map(move |lane| unsafe { all.add(lane.0.into()).read() })
}

/// The region of an access's window, and the bytes of a lane.
///
/// # Safety
/// As [`touch`].
unsafe fn region<'a>(frame: *mut Frame<'_, '_>, site: u64) -> (&'a mut TouchedRegion, u64) {
    // SAFETY: the windows of the block are there while it is executed, and its region is as long as its
    // window; nobody else has a reference to it while compiled code runs.
    unsafe {
        let current = (*frame).current();
        let number = current.block.first_site + site as usize;
        let window = &(*(*frame).windows.add(number)).window;
        (&mut *window.touched, current.sites[site as usize].bytes.into())
    }
}

const _: () = assert!(LANES * 4 == size_of::<Row>(), "compiled code counts on rows without gaps");

#[cfg(test)]
mod tests {
    use super::bytes_of_words;

    #[test]
    fn the_bytes_of_words_are_those_of_each() {
        for words in 0..1u64 << 16 {
            let each = (0..16).filter(|word| words >> word & 1 != 0).map(|word| 0xf << (4 * word));
            assert_eq!(bytes_of_words(words), each.sum(), "{words:x}");
        }
    }
}
