//! Modules of other compilers, if there are any.

use flipwave_depth::files_in;
use flipwave_ptx::{Block, CallGraph, ControlFlow, OpcodeFacts, StatementKind, parse, resolve};
use std::collections::BTreeMap;

fn count(block: &Block, counts: &mut BTreeMap<String, usize>) {
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Instruction(inst) => {
                *counts.entry(inst.opcode().to_owned()).or_default() += 1;
            }
            StatementKind::Block(inner) => count(inner, counts),
            _ => {}
        }
    }
}

/// Reads, resolves and writes the files `*.ptx` in the folder `FLIPWAVE_PTX_CORPUS`, and prints the number of their
/// instructions by opcode.
#[test]
fn modules_of_a_corpus_are_read_and_written() {
    let paths = files_in("FLIPWAVE_PTX_CORPUS", "ptx");
    let (mut counts, mut failed) = (BTreeMap::new(), Vec::new());
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("text");
        let module = match parse(&text) {
            Ok(module) => module,
            Err(error) => {
                failed.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        for function in module.functions() {
            function.body.iter().for_each(|body| count(body, &mut counts));
        }
        match resolve(&module) {
            Ok(code) => {
                CallGraph::of(&code);
                for function in &code.functions {
                    ControlFlow::of(&code, function);
                }
            }
            Err(error) => failed.push(format!("{}: {error}", path.display())),
        }
        let printed = module.to_string();
        let again = parse(&printed).map(|again| again.to_string());
        if again.as_ref() != Ok(&printed) {
            failed.push(format!("{}: {:?}", path.display(), again.err()));
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    eprintln!("{} modules, {total} instructions: {counts:?}", paths.len());
    let unknown: Vec<_> =
        counts.iter().filter(|(name, _)| OpcodeFacts::of(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
