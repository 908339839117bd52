//! The state shared by compiled code and the interpreter.

use super::access::PrivateAccess;
use super::compiled::{Compiled, Link, Resources};
use super::execute::{WaveContext, interpret};
use super::plan::Plan;
use super::workspace::{CachedWindow, Logged, PrivateWindows, Workspace};
use crate::dispatch::checker::{Checker, Counting, Unchecked};
use crate::dispatch::turns::TurnEnd;
use crate::execute::control::Step;
use crate::execute::vector_memory;
use crate::instruction::{Run, Traits};
use crate::memory::{
    Memory, PrivateNotes, TouchedNotes, TouchedPrivate, TouchedRegion, Window, WindowAccess,
};
use crate::wave::{LANES, Row, Wave};
use flipwave_device::FaultCause;
use flipwave_isa::LaneMask;
use flipwave_machine::LINE;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::ptr;

/// A wave while compiled code executes it. Compiled code reads and writes the fields above `wave`,
/// at the offsets in [`offset`].
#[repr(C)]
pub struct Frame<'a, 'tier> {
    /// The vector registers.
    rows: *mut u8,
    /// The scalar registers.
    scalars: *mut u32,
    /// SCC: a byte that is 0 or 1.
    scc: *mut u8,
    /// Resources available to the wave.
    resources: Resources,
    /// The block being executed.
    current: *const Link,
    /// Number of instructions that the wave has executed up to the beginning of the block.
    pub executed: u64,
    /// Lane operations executed as compiled code, see
    /// [`Statistics::lane_operations`](flipwave_device::Statistics::lane_operations).
    pub lane_operations: u64,
    /// Number of executed instructions at which the wave must not repeat the block.
    until: u64,
    /// Number of executed instructions from which the wave must stop at a branch. The field is not
    /// adjacent to `leave_from`: a host that copies both as one vector right after writing them
    /// separately stalls.
    branch_from: u64,
    /// Number of executed instructions at which the wave must not enter another block; zero
    /// disables links between blocks.
    chain_until: u64,
    /// Number of executed instructions from which the wave must stop where it leaves a page of
    /// code.
    leave_from: u64,
    /// Number of executed instructions above which the wave must not begin a run of LDS writes.
    write_until: u64,
    /// Number of executed instructions above which the wave must not begin a run of LDS reads.
    read_until: u64,
    /// Device address where the wave continues.
    pub pc: u64,
    /// Instruction or region of the block where execution stopped, if the block was not completed.
    pub index: u64,
    /// Lanes of a loop iteration whose memory accesses are left to the interpreter.
    bailout_lanes: u64,
    /// Copies of rows from before a region.
    saved_rows: *mut u8,
    /// Windows of device memory of the tier's accesses.
    windows: *const CachedWindow,
    /// The workgroup's LDS.
    lds: *mut u8,
    lds_length: u64,
    /// [`call_interpreter`] for the checker's type. Code cached on disk cannot contain its address.
    call: Call,
    /// Next entry of the log of completed blocks; null if blocks are not logged.
    log: *mut Logged,
    /// Traits of blocks that compiled code must not enter while blocks are logged.
    stop_traits: Traits,
    /// Target of the stores of masked-off lanes.
    discard: [u32; 4],
    /// [`touch`] and [`touch_each`], for footprint variants.
    touch: Touch,
    touch_each: TouchEach,
    /// [`touch_private`] and [`touch_each_private`], for footprint variants.
    touch_private: TouchPrivate,
    touch_each_private: TouchPrivate,
    /// Offsets of lanes without a regular stride.
    lane_offsets: MaybeUninit<[u64; 16]>,
    /// Device address of the wave's private memory, and its size for all lanes in bytes.
    wave_private: u64,
    wave_private_bytes: u64,
    /// Windows of private memory.
    private: *const PrivateWindows,
    /// Nonzero if the window of private memory around the access is not known.
    private_window_missed: u64,
    wave: *mut Wave,
    memory: &'a mut dyn Memory,
    workspace: *mut Workspace,
    /// The checker, of the type that [`call_interpreter`] was instantiated for.
    checker: *mut (),
    /// Granularity in which the checker counts blocks.
    counting: Counting,
    /// Part of the row that the checker has counted.
    counted: Counted,
    /// Lanes of the wave's [row of active lanes](Wave::exec_row). Compiled code writes EXEC without
    /// updating that row.
    exec_row: LaneMask,
    /// Cause of the fault, if an instruction faulted.
    pub fault: Option<FaultCause>,
    /// Keeps the lifetime of the entered block.
    tier: PhantomData<&'tier Compiled>,
}

/// Logged blocks of the row up to which the checker has counted.
#[derive(Clone, Copy)]
struct Counted {
    /// Start of the log.
    log: *mut Logged,
    /// Instructions that the wave had executed.
    executed: u64,
    /// EXEC at that time.
    exec: LaneMask,
}

/// Offsets of the fields that compiled code accesses.
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
    pub const RESOURCES: usize = offset_of!(Frame<'_, '_>, resources);
    pub const CURRENT: usize = offset_of!(Frame<'_, '_>, current);
    pub const PC: usize = offset_of!(Frame<'_, '_>, pc);
    pub const INDEX: usize = offset_of!(Frame<'_, '_>, index);
    pub const BAILOUT_LANES: usize = offset_of!(Frame<'_, '_>, bailout_lanes);
    pub const SAVED_ROWS: usize = offset_of!(Frame<'_, '_>, saved_rows);
    pub const WINDOWS: usize = offset_of!(Frame<'_, '_>, windows);
    pub const LDS: usize = offset_of!(Frame<'_, '_>, lds);
    pub const LDS_LENGTH: usize = offset_of!(Frame<'_, '_>, lds_length);
    pub const CALL: usize = offset_of!(Frame<'_, '_>, call);
    pub const LOG: usize = offset_of!(Frame<'_, '_>, log);
    pub const STOP_TRAITS: usize = offset_of!(Frame<'_, '_>, stop_traits);
    pub const LOGGED_BLOCK: usize = offset_of!(Logged, block);
    pub const LOGGED_EXECUTED: usize = offset_of!(Logged, executed);
    pub const LOGGED_EXEC: usize = offset_of!(Logged, exec);
    pub const LOGGED_SIZE: usize = size_of::<Logged>();
    pub const DISCARD: usize = offset_of!(Frame<'_, '_>, discard);
    pub const TOUCH: usize = offset_of!(Frame<'_, '_>, touch);
    pub const TOUCH_EACH: usize = offset_of!(Frame<'_, '_>, touch_each);
    pub const TOUCH_PRIVATE: usize = offset_of!(Frame<'_, '_>, touch_private);
    pub const TOUCH_EACH_PRIVATE: usize = offset_of!(Frame<'_, '_>, touch_each_private);
    pub const LANE_OFFSETS: usize = offset_of!(Frame<'_, '_>, lane_offsets);
    pub const WAVE_PRIVATE: usize = offset_of!(Frame<'_, '_>, wave_private);
    pub const WAVE_PRIVATE_BYTES: usize = offset_of!(Frame<'_, '_>, wave_private_bytes);
    pub const PRIVATE: usize = offset_of!(Frame<'_, '_>, private);
    pub const PRIVATE_WINDOW_MISSED: usize = offset_of!(Frame<'_, '_>, private_window_missed);
    pub const PRIVATE_LOAD: usize = offset_of!(PrivateWindows, load);
    pub const PRIVATE_STORE: usize = offset_of!(PrivateWindows, store);
    const PRIVATE_NOTES: usize = offset_of!(PrivateWindows, notes);
    pub const PRIVATE_BASE: usize = PRIVATE_NOTES + offset_of!(PrivateNotes, base);
    pub const PRIVATE_READ: usize = PRIVATE_NOTES + offset_of!(PrivateNotes, read);
    pub const PRIVATE_WRITTEN: usize = PRIVATE_NOTES + offset_of!(PrivateNotes, written);
    pub const LINK_RESOURCES: usize = offset_of!(Link, required);
    pub const LINK_REQUIRED_BUDGET: usize = offset_of!(Link, required_budget);
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
    pub const TOUCHED_BITS: usize =
        offset_of!(CachedWindow, notes) + offset_of!(TouchedNotes, bits);
    pub const TOUCHED_PAGES: usize =
        offset_of!(CachedWindow, notes) + offset_of!(TouchedNotes, pages);
    pub const TOUCHED_CHAPTERS: usize =
        offset_of!(CachedWindow, notes) + offset_of!(TouchedNotes, chapters);
}

/// Reason why compiled code returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// The block was executed completely, and the PC is [`Frame::pc`].
    Completed,
    /// Instruction number [`Frame::index`] faulted.
    Faulted,
    /// Region number [`Frame::index`] met a case that the code does not handle. The interpreter
    /// must execute it after the saved rows are restored.
    Bailout,
    /// A region bailed out because of a NaN or another value that it does not handle.
    NanBailout,
}

/// Return value of compiled code for [`Return::Bailout`].
pub const BAILOUT: u32 = 2;
/// Return value of compiled code for [`Return::NanBailout`].
pub const NAN_BAILOUT: u32 = 3;

/// Limits of the execution of a wave.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest number of instructions that the wave may have executed: at most
    /// [`LONGEST_TURN`](super::compiled::LONGEST_TURN).
    pub until: u64,
    /// End of the wave's turn.
    pub turn: TurnEnd,
    /// Granularity in which the checker counts blocks. With [`Counting::Each`], the wave must not
    /// enter other blocks.
    pub counting: Counting,
}

/// Entry of a compiled block.
pub type Entry = unsafe extern "C" fn(*mut Frame<'_, '_>) -> u32;

/// Records that lanes touch bytes of a window at a regular stride.
type Touch = unsafe extern "C" fn(*mut Frame<'_, '_>, u64, u64, u64, u64);

/// Records that lanes touch bytes of a window at any offsets.
type TouchEach = unsafe extern "C" fn(*mut Frame<'_, '_>, u64, u64);

/// Records that lanes touch private memory.
type TouchPrivate = unsafe extern "C" fn(*mut Frame<'_, '_>, u64, u64, u64, u64);

/// Executes an instruction that is not compiled.
type Call = unsafe extern "C" fn(*mut Frame<'_, '_>, u64) -> u32;

impl<'a, 'tier> Frame<'a, 'tier> {
    /// A frame for a wave with `resources` that begins with a block. The workspace is
    /// [prepared](Workspace::prepare) for all blocks that this one may jump to.
    pub fn new<C: Checker>(
        compiled: &'tier Compiled,
        context: WaveContext<'a>,
        workspace: &'a mut Workspace,
        checker: &'a mut C,
        resources: Resources,
        limits: Limits,
    ) -> Frame<'a, 'tier> {
        let WaveContext { wave, memory, lds } = context;
        let (saved_rows, windows) = workspace.pointers();
        let (log, stop_traits) = match limits.counting {
            Counting::Rows(stop_traits) => (workspace.log(), stop_traits),
            _ => (ptr::null_mut(), Traits(0)),
        };
        Frame {
            resources,
            current: compiled.link(),
            executed: wave.executed,
            lane_operations: 0,
            until: limits.until,
            chain_until: if limits.counting == Counting::Each { 0 } else { limits.until },
            branch_from: limits.turn.branch_from,
            leave_from: limits.turn.leave_from,
            write_until: limits.turn.write_until,
            read_until: limits.turn.read_until,
            pc: wave.pc,
            index: 0,
            bailout_lanes: 0,
            saved_rows,
            windows,
            rows: wave.rows.as_mut_ptr().cast(),
            scalars: wave.scalars.as_mut_ptr(),
            scc: (&raw mut wave.scc).cast(),
            exec_row: wave.exec(),
            wave_private: wave.private.base,
            wave_private_bytes: u64::from(wave.private.bytes) * u64::from(wave.machine.lanes),
            wave,
            memory,
            lds: lds.as_mut_ptr(),
            lds_length: lds.len() as u64,
            call: call_interpreter::<C>,
            log,
            stop_traits,
            counting: limits.counting,
            counted: Counted { log, executed: wave.executed, exec: wave.exec() },
            discard: [0; 4],
            touch,
            touch_each,
            touch_private,
            touch_each_private,
            lane_offsets: MaybeUninit::uninit(),
            private: workspace.private(),
            private_window_missed: 0,
            workspace,
            checker: (&raw mut *checker).cast(),
            fault: None,
            tier: PhantomData,
        }
    }

    /// Executes the block, and blocks that it jumps to.
    ///
    /// # Safety
    /// The block was compiled for the wave's program and for features that this host has,
    /// [accepts](Compiled::accepts) the wave, and the workspace is prepared for it.
    pub unsafe fn enter(&mut self) -> Return {
        // SAFETY: the entered block outlives the frame.
        let entry = unsafe { (*self.current).entry };
        // SAFETY: promised by the caller; the frame's pointers refer to what it has borrowed.
        match unsafe { entry(self) } {
            0 => Return::Completed,
            1 => Return::Faulted,
            BAILOUT => Return::Bailout,
            _ => Return::NanBailout,
        }
    }

    /// The last executed block.
    pub fn current(&self) -> &'tier Compiled {
        // SAFETY: it is the entered block or one linked to it, which belongs to the same tier and
        // lives as long; a link is the beginning of a `Compiled`.
        unsafe { &*self.current.cast::<Compiled>() }
    }

    /// Reports to the checker the completed blocks that it has not counted yet. Returns EXEC at the
    /// time when the wave began the current block.
    ///
    /// # Safety
    /// The frame was made for a checker of type `C`, and no other reference to the checker is in
    /// use.
    pub unsafe fn count<C: Checker>(&mut self) -> LaneMask {
        let Counted { log: begin, mut executed, mut exec } = self.counted;
        // SAFETY: the frame has borrowed wave and checker; the caller ensures exclusive access.
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
            // SAFETY: compiled code wrote the entries up to there, for blocks of its tier.
            let (compiled, logged) = unsafe { (&*(*entry).block.cast::<Compiled>(), *entry) };
            count(compiled, logged.executed, LaneMask(logged.exec));
            // SAFETY: the next entry, or the end of the log.
            entry = unsafe { entry.add(1) };
        }
        count(self.current(), self.executed, wave.exec());
        self.log = begin;
        self.counted = Counted { log: begin, executed, exec };
        exec
    }

    /// Updates the wave's row of active lanes if compiled code has written EXEC.
    pub fn update_exec_row(&mut self) {
        // SAFETY: the frame has borrowed the wave, and no other reference to it is alive.
        let wave = unsafe { &mut *self.wave };
        if wave.exec() != self.exec_row {
            wave.set_exec(wave.exec());
            self.exec_row = wave.exec();
        }
    }
}

/// Executes an instruction that is not compiled; called by compiled code. `index` is the
/// instruction's number in the block. Returns 1 if it faulted.
///
/// # Safety
/// `frame` is the frame that the calling code was entered with, and was made for a checker of type
/// `C`.
unsafe extern "C" fn call_interpreter<C: Checker>(frame: *mut Frame<'_, '_>, index: u64) -> u32 {
    // SAFETY: compiled code passes the pointer that it was given, and no reference to the frame is
    // alive while it runs.
    let frame = unsafe { &mut *frame };
    frame.update_exec_row();
    let plan = frame.current().block.source.plans[index as usize];
    // Other instructions count as parts of their block.
    let (counts, is_seen) = (frame.counting != Counting::Nothing, plan.is_seen_alone());
    if counts && is_seen {
        // SAFETY: the frame was made for this checker, to which there is no reference yet.
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
    let (op, address) = (&source.ops[index as usize], source.addresses[index as usize]);
    wave.executed = frame.executed + index;
    // Computed before the instruction executes: a load may overwrite the address.
    let private = match plan {
        Plan::Private(access) => Some(access),
        Plan::Access(access) => PrivateAccess::of_flat(op, access),
        _ => None,
    };
    let private = match (private, op.run) {
        (Some(PrivateAccess { direction, .. }), Run::VectorMemory(access))
            if frame.private_window_missed != 0 =>
        {
            vector_memory::first_address(wave, op, access).map(|address| (direction, address))
        }
        _ => None,
    };
    let step = if is_seen {
        interpret(wave, op, address, frame.memory, lds, checker)
    } else {
        wave.pc = address;
        checker.leaves(wave, op);
        interpret(wave, op, address, frame.memory, lds, &mut Unchecked)
    };
    workspace.check_generation(frame.memory);
    if let Some((direction, address)) = private {
        workspace.find_private_window(direction, address, frame.memory);
    }
    frame.exec_row = wave.exec();
    match step {
        Step::Fault(cause) => {
            frame.fault = Some(cause);
            frame.index = index;
            frame.pc = wave.pc;
            if counts && !is_seen {
                // The instruction does not count as a part of its block, which was not completed.
                (wave.pc, wave.executed) = (address, frame.executed + index);
                checker.before(wave, op, frame.memory);
            }
            1
        }
        _ => 0,
    }
}

/// Records that the lanes in the mask `lanes` touch the bytes of an access to device memory: the
/// first lane at `offset` of the access's window, each next lane `stride` bytes further.
///
/// # Safety
/// `frame` is the frame that the calling code was entered with, `site` is the number of one of the
/// block's accesses whose window is known, and the memory's windows have regions that record
/// footprints.
unsafe extern "C" fn touch(
    frame: *mut Frame<'_, '_>,
    site: u64,
    offset: u64,
    lanes: u64,
    stride: u64,
) {
    // SAFETY: promised by the caller; see `region`.
    let (region, bytes) = unsafe { region(frame, site) };
    if stride == bytes && (lanes + 1).is_power_of_two() {
        return region.touch(offset, bytes * u64::from(lanes.count_ones()));
    }
    let lanes = LaneMask(if stride == 0 { u64::from(lanes != 0) } else { lanes });
    for lane in lanes.lanes() {
        region.touch(offset + u64::from(lane.0) * stride, bytes);
    }
}

/// Records that lanes touch the bytes of an access at the offsets in [`Frame::lane_offsets`].
///
/// # Safety
/// If `lanes` is not empty, the requirements of [`touch`] hold and the caller has written the offsets
/// of these lanes.
unsafe extern "C" fn touch_each(frame: *mut Frame<'_, '_>, site: u64, lanes: u64) {
    if lanes == 0 {
        return;
    }
    // SAFETY: promised by the caller; see `region`.
    let (region, bytes) = unsafe { region(frame, site) };
    // SAFETY: promised by the caller.
    for offset in unsafe { lane_offsets(frame, lanes) } {
        region.touch(offset, bytes);
    }
}

/// Records that the lanes in the mask `lanes` touch `words` words each of private memory. `access`
/// is [`PRIVATE_LOAD`] or [`PRIVATE_STORE`]; the words of all lanes are adjacent, and begin at the
/// beginning of a line.
///
/// # Safety
/// `frame` is the frame that the calling code was entered with, and a window of private memory was
/// found whose memory records footprints.
unsafe extern "C" fn touch_private(
    frame: *mut Frame<'_, '_>,
    access: u64,
    line: u64,
    words: u64,
    lanes: u64,
) {
    // SAFETY: promised by the caller; see `private_footprint`.
    let (touched, wave_lanes) = unsafe { private_footprint(frame) };
    // Number of lanes whose words fill a line.
    const IN_LINE: u64 = LINE / 4;
    let lines = wave_lanes / IN_LINE;
    for at in 0..words * lines {
        let lanes = lanes >> (at % lines * IN_LINE) & ((1 << IN_LINE) - 1);
        touched.touch_bytes(private_access(access), (line + at) as usize, bytes_of_words(lanes));
    }
}

/// Records that lanes touch private memory at the offsets of their first words in
/// [`Frame::lane_offsets`].
///
/// # Safety
/// The requirements of [`touch_private`] hold, and the caller has written the offsets of these lanes.
unsafe extern "C" fn touch_each_private(
    frame: *mut Frame<'_, '_>,
    access: u64,
    _: u64,
    words: u64,
    lanes: u64,
) {
    // SAFETY: promised by the caller; see `private_footprint`.
    let (touched, wave_lanes) = unsafe { private_footprint(frame) };
    // SAFETY: promised by the caller.
    for offset in unsafe { lane_offsets(frame, lanes) } {
        for word in 0..words {
            touched.touch(private_access(access), offset + word * wave_lanes * 4, 4);
        }
    }
}

/// Code of a load from private memory, for [`touch_private`].
pub const PRIVATE_LOAD: u64 = 0;
/// Code of a store to private memory, for [`touch_private`].
pub const PRIVATE_STORE: u64 = 1;

fn private_access(access: u64) -> WindowAccess {
    match access {
        PRIVATE_LOAD => WindowAccess::Read,
        _ => WindowAccess::Write,
    }
}

/// Expands a mask of 16 words to a mask of their 64 bytes.
fn bytes_of_words(words: u64) -> u64 {
    // Moves each bit to the first byte of its word, in halving steps.
    const STEPS: [(u32, u64); 4] = [
        (24, 0xff_0000_00ff),
        (12, 0xf_000f_000f_000f),
        (6, 0x0303_0303_0303_0303),
        (3, 0x1111_1111_1111_1111),
    ];
    STEPS.iter().fold(words, |words, (by, mask)| (words | words << by) & mask) * 0xf
}

/// The footprint of private memory, and the number of lanes of the wave.
///
/// # Safety
/// The requirements of [`touch_private`] hold.
unsafe fn private_footprint<'a>(frame: *mut Frame<'_, '_>) -> (&'a mut TouchedPrivate, u64) {
    // SAFETY: the frame has borrowed the wave and points to the workspace's windows; the footprint
    // exists as long as the windows are known, and no other reference to it exists while compiled
    // code runs.
    unsafe { (&mut *(*(*frame).private).notes.touched, (*(*frame).wave).machine.lanes.into()) }
}

/// The offsets of the lanes in the mask `lanes`.
///
/// # Safety
/// The caller has written the offsets, of a loop iteration, which has at most 16 lanes.
unsafe fn lane_offsets(frame: *mut Frame<'_, '_>, lanes: u64) -> impl Iterator<Item = u64> {
    // SAFETY: promised by the caller.
    let all = unsafe { (&raw const (*frame).lane_offsets).cast::<u64>() };
    // SAFETY: as before.
    LaneMask(lanes).lanes().map(move |lane| unsafe { all.add(lane.0.into()).read() })
}

/// The region of an access's window, and the bytes per lane.
///
/// # Safety
/// The requirements of [`touch`] hold.
unsafe fn region<'a>(frame: *mut Frame<'_, '_>, site: u64) -> (&'a mut TouchedRegion, u64) {
    // SAFETY: the block's windows exist while it is executed, and a region lives as long as its
    // window; no other reference to the region exists while compiled code runs.
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
    fn bytes_of_words_spreads_each_bit_to_four() {
        for words in 0..1u64 << 16 {
            let each = (0..16).filter(|word| words >> word & 1 != 0).map(|word| 0xf << (4 * word));
            assert_eq!(bytes_of_words(words), each.sum(), "{words:x}");
        }
    }
}
