//! Workloads that are recorded runs of applications.

use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CaptureSource};
use crate::file::element::ElementType;
use crate::outputs::compare::{OutputFormat, OutputRole, Tolerance};
use crate::program::prepare::{Origin, Prepared};
use crate::run::injection_path::InjectionPath;
use flipwave_capture::{Capture, CaptureError, CodeObjectId, RecordedDispatch, Step};
use flipwave_codeobj::{CodeObject, CodeObjectError};
use flipwave_device::{Address, Change, DeviceError, Dispatch, KernelPacket, ModuleId};
use flipwave_injector::{
    Buffer, CancellationToken, Changes, Golden, GoldenError, Program, Workload, instruction_limit,
};
use flipwave_isa::Target;
use flipwave_sim::EmbeddedGpu;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Where copies of what the host reads are kept: where no program has memory, and no pointer leads
/// that has one bit flipped.
const OUTPUTS: u64 = 0x6000_0000_0000;

/// A capture that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file.
    #[error(transparent)]
    File(#[from] CaptureError),
    /// A dispatch of nobody's kernel.
    #[error(
        "{}: dispatch {dispatch} is of code object {number}, which the file does not have; it is \
         damaged, record it again", file.display()
    )]
    NoCodeObject {
        /// The file.
        file: PathBuf,
        /// The dispatch's number.
        dispatch: u32,
        /// The code object's.
        number: u32,
    },
    /// Another GPU.
    #[error("{}: the run was on {captured}, and `target` is {wanted}", file.display())]
    Target {
        /// The file.
        file: PathBuf,
        /// Its GPU.
        captured: String,
        /// The campaign's.
        wanted: String,
    },
    /// A code object that cannot be used.
    #[error("{}: code object {number}: {reason}", file.display())]
    CodeObject {
        /// The file.
        file: PathBuf,
        /// Its number in the file.
        number: u32,
        /// Why not.
        reason: CodeObjectError,
    },
    /// No such dispatches.
    #[error("{}: no dispatches {} to {}; it has {count}, counted from 0", file.display(), wanted.start(), wanted.end())]
    Range {
        /// The file.
        file: PathBuf,
        /// What was asked for.
        wanted: RangeInclusive<u32>,
        /// How many there are.
        count: usize,
    },
    /// Nothing to compare.
    #[error(
        "{}: the host reads nothing of what the GPU computes; name `dispatches`, and what they write \
         is compared", file.display()
    )]
    NoOutput {
        /// The file.
        file: PathBuf,
    },
    /// It does not run as it ran.
    #[error(
        "{}: the run cannot be repeated: {what}; the host may have written to memory while a kernel \
         used it", file.display()
    )]
    NotRepeated {
        /// The file.
        file: PathBuf,
        /// What is different.
        what: String,
    },
    /// The device refused a request.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// A capture as a workload, and what its run came to.
pub(crate) struct Replayed {
    pub prepared: Prepared,
    recorded: Vec<RecordedDispatch>,
    /// What the host read, where that is what is compared.
    outputs: Option<Vec<Vec<u8>>>,
}

/// Puts a recorded run together.
///
/// # Errors
/// [`ReplayError`].
pub(crate) fn prepare(source: &CaptureSource, target: &Target) -> Result<Replayed, ReplayError> {
    let CaptureSource { file, dispatches: range } = source;
    let capture = Capture::open(file)?;
    let captured = capture.gpu()?;
    if captured != target.processor() {
        let wanted = target.to_string();
        return Err(ReplayError::Target { file: file.clone(), captured, wanted });
    }
    let is_complete = capture.is_complete()?;
    let mut builder = Builder::new(file, target)?;
    for (id, code) in capture.code_objects()? {
        let failed = |reason| ReplayError::CodeObject { file: file.clone(), number: id.0, reason };
        let code_object = CodeObject::parse(&code.elf).map_err(failed)?;
        builder.modules.insert(id.0, builder.device.adopt(&code_object, code.bias)?);
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
        builder.compare_what_was_written(range);
    }
    let mut warnings = Vec::new();
    if !is_complete {
        warnings.push(format!(
            "{} is not whole: the application was ended while it was recorded; what it would have \
             done afterwards is not in it",
            file.display()
        ));
    }
    builder.finish(warnings)
}

impl Replayed {
    /// Whether the fault-free run is the recorded one.
    ///
    /// # Errors
    /// [`ReplayError::NotRepeated`].
    pub fn check(&self, golden: &Golden, source: &CaptureSource) -> Result<(), ReplayError> {
        let differs = |what: String| ReplayError::NotRepeated { file: source.file.clone(), what };
        for (recorded, now) in self.recorded.iter().zip(&golden.statistics) {
            if recorded.instructions != now.wave_instructions {
                return Err(differs(format!(
                    "dispatch {} executes {} wave instructions, and executed {}",
                    recorded.number, now.wave_instructions, recorded.instructions
                )));
            }
        }
        let outputs = self.outputs.iter().flatten().zip(&golden.outputs);
        for ((recorded, now), buffer) in outputs.zip(&self.prepared.workload.program.outputs) {
            if **recorded != *now.bytes() {
                return Err(differs(format!("{} is not what the host read", buffer.name)));
            }
        }
        Ok(())
    }
}

struct Builder<'a> {
    file: &'a Path,
    device: EmbeddedGpu,
    modules: HashMap<u32, ModuleId>,
    dispatches: Vec<Dispatch>,
    recorded: Vec<RecordedDispatch>,
    changes: Changes,
    outputs: Vec<Buffer>,
    read: Option<Vec<Vec<u8>>>,
    /// Where the next output is kept.
    next_output: u64,
}

impl<'a> Builder<'a> {
    fn new(file: &'a Path, target: &Target) -> Result<Builder<'a>, DeviceError> {
        Ok(Builder {
            file,
            device: EmbeddedGpu::new(target.clone())?,
            modules: HashMap::new(),
            dispatches: Vec::new(),
            recorded: Vec::new(),
            changes: Changes::default(),
            outputs: Vec::new(),
            read: None,
            next_output: OUTPUTS,
        })
    }

    /// Adds what happens before the next dispatch.
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
                let KernelPacket { grid, workgroup, lds_bytes, .. } = recorded.packet;
                let CodeObjectId(number) = recorded.code_object;
                let module = self.modules.get(&number).copied();
                let missing = || {
                    let (file, dispatch) = (self.file.to_owned(), recorded.number);
                    ReplayError::NoCodeObject { file, dispatch, number }
                };
                let module = module.ok_or_else(missing)?;
                let object = self.device.code_object(module);
                let kernel = object.and_then(|object| object.kernel(&recorded.kernel));
                let declared = kernel.map_or(0, |own| own.descriptor.group_segment_fixed_size);
                self.dispatches.push(Dispatch {
                    module,
                    kernel: recorded.kernel.clone(),
                    grid,
                    workgroup,
                    kernarg: Vec::new(),
                    dynamic_lds: lds_bytes.saturating_sub(declared),
                    instruction_limit: instruction_limit(recorded.instructions),
                    queued: Some(recorded.queued),
                });
                self.recorded.push(*recorded);
            }
        }
        Ok(())
    }

    /// The dispatch before, in words.
    fn after(&self) -> String {
        self.dispatches.len().checked_sub(1).map_or("none".into(), |index| index.to_string())
    }

    /// Keeps a copy of what is in memory now, as an output.
    fn keep(&mut self, name: String, from: Address, bytes: u64) {
        let to = Address(self.next_output);
        self.next_output += bytes.next_multiple_of(64);
        self.change(Change::Copy { from, to, bytes });
        self.outputs.push(Buffer { name, address: to, bytes: bytes as usize });
    }

    /// What dispatches have written is compared.
    fn compare_what_was_written(&mut self, range: &RangeInclusive<u32>) {
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
            device: self.device,
            program: Program {
                dispatches: self.dispatches,
                changes: self.changes,
                buffers: Vec::new(),
                outputs: self.outputs,
            },
            guests: BTreeMap::new(),
            cancellation: CancellationToken::default(),
        };
        let origin = Origin::Recording { warnings };
        let path = InjectionPath::Embedded;
        let prepared = Prepared { workload, formats, labels, path, process: None, origin };
        Ok(Replayed { prepared, recorded: self.recorded, outputs: self.read })
    }
}

/// The campaign's capture, put together and run once to see that it is the recorded run.
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
        // The limits are multiples of what was executed.
        Err(error @ (GoldenError::OtherPacket { .. } | GoldenError::TooLong { .. })) => {
            let (file, what) = (source.file.clone(), error.to_string());
            return Err(ReplayError::NotRepeated { file, what }.into());
        }
        golden => golden?,
    };
    replayed.check(&golden, source)?;
    Ok(replayed.prepared)
}
