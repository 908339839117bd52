//! Records the run: what is in memory that no kernel has written, and the dispatches.

use super::identity::{self, Identity};
use super::shadow::Shadow;
use super::{fail, output_file};
use crate::session::Session;
use flipwave_capture::{CaptureError, CodeObjectId, RecordedDispatch, Step, Writer};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Change, Completion, DeviceError, Patch};
use flipwave_kfd::{CopyObserver, DispatchDriver, DispatchedKernel, KernelDispatch, Machine};
use flipwave_sim::{ByteSet, EmbeddedGpu, Execution, Footprints, Progress, Unobserved};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The node of the only GPU.
const NODE: u32 = 1;
/// Most bytes of one step.
const STEP_BYTES: usize = 1 << 20;

/// Records; its clones are the same recording.
#[derive(Clone)]
pub struct Recorder {
    recording: Arc<Mutex<Recording>>,
    /// What the dispatch under way has touched, where that is recorded.
    footprints: Option<Footprints>,
}

struct Recording {
    /// Nothing once the run has ended.
    writer: Option<Writer>,
    shadow: Shadow,
    /// By where the code object is in this process, which the list keeps there.
    code_objects: HashMap<usize, (Arc<CodeObject>, CodeObjectId)>,
}

/// The recording of a process, for its end, and the process.
static RECORDING: Mutex<Option<(u32, Arc<Mutex<Recording>>)>> = Mutex::new(None);

extern "C" fn finish() {
    let own = RECORDING.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A process that was forked from it has a copy, and no end of the recording.
    let own = own.filter(|(process, _)| *process == std::process::id());
    let Some((_, recording)) = own else { return };
    let writer = lock(&recording).writer.take();
    if let Some(Err(error)) = writer.map(Writer::finish) {
        fail(&error.to_string());
    }
}

fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// A recording into a new file.
    pub fn create(file: &Path, session: &Session, command: &str) -> Result<Recorder, String> {
        let [gpu] = &session.gpus[..] else {
            let count = session.gpus.len();
            return Err(format!("a run on {count} GPUs cannot be captured: expected 1"));
        };
        let file = output_file(file)?;
        // The others have commands of their own.
        let identity = Identity::of_process();
        let own = (!identity.is_first()).then(identity::command);
        let command = own.as_deref().unwrap_or(command);
        let writer = Writer::create(&file, gpu, command).map_err(|e| e.to_string())?;
        if let Some(rank) = identity.place.rank {
            writer.set_rank(rank).map_err(|e| e.to_string())?;
        }
        let (shadow, code_objects) = Default::default();
        let recording = Recording { writer: Some(writer), shadow, code_objects };
        let recording = Arc::new(Mutex::new(recording));
        let own = (std::process::id(), Arc::clone(&recording));
        let before = RECORDING.lock().unwrap_or_else(PoisonError::into_inner).replace(own);
        if before.is_none() {
            // SAFETY: registers a function for the process's orderly end.
            unsafe { libc::atexit(finish) };
        }
        Ok(Recorder { recording, footprints: None })
    }
}

impl Recording {
    /// Adds what has come into memory since the last time, of all of it or of a range.
    fn catch_up(
        &mut self,
        machine: &Machine,
        range: Option<Range<u64>>,
    ) -> Result<(), CaptureError> {
        let Recording { writer: Some(writer), shadow, .. } = self else { return Ok(()) };
        for change in shadow.follow_maps(machine.mapped(NODE)) {
            writer.add(&Step::Change(change))?;
        }
        let mut patch = Patch::default();
        let read = |address, bytes: &mut [u8]| machine.read(NODE, Address(address), bytes);
        let mut result = Ok(());
        let touched = |pages| machine.touched(NODE, pages);
        shadow.news(range, touched, read, |address, bytes| {
            patch.add(Address(address), bytes);
            if patch.bytes().len() >= STEP_BYTES && result.is_ok() {
                result = writer.add(&Step::Change(Change::Write(std::mem::take(&mut patch))));
            }
        });
        result?;
        match patch.is_empty() {
            true => Ok(()),
            false => writer.add(&Step::Change(Change::Write(patch))),
        }
    }

    fn add_dispatch(
        &mut self,
        machine: &Machine,
        dispatch: &KernelDispatch,
        kernel: &DispatchedKernel,
        instructions: u64,
        written: Vec<(Address, u64)>,
    ) -> Result<(), CaptureError> {
        let Recording { writer: Some(writer), shadow, code_objects } = self else { return Ok(()) };
        let code_object = match code_objects.entry(Arc::as_ptr(&kernel.code_object) as usize) {
            Entry::Occupied(known) => known.get().1,
            Entry::Vacant(place) => {
                let id = writer.add_code_object(kernel.code_object.bytes(), kernel.bias)?;
                place.insert((Arc::clone(&kernel.code_object), id)).1
            }
        };
        for (address, bytes) in &written {
            shadow.take(address.0, *bytes, |at, bytes| machine.read(NODE, Address(at), bytes));
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
            instructions,
            written,
        })))?;
        // What a kernel writes to the host's memory is out at once.
        for (address, bytes) in on_host {
            writer.add(&read(machine, address, bytes))?;
        }
        writer.save()
    }

    fn add_copy(
        &mut self,
        machine: &Machine,
        from: Address,
        to: Address,
        bytes: u64,
    ) -> Result<(), CaptureError> {
        self.catch_up(machine, Some(from.0..from.0 + bytes))?;
        let Recording { writer: Some(writer), shadow, .. } = self else { return Ok(()) };
        writer.add(&Step::Change(Change::Copy { from, to, bytes }))?;
        shadow.copy(from.0, to.0, bytes);
        if machine.is_on_host(to) && !machine.is_on_host(from) {
            writer.add(&read(machine, from, bytes))?;
        }
        writer.save()
    }
}

/// The host gets bytes.
fn read(machine: &Machine, address: Address, bytes: u64) -> Step {
    let mut content = vec![0; bytes as usize];
    machine.read(NODE, address, &mut content);
    Step::Read { address, bytes: content }
}

impl CopyObserver for Recorder {
    fn before_copy(&self, machine: &Machine, _: u32, from: Address, to: Address, bytes: u64) {
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
            // The runtime's own code: what it writes is taken for the host's.
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
                super::report_fault(gpu, dispatch, fault);
                let kernel = dispatch.kernel.as_ref().map_or("the runtime's own", |own| &own.name);
                let text = super::fault_text(gpu, dispatch, fault);
                fail(&format!(
                    "a run that a fault ends cannot be captured: kernel {kernel}: {text}"
                ));
            }
        };
        if let (Some(footprints), Some(kernel)) = (self.footprints.take(), &dispatch.kernel) {
            let written: ByteSet = footprints.iter().map(|(_, own)| &own.written).collect();
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
