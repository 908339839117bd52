//! Runs LLVM's hazard recognizer on sequences of instructions.

use flipwave_isa::hazard::wait_states;
use flipwave_isa::{Inst, Isa, Pc};
use std::collections::HashMap;
use std::process::Command;

/// A sequence after LLVM's hazard recognizer.
pub struct Recognized {
    /// The instructions before the last one, without those that LLVM inserted directly before the last
    /// one.
    pub before: Vec<Inst>,
    /// The last instruction of the sequence.
    pub last: Inst,
    /// Wait states that LLVM inserted directly before the last instruction.
    pub wait_states: u8,
    /// Other instructions that LLVM inserted directly before the last instruction.
    pub instructions: Vec<String>,
}

/// Runs the hazard recognizer on sequences of MIR instructions. A line that begins with `bb` starts a basic
/// block.
pub fn recognized(isa: &Isa, options: &[&str], sequences: &[Vec<&str>]) -> Vec<Recognized> {
    let pass = "post-RA-hazard-rec";
    let [before, after] = [format!("-start-before={pass}"), format!("-start-after={pass}")];
    let mitigated = compiled(isa, &[&[before.as_str()], options].concat(), sequences);
    let original = compiled(isa, &[&[after.as_str()], options].concat(), sequences);
    let pairs = mitigated.into_iter().zip(original);
    pairs.map(|(mitigated, original)| compared(mitigated, &original)).collect()
}

/// Separates the instructions that LLVM inserted directly before the last one.
fn compared(mitigated: Vec<Inst>, original: &[Inst]) -> Recognized {
    let mut before: Vec<Inst> = Vec::new();
    let mut mitigated = mitigated.into_iter();
    let (last, earlier) = original.split_last().expect("a sequence");
    for expected in earlier {
        for inst in mitigated.by_ref() {
            let is_expected = inst.text == expected.text;
            before.push(inst);
            if is_expected {
                break;
            }
        }
    }
    let mut wait_states_inserted = 0;
    let mut instructions = Vec::new();
    for inst in mitigated.by_ref() {
        if inst.text == last.text {
            break;
        }
        match inst.operation.name() {
            "s_nop" => wait_states_inserted += wait_states(&inst),
            _ => instructions.push(inst.text.clone()),
        }
    }
    Recognized { before, last: last.clone(), wait_states: wait_states_inserted, instructions }
}

/// The kind of function that a sequence is compiled as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// A kernel.
    Kernel,
    /// A function that is called.
    Callee,
}

/// Compiles sequences as called functions. Returns the instructions of each, without scheduling hints.
pub fn compiled(isa: &Isa, options: &[&str], sequences: &[Vec<&str>]) -> Vec<Vec<Inst>> {
    compiled_as(FunctionKind::Callee, isa, options, sequences)
}

/// Compiles sequences. Returns the instructions of each, without scheduling hints.
pub fn compiled_as(
    kind: FunctionKind,
    isa: &Isa,
    options: &[&str],
    sequences: &[Vec<&str>],
) -> Vec<Vec<Inst>> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sequences.mir");
    let mut text = String::new();
    if kind == FunctionKind::Kernel {
        let kernel = |n| format!("  define amdgpu_kernel void @f{n}() {{ ret void }}\n");
        let kernels: String = (0..sequences.len()).map(kernel).collect();
        text += &format!("--- |\n{kernels}...\n");
    }
    for (number, sequence) in sequences.iter().enumerate() {
        let body: String = sequence
            .iter()
            .map(|line| {
                if line.starts_with("bb") {
                    format!("\n  {line}\n")
                } else {
                    format!("    {line}\n")
                }
            })
            .collect();
        text += &format!("---\nname: f{number}\nbody: |\n  bb.0:\n{body}    S_ENDPGM 0\n...\n");
    }
    std::fs::write(&file, text).expect("the sequences written");
    let output = Command::new("llc-22")
        .args(["-mtriple=amdgcn", "-o", "-"])
        .arg(format!("-mcpu={}", isa.target().processor()))
        .args(options)
        .arg(&file)
        .output()
        .expect("llc-22 (Debian's package llvm-22)");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}", messages.chars().take(4000).collect::<String>());
    let text = String::from_utf8(output.stdout).expect("assembly");
    let mut known: HashMap<&str, Inst> = HashMap::new();
    let mut functions: Vec<Vec<Inst>> = Vec::new();
    for line in text.lines() {
        if line.starts_with('f') && line.contains(':') {
            functions.push(Vec::new());
        }
        let code = line.split(';').next().unwrap_or_default();
        if !code.starts_with('\t') || code.trim_start().starts_with('.') {
            continue;
        }
        let Some(insts) = functions.last_mut() else { continue };
        let code = code.split(" .L").next().unwrap_or(code);
        let inst = known.entry(code).or_insert_with(|| assembled(isa, code)).clone();
        if !matches!(inst.operation.name(), "s_delay_alu" | "s_endpgm") {
            insts.push(inst);
        }
    }
    assert_eq!(functions.len(), sequences.len());
    functions
}

/// Assembles and decodes an instruction. The target of a branch is replaced.
pub fn assembled(isa: &Isa, code: &str) -> Inst {
    let is_branch = ["s_branch", "s_cbranch"].iter().any(|name| code.trim().starts_with(name));
    let code = if is_branch { format!("{} 1", code.trim()) } else { code.to_owned() };
    let bytes = isa.assemble(&code).unwrap_or_else(|error| panic!("{code}: {error}"));
    isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{code}: {error}"))
}
