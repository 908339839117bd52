//! Modules of clang, read and written again.

use crate::common::{SUITE, compile, source, suite};
use flipwave_depth::cases;
use flipwave_ptx::{Block, Module, StatementKind, parse, resolve};
use std::collections::BTreeMap;

/// A tree as text, without positions.
fn without_positions(module: &Module) -> String {
    let text = format!("{module:?}");
    let mut parts = text.split("position: Position { ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('}').map_or("", |(_, rest)| rest))
}

/// Counts the instructions of a block by name.
fn count(block: &Block, counts: &mut BTreeMap<String, usize>) {
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Instruction(inst) => {
                *counts.entry(inst.name.to_string()).or_default() += 1;
            }
            StatementKind::Block(inner) => count(inner, counts),
            _ => {}
        }
    }
}

/// Counts the instructions in LLVM's text, which has one per line, by name.
fn count_lines(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let line = line
            .strip_prefix('@')
            .map_or(line, |rest| rest.split_once([' ', '\t']).map_or("", |(_, rest)| rest.trim()));
        let name = line.split([' ', '\t', ';']).next().unwrap_or_default();
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase());
        if is_name && line.ends_with(';') && !line.contains(": .") {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn read(text: &str) -> Module {
    parse(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// Checks that a module is read completely and written again.
fn check(text: &str) {
    let module = read(text);
    let mut counts = BTreeMap::new();
    for function in module.functions() {
        function.body.iter().for_each(|body| count(body, &mut counts));
    }
    let lines = count_lines(text);
    assert!(!lines.is_empty());
    assert_eq!(counts, lines);
    check_round_trip(text);
}

fn check_round_trip(text: &str) {
    let module = read(text);
    let printed = module.to_string();
    let again = read(&printed);
    assert_eq!(without_positions(&module), without_positions(&again));
    assert_eq!(again.to_string(), printed);
    // Names are resolved alike.
    let [code, code_again] =
        [&module, &again].map(|module| resolve(module).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(code.instructions, code_again.instructions);
    assert!(!code.instructions.is_empty());
}

#[test]
fn suite_kernels_are_read_and_written() {
    let levels = ["-O0", "-O1", "-O2", "-O3"];
    let all = SUITE.iter().flat_map(|name| levels.map(|level| (name, level)));
    for (name, level) in cases(all, 5) {
        check(&compile(&suite(name), &[level]));
    }
}

#[test]
fn other_forms_and_debugging_information_are_read_and_written() {
    for options in [&["-O0", "-g"][..], &["-O2", "-gline-tables-only"], &["-O3"]] {
        let text = compile(&source("forms.cu"), options);
        check_round_trip(&text);
    }
    let text = compile(&source("forms.cu"), &["-O2", "-g"]);
    for part in [".callprototype", ".section", ".maxntid", "generic(", ".extern"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

/// Negative control: a changed module has another tree.
#[test]
fn changes_of_a_module_are_noticed() {
    let text = compile(&suite("mxm"), &["-O1"]);
    let changed = text.replacen("fma.rn", "fma.rz", 1).replacen("%r1,", "%r2,", 1);
    assert_ne!(text, changed);
    assert_ne!(without_positions(&read(&text)), without_positions(&read(&changed)));
    assert_ne!(read(&text).to_string(), read(&changed).to_string());
    assert_ne!(count_lines(&text), count_lines(&text.replacen("\tret;", "", 1)));
}
