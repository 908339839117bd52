use super::*;
use flipwave_isa::{Isa, Pc};

/// The corpus is hand-written: it has instructions that a walk over encodings may miss.
#[test]
fn every_instruction_of_the_corpus_is_executed_or_refused_by_type() {
    let isa = Isa::new(&"gfx90a".parse().unwrap()).unwrap();
    let corpus = include_str!("../../../amdgpu/isa/tests/corpus/gfx90a.s");
    let mut gaps = Vec::new();
    let mut executed = 0;
    for line in corpus.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let Ok(bytes) = isa.assemble(line) else { continue };
        let Ok(inst) = isa.decode(&bytes, Pc(0)) else { continue };
        match translate(inst, Level::Plain, Machine::default()).run {
            Run::Gap(reason) => gaps.push(format!("{reason}: {line}")),
            _ => executed += 1,
        }
    }
    assert!(executed > 500, "only {executed}");
    assert!(gaps.is_empty(), "{gaps:#?}");
}
