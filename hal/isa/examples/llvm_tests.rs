//! Holds decoding, printing and assembling against LLVM's own tests, which are not part of this
//! repository: `cargo run --release -p flipwave-isa --example llvm_tests -- LLVM/llvm/test/MC`.
//!
//! Of each `RUN` line that runs `llvm-mc` for a processor, every line that `FileCheck` expects with
//! an encoding is taken: the bytes must decode, print as is expected, and what is printed must
//! assemble to the same bytes.

use flipwave_isa::{Isa, Pc, Target};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How a run of `llvm-mc` is to be repeated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    processor: String,
    wave_size: Option<u8>,
    prefixes: Vec<String>,
}

/// Lines of a processor.
#[derive(Default)]
struct Count {
    lines: usize,
    decoded: usize,
    printed: usize,
    assembled: usize,
    different: Vec<String>,
}

/// The runs that a test has. Those that expect errors, write files or ask for 16-bit operands that
/// name no halves are left out.
fn runs(text: &str) -> Vec<Run> {
    let lines = text.lines().filter_map(|line| line.split_once("RUN:")).map(|(_, run)| run);
    let lines = lines.filter(|run| {
        run.contains("llvm-mc")
            && run.contains("-show-encoding")
            && !run.contains("not llvm-mc")
            && !run.contains("-real-true16")
    });
    let value = |run: &str, name: &str| {
        let rest = run.split(name).nth(1)?;
        Some(rest.split([' ', '\t']).next()?.trim_matches('"').to_owned())
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

/// The text and the bytes that a line expects under one of `prefixes`.
fn expected(line: &str, prefixes: &[String]) -> Option<(String, Vec<u8>)> {
    let comment = line.trim_start_matches(['/', '#', ';', ' ', '\t']);
    let (prefix, rest) = comment.split_once(':')?;
    let prefix = prefix.strip_suffix("-NEXT").unwrap_or(prefix);
    if !prefixes.iter().any(|own| own == prefix) || rest.contains("{{") {
        return None;
    }
    let (text, encoding) = rest.split_once("encoding: [")?;
    let bytes = encoding
        .split(']')
        .next()?
        .split(',')
        .map(|byte| u8::from_str_radix(byte.trim().trim_start_matches("0x"), 16).ok());
    let text = text.trim_end().trim_end_matches(['/', ';', '#']);
    Some((one_spaced(text), bytes.collect::<Option<_>>()?))
}

fn one_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check(isa: &Isa, text: &str, bytes: &[u8], count: &mut Count) {
    count.lines += 1;
    let mut different = |what: String| count.different.push(format!("{text}: {what}"));
    let inst = match isa.decode(bytes, Pc(0)) {
        Ok(inst) if usize::from(inst.size) == bytes.len() => inst,
        Ok(inst) => return different(format!("{} bytes of {}", inst.size, bytes.len())),
        Err(error) => return different(error.to_string()),
    };
    count.decoded += 1;
    // Some lines expect an encoding alone.
    if text.is_empty() || one_spaced(&inst.text) == text {
        count.printed += 1;
    } else {
        different(format!("printed `{}`", one_spaced(&inst.text)));
    }
    match isa.assemble(&inst.text) {
        Ok(own) if own == bytes => count.assembled += 1,
        Ok(own) => different(format!("{bytes:02x?} assembles to {own:02x?}")),
        Err(error) => different(error.to_string()),
    }
}

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
    let folder = arguments.next().ok_or("which folder has the tests?")?;
    let most: usize = arguments.next().map_or(Ok(20), |most| most.parse())?;
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
            let before = count.different.len();
            for (text, bytes) in text.lines().filter_map(|line| expected(line, &run.prefixes)) {
                check(&isa, &text, &bytes, count);
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for line in &mut count.different[before..] {
                *line = format!("{name}: {line}");
            }
        }
    }
    println!("processor | lines | decoded | printed | assembled");
    for (processor, own) in &counts {
        let Count { lines, decoded, printed, assembled, .. } = own;
        println!("{processor} | {lines} | {decoded} | {printed} | {assembled}");
    }
    for (processor, own) in &counts {
        for line in own.different.iter().take(most) {
            println!("{processor}: {line}");
        }
    }
    Ok(())
}
