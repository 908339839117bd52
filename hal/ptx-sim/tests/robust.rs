//! Arbitrary instructions end in results, faults or gaps, never in a panic.

use crate::common::forms::Random;
use crate::common::{compile, source};
use flipwave_depth::cases;
use flipwave_device::{Dispatch, ModuleId};
use flipwave_machine::{Machine, Unobserved};
use flipwave_ptx::{OPCODES, Ptx, parse};
use flipwave_ptx_sim::PtxGpu;

const MODIFIERS: [&str; 72] = [
    "s8",
    "u8",
    "b8",
    "s16",
    "u16",
    "b16",
    "s32",
    "u32",
    "b32",
    "s64",
    "u64",
    "b64",
    "b128",
    "f16",
    "f16x2",
    "bf16",
    "bf16x2",
    "f32",
    "f64",
    "pred",
    "tf32",
    "u16x2",
    "f32x2",
    "rn",
    "rz",
    "rzi",
    "rni",
    "ftz",
    "sat",
    "approx",
    "lo",
    "hi",
    "wide",
    "cc",
    "eq",
    "ltu",
    "and",
    "xor",
    "l",
    "wrap",
    "clamp",
    "sync",
    "idx",
    "bfly",
    "ballot",
    "any",
    "all",
    "add",
    "cas",
    "inc",
    "max",
    "shared",
    "global",
    "local",
    "param",
    "const",
    "v2",
    "v4",
    "v8",
    "to",
    "red",
    "popc",
    "async",
    "aligned",
    "m16n8k16",
    "m8n8",
    "row",
    "col",
    "x4",
    "f4e",
    "relu",
    "satfinite",
];

const OPERANDS: [&str; 34] = [
    "%h1",
    "%h2",
    "%r1",
    "%r2",
    "%r3",
    "%d1",
    "%d2",
    "%p1",
    "%p2",
    "!%p1",
    "%b1",
    "%e",
    "0",
    "-1",
    "5",
    "255",
    "0f3F800000",
    "0d3FF0000000000000",
    "%tid.x",
    "%laneid",
    "s",
    "g",
    "l",
    "_",
    "[%d1]",
    "[%r1+4]",
    "[s]",
    "[l]",
    "[g+1]",
    "{%r1, %r2}",
    "{%d1, %d2}",
    "{%r1, %r2, %r3, %r1}",
    "%r1|%p1",
    "%p1|%p2",
];

fn run(inst: &str) {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .u32 s[8]; .global .u64 g[4];\n.entry k() {{ \
         .local .u64 l[4]; .reg .b16 %h<3>; .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .pred %p<3>; .reg .b128 \
         %b<2>; .reg .f64 %e; mov.u32 %r1, %laneid; mov.u32 %r2, 0x80000001; not.b64 %d1, %d1; mov.u64 %d2, g; \
         setp.gt.u32 %p1, %r1, 16; mov.u16 %h1, 0x8000;\n{inst};\nret; }}"
    );
    let Ok(module) = parse(&text) else { return };
    let mut gpu = PtxGpu::new(Ptx::new("sm_90").expect("a target"));
    if gpu.load(&module).is_err() {
        return;
    }
    let dispatch = Dispatch {
        module: ModuleId(0),
        kernel: "k".to_owned(),
        grid: [40, 1, 1],
        workgroup: [40, 1, 1],
        kernarg: Vec::new(),
        dynamic_lds: 0,
        instruction_limit: 1000,
        queued: None,
        is_cooperative: false,
    };
    let mut execution = gpu.begin(&dispatch).expect("a dispatch");
    gpu.advance(&mut execution, &mut Unobserved, u64::MAX).expect("an end");
}

#[test]
fn arbitrary_instructions_do_not_panic() {
    let mut random = Random(23);
    let mut pick = |count: usize| random.next() as usize % count;
    for _ in cases(0..600, 4) {
        for row in OPCODES {
            let mut inst = row.name.to_owned();
            for _ in 0..pick(5) {
                inst += ".";
                inst += MODIFIERS[pick(MODIFIERS.len())];
            }
            let operands: Vec<&str> =
                (0..pick(6)).map(|_| OPERANDS[pick(OPERANDS.len())]).collect();
            let text = format!("{inst} {}", operands.join(", "));
            let result = std::panic::catch_unwind(|| run(&text));
            assert!(result.is_ok(), "{text}");
        }
    }
}

/// Operands that fit, with every type and modifier.
#[test]
fn arbitrary_modifiers_do_not_panic() {
    let mut random = Random(29);
    let mut pick = |count: usize| random.next() as usize % count;
    let widths = ["%h1", "%r1", "%d1", "%p1", "%e"];
    for _ in cases(0..300, 4) {
        for row in OPCODES {
            let mut inst = row.name.to_owned();
            for _ in 0..1 + pick(3) {
                inst += ".";
                inst += MODIFIERS[pick(MODIFIERS.len())];
            }
            let operands: Vec<&str> =
                (0..1 + pick(5)).map(|_| widths[pick(widths.len())]).collect();
            let text = format!("@%p1 {inst} {}", operands.join(", "));
            let result = std::panic::catch_unwind(|| run(&text));
            assert!(result.is_ok(), "{text}");
        }
    }
}

/// Modules of clang with changed bytes, as far as they can be loaded.
#[test]
fn damaged_modules_do_not_panic() {
    let text = compile(&source("kernels.cu"), "sm_80", &["-O1"]);
    let mut random = Random(31);
    let mut pick = |count: usize| random.next() as usize % count;
    let words: Vec<&str> = text.split_whitespace().collect();
    for _ in cases(0..2000, 4) {
        let mut changed = text.clone();
        for _ in 0..1 + pick(3) {
            let (from, to) = (words[pick(words.len())], words[pick(words.len())]);
            changed = match pick(2) {
                0 => changed.replacen(from, to, 1),
                _ => changed.replace(from, to),
            };
        }
        let result = std::panic::catch_unwind(|| run_all(&changed));
        assert!(result.is_ok(), "{changed}");
    }
}

/// Executes all kernels of a module.
fn run_all(text: &str) {
    let Ok(module) = parse(text) else { return };
    let mut gpu = PtxGpu::new(Ptx::new("sm_80").expect("a target"));
    let Ok(module) = gpu.load(&module) else { return };
    let buffer = gpu.allocate(1024).expect("memory");
    let program = gpu.program(module).expect("a module");
    let kernels: Vec<String> =
        program.code.kernels().map(|kernel| kernel.name.to_string()).collect();
    for kernel in kernels {
        let dispatch = Dispatch {
            module,
            kernel,
            grid: [128, 1, 1],
            workgroup: [64, 1, 1],
            kernarg: [buffer.0; 8].iter().flat_map(|word| word.to_le_bytes()).collect(),
            dynamic_lds: 64,
            instruction_limit: 2000,
            queued: None,
            is_cooperative: false,
        };
        if let Ok(mut execution) = gpu.begin(&dispatch) {
            gpu.advance(&mut execution, &mut Unobserved, u64::MAX).expect("an end");
        }
    }
}
