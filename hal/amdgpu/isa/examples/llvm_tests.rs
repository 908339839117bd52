//! Compares decoding, printing and assembling with LLVM's MC tests, which are not part of this repository:
//! `cargo run --release -p flipwave-isa --example llvm_tests -- LLVM/llvm/test/MC`.
//!
//! For each `RUN` line that runs `llvm-mc` for a processor, the example checks every line that `FileCheck`
//! expects with an encoding: the bytes must decode, the printed text must match, and the text must assemble
//! to the same bytes.
//!
//! Many lines apply to the assembler or the disassembler only, because several texts or encodings are
//! equivalent. For each line that differs, the example therefore runs `llvm-mc-22` with 16-bit operands named
//! by halves, as in this crate; the column `as LLVM` counts the lines on which it agrees.

use flipwave_isa::{Isa, Pc, Target};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A run of `llvm-mc` in a test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    processor: String,
    wave_size: Option<u8>,
    prefixes: Vec<String>,
}

/// Results for the lines of a processor.
#[derive(Default)]
struct Count {
    lines: usize,
    decoded: usize,
    printed: usize,
    assembled: usize,
    different: Vec<Different>,
}

/// A line with a different outcome than expected.
struct Different {
    file: String,
    text: String,
    bytes: Vec<u8>,
    wave_size: u8,
    outcome: Outcome,
}

/// An outcome that differs from the expected one.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    NotDecoded(String),
    Printed(String),
    Assembled(Vec<u8>),
    Rejected(String),
}

impl Different {
    /// Returns `true` if `llvm-mc-22` has the same outcome.
    fn agrees_with_llvm(&self, processor: &str) -> std::io::Result<bool> {
        let hex: Vec<String> = self.bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
        let run_mc = |arguments: &[&str], input: &str| {
            let attributes = match self.wave_size {
                32 if processor.starts_with("gfx12") => "+real-true16",
                _ if processor.starts_with("gfx12") => "+real-true16,+wavefrontsize64",
                32 if processor.starts_with("gfx1") => "+wavefrontsize32",
                _ if processor.starts_with("gfx1") => "+wavefrontsize64",
                _ => "",
            };
            let mut child = Command::new("llvm-mc-22")
                .args(["-triple=amdgcn-amd-amdhsa", "-show-encoding"])
                .args([format!("-mcpu={processor}"), format!("-mattr={attributes}")])
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?;
            let mut stdin = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
            writeln!(stdin, "{input}")?;
            drop(stdin);
            let output = child.wait_with_output()?;
            let [out, error] = [output.stdout, output.stderr]
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let line = out.lines().find(|line| line.contains("encoding: ["));
            let comment = line.map(|line| format!("MC: {}", line.trim()));
            let found = comment.and_then(|line| expected(&line, &["MC".to_owned()]));
            std::io::Result::Ok(found.ok_or(error))
        };
        let Ok((text, _)) = run_mc(&["-disassemble"], &hex.join(" "))? else {
            return Ok(matches!(self.outcome, Outcome::NotDecoded(_)));
        };
        Ok(match &self.outcome {
            Outcome::NotDecoded(_) => text.contains("/*Invalid"),
            Outcome::Printed(printed) => *printed == text,
            Outcome::Assembled(assembled) => {
                run_mc(&[], &text)?.is_ok_and(|(_, bytes)| bytes == *assembled)
            }
            Outcome::Rejected(message) => {
                run_mc(&[], &text)?.is_err_and(|error| error.contains(message))
            }
        })
    }
}

/// The runs of a test, except those that expect errors, write files or request 16-bit operands without
/// halves.
fn runs(text: &str) -> Vec<Run> {
    let lines = text.lines().filter_map(|line| line.split_once("RUN:")).map(|(_, run)| run);
    let lines = lines.filter(|run| {
        run.contains("llvm-mc")
            && run.contains("-show-encoding")
            && !run.contains("not llvm-mc")
            && !run.contains("-real-true16")
    });
    let value = |run: &str, name: &str| {
        let after = run.split(name).nth(1)?;
        Some(after.split([' ', '\t']).next()?.trim_matches('"').to_owned())
    };
    lines
        .filter_map(|run| {
            let attributes = value(run, "-mattr=").unwrap_or_default();
            let prefixes = value(run, "-check-prefixes=").or_else(|| value(run, "-check-prefix="));
            Some(Run {
                processor: value(run, "-mcpu=")?,
                wave_size: [32, 64]
                    .into_iter()
                    .find(|size| attributes.contains(&format!("+wavefrontsize{size}"))),
                prefixes: prefixes
                    .unwrap_or_else(|| "CHECK".to_owned())
                    .split(',')
                    .map(str::to_owned)
                    .collect(),
            })
        })
        .collect()
}

/// The text and the bytes that a `FileCheck` line with one of `prefixes` expects.
fn expected(line: &str, prefixes: &[String]) -> Option<(String, Vec<u8>)> {
    let comment = line.trim_start_matches(['/', '#', ';', ' ', '\t']);
    let (prefix, pattern) = comment.split_once(':')?;
    let prefix = prefix.strip_suffix("-NEXT").unwrap_or(prefix);
    if !prefixes.iter().any(|known| known == prefix) || pattern.contains("{{") {
        return None;
    }
    let (text, encoding) = pattern.split_once("encoding: [")?;
    let bytes = encoding
        .split(']')
        .next()?
        .split(',')
        .map(|byte| u8::from_str_radix(byte.trim().trim_start_matches("0x"), 16).ok());
    let text = text.trim_end().trim_end_matches(['/', ';', '#']);
    Some((one_spaced(text), bytes.collect::<Option<_>>()?))
}

/// Replaces each run of white space by one space.
fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks one line, and returns the outcomes that differ.
fn check(isa: &Isa, text: &str, bytes: &[u8], count: &mut Count) -> Vec<Outcome> {
    count.lines += 1;
    let inst = match isa.decode(bytes, Pc(0)) {
        Ok(inst) if usize::from(inst.size) == bytes.len() => inst,
        Ok(inst) => {
            return vec![Outcome::NotDecoded(format!("{} bytes of {}", inst.size, bytes.len()))];
        }
        Err(error) => return vec![Outcome::NotDecoded(error.to_string())],
    };
    count.decoded += 1;
    let mut outcomes = Vec::new();
    // Some lines expect only an encoding.
    let printed = one_spaced(&inst.text);
    if text.is_empty() || printed == text {
        count.printed += 1;
    } else {
        outcomes.push(Outcome::Printed(printed));
    }
    match isa.assemble(&inst.text) {
        Ok(assembled) if assembled == bytes => count.assembled += 1,
        Ok(assembled) => outcomes.push(Outcome::Assembled(assembled)),
        Err(error) => outcomes.push(Outcome::Rejected(error.message)),
    }
    outcomes
}

/// Adds the test files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "s" || end == "txt") {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("missing argument: the folder of LLVM's MC tests")?;
    let max_shown: usize = arguments.next().map_or(Ok(20), |count| count.parse())?;
    let mut paths = Vec::new();
    for target in ["AMDGPU", "Disassembler/AMDGPU"] {
        files(&Path::new(&folder).join(target), &mut paths)?;
    }
    paths.sort();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        for run in runs(&text) {
            let Ok(target) = run.processor.parse::<Target>() else { continue };
            let wave_size = run.wave_size.unwrap_or(target.default_wave_size());
            let Ok(isa) = Isa::with_wave_size(&target, wave_size) else { continue };
            let count = counts.entry(run.processor.clone()).or_default();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for (text, bytes) in text.lines().filter_map(|line| expected(line, &run.prefixes)) {
                for outcome in check(&isa, &text, &bytes, count) {
                    let (file, text, bytes) = (file.clone(), text.clone(), bytes.clone());
                    count.different.push(Different { file, text, bytes, wave_size, outcome });
                }
            }
        }
    }
    println!("processor | lines | decoded | printed | assembled | different | as LLVM");
    let mut disagreements = Vec::new();
    for (processor, count) in &counts {
        let Count { lines, decoded, printed, assembled, different } = count;
        let before = disagreements.len();
        for line in different {
            if !line.agrees_with_llvm(processor)? {
                disagreements.push((processor, line));
            }
        }
        let all = different.len();
        let as_llvm = all - (disagreements.len() - before);
        println!("{processor} | {lines} | {decoded} | {printed} | {assembled} | {all} | {as_llvm}");
    }
    println!("\nLines on which llvm-mc disagrees:");
    for (processor, Different { file, text, bytes, outcome, .. }) in
        disagreements.iter().take(max_shown)
    {
        println!("{processor}: {file}: {text} {bytes:02x?}: {outcome:?}");
    }
    Ok(())
}
