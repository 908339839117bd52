//! Shared memory that asynchronous copies or mbarrier objects use.

use super::shared::{OBJECT_BYTES, SharedFacts};
use super::{Checked, PtxRule};
use crate::compute::LANES;
use crate::execute::Reach;
use crate::program::{Op, Phase, PhaseBarrier, PhaseKind};

/// The largest number of arrivals of an mbarrier object.
const MOST_ARRIVALS: u64 = (1 << 20) - 1;

impl Checked<'_, '_> {
    /// Checks accesses to shared memory, and records asynchronous copies.
    pub(super) fn memory(&mut self, shared: &mut SharedFacts) {
        let wave = self.reach.wave.id.wave;
        let name = self.inst.form.name();
        if name.starts_with("cp.async") && !matches!(self.op, Op::Copy(_)) {
            for lane in Reach::lanes(self.lanes) {
                let thread = (wave, lane);
                match name {
                    name if name.starts_with("cp.async.commit_group") => shared.commit(thread),
                    name if name.starts_with("cp.async.wait_group") => {
                        shared.wait(thread, Some(self.constant(0).unwrap_or(0)));
                    }
                    // An mbarrier object waits in place of the thread.
                    _ => shared.wait(thread, None),
                }
            }
            return;
        }
        match self.op {
            Op::PhaseBarrier(barrier) => self.phase_barrier(barrier, shared),
            Op::Copy(copy) => {
                self.access(&copy.to, self.lanes, copy.to.bytes, shared);
                let addresses = self.reach.addresses(&copy.to);
                for lane in Reach::lanes(self.lanes) {
                    if let Some(address) = self.shared_address(&copy.to, &addresses, lane) {
                        shared.copy((wave, lane), address, copy.to.bytes, self.inst.text());
                    }
                }
            }
            Op::Load { access, .. } | Op::Store { access, .. } | Op::Atomic { access, .. } => {
                self.access(access, self.lanes, access.bytes, shared);
            }
            Op::Matrix(matrix) => {
                let rows = (8 * matrix.registers.len()).clamp(1, LANES) as u32;
                self.access(&matrix.access, u32::MAX >> (32 - rows), 16, shared);
            }
            _ => {}
        }
    }

    /// Checks an access of some lanes, each of this many bytes.
    fn access(
        &mut self,
        access: &crate::program::MemoryAccess,
        lanes: u32,
        bytes: u64,
        shared: &SharedFacts,
    ) {
        let addresses = self.reach.addresses(access);
        for lane in Reach::lanes(lanes) {
            let Some(address) = self.shared_address(access, &addresses, lane) else { continue };
            if let Some((text, (wave, from))) = shared.pending(address, bytes) {
                self.report(PtxRule::AsyncCopy, 1 << lane, || {
                    format!(
                        "{address:#x} of shared memory is accessed while `{text}` of wave {wave}, lane {from} \
                         may still write it"
                    )
                });
            }
            if let Some(object) = shared.object(address, bytes) {
                self.report(PtxRule::PhaseBarrier, 1 << lane, || {
                    format!("{object:#x} of shared memory is a valid mbarrier object")
                });
            }
        }
    }

    /// Checks an operation on mbarrier objects, lane after lane as they are executed.
    fn phase_barrier(&mut self, barrier: &PhaseBarrier, shared: &mut SharedFacts) {
        let operands = self.reach.row(barrier.operand);
        let addresses = self.reach.addresses(&barrier.access);
        for lane in Reach::lanes(self.lanes) {
            let Some(address) = self.shared_address(&barrier.access, &addresses, lane) else {
                continue;
            };
            let (kind, operand, old) = (barrier.kind, operands[lane], shared.phase(address));
            if let Some(found) = misuse(kind, operand, old, shared.object(address, OBJECT_BYTES)) {
                self.report(PtxRule::PhaseBarrier, 1 << lane, || {
                    format!("{address:#x} of shared memory {found}")
                });
            }
            let new = old.unwrap_or(Phase::of(0)).apply(kind, operand).0;
            let is_valid = match kind {
                PhaseKind::Initialize => true,
                PhaseKind::Invalidate => false,
                _ => old.is_some(),
            };
            shared.set_phase(address, is_valid.then_some(new));
        }
    }
}

/// Returns the undefined behaviour of an operation on an `mbarrier` object. `old` is the state of the object at its address,
/// `object` the address of a valid object that the memory overlaps.
fn misuse(
    kind: PhaseKind,
    operand: u64,
    old: Option<Phase>,
    object: Option<u64>,
) -> Option<String> {
    let counts =
        matches!(kind, PhaseKind::Initialize | PhaseKind::Arrive | PhaseKind::ArriveAndDrop);
    if counts && !(1..=MOST_ARRIVALS).contains(&operand) {
        return Some(format!("gets a count of {operand}; 1 to {MOST_ARRIVALS} are valid"));
    }
    match (kind, old) {
        (PhaseKind::Initialize, _) => {
            object.map(|object| format!("is in use by the valid mbarrier object at {object:#x}"))
        }
        (_, None) => Some("is no valid mbarrier object".to_owned()),
        (PhaseKind::Arrive | PhaseKind::ArriveAndDrop, Some(phase)) if operand > phase.pending => {
            Some(format!("gets {operand} arrivals, but its phase needs {} more", phase.pending))
        }
        (PhaseKind::ArriveAndExpect, Some(Phase { pending: 0, .. })) => {
            Some("gets an arrival, but its phase needs no more".to_owned())
        }
        _ => None,
    }
}
