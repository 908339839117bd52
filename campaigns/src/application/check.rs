//! Checking what a campaign file says of an application.

use super::command::CommandLine;
use super::comparison::{Comparison, Format, Output};
use super::quantity;
use super::schema::{self, MEMORY, OUTPUT};
use super::text::Pattern;
use super::{Application, Nondeterminism, ProcessChoice};
use crate::file::check_launches::check_shape;
use crate::file::context::Context;
use crate::file::device::CampaignDevice;
use crate::file::element::ElementType;
use crate::file::location::{Field, FieldError, reject};
use crate::outputs::compare::Tolerance;
use std::path::{Component, Path, PathBuf};

/// The most runs without a fault that make sense.
const MAX_GOLDEN_RUNS: u32 = 1000;

/// Checks `own`, which stands at `field` of a file, and its comparisons, which stand under `compare`;
/// `device` is what it runs on.
///
/// # Errors
/// The first field whose value cannot be.
pub(crate) fn check(
    own: schema::Application,
    device: CampaignDevice,
    comparisons: Vec<schema::Comparison>,
    context: Context<'_>,
    field: &Field,
) -> Result<Application, FieldError> {
    let directory = context.directory;
    let at = |key: &str| field.key(key);
    // Runs have a working folder of their own, so that the way there must not depend on this one.
    let directory = match std::path::absolute(Path::new(".").join(directory).join(&own.directory)) {
        Ok(path) if path.is_dir() => path,
        _ => {
            let path = directory.join(&own.directory);
            return reject(&at("directory"), format!("{} is no folder", path.display()));
        }
    };
    let command = command(own.command, &directory, &at("command"))?;
    for (name, value) in &own.environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let field = at("environment").key(name);
            return reject(&field, format!("`{name}` with this value cannot be in an environment"));
        }
    }
    for (index, path) in own.input.iter().enumerate() {
        let field = at("input").index(index);
        check_inside(path, &field)?;
        check_there(&directory.join(path), &field)?;
    }
    let stdin = own.stdin.map(|path| directory.join(path));
    if let Some(path) = &stdin {
        check_there(path, &at("stdin"))?;
    }
    let golden_runs = own.golden_runs.unwrap_or(schema::GOLDEN_RUNS);
    if !(1..=MAX_GOLDEN_RUNS).contains(&golden_runs) {
        let message = format!("{golden_runs} runs; expected 1 to {MAX_GOLDEN_RUNS}");
        return reject(&at("golden_runs"), message);
    }
    let comparisons = check_comparisons(comparisons, Context { directory: &directory, ..context })?;
    Ok(Application {
        device,
        command,
        process: match own.process {
            None => None,
            Some(process) => Some(ProcessChoice::of(process, &at("process"))?),
        },
        environment: own.environment,
        input: own.input,
        stdin,
        exit_code: own.exit_code.into(),
        timeout: match &own.timeout {
            None => None,
            Some(text) => Some(quantity(text, quantity::time, &at("timeout"))?),
        },
        memory: quantity(own.memory.as_deref().unwrap_or(MEMORY), quantity::size, &at("memory"))?,
        output: quantity(own.output.as_deref().unwrap_or(OUTPUT), quantity::size, &at("output"))?,
        golden_runs,
        nondeterminism: match own.nondeterminism {
            schema::Nondeterminism::Error => Nondeterminism::Error,
            schema::Nondeterminism::Allow => Nondeterminism::Allow,
        },
        comparisons,
        directory,
    })
}

fn command(own: schema::Words, directory: &Path, field: &Field) -> Result<CommandLine, FieldError> {
    CommandLine::new(own.0, directory).or_else(|message| reject(field, message))
}

fn quantity<T>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
    field: &Field,
) -> Result<T, FieldError> {
    read(text).or_else(|message| reject(field, message))
}

/// Checks that a path leads to a place in a folder, whichever that is.
fn check_inside(path: &Path, field: &Field) -> Result<(), FieldError> {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.as_os_str().is_empty() || !path.components().all(is_inside) {
        let message = format!(
            "`{}` is not inside of the working folder; expected a path without `..` that does \
             not begin with `/`",
            path.display()
        );
        return reject(field, message);
    }
    Ok(())
}

fn check_there(path: &Path, field: &Field) -> Result<(), FieldError> {
    match path.metadata() {
        Ok(_) => Ok(()),
        Err(error) => reject(field, format!("cannot find {}: {error}", path.display())),
    }
}

/// Without any, standard output is compared exactly.
fn check_comparisons(
    comparisons: Vec<schema::Comparison>,
    context: Context<'_>,
) -> Result<Vec<Comparison>, FieldError> {
    if comparisons.is_empty() {
        return Ok(vec![Comparison::Output { output: Output::Stdout, format: Format::Exact }]);
    }
    let all = Field::root().key("compare");
    let mut checked: Vec<Comparison> = Vec::new();
    for (index, own) in comparisons.into_iter().enumerate() {
        let field = all.index(index);
        let own = check_comparison(own, context, &field)?;
        if let Comparison::Output { output: new, .. } = &own
            && checked
                .iter()
                .any(|old| matches!(old, Comparison::Output { output, .. } if output == new))
        {
            return reject(&field, format!("{new} is there twice"));
        }
        checked.push(own);
    }
    Ok(checked)
}

fn check_comparison(
    own: schema::Comparison,
    context: Context<'_>,
    field: &Field,
) -> Result<Comparison, FieldError> {
    let schema::Comparison { stdout, stderr, file, check, ignore, tolerance, element, shape } = own;
    let element = element.map(|name| name.on(context.target));
    let beside = [
        ("ignore", ignore.is_some()),
        ("tolerance", tolerance.is_some()),
        ("type", element.is_some()),
        ("shape", shape.is_some()),
    ];
    let refuse = |kind: &str| match beside.iter().find(|(_, is_there)| *is_there) {
        Some((key, _)) => reject(&field.key(key), format!("does not go beside `{kind}`")),
        None => Ok(()),
    };
    let stream = |output, own: schema::Stream, key: &str| {
        refuse(key)?;
        let schema::Inexact { ignore, tolerance } = own.0;
        let format = format(ignore, tolerance, (None, None), &field.key(key))?;
        Ok(Comparison::Output { output, format })
    };
    match (stdout, stderr, file, check) {
        (Some(own), None, None, None) => stream(Output::Stdout, own, "stdout"),
        (None, Some(own), None, None) => stream(Output::Stderr, own, "stderr"),
        (None, None, Some(path), None) => {
            check_inside(&path, &field.key("file"))?;
            let format = format(ignore, tolerance, (element, shape), field)?;
            // Without a `.` in it the same file has the same path.
            let path: PathBuf =
                path.components().filter(|part| *part != Component::CurDir).collect();
            Ok(Comparison::Output { output: Output::File(path), format })
        }
        (None, None, None, Some(words)) => {
            refuse("check")?;
            Ok(Comparison::Check(command(words, context.directory, &field.key("check"))?))
        }
        _ => reject(
            field,
            "expected exactly one of `stdout`, `stderr`, `file` (a path) and `check` (a command)",
        ),
    }
}

/// How an output is compared. What is said of it stands at `field`.
fn format(
    ignore: Option<Vec<String>>,
    tolerance: Option<crate::file::schema::Tolerance>,
    (element, shape): (Option<ElementType>, Option<Vec<u64>>),
    field: &Field,
) -> Result<Format, FieldError> {
    let is_limited = tolerance.as_ref().is_some_and(|own| own.exact != Some(true));
    let tolerance = match &tolerance {
        None => Tolerance::default(),
        Some(own) => {
            let field = field.key("tolerance");
            if element.is_none() && own.ulp.is_some() {
                let message = "`ulp` is for binary files of a floating-point `type`";
                return reject(&field.key("ulp"), message);
            }
            // What a text holds is compared as doubles.
            let checked = Tolerance::new(own, element.unwrap_or(ElementType::F64));
            checked.or_else(|message| reject(&field, message))?
        }
    };
    let extents = match (&shape, element) {
        (None, _) => None,
        (Some(shape), Some(_)) => Some(check_shape(shape, None, &field.key("shape"))?),
        (Some(_), None) => return reject(&field.key("shape"), "is for files with a `type`"),
    };
    if let Some(element) = element {
        return match ignore {
            Some(_) => {
                reject(&field.key("ignore"), "is for text; a file with a `type` has no lines")
            }
            None => Ok(Format::Elements { element, extents, tolerance }),
        };
    }
    let mut patterns = Vec::new();
    for (index, text) in ignore.into_iter().flatten().enumerate() {
        let field = field.key("ignore").index(index);
        patterns.push(Pattern::new(&text).or_else(|message| reject(&field, message))?);
    }
    if patterns.is_empty() && !is_limited {
        return Ok(Format::Exact);
    }
    Ok(Format::Text { ignore: patterns, tolerance })
}
