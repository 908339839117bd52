//! Shape of a dispatch.

use flipwave_device::{Dim3, Dispatch, KernelPacket};

/// The parameters of a dispatch that hooks depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Work-items per dimension.
    pub grid: Dim3,
    /// Work-items per workgroup and dimension.
    pub workgroup: Dim3,
    /// Lanes per wave.
    pub wave_lanes: u8,
    /// LDS bytes per workgroup.
    pub lds_bytes: u32,
}

impl LaunchShape {
    /// The shape of a packet whose kernel has waves of this many lanes.
    pub fn of_packet(packet: &KernelPacket, wave_lanes: u8) -> LaunchShape {
        let KernelPacket { grid, workgroup, lds_bytes, .. } = *packet;
        LaunchShape { grid, workgroup, wave_lanes, lds_bytes }
    }

    /// The shape of a dispatch whose kernel has waves of this many lanes and declares this many bytes
    /// of LDS.
    pub fn of_dispatch(dispatch: &Dispatch, wave_lanes: u8, declared_lds: u32) -> Self {
        let lds_bytes = declared_lds.saturating_add(dispatch.dynamic_lds);
        LaunchShape { grid: dispatch.grid, workgroup: dispatch.workgroup, wave_lanes, lds_bytes }
    }

    /// Workgroups per dimension.
    pub(crate) fn workgroups(&self) -> Dim3 {
        [0, 1, 2].map(|axis| self.grid[axis].div_ceil(self.workgroup[axis].max(1)))
    }

    /// Waves of a full workgroup.
    pub(crate) fn workgroup_waves(&self) -> u32 {
        self.workgroup.iter().product::<u32>().div_ceil(u32::from(self.wave_lanes).max(1))
    }

    /// Waves of all workgroups, assuming full workgroups.
    pub fn waves(&self) -> u64 {
        let workgroups: u64 = self.workgroups().map(u64::from).iter().product();
        workgroups.saturating_mul(self.workgroup_waves().into())
    }
}
