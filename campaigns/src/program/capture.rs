//! Workloads that replay a recorded run of an application.

use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CaptureSource};
use crate::file::element::ElementType;
use crate::outputs::compare::{OutputFormat, OutputRole, Tolerance};
use crate::platform::CampaignTarget;
use crate::program::prepare::{Origin, Prepared};
use crate::program::replay_device::{CodeError, ReplayDevice};
use crate::run::injection_path::InjectionPath;
use flipwave_capture::{Capture, CaptureError, CodeObjectId, RecordedDispatch, Step};
use flipwave_device::{Address, Change, DeviceError, Dispatch, ModuleId};
use flipwave_injector::{
    Buffer, CancellationToken, Changes, Golden, GoldenError, Program, Workload,
};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Address of the copies of memory that the host reads. No program has memory there, and flipping one bit
/// of a valid pointer does not lead there.
const OUTPUTS: u64 = 0x6000_0000_0000;

/// Errors returned when a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] CaptureError),
    /// A dispatch refers to a code object that the file does not contain.
    #[error(
        "{}: dispatch {dispatch} uses code object {number}, which is missing; the file is damaged, record \
         it again", file.display()
    )]
    NoCodeObject {
        /// The file.
        file: PathBuf,
        /// Number of the dispatch.
        dispatch: u32,
        /// Number of the code object.
        number: u32,
    },
    /// The run was recorded on another GPU.
    #[error("{}: the run was recorded on {captured}, but `target` is {wanted}", file.display())]
    Target {
        /// The file.
        file: PathBuf,
        /// GPU of the recorded run.
        captured: String,
        /// Target of the campaign.
        wanted: String,
    },
    /// A code object cannot be used.
    #[error("{}: code object {number}: {reason}", file.display())]
    CodeObject {
        /// The file.
        file: PathBuf,
        /// Number of the code object.
        number: u32,
        /// Cause.
        reason: CodeError,
    },
    /// The selected dispatches do not exist.
    #[error("{}: no dispatches {} to {}; it has {count}, numbered from 0", file.display(), wanted.start(), wanted.end())]
    Range {
        /// The file.
        file: PathBuf,
        /// Selected dispatches.
        wanted: RangeInclusive<u32>,
        /// Number of dispatches in the file.
        count: usize,
    },
    /// The run has no outputs.
    #[error(
        "{}: the host reads none of the GPU's results; set `dispatches` to compare what these dispatches \
         write", file.display()
    )]
    NoOutput {
        /// The file.
        file: PathBuf,
    },
    /// The replay differs from the recorded run.
    #[error(
        "{}: the run cannot be repeated: {difference}; the host may have written to memory while a kernel \
         used it", file.display()
    )]
    NotRepeated {
        /// The file.
        file: PathBuf,
        /// The first difference.
        difference: String,
    },
    /// The device rejected a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A capture as a workload, and the results of the recorded run.
pub(crate) struct Replayed {
    pub prepared: Prepared,
    recorded: Vec<RecordedDispatch>,
    /// Memory contents that the host read, if these are compared.
    outputs: Option<Vec<Vec<u8>>>,
}

/// Creates the workload of a recorded run.
///
/// # Errors
/// [`ReplayError`].
pub(crate) fn prepare(
    source: &CaptureSource,
    target: &CampaignTarget,
) -> Result<Replayed, ReplayError> {
    let CaptureSource { file, dispatches: range } = source;
    let capture = Capture::open(file)?;
    let captured = capture.gpu()?;
    if captured != target.gpu() {
        let wanted = target.to_string();
        return Err(ReplayError::Target { file: file.clone(), captured, wanted });
    }
    let is_complete = capture.is_complete()?;
    let mut builder = Builder::new(file, ReplayDevice::new(target)?);
    for (id, code) in capture.code_objects()? {
        let failed = |reason| ReplayError::CodeObject { file: file.clone(), number: id.0, reason };
        builder.modules.insert(id.0, builder.device.load(&code).map_err(failed)?);
    }
    let steps = capture.steps()?;
    let count = steps.iter().filter(|step| matches!(step, Step::Dispatch(_))).count();
    if let Some(wanted) = range
        && (wanted.is_empty() || *wanted.end() as usize >= count)
    {
        let (file, wanted) = (file.clone(), wanted.clone());
        return Err(ReplayError::Range { file, wanted, count });
    }
    for step in steps {
        builder.add(step, range.is_none())?;
        if range.as_ref().is_some_and(|range| builder.recorded.len() as u32 > *range.end()) {
            break;
        }
    }
    if let Some(range) = range {
        builder.compare_written_memory(range);
    }
    let mut warnings = Vec::new();
    if !is_complete {
        warnings.push(format!(
            "{} is incomplete: the application was killed while it was recorded, and its remaining \
             work is missing",
            file.display()
        ));
    }
    builder.finish(warnings)
}

impl Replayed {
    /// Checks that the golden run equals the recorded run.
    ///
    /// # Errors
    /// [`ReplayError::NotRepeated`].
    pub fn check(&self, golden: &Golden, source: &CaptureSource) -> Result<(), ReplayError> {
        let differs =
            |difference: String| ReplayError::NotRepeated { file: source.file.clone(), difference };
        for (recorded, now) in self.recorded.iter().zip(&golden.statistics) {
            if recorded.instructions != now.wave_instructions {
                return Err(differs(format!(
                    "dispatch {} executes {} wave instructions, but executed {} when recorded",
                    recorded.number, now.wave_instructions, recorded.instructions
                )));
            }
        }
        let outputs = self.outputs.iter().flatten().zip(&golden.outputs);
        for ((recorded, now), buffer) in outputs.zip(&self.prepared.workload.program.outputs) {
            if **recorded != *now.bytes() {
                return Err(differs(format!("{} differs from what the host read", buffer.name)));
            }
        }
        Ok(())
    }
}

struct Builder<'a> {
    file: &'a Path,
    device: ReplayDevice,
    modules: HashMap<u32, ModuleId>,
    dispatches: Vec<Dispatch>,
    recorded: Vec<RecordedDispatch>,
    changes: Changes,
    outputs: Vec<Buffer>,
    read: Option<Vec<Vec<u8>>>,
    /// Address of the copy of the next output.
    next_output: u64,
}

impl<'a> Builder<'a> {
    fn new(file: &'a Path, device: ReplayDevice) -> Builder<'a> {
        Builder {
            file,
            device,
            modules: HashMap::new(),
            dispatches: Vec::new(),
            recorded: Vec::new(),
            changes: Changes::default(),
            outputs: Vec::new(),
            read: None,
            next_output: OUTPUTS,
        }
    }

    /// Adds a memory change before the next dispatch.
    fn change(&mut self, change: Change) {
        self.changes.add(self.dispatches.len(), change);
    }

    fn add(&mut self, step: Step, keeps_reads: bool) -> Result<(), ReplayError> {
        match step {
            Step::Change(change) => self.change(change),
            Step::Read { address, bytes } if keeps_reads => {
                let number = self.outputs.len();
                let name = format!("output {number}, read after dispatch {}", self.after());
                self.keep(name, address, bytes.len() as u64);
                self.read.get_or_insert_default().push(bytes);
            }
            Step::Read { .. } => {}
            Step::Dispatch(recorded) => {
                let CodeObjectId(number) = recorded.code_object;
                let module = self.modules.get(&number).copied();
                let missing = || {
                    let (file, dispatch) = (self.file.to_owned(), recorded.number);
                    ReplayError::NoCodeObject { file, dispatch, number }
                };
                let module = module.ok_or_else(missing)?;
                self.dispatches.push(self.device.dispatch(module, &recorded));
                self.recorded.push(*recorded);
            }
        }
        Ok(())
    }

    /// Returns the index of the last dispatch as text, or "none".
    fn after(&self) -> String {
        self.dispatches.len().checked_sub(1).map_or("none".into(), |index| index.to_string())
    }

    /// Adds an output: a copy of the current content of memory.
    fn keep(&mut self, name: String, from: Address, bytes: u64) {
        let to = Address(self.next_output);
        self.next_output += bytes.next_multiple_of(64);
        self.change(Change::Copy { from, to, bytes });
        self.outputs.push(Buffer { name, address: to, bytes: bytes as usize });
    }

    /// Adds the memory written by the dispatches in `range` as outputs.
    fn compare_written_memory(&mut self, range: &RangeInclusive<u32>) {
        let written: Vec<(u32, Address, u64)> = self
            .recorded
            .iter()
            .filter(|dispatch| range.contains(&dispatch.number))
            .flat_map(|dispatch| {
                dispatch.written.iter().map(|(address, bytes)| (dispatch.number, *address, *bytes))
            })
            .collect();
        for (number, address, bytes) in written {
            self.keep(format!("{bytes} bytes at {address}, of dispatch {number}"), address, bytes);
        }
    }

    fn finish(mut self, warnings: Vec<String>) -> Result<Replayed, ReplayError> {
        let bytes = self.next_output - OUTPUTS;
        if bytes == 0 {
            return Err(ReplayError::NoOutput { file: self.file.to_owned() });
        }
        // Reserved before anything else happens.
        self.device.allocate_at(Address(OUTPUTS), bytes)?;
        let format = OutputFormat {
            element: ElementType::U8,
            extents: None,
            role: OutputRole::Result(Tolerance { absolute: None, relative: None, ulp: None }),
        };
        let formats = vec![format; self.outputs.len()];
        let labels = self.recorded.iter().map(|dispatch| dispatch.range.clone()).collect();
        let workload = Workload {
            device: self.device.into_simulator(),
            program: Program {
                dispatches: self.dispatches,
                changes: self.changes,
                buffers: Vec::new(),
                outputs: self.outputs,
            },
            cancellation: CancellationToken::default(),
        };
        let origin = Origin::Recording { warnings };
        let path = InjectionPath::Embedded;
        let prepared = Prepared { workload, formats, labels, path, process: None, origin };
        Ok(Replayed { prepared, recorded: self.recorded, outputs: self.read })
    }
}

/// Creates the workload of a capture, and runs it once to check that it equals the recorded run.
///
/// # Errors
/// [`CampaignError`].
pub(crate) fn prepare_checked(
    campaign: &Campaign,
    source: &CaptureSource,
) -> Result<Prepared, CampaignError> {
    let mut replayed = prepare(source, &campaign.target)?;
    replayed.prepared.workload.cancellation = campaign.cancellation.clone();
    let golden = match replayed.prepared.workload.golden() {
        // Instruction limits are multiples of the recorded counts.
        Err(error @ (GoldenError::OtherPacket { .. } | GoldenError::TooLong { .. })) => {
            let (file, difference) = (source.file.clone(), error.to_string());
            return Err(ReplayError::NotRepeated { file, difference }.into());
        }
        golden => golden?,
    };
    replayed.check(&golden, source)?;
    Ok(replayed.prepared)
}
