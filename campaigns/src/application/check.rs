//! Validates an application in a campaign file.

use super::command::CommandLine;
use super::comparison::{Comparison, Format, Output};
use super::quantity;
use super::schema::{self, GPUS, MEMORY, OUTPUT};
use super::text::Pattern;
use super::{Application, ApplicationGpus, Nondeterminism, ProcessChoice};
use crate::file::check_launches::check_shape;
use crate::file::context::Context;
use crate::file::device::CampaignDevice;
use crate::file::element::ElementType;
use crate::file::location::{Field, FieldError, reject};
use crate::outputs::compare::Tolerance;
use std::path::{Component, Path, PathBuf};

/// Largest number of golden runs.
const MAX_GOLDEN_RUNS: u32 = 1000;

/// Largest number of GPUs of a process.
const MAX_GPUS: u32 = 16;

/// Checks an application at `field` of a campaign file, and its comparisons at `compare`. It runs
/// on `device`.
///
/// # Errors
/// The first field with an invalid value.
pub(crate) fn check(
    app: schema::Application,
    device: CampaignDevice,
    comparisons: Vec<schema::Comparison>,
    context: Context<'_>,
    field: &Field,
) -> Result<Application, FieldError> {
    let directory = context.directory;
    let at = |key: &str| field.key(key);
    // Runs have their own working folders, so the path must be absolute.
    let directory = match std::path::absolute(Path::new(".").join(directory).join(&app.directory)) {
        Ok(path) if path.is_dir() => path,
        _ => {
            let path = directory.join(&app.directory);
            return reject(&at("directory"), format!("{} is not a folder", path.display()));
        }
    };
    let gpus = check_gpus(&app, device, field)?;
    let command = command(app.command, &directory, &at("command"))?;
    for (name, value) in &app.environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let field = at("environment").key(name);
            return reject(
                &field,
                format!("invalid name or value of the environment variable `{name}`"),
            );
        }
    }
    for (index, path) in app.input.iter().enumerate() {
        let field = at("input").index(index);
        check_inside(path, &field)?;
        check_exists(&directory.join(path), &field)?;
    }
    let stdin = app.stdin.map(|path| directory.join(path));
    if let Some(path) = &stdin {
        check_exists(path, &at("stdin"))?;
    }
    let golden_runs = app.golden_runs.unwrap_or(schema::GOLDEN_RUNS);
    if !(1..=MAX_GOLDEN_RUNS).contains(&golden_runs) {
        let message = format!("{golden_runs} runs; expected 1 to {MAX_GOLDEN_RUNS}");
        return reject(&at("golden_runs"), message);
    }
    let comparisons = check_comparisons(comparisons, Context { directory: &directory, ..context })?;
    Ok(Application {
        device,
        gpus,
        command,
        process: match app.process {
            None => None,
            Some(process) => Some(ProcessChoice::check(process, &at("process"))?),
        },
        environment: app.environment,
        input: app.input,
        stdin,
        exit_code: app.exit_code.into(),
        timeout: match &app.timeout {
            None => None,
            Some(text) => Some(quantity(text, quantity::time, &at("timeout"))?),
        },
        memory: quantity(app.memory.as_deref().unwrap_or(MEMORY), quantity::size, &at("memory"))?,
        output: quantity(app.output.as_deref().unwrap_or(OUTPUT), quantity::size, &at("output"))?,
        golden_runs,
        nondeterminism: match app.nondeterminism {
            schema::Nondeterminism::Error => Nondeterminism::Error,
            schema::Nondeterminism::Allow => Nondeterminism::Allow,
        },
        comparisons,
        directory,
    })
}

/// Checks the GPUs of an application at `field`.
fn check_gpus(
    app: &schema::Application,
    device: CampaignDevice,
    field: &Field,
) -> Result<ApplicationGpus, FieldError> {
    let (count, target) = (app.gpus.unwrap_or(GPUS), app.gpu.unwrap_or(0));
    if !(1..=MAX_GPUS).contains(&count) {
        return reject(&field.key("gpus"), format!("{count} GPUs; expected 1 to {MAX_GPUS}"));
    }
    if target >= count {
        return reject(&field.key("gpu"), format!("no GPU {target}; expected 0 to {}", count - 1));
    }
    let gpus = ApplicationGpus {
        count: count as usize,
        target: target as usize,
        ignored_kernels: app.ignored_kernels.clone(),
    };
    if device.is_hardware() && gpus != ApplicationGpus::default() {
        let message = "`gpus`, `gpu` and `ignored_kernels` require `device: embedded`";
        return reject(field, message);
    }
    Ok(gpus)
}

fn command(
    words: schema::Words,
    directory: &Path,
    field: &Field,
) -> Result<CommandLine, FieldError> {
    CommandLine::new(words.0, directory).or_else(|message| reject(field, message))
}

fn quantity<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
    field: &Field,
) -> Result<T, FieldError> {
    read(text).or_else(|message| reject(field, message))
}

/// Checks that a path cannot leave the folder that it is relative to.
fn check_inside(path: &Path, field: &Field) -> Result<(), FieldError> {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.as_os_str().is_empty() || !path.components().all(is_inside) {
        let message = format!(
            "`{}` is not inside the working folder; expected a path without `..` that does not \
             begin with `/`",
            path.display()
        );
        return reject(field, message);
    }
    Ok(())
}

fn check_exists(path: &Path, field: &Field) -> Result<(), FieldError> {
    match path.metadata() {
        Ok(_) => Ok(()),
        Err(error) => reject(field, format!("cannot find {}: {error}", path.display())),
    }
}

/// Checks the comparisons. Without any, standard output is compared exactly.
fn check_comparisons(
    comparisons: Vec<schema::Comparison>,
    context: Context<'_>,
) -> Result<Vec<Comparison>, FieldError> {
    if comparisons.is_empty() {
        return Ok(vec![Comparison::Output { output: Output::Stdout, format: Format::Exact }]);
    }
    let all = Field::root().key("compare");
    let mut checked: Vec<Comparison> = Vec::new();
    for (index, comparison) in comparisons.into_iter().enumerate() {
        let field = all.index(index);
        let comparison = check_comparison(comparison, context, &field)?;
        if let Comparison::Output { output: new, .. } = &comparison
            && checked
                .iter()
                .any(|old| matches!(old, Comparison::Output { output, .. } if output == new))
        {
            return reject(&field, format!("{new} is listed twice"));
        }
        checked.push(comparison);
    }
    Ok(checked)
}

fn check_comparison(
    comparison: schema::Comparison,
    context: Context<'_>,
    field: &Field,
) -> Result<Comparison, FieldError> {
    let schema::Comparison { stdout, stderr, file, check, ignore, tolerance, element, shape } =
        comparison;
    let element = element.map(|name| name.on(context.target));
    let file_keys = [
        ("ignore", ignore.is_some()),
        ("tolerance", tolerance.is_some()),
        ("type", element.is_some()),
        ("shape", shape.is_some()),
    ];
    let refuse_file_keys = |kind: &str| match file_keys.iter().find(|(_, is_given)| *is_given) {
        Some((key, _)) => reject(&field.key(key), format!("not allowed with `{kind}`")),
        None => Ok(()),
    };
    let stream = |output, stream: schema::Stream, key: &str| {
        refuse_file_keys(key)?;
        let schema::Inexact { ignore, tolerance } = stream.0;
        let format = format(ignore, tolerance, None, None, &field.key(key))?;
        Ok(Comparison::Output { output, format })
    };
    match (stdout, stderr, file, check) {
        (Some(stdout), None, None, None) => stream(Output::Stdout, stdout, "stdout"),
        (None, Some(stderr), None, None) => stream(Output::Stderr, stderr, "stderr"),
        (None, None, Some(path), None) => {
            check_inside(&path, &field.key("file"))?;
            let format = format(ignore, tolerance, element, shape, field)?;
            // Removes `.`, so that equal files have equal paths.
            let path: PathBuf =
                path.components().filter(|part| *part != Component::CurDir).collect();
            Ok(Comparison::Output { output: Output::File(path), format })
        }
        (None, None, None, Some(words)) => {
            refuse_file_keys("check")?;
            Ok(Comparison::Check(command(words, context.directory, &field.key("check"))?))
        }
        _ => reject(
            field,
            "expected exactly one of `stdout`, `stderr`, `file` (a path) and `check` (a command)",
        ),
    }
}

/// Checks the format of an output at `field`.
fn format(
    ignore: Option<Vec<String>>,
    tolerance: Option<crate::file::schema::Tolerance>,
    element: Option<ElementType>,
    shape: Option<Vec<u64>>,
    field: &Field,
) -> Result<Format, FieldError> {
    let has_limits = tolerance.as_ref().is_some_and(|tolerance| tolerance.exact != Some(true));
    let tolerance = match &tolerance {
        None => Tolerance::default(),
        Some(tolerance) => {
            let field = field.key("tolerance");
            if element.is_none() && tolerance.ulp.is_some() {
                let message = "`ulp` is only for binary files with a floating-point `type`";
                return reject(&field.key("ulp"), message);
            }
            // Numbers in text are compared as doubles.
            let checked = Tolerance::new(tolerance, element.unwrap_or(ElementType::F64));
            checked.or_else(|message| reject(&field, message))?
        }
    };
    let extents = match (&shape, element) {
        (None, _) => None,
        (Some(shape), Some(_)) => Some(check_shape(shape, None, &field.key("shape"))?),
        (Some(_), None) => return reject(&field.key("shape"), "only for files with a `type`"),
    };
    if let Some(element) = element {
        return match ignore {
            Some(_) => {
                reject(&field.key("ignore"), "only for text; a file with a `type` has no lines")
            }
            None => Ok(Format::Elements { element, extents, tolerance }),
        };
    }
    let mut patterns = Vec::new();
    for (index, text) in ignore.into_iter().flatten().enumerate() {
        let field = field.key("ignore").index(index);
        patterns.push(Pattern::new(&text).or_else(|message| reject(&field, message))?);
    }
    if patterns.is_empty() && !has_limits {
        return Ok(Format::Exact);
    }
    Ok(Format::Text { ignore: patterns, tolerance })
}
