//! Every instruction of the compiled kernels of tests and examples decodes, prints, and assembles back to
//! the same bytes.

use flipwave_codeobj::CodeObject;
use flipwave_isa::{Inst, Isa, Pc};
use flipwave_tests::{compile_file, gfx90a};
use std::path::{Path, PathBuf};

/// OpenCL and HIP sources of a folder.
fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut sources: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "cl" || end == "hip"))
        .collect();
    sources.sort();
    sources
}

/// Checks all kernels of a code object. Returns the number of instructions.
fn check(code_object: &[u8], name: &str) -> usize {
    let object = CodeObject::parse(code_object).expect("a code object");
    let isa = Isa::new(&gfx90a()).expect("LLVM has the target");
    let mut count = 0;
    for kernel in object.kernels() {
        let size = usize::try_from(kernel.code_size).expect("a size");
        let code = object.bytes_at(kernel.entry(), size).expect("the kernel's code");
        let mut at = 0;
        while at < code.len() {
            let pc = Pc(kernel.entry().0 + at as u64);
            let inst =
                isa.decode(&code[at..], pc).unwrap_or_else(|error| panic!("{name}: {error}"));
            let bytes = &code[at..at + usize::from(inst.size)];
            let again = isa
                .assemble(&inst.text)
                .unwrap_or_else(|error| panic!("{name}: {pc}: `{inst}`: {error}"));
            if again != bytes {
                let decoded = isa.decode(&again, pc).expect("an assembled instruction");
                assert_eq!(decoded.operands, inst.operands, "{name}: {pc}: `{inst}`");
                assert!(differ_in_literal_alone(&inst, bytes, &again), "{name}: {pc}: `{inst}`");
            }
            at += bytes.len();
            count += 1;
        }
    }
    count
}

/// Returns `true` if two encodings differ only in the encoding of a literal, for which the assembler
/// chooses one of several.
fn differ_in_literal_alone(inst: &Inst, bytes: &[u8], again: &[u8]) -> bool {
    if again.len() == bytes.len() {
        // A 16-bit operation reads only the lower half of its literal, which the compiler sign-extends.
        return again[..6] == bytes[..6] && again[6..] == [0, 0] && bytes[6..] == [0xff, 0xff];
    }
    // The linker fills in the distance to a function as a literal; the assembler uses an inline constant
    // if possible.
    again.len() + 4 == bytes.len() && ["s_add_u32", "s_addc_u32"].contains(&inst.operation.name())
}

#[test]
fn compiled_instructions_assemble_back_to_the_same_bytes() {
    let sources = [sources("kernels"), sources("../examples/campaigns/kernels")].concat();
    let mut count = 0;
    for source in &sources {
        for option in ["-O0", "-O3"] {
            count += check(&compile_file(source, &[option]), &source.display().to_string());
        }
    }
    assert!(count > 5_000, "only {count} instructions in {} files", sources.len());
}
