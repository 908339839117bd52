//! Constants that NVIDIA's assembler computes: a second opinion on the results of operations.
//!
//! `ptxas` and `nvdisasm` come with Triton and need no GPU. Without them, these tests are skipped.

use flipwave_device::{Completion, Dispatch};
use flipwave_machine::{Machine, Progress, Unobserved};
use flipwave_ptx::{Ptx, parse};
use flipwave_ptx_sim::PtxGpu;
use flipwave_tests::Python;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operands of an instruction.
type Operands = [u64; 3];

/// Operations on 32-bit words: `%x` is the result, `%a` to `%c` are operands.
const WORDS: [&str; 63] = [
    "add.u32 %x, %a, %b",
    "sub.s32 %x, %a, %b",
    "add.sat.s32 %x, %a, %b",
    "sub.sat.s32 %x, %a, %b",
    "mul.lo.u32 %x, %a, %b",
    "mul.hi.u32 %x, %a, %b",
    "mul.hi.s32 %x, %a, %b",
    "mul24.lo.s32 %x, %a, %b",
    "mad.lo.s32 %x, %a, %b, %c",
    "mad.hi.u32 %x, %a, %b, %c",
    "sad.s32 %x, %a, %b, %c",
    "sad.u32 %x, %a, %b, %c",
    "min.s32 %x, %a, %b",
    "max.u32 %x, %a, %b",
    "abs.s32 %x, %a",
    "neg.s32 %x, %a",
    "not.b32 %x, %a",
    "cnot.b32 %x, %a",
    "and.b32 %x, %a, %b",
    "or.b32 %x, %a, %b",
    "xor.b32 %x, %a, %b",
    "lop3.b32 %x, %a, %b, %c, 0x1d",
    "shl.b32 %x, %a, %b",
    "shr.u32 %x, %a, %b",
    "shr.s32 %x, %a, %b",
    "shf.l.wrap.b32 %x, %a, %b, %c",
    "shf.r.clamp.b32 %x, %a, %b, %c",
    "bfe.u32 %x, %a, %b, %c",
    "bfe.s32 %x, %a, %b, %c",
    "bfi.b32 %x, %a, %b, %c, 7",
    "bfind.u32 %x, %a",
    "bfind.shiftamt.s32 %x, %a",
    "brev.b32 %x, %a",
    "clz.b32 %x, %a",
    "popc.b32 %x, %a",
    "prmt.b32 %x, %a, %b, 0x8a3f",
    "prmt.b32.f4e %x, %a, %b, %c",
    "prmt.b32.rc16 %x, %a, %b, %c",
    "cvt.u32.u16 %x, %h",
    "cvt.s32.s8 %x, %a",
    "cvt.sat.u32.s32 %x, %a",
    "cvt.rni.s32.f32 %x, %fa",
    "cvt.rzi.u32.f32 %x, %fa",
    "cvt.rmi.s32.f32 %x, %fa",
    "cvt.rpi.ftz.s32.f32 %x, %fa",
    "cvt.rn.f32.s32 %fx, %a",
    "cvt.rz.f32.u32 %fx, %a",
    "cvt.rni.f32.f32 %fx, %fa",
    "add.rn.f32 %fx, %fa, %fb",
    "add.rz.f32 %fx, %fa, %fb",
    "add.ftz.f32 %fx, %fa, %fb",
    "sub.rm.f32 %fx, %fa, %fb",
    "mul.rn.f32 %fx, %fa, %fb",
    "mul.rp.ftz.f32 %fx, %fa, %fb",
    "mul.sat.f32 %fx, %fa, %fb",
    "fma.rn.f32 %fx, %fa, %fb, %fc",
    "fma.rz.ftz.f32 %fx, %fa, %fb, %fc",
    "min.f32 %fx, %fa, %fb",
    "max.NaN.f32 %fx, %fa, %fb",
    "neg.f32 %fx, %fa",
    "abs.ftz.f32 %fx, %fa",
    "copysign.f32 %fx, %fa, %fb",
    "rcp.rn.f32 %fx, %fa",
];

/// Operations whose operands or results have 64 or 16 bits: `%d`, `%e` and `%f64` names have 64 bits, `%h` and `%g`
/// 16.
const OTHERS: [&str; 40] = [
    "add.s64 %dx, %da, %db",
    "mul.lo.s64 %dx, %da, %db",
    "mul.hi.u64 %dx, %da, %db",
    "mul.hi.s64 %dx, %da, %db",
    "mul.wide.s32 %dx, %a, %b",
    "mad.wide.u32 %dx, %a, %b, %dc",
    "shl.b64 %dx, %da, %b",
    "shr.s64 %dx, %da, %b",
    "min.s64 %dx, %da, %db",
    "abs.s64 %dx, %da",
    "popc.b64 %x, %da",
    "clz.b64 %x, %da",
    "bfe.u64 %dx, %da, %b, %c",
    "bfi.b64 %dx, %da, %db, 3, 40",
    "brev.b64 %dx, %da",
    "div.s64 %dx, %da, 7",
    "rem.u64 %dx, %da, 10",
    "div.u32 %x, %a, 7",
    "rem.s32 %x, %a, -3",
    "add.rn.f64 %ex, %ea, %eb",
    "mul.rn.f64 %ex, %ea, %eb",
    "fma.rn.f64 %ex, %ea, %eb, %ec",
    "min.f64 %ex, %ea, %eb",
    "cvt.f64.f32 %ex, %fa",
    "cvt.rn.f32.f64 %fx, %ea",
    "cvt.rz.f32.f64 %fx, %ea",
    "cvt.rzi.s32.f64 %x, %ea",
    "cvt.rn.f64.s64 %ex, %da",
    "cvt.rn.f32.u64 %fx, %da",
    "cvt.rzi.s64.f32 %dx, %fa",
    "cvt.s64.s32 %dx, %a",
    "cvt.rn.f16.f32 %hx, %fa",
    "cvt.rz.f16.f32 %hx, %fa",
    "cvt.f32.f16 %fx, %h",
    "cvt.rn.bf16.f32 %hx, %fa",
    "add.rn.f16 %hx, %h, %g",
    "mul.rn.f16 %hx, %h, %g",
    "fma.rn.f16 %hx, %h, %g, %h",
    "add.s16 %hx, %h, %g",
    "mul.wide.s16 %x, %h, %g",
];

/// Approximations, with the largest error of the manual in units of the last place of single precision for results
/// near 1, or relative to the result.
const APPROXIMATIONS: [(&str, f64); 8] = [
    ("ex2.approx.f32 %fx, %fa", 2.0),
    ("lg2.approx.f32 %fx, %fa", 2.0),
    ("rcp.approx.f32 %fx, %fa", 1.0),
    ("rsqrt.approx.f32 %fx, %fa", 2.0),
    ("sqrt.approx.f32 %fx, %fa", 2.0),
    ("sin.approx.f32 %fx, %fa", 8.0),
    ("cos.approx.f32 %fx, %fa", 8.0),
    ("div.full.f32 %fx, %fa, %fb", 2.0),
];

/// Values of operands: small amounts, ends of the types, and numbers of every class.
const VALUES: [u64; 20] = [
    0,
    1,
    5,
    31,
    32,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1234_5678,
    0x3f80_0000,
    0xc049_0fdb,
    0x3fc0_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_1234,
    0x7f80_0001,
    0x0000_0001,
    0x807f_ffff,
    0x7f7f_ffff,
    0x4f00_0000,
];

/// A kernel that stores the result of an instruction.
fn kernel(name: &str, case: &Constant) -> String {
    let Constant { inst, operands: [a, b, c], word } = case;
    let word = *word;
    let result = inst.split([' ', ',']).nth(1).expect("a result");
    // Words of a wider result.
    let join = match result {
        "%dx" => "mov.b64 {%x, %y}, %dx;",
        "%ex" => "mov.b64 {%x, %y}, %ex;",
        "%hx" => "cvt.u32.u16 %x, %hx;",
        "%fx" => "mov.b32 %x, %fx;",
        _ => "",
    };
    let stored = if word == 1 { "%y" } else { "%x" };
    format!(
        ".visible .entry {name}(.param .u64 out) {{ .reg .b64 %out; .reg .b32 %x, %y, %a, %b, %c; .reg .f32 \
         %fx, %fa, %fb, %fc; .reg .b16 %h, %g, %hx; .reg .b64 %da, %db, %dc, %dx; .reg .f64 %ea, %eb, %ec, %ex; \
         ld.param.u64 %out, [out]; mov.b32 %a, {a:#x}; mov.b32 %b, {b:#x}; mov.b32 \
         %c, {c:#x}; mov.b32 %fa, %a; mov.b32 %fb, %b; mov.b32 %fc, %c; cvt.u16.u32 %h, %a; \
         shr.u32 %y, %b, 16; cvt.u16.u32 %g, %y; mov.b64 %da, {{%b, %a}}; mov.b64 %db, {{%c, %b}}; mov.b64 %dc, \
         {{%a, %c}}; mov.b64 %ea, %da; mov.b64 %eb, %db; mov.b64 %ec, %dc;\n{inst};\n{join} st.global.b32 [%out], {stored}; ret; }}\n"
    )
}

/// An instruction whose result is a constant.
struct Constant {
    inst: &'static str,
    operands: Operands,
    /// Number of the stored word of the result.
    word: usize,
}

fn module(kernels: &[Constant]) -> String {
    let mut text = ".version 7.8\n.target sm_80\n.address_size 64\n".to_owned();
    for (number, case) in kernels.iter().enumerate() {
        text += &kernel(&format!("k{number}"), case);
    }
    text
}

/// The folder of NVIDIA's programs in Triton's package.
pub(super) fn programs() -> Option<PathBuf> {
    let python = Python::find()?;
    let found = python.run("tests/ptx/programs.py", &[] as &[&str]);
    let folder = PathBuf::from(found.trim());
    let is_complete = ["ptxas", "nvdisasm"].iter().all(|name| folder.join(name).is_file());
    if !is_complete {
        eprintln!("SKIPPED: {} has no ptxas and nvdisasm", folder.display());
    }
    is_complete.then_some(folder)
}

/// Assembles a module for a target.
///
/// # Errors
/// The assembler's message.
pub(super) fn assemble(
    programs: &Path,
    text: &str,
    target: &str,
    out: &Path,
) -> Result<(), String> {
    let source = out.with_extension("ptx");
    std::fs::write(&source, text).expect("written");
    let mut command = Command::new(programs.join("ptxas"));
    command.arg(format!("-arch={target}")).arg(&source).arg("-o").arg(out);
    let output = command.output().expect("ptxas starts");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The constant that each kernel stores, if the assembler computed it.
fn stored_constants(programs: &Path, object: &Path) -> BTreeMap<String, u32> {
    let output = Command::new(programs.join("nvdisasm")).arg("-c").arg(object).output();
    let text = String::from_utf8(output.expect("nvdisasm starts").stdout).expect("text");
    let mut constants = BTreeMap::new();
    let mut kernel = None;
    // Known values of registers; other writers remove them.
    let mut registers: BTreeMap<String, u32> = BTreeMap::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix(".section\t.text.") {
            let end = name.find(',').unwrap_or(name.len());
            kernel = Some(name[..end].to_owned());
            registers.clear();
        }
        let Some((_, inst)) = line.trim().strip_prefix("/*").and_then(|rest| rest.split_once("*/"))
        else {
            continue;
        };
        let inst = inst.trim().trim_end_matches(';').trim();
        let (opcode, rest) = inst.split_once(' ').unwrap_or((inst, ""));
        let operands: Vec<&str> = rest.split(',').map(str::trim).collect();
        let value = |operand: &str| match operand {
            "RZ" => Some(0),
            name if name.starts_with('R') => registers.get(name).copied(),
            number => {
                number.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok())
            }
        };
        match (opcode, &operands[..]) {
            ("STG.E", [_, stored]) => {
                if let (Some(kernel), Some(value)) = (kernel.take(), value(stored)) {
                    constants.insert(kernel, value);
                }
            }
            ("MOV", [to, from]) | ("IMAD.MOV.U32", [to, "RZ", "RZ", from]) => {
                match value(from) {
                    Some(value) => registers.insert((*to).to_owned(), value),
                    None => registers.remove(*to),
                };
            }
            // A word as two numbers in half precision.
            ("HFMA2.MMA" | "HFMA2", [to, "-RZ", "RZ", high, low]) => {
                let half = |text: &str| {
                    let number = match text {
                        "+INF" | "INF" => f64::INFINITY,
                        "-INF" => f64::NEG_INFINITY,
                        other => other.parse().ok()?,
                    };
                    Some(u32::from(half::f16::from_f64(number).to_bits()))
                };
                match (half(high), half(low)) {
                    (Some(high), Some(low)) if !high.is_multiple_of(0x8000) || high == 0 => {
                        registers.insert((*to).to_owned(), high << 16 | low)
                    }
                    _ => registers.remove(*to),
                };
            }
            ("CS2R", [to, "SRZ"]) => {
                let next = to[1..].parse::<u32>().map(|number| format!("R{}", number + 1));
                registers.insert((*to).to_owned(), 0);
                registers.extend(next.ok().map(|next| (next, 0)));
            }
            // Everything else may write its first operand and the next register.
            (_, [to, ..]) => {
                registers.remove(*to);
                if let Some(number) =
                    to.strip_prefix('R').and_then(|number| number.parse::<u32>().ok())
                {
                    registers.remove(&format!("R{}", number + 1));
                }
            }
            (_, []) => {}
        }
    }
    constants
}

/// Executes each kernel, and returns the stored word.
fn executed(text: &str, kernels: usize) -> Vec<u32> {
    let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut gpu = PtxGpu::new(Ptx::new("sm_80").expect("a target"));
    let module = gpu.load(&module).expect("a module");
    let out = gpu.allocate(4).expect("memory");
    let run = |number: usize| {
        let dispatch = Dispatch {
            module,
            kernel: format!("k{number}"),
            grid: [1; 3],
            workgroup: [1; 3],
            kernarg: out.0.to_le_bytes().to_vec(),
            dynamic_lds: 0,
            instruction_limit: 1000,
            queued: None,
            is_cooperative: false,
        };
        let mut execution = gpu.begin(&dispatch).expect("a dispatch");
        let end = gpu.advance(&mut execution, &mut Unobserved, u64::MAX).expect("an end");
        assert!(matches!(end, Progress::Ended(Completion::Completed(_))), "k{number}: {end:?}");
        let mut bytes = [0; 4];
        gpu.read(out, &mut bytes).expect("a result");
        u32::from_le_bytes(bytes)
    };
    (0..kernels).map(run).collect()
}

/// Each instruction with operands from the table.
fn cases(insts: impl Iterator<Item = &'static str>) -> Vec<Constant> {
    let mut all = Vec::new();
    for (number, inst) in insts.enumerate() {
        let words = if inst.contains("%dx") || inst.contains("%ex") { 0..2 } else { 0..1 };
        for first in 0..VALUES.len() {
            let value = |step: usize| VALUES[(first * step + number) % VALUES.len()];
            let operands = [VALUES[first], value(3), value(7)];
            all.extend(words.clone().map(|word| Constant { inst, operands, word }));
        }
    }
    all
}

/// A constant of the assembler and a result of execution.
struct Pair<'a> {
    case: &'a Constant,
    constant: u32,
    result: u32,
}

/// Assembles and executes instructions. Returns those whose result is a constant, and their number by operation.
fn pairs<'a>(programs: &Path, cases: &'a [Constant]) -> Vec<Pair<'a>> {
    let folder = tempfile::tempdir().expect("a folder");
    let text = module(cases);
    let object = folder.path().join("constants.cubin");
    assemble(programs, &text, "sm_80", &object).unwrap_or_else(|error| panic!("{error}"));
    let constants = stored_constants(programs, &object);
    let results = executed(&text, cases.len());
    let mut found = Vec::new();
    for (number, (case, result)) in cases.iter().zip(results).enumerate() {
        let constant = constants.get(&format!("k{number}")).copied();
        found.extend(constant.map(|constant| Pair { case, constant, result }));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    found.iter().for_each(|pair| *counts.entry(pair.case.inst).or_default() += 1);
    println!("{} constants of {} operations", found.len(), counts.len());
    let missing = cases.iter().map(|case| case.inst).filter(|inst| !counts.contains_key(inst));
    println!("none of {:?}", missing.collect::<std::collections::BTreeSet<_>>());
    found
}

/// Returns `true` if the manual permits both results.
fn is_open(case: &Constant, constant: u32, result: u32) -> bool {
    let [_, position, length] = case.operands;
    match case.inst.split(['.', ' ']).next() {
        // Which NaN becomes of another one.
        Some("abs" | "neg" | "cvt") => is_nan(constant) && is_nan(result),
        // Position and length must be below 256: the manual uses their lowest bits, the assembler all bits.
        Some("bfe") => position.max(length) > 255,
        _ => false,
    }
}

fn is_nan(bits: u32) -> bool {
    f32::from_bits(bits).is_nan()
}

#[test]
fn constants_of_the_assembler_are_the_results_of_execution() {
    let Some(programs) = programs() else { return };
    let cases = cases(WORDS.into_iter().chain(OTHERS));
    let pairs = pairs(&programs, &cases);
    let mut wrong = String::new();
    for Pair { case, constant, result } in &pairs {
        if constant != result && !is_open(case, *constant, *result) {
            let (inst, operands, word) = (case.inst, case.operands, case.word);
            let _ = writeln!(
                wrong,
                "{inst} on {operands:x?}, word {word}: {result:#x}, ptxas has {constant:#x}"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(pairs.len() > 900, "{}", pairs.len());
    // Negative control: the results of the operands before.
    let shifted = pairs.iter().zip(pairs.iter().skip(1));
    let noticed = shifted.filter(|(pair, next)| pair.constant != next.result).count();
    assert!(noticed > pairs.len() / 2, "{noticed}");
}

#[test]
fn approximations_of_the_assembler_are_near_the_results_of_execution() {
    let Some(programs) = programs() else { return };
    let cases = cases(APPROXIMATIONS.into_iter().map(|(inst, _)| inst));
    for Pair { case, constant, result } in pairs(&programs, &cases) {
        let (_, units) = APPROXIMATIONS.iter().find(|(inst, _)| *inst == case.inst).expect("known");
        let [found, expected] = [result, constant].map(|bits| f64::from(f32::from_bits(bits)));
        let limit = units * f64::from(f32::EPSILON) * expected.abs().max(1.0);
        let is_near = found == expected || (found - expected).abs() <= limit;
        let (inst, operands) = (case.inst, case.operands);
        assert!(
            is_near || is_nan(constant) && is_nan(result),
            "{inst} on {operands:x?}: {found:e}, ptxas has {expected:e}"
        );
    }
}
