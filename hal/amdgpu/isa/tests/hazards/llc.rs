//! What LLVM's hazard recognizer inserts into sequences of instructions.

use flipwave_isa::hazard::wait_states;
use flipwave_isa::{Inst, Isa, Pc};
use std::collections::HashMap;
use std::process::Command;

/// A sequence as LLVM leaves it.
pub struct Recognized {
    /// What is executed before the last instruction of the sequence, without what LLVM inserted
    /// directly before that.
    pub before: Vec<Inst>,
    /// The last instruction of the sequence.
    pub last: Inst,
    /// Wait states that LLVM inserted directly before it.
    pub wait_states: u8,
    /// Other instructions that LLVM inserted directly before it.
    pub instructions: Vec<String>,
}

/// What LLVM makes of sequences in its machine representation. A line that begins with `bb` begins
/// a new basic block.
pub fn recognized(isa: &Isa, options: &[&str], sequences: &[Vec<&str>]) -> Vec<Recognized> {
    let mended =
        compiled(isa, &[&["-start-before=post-RA-hazard-rec"], options].concat(), sequences);
    let plain = compiled(isa, &[&["-start-after=post-RA-hazard-rec"], options].concat(), sequences);
    mended.into_iter().zip(plain).map(|(mended, plain)| compared(mended, &plain)).collect()
}

fn compared(mended: Vec<Inst>, plain: &[Inst]) -> Recognized {
    let mut before: Vec<Inst> = Vec::new();
    let mut mended = mended.into_iter();
    let mut wait_states_inserted = 0;
    let mut inserted = Vec::new();
    let (last, rest) = plain.split_last().expect("a sequence");
    for own in rest {
        for inst in mended.by_ref() {
            let is_own = inst.text == own.text;
            before.push(inst);
            if is_own {
                break;
            }
        }
    }
    for inst in mended.by_ref() {
        if inst.text == last.text {
            break;
        }
        match inst.operation.name() {
            "s_nop" => wait_states_inserted += wait_states(&inst),
            _ => inserted.push(inst.text.clone()),
        }
    }
    let instructions = inserted;
    Recognized { before, last: last.clone(), wait_states: wait_states_inserted, instructions }
}

/// The instructions of each sequence, hints to the scheduler left out.
pub fn compiled(isa: &Isa, options: &[&str], sequences: &[Vec<&str>]) -> Vec<Vec<Inst>> {
    compiled_as(isa, options, sequences, false)
}

/// The same, of kernels or of functions that are called.
pub fn compiled_as(
    isa: &Isa,
    options: &[&str],
    sequences: &[Vec<&str>],
    is_kernel: bool,
) -> Vec<Vec<Inst>> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sequences.mir");
    let mut text = String::new();
    if is_kernel {
        let kernel = |n| format!("  define amdgpu_kernel void @f{n}() {{ ret void }}\n");
        let kernels: String = (0..sequences.len()).map(kernel).collect();
        text += &format!("--- |\n{kernels}...\n");
    }
    for (number, sequence) in sequences.iter().enumerate() {
        let body: String = sequence
            .iter()
            .map(|line| match line.starts_with("bb") {
                true => format!("\n  {line}\n"),
                false => format!("    {line}\n"),
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

/// An instruction from its text; the target of a branch does not matter.
pub fn assembled(isa: &Isa, code: &str) -> Inst {
    let is_branch = ["s_branch", "s_cbranch"].iter().any(|name| code.trim().starts_with(name));
    let code = if is_branch { format!("{} 1", code.trim()) } else { code.to_owned() };
    let bytes = isa.assemble(&code).unwrap_or_else(|error| panic!("{code}: {error}"));
    isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{code}: {error}"))
}
