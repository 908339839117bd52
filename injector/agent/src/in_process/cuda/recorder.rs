//! Records a run of a CUDA application in a capture: launches, and memory contents that no kernel has written.

use crate::in_process::capture_file;
use crate::in_process::reporting::fail;
use crate::session::Session;
use flipwave_capture::{CaptureError, CodeObjectId, RecordedDispatch, Step, Writer};
use flipwave_cuda::{KernelLaunch, LaunchDriver, LoadedCode, MemoryMap};
use flipwave_device::{
    Address, Change, Completion, DeviceError, KernelPacket, Patch, QueuedPacket, demangled_kernel,
};
use flipwave_machine::{ByteSet, Execution, Footprints, Machine, Progress, Unobserved};
use flipwave_ptx_sim::PtxGpu;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of memory that are compared at once, and the size at which a write is split into several steps.
const PART: u64 = 1 << 20;

/// Records launches.
pub struct CudaRecorder {
    /// `None` once the run has ended.
    writer: Arc<Mutex<Option<Writer>>>,
    /// The GPU as of the last recorded step; clones share device memory until it is written.
    recorded: Option<PtxGpu>,
    /// The memory map as of the last recorded step.
    map: MemoryMap,
    /// Content of host memory as of the last recorded step, by first address.
    host: HashMap<u64, Vec<u8>>,
    /// Recorded modules by address in this process; the `Arc` keeps the address valid.
    codes: HashMap<usize, (Arc<LoadedCode>, CodeObjectId)>,
    /// The memory accessed by the current launch.
    footprints: Footprints,
}

impl CudaRecorder {
    /// Creates the capture file of this process.
    ///
    /// # Errors
    /// A message, if the file cannot be created.
    pub fn create(file: &Path, session: &Session, command: &str) -> Result<CudaRecorder, String> {
        let writer = Arc::new(Mutex::new(Some(capture_file::create(file, session, command)?)));
        let finished = Arc::clone(&writer);
        capture_file::finish_at_exit(move || {
            finished.lock().unwrap_or_else(PoisonError::into_inner).take()
        });
        let (recorded, map, host, codes, footprints) = Default::default();
        Ok(CudaRecorder { writer, recorded, map, host, codes, footprints })
    }

    /// Calls `record` with the writer, unless the run has ended. Ends the application on errors.
    fn record(
        &mut self,
        record: impl FnOnce(&mut CudaRecorder, &Writer) -> Result<(), CaptureError>,
    ) {
        let shared = Arc::clone(&self.writer);
        let writer = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = &*writer {
            record(self, writer).unwrap_or_else(|error| fail(&error.to_string()));
        }
    }

    /// Records the changes of memory since the last step.
    fn catch_up(
        &mut self,
        writer: &Writer,
        gpu: &PtxGpu,
        map: &MemoryMap,
    ) -> Result<(), CaptureError> {
        let before = self.map.device.iter().chain(&self.map.host);
        let now: Vec<&Range<Address>> = map.device.iter().chain(&map.host).collect();
        for range in before.clone().filter(|range| !now.contains(range)) {
            writer.add(&Step::Change(Change::Unmap { address: range.start }))?;
            self.host.remove(&range.start.0);
        }
        let before: Vec<&Range<Address>> = before.collect();
        for range in now.iter().filter(|range| !before.contains(range)) {
            let (address, bytes) = (range.start, range.end.0 - range.start.0);
            writer.add(&Step::Change(Change::Map { address, bytes }))?;
        }
        let mut changes = ChangeWriter { writer, patch: Patch::default() };
        for range in &map.device {
            let bytes = range.end.0 - range.start.0;
            let recorded = self.recorded.as_ref().filter(|_| before.contains(&range));
            let parts = match recorded {
                Some(recorded) => gpu.unshared_with(recorded, range.start, bytes),
                None => std::iter::once(0..bytes).collect(),
            };
            for part in parts {
                for start in (part.start..part.end).step_by(PART as usize) {
                    let mut content = vec![0; PART.min(part.end - start) as usize];
                    let mut known = content.clone();
                    let address = Address(range.start.0 + start);
                    // Both exist; memory that did not was filled with zeroes.
                    let _ = gpu.read(address, &mut content);
                    if let Some(recorded) = recorded {
                        let _ = recorded.read(address, &mut known);
                    }
                    changes.add(address, &known, &content)?;
                }
            }
        }
        for range in &map.host {
            let mut content = vec![0; (range.end.0 - range.start.0) as usize];
            let _ = gpu.read(range.start, &mut content);
            let known = self.host.entry(range.start.0).or_insert_with(|| vec![0; content.len()]);
            changes.add(range.start, known, &content)?;
            *known = content;
        }
        changes.finish()?;
        self.map = map.clone();
        self.recorded = Some(gpu.clone());
        Ok(())
    }

    /// Records a launch that has ended.
    fn add_launch(
        &mut self,
        writer: &Writer,
        gpu: &PtxGpu,
        launch: &KernelLaunch,
        instructions: u64,
    ) -> Result<(), CaptureError> {
        let written: ByteSet =
            std::mem::take(&mut self.footprints).iter().map(|(_, found)| &found.written).collect();
        let written = written.runs();
        let address = Arc::as_ptr(&launch.code) as usize;
        let code_object = match self.codes.get(&address) {
            Some((_, id)) => *id,
            None => {
                let id = writer.add_code_object(launch.code.text.as_bytes(), 0)?;
                self.codes.insert(address, (Arc::clone(&launch.code), id));
                id
            }
        };
        let mut on_host = Vec::new();
        for (address, bytes) in &written {
            let range = self.map.host.iter().find(|range| range.contains(address));
            let Some(range) = range else { continue };
            let mut content = vec![0; *bytes as usize];
            let _ = gpu.read(*address, &mut content);
            if let Some(known) = self.host.get_mut(&range.start.0) {
                let start = (address.0 - range.start.0) as usize;
                known[start..start + content.len()].copy_from_slice(&content);
            }
            on_host.push(Step::Read { address: *address, bytes: content });
        }
        let dispatch = &launch.dispatch;
        writer.add(&Step::Dispatch(Box::new(RecordedDispatch {
            number: launch.number,
            stream: launch.stream,
            kernel: dispatch.kernel.clone(),
            range: None,
            code_object,
            packet: KernelPacket {
                workgroup: dispatch.workgroup,
                grid: dispatch.grid,
                lds_bytes: dispatch.dynamic_lds,
                ..KernelPacket::default()
            },
            queued: QueuedPacket { packet: Address(0), queue: Address(0), number: 0 },
            arguments: dispatch.kernarg.clone(),
            is_cooperative: dispatch.is_cooperative,
            instructions,
            written,
        })))?;
        // Kernel writes to host memory are outputs.
        on_host.iter().try_for_each(|step| writer.add(step))?;
        self.recorded = Some(gpu.clone());
        writer.save()
    }
}

/// Adds bytes that differ to write steps.
struct ChangeWriter<'a> {
    writer: &'a Writer,
    patch: Patch,
}

impl ChangeWriter<'_> {
    fn add(&mut self, start: Address, before: &[u8], after: &[u8]) -> Result<(), CaptureError> {
        if before == after {
            return Ok(());
        }
        let mut at = 0;
        while let Some(first) = (at..after.len()).find(|index| before[*index] != after[*index]) {
            let end = (first..after.len()).find(|index| before[*index] == after[*index]);
            let end = end.unwrap_or(after.len());
            self.patch.add(Address(start.0 + first as u64), &after[first..end]);
            at = end;
        }
        if self.patch.bytes().len() as u64 >= PART {
            let patch = std::mem::take(&mut self.patch);
            self.writer.add(&Step::Change(Change::Write(patch)))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), CaptureError> {
        if self.patch.is_empty() {
            return Ok(());
        }
        self.writer.add(&Step::Change(Change::Write(self.patch)))
    }
}

impl LaunchDriver for CudaRecorder {
    fn needs_map(&self) -> bool {
        true
    }

    fn begin(
        &mut self,
        gpu: &PtxGpu,
        map: &MemoryMap,
        _: &KernelLaunch,
    ) -> Result<(), DeviceError> {
        self.record(|recorder, writer| recorder.catch_up(writer, gpu, map));
        Ok(())
    }

    fn advance(
        &mut self,
        gpu: &mut PtxGpu,
        execution: &mut Execution,
        until: u64,
    ) -> Result<Progress, DeviceError> {
        gpu.advance_recorded(execution, &mut Unobserved, &mut self.footprints, until)
    }

    fn end(
        &mut self,
        gpu: &PtxGpu,
        _: &MemoryMap,
        launch: &KernelLaunch,
        completion: &Completion,
    ) -> Result<(), DeviceError> {
        match completion {
            Completion::Completed(statistics) => {
                let instructions = statistics.wave_instructions;
                self.record(|recorder, writer| {
                    recorder.add_launch(writer, gpu, launch, instructions)
                });
            }
            Completion::Faulted(fault) => {
                let name = demangled_kernel(&launch.dispatch.kernel);
                fail(&format!(
                    "cannot capture a run that ends with a fault: kernel {name}: {fault}"
                ));
            }
        }
        Ok(())
    }

    fn before_read(&mut self, gpu: &PtxGpu, map: &MemoryMap, from: Address, bytes: u64) {
        let mut content = vec![0; bytes as usize];
        if gpu.read(from, &mut content).is_err() {
            return;
        }
        self.record(|recorder, writer| {
            recorder.catch_up(writer, gpu, map)?;
            writer.add(&Step::Read { address: from, bytes: content })?;
            writer.save()
        });
    }
}
