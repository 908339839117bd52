//! Records a run in a capture: dispatches, and memory contents that no kernel has written.

use super::capture_file;
use super::reporting::{fail, fault_text, report_fault};
use super::shadow_memory::ShadowMemory;
use crate::session::Session;
use flipwave_capture::{CaptureError, CodeObjectId, RecordedDispatch, Step, Writer};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Change, Completion, DeviceError, Patch, demangled_kernel};
use flipwave_kfd::{CopyObserver, DispatchDriver, DispatchedKernel, KernelDispatch, Machine};
use flipwave_sim::{ByteSet, EmbeddedGpu, Execution, Footprints, Progress, Unobserved};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The size at which a write is split into several steps.
const STEP_BYTES: usize = 1 << 20;

/// DispatchDriver that records dispatches. Clones share one recording.
#[derive(Clone)]
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
    /// The node of the recorded GPU.
    node: u32,
    /// The memory accessed by the current dispatch; `None` for runtime kernels.
    footprints: Option<Footprints>,
}

struct Recording {
    /// `None` once the run has ended.
    writer: Option<Writer>,
    shadow: ShadowMemory,
    /// The node of the recorded GPU.
    node: u32,
    /// Recorded code objects by their address in this process; the `Arc` keeps the address valid.
    code_objects: HashMap<usize, (Arc<CodeObject>, CodeObjectId)>,
}

fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Creates the capture file of this process, for the GPU of `node`.
    pub fn create(
        file: &Path,
        session: &Session,
        command: &str,
        node: u32,
    ) -> Result<Recorder, String> {
        let writer = capture_file::create(file, session, command)?;
        let (shadow, code_objects) = Default::default();
        let recording = Recording { writer: Some(writer), shadow, node, code_objects };
        let recording = Arc::new(Mutex::new(recording));
        let finished = Arc::clone(&recording);
        capture_file::finish_at_exit(move || lock(&finished).writer.take());
        Ok(Recorder { recording, node, footprints: None })
    }
}

impl Recording {
    /// Records the changes of memory, or of a range of it, since the last step.
    fn catch_up(
        &mut self,
        machine: &Machine,
        range: Option<Range<u64>>,
    ) -> Result<(), CaptureError> {
        let Recording { writer: Some(writer), shadow, node, .. } = self else { return Ok(()) };
        let node = *node;
        for change in shadow.follow_maps(machine.mapped(node)) {
            writer.add(&Step::Change(change))?;
        }
        let mut patch = Patch::default();
        let read = |address, bytes: &mut [u8]| machine.read(node, Address(address), bytes);
        let mut result = Ok(());
        let touched = |pages| machine.touched(node, pages);
        shadow.update(range, touched, read, |address, bytes| {
            patch.add(Address(address), bytes);
            if patch.bytes().len() >= STEP_BYTES && result.is_ok() {
                result = writer.add(&Step::Change(Change::Write(std::mem::take(&mut patch))));
            }
        });
        result?;
        if patch.is_empty() {
            return Ok(());
        }
        writer.add(&Step::Change(Change::Write(patch)))
    }

    /// Records a dispatch that has ended; `written` are the ranges that it wrote.
    fn add_dispatch(
        &mut self,
        machine: &Machine,
        dispatch: &KernelDispatch,
        kernel: &DispatchedKernel,
        instructions: u64,
        written: Vec<(Address, u64)>,
    ) -> Result<(), CaptureError> {
        let Recording { writer: Some(writer), shadow, node, code_objects } = self else {
            return Ok(());
        };
        let node = *node;
        let code_object = match code_objects.entry(Arc::as_ptr(&kernel.code_object) as usize) {
            Entry::Occupied(entry) => entry.get().1,
            Entry::Vacant(entry) => {
                let id = writer.add_code_object(kernel.code_object.bytes(), kernel.bias)?;
                entry.insert((Arc::clone(&kernel.code_object), id)).1
            }
        };
        for (address, bytes) in &written {
            shadow.refresh(address.0, *bytes, |at, bytes| machine.read(node, Address(at), bytes));
        }
        let on_host: Vec<(Address, u64)> =
            written.iter().copied().filter(|(address, _)| machine.is_on_host(*address)).collect();
        writer.add(&Step::Dispatch(Box::new(RecordedDispatch {
            number: kernel.number,
            stream: dispatch.queue,
            kernel: kernel.name.to_string(),
            range: dispatch.range.as_deref().map(str::to_owned),
            code_object,
            packet: dispatch.packet,
            queued: dispatch.queued,
            is_cooperative: false,
            arguments: Vec::new(),
            instructions,
            written,
        })))?;
        // Kernel writes to host memory are outputs.
        for (address, bytes) in on_host {
            writer.add(&read(machine, node, address, bytes))?;
        }
        writer.save()
    }

    /// Records a copy, and an output if the destination is host memory.
    fn add_copy(
        &mut self,
        machine: &Machine,
        from: Address,
        to: Address,
        bytes: u64,
    ) -> Result<(), CaptureError> {
        self.catch_up(machine, Some(from.0..from.0 + bytes))?;
        let Recording { writer: Some(writer), shadow, node, .. } = self else { return Ok(()) };
        writer.add(&Step::Change(Change::Copy { from, to, bytes }))?;
        shadow.copy(from.0, to.0, bytes);
        if machine.is_on_host(to) && !machine.is_on_host(from) {
            writer.add(&read(machine, *node, from, bytes))?;
        }
        writer.save()
    }
}

/// The step for an output of these bytes.
fn read(machine: &Machine, node: u32, address: Address, bytes: u64) -> Step {
    let mut content = vec![0; bytes as usize];
    machine.read(node, address, &mut content);
    Step::Read { address, bytes: content }
}

impl CopyObserver for Recorder {
    fn before_copy(&self, machine: &Machine, node: u32, from: Address, to: Address, bytes: u64) {
        // What other GPUs copy is recorded like memory written by the host.
        if node != self.node {
            return;
        }
        let result = lock(&self.recording).add_copy(machine, from, to, bytes);
        result.unwrap_or_else(|error| fail(&error.to_string()));
    }
}

impl DispatchDriver for Recorder {
    fn begin(&mut self, machine: &Machine, dispatch: &KernelDispatch) -> Result<(), DeviceError> {
        self.footprints = dispatch.kernel.is_some().then(Footprints::default);
        if self.footprints.is_some() {
            let result = lock(&self.recording).catch_up(machine, None);
            result.unwrap_or_else(|error| fail(&error.to_string()));
        }
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut EmbeddedGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        match &mut self.footprints {
            Some(footprints) => gpu.advance_recorded(execution, &mut Unobserved, footprints, until),
            // Memory written by runtime kernels is recorded like memory written by the host.
            None => gpu.advance(execution, &mut Unobserved, until),
        }
    }

    fn end(
        &mut self,
        machine: &Machine,
        gpu: &EmbeddedGpu,
        dispatch: &KernelDispatch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        let statistics = match completion {
            Completion::Completed(statistics) => statistics,
            Completion::Faulted(fault) => {
                report_fault(gpu, dispatch, fault);
                let kernel = dispatch.kernel.as_ref();
                let name =
                    kernel.map_or("of the runtime".into(), |kernel| demangled_kernel(&kernel.name));
                let text = fault_text(gpu, dispatch, fault);
                fail(&format!(
                    "cannot capture a run that ends with a fault: kernel {name}: {text}"
                ));
            }
        };
        if let (Some(footprints), Some(kernel)) = (self.footprints.take(), &dispatch.kernel) {
            let written: ByteSet =
                footprints.iter().map(|(_, footprint)| &footprint.written).collect();
            let result = lock(&self.recording).add_dispatch(
                machine,
                dispatch,
                kernel,
                statistics.wave_instructions,
                written.runs(),
            );
            result.unwrap_or_else(|error| fail(&error.to_string()));
        }
        Ok(())
    }
}
