//! Data that compiled code and the simulator share.

use crate::compute::Row;
use crate::execute::{Reach, record};
use crate::memory::Window;
use crate::program::Op;
use crate::wave::Word;
use flipwave_device::{AccessKind, Dim3, FaultCause};
use flipwave_ptx::pc_of;
use std::mem::offset_of;

/// Entry of the code of a region.
pub(super) type Entry = unsafe extern "C" fn(*mut Frame<'_, '_>) -> u32;

/// Reasons why compiled code returns, see [`Frame::next`] and [`Frame::taken`]. The third is a
/// [fault](Frame::fault).
pub(super) const LEFT: u32 = 0;
pub(super) const DIVERGED: u32 = 1;

/// Number of an instruction that no wave reaches.
pub(super) const NOWHERE: u64 = u64::MAX;

/// The wave that executes compiled code, as the code sees it, and what the code reports.
#[repr(C)]
pub(super) struct Frame<'a, 'b> {
    /// Executes an instruction in the interpreter.
    pub interpret: unsafe extern "C" fn(*mut Frame<'_, '_>, u32) -> u32,
    /// Records the memory that lanes access at [`Frame::addresses`].
    pub touch: unsafe extern "C" fn(*mut Frame<'_, '_>, u32, u32),
    /// Nonzero if accesses to device memory are recorded.
    pub records: u64,
    /// Addresses of an access that is recorded.
    pub addresses: *mut Row,
    /// Registers.
    pub words: *mut Word,
    pub predicates: *mut Word,
    /// Memory of the innermost call.
    pub local: *mut Word,
    /// Local address of this memory.
    pub local_base: u64,
    pub shared: *mut u8,
    pub shared_length: u64,
    pub arguments: *const u8,
    pub arguments_length: u64,
    /// The last known window of each access to device memory.
    pub windows: *mut Window,
    /// By instruction: lanes that executed a guarded instruction last.
    pub guards: *mut u32,
    /// Positions of the threads of the wave in their workgroup: a row per dimension.
    pub threads: *const Word,
    /// Threads of a workgroup, workgroups of the grid, and position of the workgroup.
    pub places: [Dim3; 3],
    /// Lanes of the path.
    pub active: u32,
    /// Number of the block to begin with, in the region.
    pub entry: u32,
    /// Instructions executed so far, without those of the current block.
    pub executed: u64,
    /// Number of instructions that may be executed.
    pub limit: u64,
    /// Number of instructions after which no other block begins.
    pub turn: u64,
    pub lane_operations: u64,
    /// Instruction at which lanes meet, and one that other code executes, or [`NOWHERE`].
    pub until: u64,
    pub stop: u64,
    /// Number of the next instruction.
    pub next: u64,
    /// Lanes that take the branch at the end of the last block.
    pub taken: u32,
    /// First instruction of the block that is or was executed last.
    pub block: u32,
    /// The rest is for the interpreter.
    pub reach: &'a mut Reach<'b>,
    /// Number of instructions that the wave had executed before.
    pub before: u64,
    /// `true` if compiled code may access device memory.
    pub has_windows: bool,
    pub sites: &'a [usize],
    pub site_count: usize,
    /// The instruction that faulted, and the cause.
    pub fault: Option<(usize, FaultCause)>,
}

/// Offsets of the fields that compiled code uses.
pub(super) mod offset {
    use super::{Frame, offset_of};

    macro_rules! offsets {
        ($($name:ident = $field:ident;)*) => {
            $(pub const $name: usize = offset_of!(Frame<'static, 'static>, $field);)*
        };
    }

    offsets! {
        INTERPRET = interpret;
        TOUCH = touch;
        RECORDS = records;
        ADDRESSES = addresses;
        WORDS = words;
        PREDICATES = predicates;
        LOCAL = local;
        LOCAL_BASE = local_base;
        SHARED = shared;
        SHARED_LENGTH = shared_length;
        ARGUMENTS = arguments;
        ARGUMENTS_LENGTH = arguments_length;
        WINDOWS = windows;
        GUARDS = guards;
        THREADS = threads;
        PLACES = places;
        ACTIVE = active;
        ENTRY = entry;
        EXECUTED = executed;
        LIMIT = limit;
        TURN = turn;
        LANE_OPERATIONS = lane_operations;
        UNTIL = until;
        STOP = stop;
        NEXT = next;
        TAKEN = taken;
        BLOCK = block;
    }
}

/// Records the memory that an instruction accesses in some lanes. Called by compiled code that accesses it.
pub(super) unsafe extern "C" fn touch(frame: *mut Frame<'_, '_>, number: u32, lanes: u32) {
    // SAFETY: as for `interpret`.
    let frame = unsafe { &mut *frame };
    let Some(footprint) = &mut frame.reach.footprint else { return };
    // SAFETY: the workspace has these addresses, which compiled code has written.
    let addresses = unsafe { &*frame.addresses };
    match &frame.reach.program.steps[number as usize].op {
        Op::Load { access, .. } => record(&mut footprint.read, addresses, access.bytes, lanes),
        Op::Store { access, .. } => record(&mut footprint.written, addresses, access.bytes, lanes),
        _ => {}
    }
}

/// Executes an instruction of the current block in the interpreter; returns 1 if it faulted. Called by compiled
/// code, whose results so far are in the registers.
pub(super) unsafe extern "C" fn interpret(frame: *mut Frame<'_, '_>, number: u32) -> u32 {
    // SAFETY: compiled code passes the frame that it was entered with, which nothing else refers to until it
    // returns.
    let frame = unsafe { &mut *frame };
    let number = number as usize;
    let reach = &mut *frame.reach;
    if let Some(path) = reach.wave.path_mut() {
        path.pc = pc_of(number).0;
    }
    reach.wave.executed = frame.before + frame.executed + (number - frame.block as usize) as u64;
    let step = &reach.program.steps[number];
    let lanes = reach.executing(step.inst.guard);
    if lanes == 0 {
        return 0;
    }
    let generation = reach.memory.generation();
    if let Err(cause) = reach.perform(number, lanes) {
        frame.fault = Some((number, cause));
        return 1;
    }
    if !frame.has_windows {
        return 0;
    }
    // SAFETY: `windows` has a window for each site.
    let windows = unsafe { std::slice::from_raw_parts_mut(frame.windows, frame.site_count) };
    if reach.memory.generation() != generation {
        windows.fill(Window::NONE);
    }
    let (access, kind) = match &step.op {
        Op::Load { access, .. } => (access, AccessKind::Read),
        Op::Store { access, .. } => (access, AccessKind::Write),
        _ => return 0,
    };
    if let Some(window) = windows.get_mut(frame.sites[number])
        && access.reaches_device()
    {
        // A load may have overwritten its own address: any window of the memory before will do then.
        let address = reach.addresses(access)[lanes.trailing_zeros() as usize];
        *window = reach.memory.window(address, kind).unwrap_or(Window::NONE);
    }
    0
}
