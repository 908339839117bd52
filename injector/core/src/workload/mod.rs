//! A program ready to run: a device with loaded code and data.

pub mod change;
pub mod output;
pub mod program;

use crate::cancellation::CancellationToken;
use crate::fault_space::Resources;
use crate::golden::Golden;
use crate::inject::cell::Cells;
use crate::workload::output::Output;
use crate::workload::program::{Buffer, Program};
use flipwave_arch::{Architecture, SimdShape, SourceLines};
use flipwave_device::{Address, Completion, DeviceError, DeviceFault, Dispatch};
use flipwave_machine::{Footprints, Observer, Simulator, Unobserved, WaveState};
use std::iter;

/// A prepared workload. Each run starts from a clone of the device, so runs are independent.
#[derive(Clone)]
pub struct Workload {
    /// The device, with code loaded and buffers filled. Faults are injected into the original code of
    /// modules that were rewritten.
    pub device: Simulator,
    /// Launches and outputs of the program.
    pub program: Program,
    /// Cancels and monitors its runs.
    pub cancellation: CancellationToken,
}

impl Workload {
    /// Runs a dispatch of the workload on a clone of its device.
    ///
    /// # Errors
    /// [`DeviceError`] if the device refuses the dispatch.
    pub fn dispatch(
        &self,
        device: &mut Simulator,
        dispatch: &Dispatch,
    ) -> Result<Completion, DeviceError> {
        self.run(device, dispatch, &mut Unobserved, None)
    }

    /// Runs a dispatch on a clone of the workload's device under an observer, and adds the footprints of
    /// its workgroups to `footprints`, if given.
    ///
    /// # Errors
    /// [`DeviceError`] if the device refuses the dispatch.
    pub fn run(
        &self,
        device: &mut Simulator,
        dispatch: &Dispatch,
        observer: &mut dyn Observer,
        footprints: Option<&mut Footprints>,
    ) -> Result<Completion, DeviceError> {
        let mut execution = device.begin(dispatch)?;
        self.cancellation.finish(&dispatch.kernel, device, &mut execution, observer, footprints)
    }

    /// Maps a device fault in rewritten code to the original code.
    pub(crate) fn original(&self, dispatch: &Dispatch, fault: DeviceFault) -> DeviceFault {
        fault.map_locations(|location| self.device.original(dispatch.module, location))
    }

    /// The GPU's instruction set.
    pub fn architecture(&self) -> &dyn Architecture {
        &**self.device.architecture()
    }

    /// SIMD units per compute unit and their width.
    pub fn simds(&self) -> SimdShape {
        self.architecture().simds()
    }

    /// Storage that faults can strike.
    pub(crate) fn cells(&self) -> Cells<'_> {
        Cells { buffers: &self.program.buffers }
    }

    /// Source lines of the original code of a dispatch, if known.
    pub fn lines(&self, dispatch: &Dispatch) -> Option<&dyn SourceLines> {
        self.device.lines(dispatch.module)
    }

    /// Registers and memory available to the waves of a dispatch, one of which is in `state`.
    pub(crate) fn resources(&self, dispatch: &Dispatch, state: &dyn WaveState) -> Resources {
        Resources {
            registers: self.device.registers(dispatch, state),
            lds_bytes: state.lds().len() as u64,
            scratch_bytes: state.private_bytes().into(),
            buffers: self.program.buffers.iter().map(|buffer| buffer.bytes as u64).collect(),
        }
    }

    /// A clone of the device in the state before the first dispatch.
    ///
    /// # Errors
    /// [`DeviceError`] if the host's memory changes cannot be applied.
    pub fn start(&self) -> Result<Simulator, DeviceError> {
        let mut device = self.device.clone();
        self.change(&mut device, 0)?;
        Ok(device)
    }

    /// Applies the memory changes before the dispatch with this index, or after the last dispatch.
    ///
    /// # Errors
    /// None on a device that has run all preceding dispatches and changes.
    pub(crate) fn change(&self, device: &mut Simulator, index: usize) -> Result<(), DeviceError> {
        self.program.changes.apply(index, &mut **device)
    }

    /// Reads the outputs from `device`, a clone of the workload's device.
    ///
    /// # Errors
    /// [`DeviceError`] if the device has no such memory.
    pub fn read_outputs(&self, device: &Simulator) -> Result<Vec<Vec<u8>>, DeviceError> {
        let read = |output: &Buffer| {
            let mut bytes = vec![0; output.bytes];
            device.read(output.address, &mut bytes)?;
            Ok(bytes)
        };
        self.program.outputs.iter().map(read).collect()
    }

    /// Reads the outputs from `device` as [`Output`] values.
    pub(crate) fn outputs(&self, device: &Simulator) -> Result<Vec<Output>, DeviceError> {
        Ok(self.read_outputs(device)?.into_iter().map(Output::from).collect())
    }

    /// Reads the outputs; they share unchanged blocks with the golden run's outputs. `after`, if given,
    /// is the device after the golden run, which makes unchanged memory fast to detect.
    pub(crate) fn outputs_beside(
        &self,
        device: &Simulator,
        golden: &Golden,
        after: Option<&Simulator>,
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
