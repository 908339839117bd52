//! Choices of the runtime about the execution of dispatches.

use crate::dispatch::leads::Leads;
use flipwave_jit::Compiling;
use flipwave_machine::{FaultDetail, Stalls};

/// Choices of the runtime on which no correct program depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Minimum private memory of a work-item in bytes; a kernel may ask for more.
    pub private_bytes: u32,
    /// Number of instructions after which a wave's turn ends at its next jump or at the end of a
    /// page of code.
    pub wave_turn: u64,
    /// Number of instructions of the first turn after the waves of a workgroup have started or
    /// passed a barrier together. It doubles from turn to turn up to `wave_turn`; until then turns
    /// end where waves branch. `None`, the default, gives all turns the same length: the order of
    /// waves then hardly depends on hooks.
    pub first_turn: Option<u64>,
    /// Limits on the distance between waves of a workgroup where they access LDS.
    pub leads: Leads,
    /// Rounds of wave turns in a workgroup's turn, if few workgroups are resident.
    pub workgroup_turn: u32,
    /// Minimum number of resident workgroups, whatever the kernel allocates.
    pub resident_workgroups: u32,
    /// Treatment of dispatches whose waves all wait, some of them in loops.
    pub stalls: Stalls,
    /// Amount of information about faults.
    pub fault_detail: FaultDetail,
    /// Selection of the code that is compiled to host code.
    pub compiling: Compiling,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            private_bytes: 0,
            wave_turn: 1024,
            first_turn: None,
            leads: Leads::CLOSE,
            workgroup_turn: 64,
            resident_workgroups: 0,
            stalls: Stalls::Ignore,
            fault_detail: FaultDetail::Context,
            compiling: Compiling::of_process(),
        }
    }
}
