//! Validation of a campaign file.

use crate::application::quantity;
use crate::application::{self, Application, CommandLine, Nondeterminism};
use crate::file::campaign::{Campaign, CampaignWorkload, CaptureSource};
use crate::file::check_launches::{FaultsPresence, KernelsBuilder};
use crate::file::context::Context;
use crate::file::detector::check_detector;
use crate::file::device::CampaignDevice;
use crate::file::faults::{check_faults, range};
use crate::file::kernels::{Kernels, Launch};
use crate::file::location::{Field, FieldError, reject};
use crate::file::schema::{self, Compare};
use crate::platform::CampaignTarget;
use crate::program::heap;
use crate::severity::{JudgeSettings, JudgeSource};
use flipwave_emulator::{Binding, Instruction, Lanes, Matching};
use flipwave_hooks::hook::Source;
use flipwave_injector::CancellationToken;
use std::collections::BTreeMap;
use std::path::Path;

/// Validates the campaign file at `path`. `digests` are the digests of its text and of its content.
///
/// # Errors
/// Returns the first invalid field.
pub(crate) fn check(
    file: schema::File,
    path: &Path,
    digests: Digests,
) -> Result<Campaign, FieldError> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let root = Field::root();
    let name_is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if !file.name.starts_with(|first: char| first.is_ascii_alphanumeric())
        || !file.name.chars().all(name_is_plain)
    {
        return reject(
            &root.key("name"),
            format!(
                "`{}` cannot be the name of a results folder; use letters, digits, `-`, `_` and `.`, \
                 and begin with a letter or digit",
                file.name
            ),
        );
    }
    let target = match CampaignTarget::named(&file.target) {
        Ok(target) => target,
        Err(message) => return reject(&root.key("target"), message),
    };
    check_device(file.device, &target)?;
    let context = Context { directory, target: target.architecture(), allow: &file.allow };
    let mut faults = file.faults.map(|faults| check_faults(faults, context)).transpose()?;
    let workload = match file.workload {
        schema::Workload {
            app: Some(app),
            kernel: None,
            dispatches: None,
            capture: None,
            buffers,
            heap,
        } => {
            reject_with_workload("app", "workload.buffers", !buffers.is_empty())?;
            reject_with_workload("app", "workload.heap", heap.is_some())?;
            reject_with_workload("app", "software", file.software.is_some())?;
            reject_with_workload("app", "instructions", !file.instructions.is_empty())?;
            reject_with_workload("app", "detector", file.detector.is_some())?;
            if file.device == CampaignDevice::Cuda {
                let message = "`cuda` runs kernels, not applications; use `embedded`";
                return reject(&root.key("device"), message);
            }
            let application = check_application(app, file.device, file.compare, context)?;
            CampaignWorkload::Application(application)
        }
        schema::Workload {
            capture: Some(capture),
            kernel: None,
            dispatches: None,
            app: None,
            buffers,
            heap,
        } => {
            reject_with_workload("capture", "workload.buffers", !buffers.is_empty())?;
            reject_with_workload("capture", "workload.heap", heap.is_some())?;
            require_embedded(file.device, "a capture replays at the recorded addresses")?;
            reject_with_workload("capture", "software", file.software.is_some())?;
            reject_with_workload("capture", "instructions", !file.instructions.is_empty())?;
            reject_with_workload("capture", "compare", file.compare.is_some())?;
            reject_with_workload("capture", "detector", file.detector.is_some())?;
            let field = root.key("workload").key("capture").key("dispatches");
            let dispatches = range(capture.dispatches, &field)?;
            if let Some(faults) = &mut faults {
                let selected = &mut faults.selection.dispatches;
                *selected = selected.take().or(dispatches.clone());
            }
            CampaignWorkload::Capture(CaptureSource {
                file: directory.join(capture.file),
                dispatches,
            })
        }
        workload => {
            let field = root.key("workload").key("heap");
            let heap = workload.heap.map(|bytes| check_heap(bytes, &field)).transpose()?;
            if !file.instructions.is_empty() {
                require_embedded(file.device, "proxy instructions are emulated")?;
            }
            if file.detector.is_some() {
                require_embedded(file.device, "a detector's hooks must not be faulty themselves")?;
                if !file.instructions.is_empty() {
                    let message = "cannot be combined with `instructions`";
                    return reject(&root.key("detector"), message);
                }
            }
            let detector =
                file.detector.map(|detector| check_detector(detector, directory)).transpose()?;
            let presence =
                if faults.is_some() { FaultsPresence::Present } else { FaultsPresence::Absent };
            let (mut program, software) =
                check_launches(workload, file.software, file.compare, presence, context)?;
            CampaignWorkload::Kernels(Kernels {
                device: file.device,
                pointers: program.resolve_pointers()?,
                heap,
                buffers: program.buffers,
                launches: program.launches,
                instructions: check_instructions(file.instructions, directory)?,
                detector,
                software,
            })
        }
    };
    let severity =
        file.severity.map(|severity| check_severity(severity, &workload, directory)).transpose()?;
    Ok(Campaign {
        name: file.name,
        seed: file.seed,
        file: path.to_owned(),
        target,
        workload,
        faults,
        allow: file.allow,
        severity,
        format: file.format,
        digest: digests.text,
        content: digests.content,
        cancellation: CancellationToken::default(),
    })
}

/// Digests that identify a campaign file.
pub(crate) struct Digests {
    /// SHA-256 of the file's text.
    pub text: String,
    /// SHA-256 of the parts of the content that determine the rows.
    pub content: String,
}

fn check_application(
    app: application::schema::Application,
    device: CampaignDevice,
    compare: Option<Compare>,
    context: Context<'_>,
) -> Result<Application, FieldError> {
    let comparisons = match compare {
        None => Vec::new(),
        Some(Compare::Application(comparisons)) => comparisons,
        Some(Compare::Buffers(_)) => {
            let message = "is a mapping, which is for kernels; for an `app` expected a list, for example \
                           `[{stdout: exact}]`";
            return reject(&Field::root().key("compare"), message);
        }
    };
    let field = Field::root().key("workload").key("app");
    let application = application::check(app, device, comparisons, context, &field)?;
    let is_compared =
        application.nondeterminism == Nondeterminism::Allow || application.golden_runs > 1;
    if device.is_hardware() && !is_compared {
        let message = "1 run on hardware does not show that runs are deterministic; expected 2 or more, \
                       or `nondeterminism: allow`";
        return reject(&field.key("golden_runs"), message);
    }
    Ok(application)
}

/// Validates the launches of the program and of its software version.
fn check_launches(
    workload: schema::Workload,
    software: Option<schema::Workload>,
    compare: Option<Compare>,
    faults: FaultsPresence,
    context: Context<'_>,
) -> Result<(KernelsBuilder, Vec<Launch>), FieldError> {
    let mut program = KernelsBuilder::default();
    program.check(workload, context, &Field::root().key("workload"))?;
    let tolerances = match compare {
        None => BTreeMap::new(),
        Some(Compare::Buffers(tolerances)) => tolerances,
        Some(Compare::Application(_)) => {
            let message = "is a list, which is for an `app`; for kernels expected a mapping from \
                           outputs to tolerances";
            return reject(&Field::root().key("compare"), message);
        }
    };
    program.check_outputs(tolerances, faults)?;
    let count = program.launches.len();
    if let Some(software) = software {
        program.check(software, context, &Field::root().key("software"))?;
    }
    let software = program.launches.split_off(count);
    Ok((program, software))
}

/// Validates the judge of SDC.
fn check_severity(
    severity: schema::Severity,
    workload: &CampaignWorkload,
    directory: &Path,
) -> Result<JudgeSettings, FieldError> {
    let field = Field::root().key("severity");
    match workload {
        CampaignWorkload::Kernels(kernels) if kernels.device.is_hardware() => {
            let message = format!(
                "is not supported for kernels on `{}`, whose outputs stay in their process",
                kernels.device
            );
            return reject(&field, message);
        }
        _ => {}
    }
    let command = |words: Vec<String>, field: &Field| {
        let command =
            CommandLine::new(words, directory).or_else(|message| reject(field, message))?;
        // `directory` is empty if the path of the file has no folder.
        let directory = Path::new(".").join(directory);
        Ok(JudgeSource::Command { command, directory })
    };
    let timeout = severity.timeout.unwrap_or_else(|| schema::JUDGE_TIMEOUT.to_owned());
    let timeout =
        quantity::time(&timeout).or_else(|message| reject(&field.key("timeout"), message))?;
    let source = match (severity.python, severity.command, severity.socket) {
        (Some(function), None, None) => {
            let field = field.key("python");
            let Some((file, name)) = function.rsplit_once(':') else {
                let message = format!("invalid function `{function}`; expected FILE.py:FUNCTION");
                return reject(&field, message);
            };
            if !directory.join(file).is_file() {
                let path = directory.join(file);
                return reject(&field, format!("cannot find the file {}", path.display()));
            }
            let words = [&python()?, "-m", "flipwave.severity", file, name].map(str::to_owned);
            command(words.to_vec(), &field)
        }
        (None, Some(words), None) => command(words, &field.key("command")),
        (None, None, Some(path)) => Ok(JudgeSource::Socket(directory.join(path))),
        _ => reject(&field, "expected exactly one of `python`, `command` and `socket`"),
    };
    Ok(JudgeSettings { source: source?, timeout })
}

/// Returns the Python interpreter that calls judges: `FLIPWAVE_PYTHON`, or `python3`. Paths are relative
/// to the working directory.
fn python() -> Result<String, FieldError> {
    let field = Field::root().key("severity").key("python");
    match std::env::var("FLIPWAVE_PYTHON") {
        Ok(program) if program.contains('/') => {
            let path = std::path::absolute(&program).ok().filter(|path| path.is_file());
            let path = path.and_then(|path| path.into_os_string().into_string().ok());
            path.map_or_else(
                || reject(&field, format!("cannot find the file {program} in FLIPWAVE_PYTHON")),
                Ok,
            )
        }
        Ok(program) if !program.is_empty() => Ok(program),
        Err(std::env::VarError::NotUnicode(_)) => {
            reject(&field, "FLIPWAVE_PYTHON is not valid UTF-8")
        }
        _ => Ok("python3".to_owned()),
    }
}

/// Validates the bytes of memory for device-side `malloc`.
fn check_heap(bytes: u64, field: &Field) -> Result<u64, FieldError> {
    match bytes {
        1..=heap::MAX_BYTES => Ok(bytes),
        _ => reject(field, format!("{bytes} bytes; expected 1 to {}", heap::MAX_BYTES)),
    }
}

/// Checks that the device is the embedded GPU, which is required for `reason`.
fn require_embedded(device: CampaignDevice, reason: &str) -> Result<(), FieldError> {
    if device.is_hardware() {
        let message = format!("`{device}` is not supported here, because {reason}; use `embedded`");
        return reject(&Field::root().key("device"), message);
    }
    Ok(())
}

/// Checks that a device executes code for a target.
fn check_device(device: CampaignDevice, target: &CampaignTarget) -> Result<(), FieldError> {
    let message = match (device, target.ptx()) {
        (CampaignDevice::Cuda, None) => format!(
            "`cuda` runs PTX, which target {target} has not; use a target such as sm_80, or `rocr`"
        ),
        (CampaignDevice::Rocr, Some(_)) => {
            format!("`rocr` runs code of AMD's GPUs, not for target {target}; use `cuda`")
        }
        _ => return Ok(()),
    };
    reject(&Field::root().key("device"), message)
}

/// Rejects a key that requires a workload of kernels.
fn reject_with_workload(kind: &str, key: &str, is_present: bool) -> Result<(), FieldError> {
    if is_present {
        let message = format!("requires a workload of kernels; the workload is `{kind}`");
        let field = key.split('.').fold(Field::root(), |field, key| field.key(key));
        return reject(&field, message);
    }
    Ok(())
}

fn check_instructions(
    instructions: Vec<schema::Instruction>,
    directory: &Path,
) -> Result<Vec<Instruction>, FieldError> {
    let field = Field::root().key("instructions");
    let mut checked = Vec::new();
    for (index, instruction) in instructions.into_iter().enumerate() {
        checked.push(check_instruction(instruction, directory, &field.index(index))?);
    }
    Ok(checked)
}

fn check_instruction(
    instruction: schema::Instruction,
    directory: &Path,
    field: &Field,
) -> Result<Instruction, FieldError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if instruction.name.is_empty() || !instruction.name.chars().all(is_plain) {
        return reject(
            &field.key("name"),
            format!("invalid instruction name `{}`; use letters, digits and `_`", instruction.name),
        );
    }
    let mut operands = Vec::new();
    for (name, binding) in instruction.operands {
        match binding.parse::<Binding>() {
            Ok(binding) => operands.push((name, binding)),
            Err(error) => {
                return reject(&field.key("operands").key(&name), error.to_string());
            }
        }
    }
    let path = directory.join(&instruction.hook.source);
    let source = match Source::read(&path) {
        Ok(source) => source,
        Err(error) => return reject(&field.key("hook").key("source"), error.to_string()),
    };
    Ok(Instruction {
        name: instruction.name,
        proxy: instruction.proxy,
        operands,
        source,
        function: instruction.hook.function,
        lanes: match instruction.lanes {
            schema::Lanes::Active => Lanes::Active,
            schema::Lanes::All => Lanes::All,
        },
        matching: match instruction.matching {
            schema::Matching::Marked => Matching::Marked,
            schema::Matching::All => Matching::All,
        },
    })
}
