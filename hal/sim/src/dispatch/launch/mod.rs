//! Prepared dispatches: placement of their memory, and the initial state of their waves.

mod shape;
mod start;

use crate::dispatch::policy::Policy;
use crate::memory::AddressSpace;
use crate::wave::{Machine, RowIndex};
use flipwave_codeobj::{Descriptor, InitialValue, Kernel};
use flipwave_device::{Address, DeviceError, Dim3, Dispatch, KernelPacket};
use flipwave_isa::{Allocation, Residency, ResidencyLimit, Target};
use shape::{LARGEST_WORKGROUP, check_extent, check_shape};
use start::Start;
use std::ops::Range;

/// Private memory per lane of kernels whose stack has no static bound, in bytes.
const DYNAMIC_STACK_BYTES: u32 = 16 << 10;
/// Limit of the private memory of all resident workgroups together, in bytes: AMD's runtime gives
/// as much to all waves of a device (`GpuAgent::InitScratchPool` of ROCr), and wave offsets have 32
/// bits.
const PRIVATE_MEMORY: u64 = 4 << 30;

/// A prepared dispatch.
#[derive(Debug)]
pub struct Launch {
    /// Machine properties that waves execute with.
    pub machine: Machine,
    target: Target,
    descriptor: Descriptor,
    /// Device address of the first instruction that waves execute.
    pub start: u64,
    /// Arguments preloaded to user SGPRs.
    preloaded: Vec<u32>,
    user_sgprs: UserSgprs,
    grid: Dim3,
    workgroup: Dim3,
    /// LDS of a workgroup, in bytes.
    pub lds_bytes: u32,
    places: Places,
    /// Allocations that the launch owns.
    owned: Vec<Address>,
    scratch: Scratch,
    /// Number of workgroups that the device keeps resident.
    pub residency: Residency,
    /// Initial state of the waves.
    start_state: Start,
}

/// A launch whose kernel and shape are checked.
struct Checked {
    descriptor: Descriptor,
    /// Device address of the first instruction that waves execute.
    start: u64,
    grid: Dim3,
    workgroup: Dim3,
    lds_bytes: u32,
    /// Minimum private memory of a work-item in bytes.
    private_bytes: u32,
    /// Minimum number of resident workgroups.
    least_resident: u32,
    user_sgprs: UserSgprs,
}

/// Source of the initial values of user SGPRs.
#[derive(Clone, Debug)]
pub enum UserSgprs {
    /// Values that the kernel descriptor asks for, as for AQL packets.
    Descriptor,
    /// The registers `COMPUTE_USER_DATA_0` and following, whatever they mean to the kernel.
    Words(Vec<u32>),
}

/// Addresses that a kernel receives.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Address of the arguments.
    pub kernarg: Address,
    /// Address of the packet.
    pub packet: Address,
    /// Address of the queue, `amd_queue_t`.
    pub queue: Address,
    /// Number of the packet in its queue.
    pub dispatch_id: u64,
}

/// A kernel in the device's memory.
#[derive(Clone, Copy, Debug)]
pub struct PlacedKernel<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Device address of the first instruction that waves execute.
    pub start: u64,
    /// The descriptor that the packet names: another kernel's if this kernel replaces that one.
    pub named: &'a Descriptor,
    /// Device address of that descriptor.
    pub named_at: Address,
}

#[derive(Clone, Copy, Debug, Default)]
struct Scratch {
    base: Address,
    bytes: u64,
    bytes_per_lane: u32,
    bytes_per_wave: u64,
}

impl Launch {
    /// Checks a dispatch against its kernel, and places what it needs in memory.
    ///
    /// # Errors
    /// [`DeviceError::BadLaunch`], [`DeviceError::OutOfMemory`].
    pub fn prepare(
        dispatch: &Dispatch,
        placed: PlacedKernel<'_>,
        target: &Target,
        policy: Policy,
        space: &mut AddressSpace,
    ) -> Result<Launch, DeviceError> {
        let PlacedKernel { kernel, start, named, named_at } = placed;
        let refuse =
            |reason: String| DeviceError::BadLaunch { kernel: kernel.name.to_string(), reason };
        check_shape(dispatch, kernel).map_err(refuse)?;
        let descriptor = kernel.descriptor.clone();
        let needed = u64::from(descriptor.kernarg_size).max(descriptor.kernarg_preload.end_bytes());
        if (dispatch.kernarg.len() as u64) < needed {
            return Err(refuse(format!(
                "its arguments take {needed} bytes, {} are given",
                dispatch.kernarg.len()
            )));
        }
        let checked = Checked {
            start,
            grid: dispatch.grid,
            workgroup: dispatch.workgroup,
            lds_bytes: descriptor.group_segment_fixed_size.saturating_add(dispatch.dynamic_lds),
            private_bytes: policy.private_bytes,
            least_resident: policy.resident_workgroups,
            user_sgprs: UserSgprs::Descriptor,
            descriptor,
        };
        let places = Places {
            kernarg: space.allocate(dispatch.kernarg.len().max(1) as u64)?,
            packet: space.allocate((KernelPacket::SIZE + Signal::SIZE) as u64)?,
            queue: space.allocate(256)?,
            dispatch_id: 0,
        };
        space.write(places.kernarg, &dispatch.kernarg)?;
        let allocated = [places.kernarg, places.packet, places.queue];
        let placed = Launch::place(checked, target, places, space, refuse);
        if placed.is_err() {
            allocated.into_iter().try_for_each(|address| space.free(address))?;
        }
        let mut launch = placed?;
        launch.owned.extend(allocated);
        let completion = Address(places.packet.0 + KernelPacket::SIZE as u64);
        let packet = KernelPacket {
            workgroup: launch.workgroup,
            grid: launch.grid,
            private_bytes: private_bytes_of(named, policy.private_bytes),
            lds_bytes: launch.lds_bytes,
            kernel: named_at,
            kernarg: places.kernarg,
            completion,
        };
        space.write(places.packet, &packet.to_bytes())?;
        space.write(completion, &Signal::PENDING)?;
        space.write(Address(places.queue.0 + 0x40), &aperture_bytes())?;
        Ok(launch)
    }

    /// Prepares the dispatch of a packet, whose memory exists already except for scratch.
    ///
    /// # Errors
    /// [`DeviceError::BadLaunch`], [`DeviceError::OutOfMemory`].
    pub fn of_packet(
        packet: &KernelPacket,
        places: Places,
        descriptor: Descriptor,
        user_sgprs: UserSgprs,
        target: &Target,
        policy: Policy,
        space: &mut AddressSpace,
    ) -> Result<Launch, DeviceError> {
        let kernel = packet.kernel;
        let refuse = |reason: String| DeviceError::BadLaunch { kernel: kernel.to_string(), reason };
        let KernelPacket { grid, workgroup, lds_bytes, .. } = *packet;
        check_extent(grid, workgroup, LARGEST_WORKGROUP).map_err(refuse)?;
        let checked = Checked {
            start: descriptor.start().0,
            grid,
            workgroup,
            lds_bytes,
            private_bytes: policy.private_bytes.max(packet.private_bytes),
            least_resident: policy.resident_workgroups,
            user_sgprs,
            descriptor,
        };
        Launch::place(checked, target, places, space, refuse)
    }

    /// Checks the limits of the target, and places scratch.
    fn place(
        checked: Checked,
        target: &Target,
        places: Places,
        space: &mut AddressSpace,
        refuse: impl Fn(String) -> DeviceError,
    ) -> Result<Launch, DeviceError> {
        let Checked { descriptor, user_sgprs, start, grid, workgroup, lds_bytes, .. } = checked;
        let wave_size = descriptor.wavefront_size() as u8;
        if !target.wave_sizes().contains(&wave_size) {
            return Err(refuse(format!("{target} has no waves of {wave_size} lanes")));
        }
        let most = target.lds_bytes();
        if lds_bytes > most {
            return Err(refuse(format!(
                "it needs {lds_bytes} bytes of LDS, a workgroup can have {most}"
            )));
        }
        let mut launch = Launch {
            machine: machine(&descriptor, target),
            target: target.clone(),
            start,
            preloaded: Vec::new(),
            user_sgprs,
            grid,
            workgroup,
            lds_bytes,
            places,
            owned: Vec::new(),
            scratch: Scratch::default(),
            residency: Residency { workgroups: 1, limit: ResidencyLimit::Waves },
            start_state: Start::default(),
            descriptor,
        };
        launch.preloaded = launch.preload(space)?;
        launch.residency = launch.residency_of_registers(checked.least_resident)?;
        launch.place_scratch(checked.private_bytes, space)?;
        if launch.scratch.bytes > 0 {
            launch.owned.push(launch.scratch.base);
        }
        launch.start_state = launch.start_state();
        Ok(launch)
    }

    /// Number of resident workgroups by their registers and LDS: at least one and at least `least`,
    /// whatever the descriptor says.
    fn residency_of_registers(&self, least: u32) -> Result<Residency, DeviceError> {
        let rsrc1 = &self.descriptor.rsrc1;
        let allocation = Allocation {
            waves: self.waves_of(self.workgroup),
            wave_size: self.machine.lanes,
            vgprs: rsrc1.vgprs,
            sgprs: rsrc1.sgprs,
            lds_bytes: self.lds_bytes,
            workgroup_processor_mode: rsrc1.workgroup_processor_mode,
        };
        let residency = self.target.residency(&allocation).ok_or_else(|| {
            DeviceError::Internal(format!("{} has no compute units", self.target))
        })?;
        Ok(Residency { workgroups: residency.workgroups.max(least).max(1), ..residency })
    }

    /// Number of slots for resident workgroups.
    pub fn slots(&self) -> usize {
        u64::from(self.residency.workgroups).min(self.workgroup_count()) as usize
    }

    /// Frees the launch's memory.
    ///
    /// # Errors
    /// Returns no error if the caller is correct.
    pub fn release(&self, space: &mut AddressSpace) -> Result<(), DeviceError> {
        self.owned.iter().try_for_each(|address| space.free(*address))
    }

    /// Reads the arguments that are preloaded to user SGPRs, once for the whole dispatch
    /// (AMDGPUUsage, "Preloaded Kernel Arguments").
    fn preload(&self, space: &AddressSpace) -> Result<Vec<u32>, DeviceError> {
        let initial = self.descriptor.initial_sgprs(&self.target);
        let Some(arguments) =
            initial.iter().find(|initial| initial.value == InitialValue::Arguments)
        else {
            return Ok(Vec::new());
        };
        let offset = self.descriptor.kernarg_preload.start_bytes();
        let mut bytes = vec![0; 4 * usize::from(arguments.words)];
        space.read(Address(self.places.kernarg.0.wrapping_add(offset)), &mut bytes)?;
        let (words, _) = bytes.as_chunks();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// Reserves private memory for as many workgroups as the limit allows.
    fn place_scratch(
        &mut self,
        private_bytes: u32,
        space: &mut AddressSpace,
    ) -> Result<(), DeviceError> {
        let bytes_per_lane = private_bytes_of(&self.descriptor, private_bytes);
        // Waves start at multiples of 1 KiB (AMDGPUUsage, "COMPUTE_TMPRING_SIZE").
        let wave =
            (u64::from(bytes_per_lane) * u64::from(self.machine.lanes)).next_multiple_of(1024);
        let workgroup = wave * u64::from(self.waves_of(self.workgroup));
        let most = PRIVATE_MEMORY.checked_div(workgroup).unwrap_or(u64::MAX);
        if most == 0 {
            return Err(DeviceError::OutOfMemory {
                bytes: workgroup,
                reason: "the private memory of a workgroup is limited to 4 GiB".into(),
            });
        }
        if most < u64::from(self.residency.workgroups) {
            let limit = ResidencyLimit::PrivateMemory(bytes_per_lane);
            self.residency = Residency { workgroups: most as u32, limit };
        }
        let bytes = workgroup * self.slots() as u64;
        let base = if bytes > 0 { space.reserve(bytes, wave)? } else { Address(0) };
        self.scratch = Scratch { base, bytes, bytes_per_lane, bytes_per_wave: wave };
        Ok(())
    }

    /// Number of workgroups per dimension; the last one may be partial.
    fn workgroups(&self) -> Dim3 {
        std::array::from_fn(|dimension| self.grid[dimension].div_ceil(self.workgroup[dimension]))
    }

    /// Number of workgroups.
    pub fn workgroup_count(&self) -> u64 {
        self.workgroups().iter().map(|count| u64::from(*count)).product()
    }

    /// Position of the `index`-th workgroup, x fastest.
    pub fn position(&self, index: u64) -> Dim3 {
        let [x, y, _] = self.workgroups().map(u64::from);
        [(index % x) as u32, (index / x % y) as u32, (index / (x * y)) as u32]
    }

    /// Index of the workgroup at a position, if the grid has one there.
    pub fn index(&self, position: Dim3) -> Option<u64> {
        let workgroups = self.workgroups();
        let exists = position.iter().zip(workgroups).all(|(place, count)| *place < count);
        let [x, y, z] = position.map(u64::from);
        let [columns, rows, _] = workgroups.map(u64::from);
        exists.then(|| x + columns * (y + rows * z))
    }

    /// Work-items of a workgroup per dimension, fewer at the grid's edge.
    fn extent(&self, position: Dim3) -> Dim3 {
        std::array::from_fn(|dimension| {
            let start = position[dimension] * self.workgroup[dimension];
            self.workgroup[dimension].min(self.grid[dimension] - start)
        })
    }

    fn waves_of(&self, extent: Dim3) -> u32 {
        extent.iter().product::<u32>().div_ceil(self.machine.lanes.into())
    }

    /// Number of waves of a workgroup.
    pub fn waves(&self, position: Dim3) -> u32 {
        self.waves_of(self.extent(position))
    }

    /// Address range of the private memory of a resident workgroup.
    pub fn private_memory(&self, slot: usize) -> Range<u64> {
        let base = self.scratch.base.0.wrapping_add(self.scratch_offset(slot, 0).into());
        let waves = u64::from(self.waves_of(self.workgroup));
        base..base + waves * self.scratch.bytes_per_wave
    }

    /// Address range of the private memory of all workgroups.
    pub fn all_private_memory(&self) -> Range<u64> {
        self.scratch.base.0..self.scratch.base.0.wrapping_add(self.scratch.bytes)
    }

    /// Offset of a wave's private memory in that of the launch, in bytes.
    fn scratch_offset(&self, slot: usize, index: u32) -> u32 {
        let waves = u64::from(self.waves_of(self.workgroup));
        // Less than [`PRIVATE_MEMORY`].
        ((slot as u64 * waves + u64::from(index)) * self.scratch.bytes_per_wave) as u32
    }
}

/// Private memory of a work-item of a kernel in bytes, at least `least`.
fn private_bytes_of(descriptor: &Descriptor, least: u32) -> u32 {
    let bytes = descriptor.private_segment_fixed_size.max(least);
    if descriptor.properties.uses_dynamic_stack {
        bytes.saturating_add(DYNAMIC_STACK_BYTES)
    } else {
        bytes
    }
}

/// The signal that a packet names for its completion (`amd_signal_t`).
struct Signal;

impl Signal {
    /// Size in bytes.
    const SIZE: usize = 64;
    /// `AMD_SIGNAL_KIND_USER` with the value 1: the dispatch has not ended.
    const PENDING: [u8; Signal::SIZE] = {
        let mut bytes = [0; Signal::SIZE];
        bytes[0] = 1;
        bytes[8] = 1;
        bytes
    };
}

/// `group_segment_aperture_base_hi` and `private_segment_aperture_base_hi` of `amd_queue_t`.
fn aperture_bytes() -> [u8; 8] {
    let [shared, private] = [crate::memory::aperture::SHARED, crate::memory::aperture::PRIVATE]
        .map(|base| ((base >> 32) as u32).to_le_bytes());
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&shared);
    bytes[4..].copy_from_slice(&private);
    bytes
}

/// Machine properties that waves of a kernel execute with.
pub fn machine(descriptor: &Descriptor, target: &Target) -> Machine {
    let machine = Machine::new(target, descriptor.wavefront_size() as u8);
    match descriptor.acc_vgpr_base() {
        Some(offset) => machine.with_accumulation(RowIndex(offset)),
        None => machine,
    }
}
