//! Modules of other compilers, if there are any: which instructions are gaps.

use flipwave_depth::files_in;
use flipwave_ptx::{Ptx, parse};
use flipwave_ptx_sim::PtxGpu;
use std::collections::BTreeMap;

/// Loads the files `*.ptx` in the folder `FLIPWAVE_PTX_CORPUS`, and prints the gaps by form.
#[test]
fn modules_of_a_corpus_are_loaded() {
    let paths = files_in("FLIPWAVE_PTX_CORPUS", "ptx");
    let mut gaps: BTreeMap<String, usize> = BTreeMap::new();
    let (mut complete, mut instructions, mut refused) = (0, 0, Vec::new());
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("text");
        let module = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut gpu = PtxGpu::new(Ptx::new("sm_90").expect("a target"));
        let loaded = match gpu.load(&module) {
            Ok(loaded) => loaded,
            Err(error) => {
                refused.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        let program = gpu.program(loaded).expect("a module");
        instructions += program.code.instructions.len();
        let mut is_complete = true;
        for (inst, gap) in program.gaps() {
            is_complete = false;
            *gaps.entry(format!("{}: {}", inst.operation(), gap.reason())).or_default() += 1;
        }
        complete += usize::from(is_complete);
    }
    let mut gaps: Vec<_> = gaps.into_iter().collect();
    gaps.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    eprintln!("{} modules, {complete} without gaps, {instructions} instructions", paths.len());
    gaps.iter().for_each(|(name, count)| eprintln!("{count} {name}"));
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
