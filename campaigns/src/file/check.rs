//! Checking a campaign file: every value in range, every name known, nothing missing.

use crate::application::quantity;
use crate::application::{self, Application, CommandLine, Nondeterminism};
use crate::file::campaign::{Campaign, CampaignWorkload, CaptureSource, Kernels, Launch};
use crate::file::check_launches::KernelsInProgress;
use crate::file::context::Context;
use crate::file::device::CampaignDevice;
use crate::file::faults::{check_faults, range};
use crate::file::location::{Field, Wrong, wrong};
use crate::file::schema::{self, Compare};
use crate::severity::{JudgeSettings, JudgeSource};
use flipwave_emulator::{Binding, Instruction, Lanes, Matching};
use flipwave_hooks::hook::Source;
use flipwave_injector::CancellationToken;
use flipwave_isa::Target;
use std::collections::BTreeMap;
use std::path::Path;

/// Checks what the campaign file at `path` says; `digest` is the file's, `content` that of what it says.
///
/// # Errors
/// The first field whose value cannot be.
pub(crate) fn check(
    file: schema::File,
    path: &Path,
    (digest, content): (String, String),
) -> Result<Campaign, Wrong> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let root = Field::root();
    let name_is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    if !file.name.starts_with(|first: char| first.is_ascii_alphanumeric())
        || !file.name.chars().all(name_is_plain)
    {
        return wrong(
            &root.key("name"),
            format!(
                "`{}` cannot name a results folder; use letters, digits, `-`, `_` and `.`, and \
                 begin with a letter or digit",
                file.name
            ),
        );
    }
    let target = match file.target.parse::<Target>() {
        Ok(target) => target,
        Err(error) => return wrong(&root.key("target"), error.to_string()),
    };
    let context = Context { directory, target: &target, allow: &file.allow };
    let mut faults = file.faults.map(|own| check_faults(own, directory)).transpose()?;
    let workload = match file.workload {
        schema::Workload { app: Some(own), kernel: None, dispatches: None, capture: None } => {
            refuse_beside("app", "software", file.software.is_some())?;
            refuse_beside("app", "instructions", !file.instructions.is_empty())?;
            let application = check_application(own, file.device, file.compare, context)?;
            CampaignWorkload::Application(application)
        }
        schema::Workload { capture: Some(own), kernel: None, dispatches: None, app: None } => {
            refuse_on_hardware(file.device, "a capture replays at addresses of its own")?;
            refuse_beside("capture", "software", file.software.is_some())?;
            refuse_beside("capture", "instructions", !file.instructions.is_empty())?;
            refuse_beside("capture", "compare", file.compare.is_some())?;
            let field = root.key("workload").key("capture").key("dispatches");
            let dispatches = range(own.dispatches, &field)?;
            if let Some(faults) = &mut faults {
                let own = &mut faults.selection.dispatches;
                *own = own.take().or(dispatches.clone());
            }
            CampaignWorkload::Capture(CaptureSource { file: directory.join(own.file), dispatches })
        }
        own => {
            if !file.instructions.is_empty() {
                let what = "instructions that the target lacks are emulated";
                refuse_on_hardware(file.device, what)?;
            }
            let (program, software) = check_launches(own, file.software, file.compare, context)?;
            CampaignWorkload::Kernels(Kernels {
                device: file.device,
                buffers: program.buffers,
                launches: program.launches,
                instructions: check_instructions(file.instructions, directory)?,
                software,
            })
        }
    };
    let severity =
        file.severity.map(|own| check_severity(own, &workload, directory)).transpose()?;
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
        digest,
        content,
        cancellation: CancellationToken::default(),
    })
}

fn check_application(
    own: application::schema::Application,
    device: CampaignDevice,
    compare: Option<Compare>,
    context: Context<'_>,
) -> Result<Application, Wrong> {
    let comparisons = match compare {
        None => Vec::new(),
        Some(Compare::Application(comparisons)) => comparisons,
        Some(Compare::Buffers(_)) => {
            let message = "is a mapping, as for kernels; for an `app` expected a list, for example \
                           `[{stdout: exact}]`";
            return wrong(&Field::root().key("compare"), message);
        }
    };
    let field = Field::root().key("workload").key("app");
    let application = application::check(own, device, comparisons, context, &field)?;
    let is_compared =
        application.nondeterminism == Nondeterminism::Allow || application.golden_runs > 1;
    if device.is_hardware() && !is_compared {
        let message = "1 run on hardware does not show that all are the same; expected 2 or more, \
                       or `nondeterminism: allow`";
        return wrong(&field.key("golden_runs"), message);
    }
    Ok(application)
}

/// The program, and the launches of the same work in software.
fn check_launches(
    workload: schema::Workload,
    software: Option<schema::Workload>,
    compare: Option<Compare>,
    context: Context<'_>,
) -> Result<(KernelsInProgress, Vec<Launch>), Wrong> {
    let mut program = KernelsInProgress::default();
    program.check(workload, context, &Field::root().key("workload"))?;
    let tolerances = match compare {
        None => BTreeMap::new(),
        Some(Compare::Buffers(tolerances)) => tolerances,
        Some(Compare::Application(_)) => {
            let message = "is a list, as for an `app`; for kernels expected a mapping from outputs \
                           to tolerances";
            return wrong(&Field::root().key("compare"), message);
        }
    };
    program.check_outputs(tolerances)?;
    let own = program.launches.len();
    if let Some(software) = software {
        program.check(software, context, &Field::root().key("software"))?;
    }
    let software = program.launches.split_off(own);
    Ok((program, software))
}

/// Who judges SDC of a workload.
fn check_severity(
    own: schema::Severity,
    workload: &CampaignWorkload,
    directory: &Path,
) -> Result<JudgeSettings, Wrong> {
    let field = Field::root().key("severity");
    match workload {
        CampaignWorkload::Kernels(kernels) if kernels.device.is_hardware() => {
            let message = "is not for kernels on `rocr`, whose outputs stay in their process";
            return wrong(&field, message);
        }
        _ => {}
    }
    let command = |words: Vec<String>, field: &Field| {
        let command =
            CommandLine::new(words, directory).or_else(|message| wrong(field, message))?;
        // The folder of a file that has none in its name.
        let directory = Path::new(".").join(directory);
        Ok(JudgeSource::Command { command, directory })
    };
    let timeout = own.timeout.unwrap_or_else(|| schema::JUDGE_TIMEOUT.to_owned());
    let timeout =
        quantity::time(&timeout).or_else(|message| wrong(&field.key("timeout"), message))?;
    let source = match (own.python, own.command, own.socket) {
        (Some(function), None, None) => {
            let field = field.key("python");
            let Some((file, name)) = function.rsplit_once(':') else {
                let message = format!("`{function}` names no function; expected FILE.py:FUNCTION");
                return wrong(&field, message);
            };
            if !directory.join(file).is_file() {
                let path = directory.join(file);
                return wrong(&field, format!("cannot find the file {}", path.display()));
            }
            let words = [&python()?, "-m", "flipwave.severity", file, name].map(str::to_owned);
            command(words.to_vec(), &field)
        }
        (None, Some(words), None) => command(words, &field.key("command")),
        (None, None, Some(path)) => Ok(JudgeSource::Socket(directory.join(path))),
        _ => wrong(&field, "expected exactly one of `python`, `command` and `socket`"),
    };
    Ok(JudgeSettings { source: source?, timeout })
}

/// The Python that calls functions of campaigns: `FLIPWAVE_PYTHON`, a path from where the program was
/// started.
fn python() -> Result<String, Wrong> {
    let field = Field::root().key("severity").key("python");
    match std::env::var("FLIPWAVE_PYTHON") {
        Ok(own) if own.contains('/') => {
            let path = std::path::absolute(&own).ok().filter(|path| path.is_file());
            let path = path.and_then(|path| path.into_os_string().into_string().ok());
            path.map_or_else(
                || wrong(&field, format!("FLIPWAVE_PYTHON: there is no file {own}")),
                Ok,
            )
        }
        Ok(own) if !own.is_empty() => Ok(own),
        Err(std::env::VarError::NotUnicode(_)) => wrong(&field, "FLIPWAVE_PYTHON is no UTF-8"),
        _ => Ok("python3".to_owned()),
    }
}

/// Refuses what only the embedded GPU can run.
fn refuse_on_hardware(device: CampaignDevice, what: &str) -> Result<(), Wrong> {
    match device.is_hardware() {
        true => wrong(
            &Field::root().key("device"),
            format!("`rocr` runs kernels and applications; {what}, which takes `embedded`"),
        ),
        false => Ok(()),
    }
}

/// Refuses a key that goes with kernels only.
fn refuse_beside(kind: &str, key: &str, is_there: bool) -> Result<(), Wrong> {
    match is_there {
        true => {
            let message = format!("is for a workload of kernels, not for a workload of `{kind}`");
            wrong(&Field::root().key(key), message)
        }
        false => Ok(()),
    }
}

fn check_instructions(
    instructions: Vec<schema::Instruction>,
    directory: &Path,
) -> Result<Vec<Instruction>, Wrong> {
    let field = Field::root().key("instructions");
    let mut checked = Vec::new();
    for (index, own) in instructions.into_iter().enumerate() {
        checked.push(check_instruction(own, directory, &field.index(index))?);
    }
    Ok(checked)
}

fn check_instruction(
    own: schema::Instruction,
    directory: &Path,
    field: &Field,
) -> Result<Instruction, Wrong> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if own.name.is_empty() || !own.name.chars().all(is_plain) {
        return wrong(
            &field.key("name"),
            format!("`{}` is no name of an instruction; use letters, digits and `_`", own.name),
        );
    }
    let mut operands = Vec::new();
    for (name, binding) in own.operands {
        match binding.parse::<Binding>() {
            Ok(binding) => operands.push((name, binding)),
            Err(error) => {
                return wrong(&field.key("operands").key(&name), error.to_string());
            }
        }
    }
    let path = directory.join(&own.hook.source);
    let source = match Source::read(&path) {
        Ok(source) => source,
        Err(error) => return wrong(&field.key("hook").key("source"), error.to_string()),
    };
    Ok(Instruction {
        name: own.name,
        proxy: own.proxy,
        operands,
        source,
        function: own.hook.function,
        lanes: match own.lanes {
            schema::Lanes::Active => Lanes::Active,
            schema::Lanes::All => Lanes::All,
        },
        matching: match own.matching {
            schema::Matching::Marked => Matching::Marked,
            schema::Matching::All => Matching::All,
        },
    })
}
