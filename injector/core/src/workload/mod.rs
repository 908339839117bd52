//! A program ready to run: a device with loaded code and data.

pub mod change;
pub mod kernel_name;
pub mod output;
pub mod program;

use crate::cancellation::CancellationToken;
use crate::fault_space::Resources;
use crate::golden::Golden;
use crate::inject::cell::Cells;
use crate::site::{SimdShape, Unit};
use crate::workload::change::apply;
use crate::workload::output::Output;
use crate::workload::program::{Buffer, Program};
use flipwave_codeobj::LineTable;
use flipwave_device::{
    Address, Completion, Device, DeviceError, DeviceFault, Dispatch, WaveLocation,
};
use flipwave_isa::{AccVgpr, Register, RegisterRange, Sgpr, Target, Vgpr};
use flipwave_sim::{EmbeddedGpu, Footprints, Observer, Unobserved, WaveState};
use flipwave_tools::Guest;
use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

/// A prepared workload. Each run starts from a clone of the device, so runs are independent.
#[derive(Clone)]
pub struct Workload {
    /// The device, with code objects loaded and buffers filled.
    pub device: EmbeddedGpu,
    /// Launches and outputs of the program.
    pub program: Program,
    /// The original code of rewritten modules, by module; faults are injected into the original code.
    pub guests: BTreeMap<u32, Arc<Guest>>,
    /// Cancels and monitors its runs.
    pub cancellation: CancellationToken,
}

impl Workload {
    /// Runs a dispatch of the workload on a clone of its device.
    pub(crate) fn dispatch(
        &self,
        device: &mut EmbeddedGpu,
        dispatch: &Dispatch,
    ) -> Result<Completion, DeviceError> {
        self.run(device, dispatch, &mut Unobserved, None)
    }

    /// Runs a dispatch on a clone of the workload's device under an observer.
    pub(crate) fn observe(
        &self,
        device: &mut EmbeddedGpu,
        dispatch: &Dispatch,
        observer: &mut dyn Observer,
    ) -> Result<Completion, DeviceError> {
        self.as_it_was(dispatch, observer, |observer| self.run(device, dispatch, observer, None))
    }

    /// Runs a dispatch with `run`. `observer` sees the original code if the dispatch's code was
    /// rewritten.
    pub(crate) fn as_it_was<T>(
        &self,
        dispatch: &Dispatch,
        observer: &mut dyn Observer,
        run: impl FnOnce(&mut dyn Observer) -> T,
    ) -> T {
        match self.guests.get(&dispatch.module.0) {
            Some(guest) => run(&mut guest.observe(observer)),
            None => run(observer),
        }
    }

    /// Runs a dispatch under an observer that sees the code as executed, and adds the footprints of its
    /// workgroups to `footprints`, if given.
    pub(crate) fn run(
        &self,
        device: &mut EmbeddedGpu,
        dispatch: &Dispatch,
        observer: &mut dyn Observer,
        footprints: Option<&mut Footprints>,
    ) -> Result<Completion, DeviceError> {
        let mut execution = device.begin(dispatch)?;
        self.cancellation.finish(&dispatch.kernel, device, &mut execution, observer, footprints)
    }

    /// Maps a device fault in rewritten code to the original code.
    pub(crate) fn original(&self, dispatch: &Dispatch, fault: DeviceFault) -> DeviceFault {
        fault.map_locations(|place| self.original_place(dispatch, place))
    }

    /// Maps a location in rewritten code to the original code.
    pub(crate) fn original_place(&self, dispatch: &Dispatch, place: WaveLocation) -> WaveLocation {
        match self.guests.get(&dispatch.module.0) {
            Some(guest) => guest.place(place),
            None => place,
        }
    }

    /// The GPU's target.
    pub(crate) fn target(&self) -> &Target {
        self.device.target()
    }

    /// SIMD units per compute unit and their width.
    pub(crate) fn simds(&self) -> SimdShape {
        Unit::simds(self.target())
    }

    pub(crate) fn wave_lanes(&self, dispatch: &Dispatch) -> u8 {
        let object = self.device.code_object(dispatch.module);
        let kernel = object.and_then(|object| object.kernel(&dispatch.kernel));
        match kernel.map(|kernel| kernel.descriptor.wavefront_size()) {
            Some(32) => 32,
            _ => 64,
        }
    }

    /// Storage that faults can strike.
    pub(crate) fn cells(&self) -> Cells<'_> {
        Cells { buffers: &self.program.buffers }
    }

    /// Source lines of the original code of a dispatch, if known.
    pub(crate) fn lines(&self, dispatch: &Dispatch) -> Option<&LineTable> {
        let lines = match self.guests.get(&dispatch.module.0) {
            Some(guest) => guest.lines(),
            None => self.device.lines(dispatch.module)?,
        };
        (!lines.is_empty()).then_some(lines)
    }

    /// Registers and memory available to the waves of a dispatch, one of which is in `state`.
    pub(crate) fn resources(&self, dispatch: &Dispatch, state: &WaveState<'_>) -> Resources {
        let rows = |first: Register| {
            let next = |register: &Register| register.offset(1);
            let all = std::iter::successors(Some(first), next);
            all.take_while(|register| state.lanes(*register).is_some()).collect::<Vec<_>>()
        };
        let object = self.device.code_object(dispatch.module);
        let kernel = object.and_then(|object| object.kernel(&dispatch.kernel));
        let sgprs = kernel.map_or(0, |kernel| kernel.descriptor.rsrc1.sgprs);
        // Up to gfx9 the highest six of an allocation are VCC, FLAT_SCRATCH and XNACK_MASK
        // (AMDGPUUsage, "GRANULATED_WAVEFRONT_SGPR_COUNT"); from gfx10 on 106 are numbered.
        let numbered = if sgprs >= 128 { 106 } else { sgprs.saturating_sub(6).min(102) };
        let mut registers = Vec::new();
        for file in [rows(Register::Vgpr(Vgpr(0))), rows(Register::AccVgpr(AccVgpr(0)))] {
            // A range has at most 255 registers.
            let ranges = file.chunks(255).map(|some| RegisterRange::new(some[0], some.len() as u8));
            registers.extend(ranges);
        }
        let halves = if state.wave_lanes() == 64 { 2 } else { 1 };
        registers.push(RegisterRange::new(Register::Sgpr(Sgpr(0)), numbered as u8));
        registers.push(RegisterRange::new(Register::VccLo, halves));
        registers.push(RegisterRange::new(Register::ExecLo, halves));
        registers.push(RegisterRange::new(Register::M0, 1));
        registers.push(RegisterRange::new(Register::Scc, 1));
        Resources {
            registers,
            lds_bytes: state.lds_bytes() as u64,
            scratch_bytes: state.private_bytes().into(),
            buffers: self.program.buffers.iter().map(|buffer| buffer.bytes as u64).collect(),
        }
    }

    /// A clone of the device in the state before the first dispatch.
    pub(crate) fn start(&self) -> Result<EmbeddedGpu, DeviceError> {
        let mut device = self.device.clone();
        self.change(&mut device, 0)?;
        Ok(device)
    }

    /// Applies the memory changes before the dispatch with this index, or after the last dispatch.
    ///
    /// # Errors
    /// None on a device that has run all preceding dispatches and changes.
    pub(crate) fn change(&self, device: &mut EmbeddedGpu, index: usize) -> Result<(), DeviceError> {
        self.program.changes.before(index).iter().try_for_each(|change| apply(change, device))
    }

    /// Reads the outputs from `device`, a clone of the workload's device.
    ///
    /// # Errors
    /// [`DeviceError`] if the device has no such memory.
    pub fn read_outputs(&self, device: &EmbeddedGpu) -> Result<Vec<Vec<u8>>, DeviceError> {
        let read = |output: &Buffer| {
            let mut bytes = vec![0; output.bytes];
            device.read(output.address, &mut bytes)?;
            Ok(bytes)
        };
        self.program.outputs.iter().map(read).collect()
    }

    /// Reads the outputs from `device` as [`Output`] values.
    pub(crate) fn outputs(&self, device: &EmbeddedGpu) -> Result<Vec<Output>, DeviceError> {
        Ok(self.read_outputs(device)?.into_iter().map(Output::from).collect())
    }

    /// Reads the outputs; they share unchanged blocks with the golden run's outputs. `after`, if given,
    /// is the device after the golden run, which makes unchanged memory fast to detect.
    pub(crate) fn outputs_beside(
        &self,
        device: &EmbeddedGpu,
        golden: &Golden,
        after: Option<&EmbeddedGpu>,
    ) -> Result<Vec<Output>, DeviceError> {
        let beside = |(buffer, golden): (&Buffer, &Output)| {
            let (start, length) = (buffer.address, buffer.bytes as u64);
            let parts = after.map(|after| device.unshared_with(after, start, length));
            let parts = parts.unwrap_or_else(|| iter::once(0..length).collect());
            const BLOCK: u64 = Output::BLOCK as u64;
            let (mut changed, mut next, mut block) = (Vec::new(), 0, Vec::new());
            for part in parts {
                for number in next.max(part.start / BLOCK)..part.end.div_ceil(BLOCK) {
                    let first = number * BLOCK;
                    block.resize(BLOCK.min(length - first) as usize, 0);
                    device.read(Address(start.0 + first), &mut block)?;
                    if golden.block(number as usize) != block {
                        changed.push((number as usize, block.clone()));
                    }
                    next = number + 1;
                }
            }
            Ok(golden.with(changed))
        };
        self.program.outputs.iter().zip(&golden.outputs).map(beside).collect()
    }
}
