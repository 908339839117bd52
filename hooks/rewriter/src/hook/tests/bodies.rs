//! Tests of bodies and their instantiation with other registers.

use super::bench::{MACHINES, Numbers, range, register, shuffle};
use super::{Bench, bench};
use crate::hook::group::operands;
use crate::hook::{Argument, Assembler, Body, BodyInst, CompiledHooks, HookError, Renaming};
use crate::layout::{InsertedCode, Piece};
use flipwave_isa::{Pc, Register, RegisterRange};

/// A hook with arguments, result registers, and the expected result in a lane, computed from the words of
/// the arguments.
struct Example {
    text: &'static str,
    arguments: Vec<Argument>,
    results: Vec<RegisterRange>,
    expected: fn(&[u32], u32) -> Vec<u32>,
}

fn examples() -> Vec<Example> {
    vec![
        Example {
            text: "uint32_t f(uint32_t a, uint32_t b) { return a * 3 + b; }",
            arguments: vec![register("v7", 1), register("s9", 1)],
            results: vec![range("v9", 1)],
            expected: |words, _| vec![words[0].wrapping_mul(3).wrapping_add(words[1])],
        },
        Example {
            text: "uint64_t f(uint64_t a, uint64_t b) { return a * b; }",
            arguments: vec![register("v7", 2), register("s8", 2)],
            results: vec![range("v9", 2)],
            expected: |words, _| {
                let value = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
                let product = value(0).wrapping_mul(value(2));
                vec![product as u32, (product >> 32) as u32]
            },
        },
        Example {
            text: "static const uint32_t table[4] = { 11, 22, 33, 44 };\n\
                   uint32_t f(uint32_t a) { return table[a & 3] + flipwave_lane(); }",
            arguments: vec![register("v7", 1)],
            results: vec![range("v9", 1)],
            expected: |words, lane| vec![11 * (1 + (words[0] & 3)) + lane],
        },
        Example {
            text: "struct two { uint32_t a; float b; };\n\
                   struct two f(float x, uint32_t y) { return (struct two){ y ^ 5, x + 1.0f }; }",
            arguments: vec![register("v7", 1), register("v8", 1)],
            results: vec![range("v9", 1), range("v11", 1)],
            expected: |words, _| vec![words[1] ^ 5, (f32::from_bits(words[0]) + 1.0).to_bits()],
        },
        Example {
            text: "uint32_t f(uint32_t a) {\n\
                       uint32_t i = 0, s = 0; a &= 63;\n\
                       while (a > i) { if (a & 1) s += a * i; else s ^= i; i += 3; if (s == 77) return 5; }\n\
                       return s;\n}",
            arguments: vec![register("v7", 1)],
            results: vec![range("v9", 1)],
            expected: |words, _| {
                let (a, mut i, mut s) = (words[0] & 63, 0u32, 0u32);
                while a > i {
                    if a & 1 != 0 {
                        s = s.wrapping_add(a * i);
                    } else {
                        s ^= i;
                    }
                    i += 3;
                    if s == 77 {
                        return vec![5];
                    }
                }
                vec![s]
            },
        },
        Example {
            text: "uint32_t f(uint32_t a) { return a + 1; }",
            arguments: vec![register("s9", 1)],
            results: vec![range("s20", 1)],
            expected: |words, _| vec![words[0].wrapping_add(1)],
        },
        Example {
            text: "uint64_t f(uint64_t exec) { return ~exec; }",
            arguments: vec![register("vcc_lo", 2)],
            results: vec![range("vcc_lo", 2)],
            expected: |words, _| vec![!words[0], !words[1]],
        },
        Example {
            text: "typedef uint32_t words __attribute__((ext_vector_type(4)));\n\
                   words f(words a, uint64_t b) { return a.wzyx + (uint32_t)b; }",
            arguments: vec![register("v4", 4), register("s8", 2)],
            results: vec![range("v8", 4)],
            expected: |words, _| (0..4).rev().map(|at| words[at].wrapping_add(words[4])).collect(),
        },
    ]
}

/// Random values for each word of the inputs, per lane.
fn inputs(body: &Body, numbers: &mut Numbers) -> Vec<Vec<u32>> {
    let words = body.inputs.iter().flat_map(|range| range.iter());
    words
        .map(|register| match register {
            Register::Sgpr(_) => vec![numbers.next() as u32],
            _ => (0..64).map(|_| (numbers.next() >> 40) as u32).collect(),
        })
        .collect()
}

fn check(bench: &Bench, example: &Example, compiled: &CompiledHooks, names: &Renaming) -> bool {
    let mut numbers = Numbers(7);
    let inputs = inputs(&compiled.bodies[0], &mut numbers);
    let lanes = u32::from(bench.wave_size) - 3;
    let outcome = bench.run(compiled, names, &inputs, lanes);
    (0..lanes).all(|lane| {
        let words: Vec<u32> = inputs.iter().map(|row| row[lane as usize % row.len()]).collect();
        let expected = (example.expected)(&words, lane);
        let found: Vec<u32> =
            outcome.outputs.iter().take(expected.len()).map(|row| row[lane as usize]).collect();
        if expected != found {
            eprintln!("lane {lane}: expected {expected:x?}, found {found:x?}");
        }
        expected == found
    })
}

#[test]
fn hooks_compute_expected_results_with_any_registers() {
    for machine in MACHINES {
        let bench = bench(machine);
        for example in examples() {
            let compiled = bench
                .call(example.text, &example.arguments, &example.results, "s_nop 0")
                .unwrap_or_else(|error| panic!("{machine:?} {}: {error}", example.text));
            let mut numbers = Numbers(machine.1.into());
            for _ in 0..2 {
                let names = shuffle(&compiled.bodies[0], &mut numbers);
                assert!(
                    check(&bench, &example, &compiled, &names),
                    "{machine:?}: {}",
                    example.text
                );
            }
        }
    }
}

/// Cross-lane operations of the LDS unit do not access LDS.
#[test]
fn lanes_exchange_values() {
    let text = "uint32_t f(uint32_t a) {\n\
            uint32_t other = __builtin_amdgcn_ds_bpermute((flipwave_lane() ^ 6) * 4, a);\n\
            return other << 16 | __builtin_amdgcn_ds_swizzle(a, 1 << 10 | 31);\n}";
    for machine in MACHINES {
        let bench = bench(machine);
        let lanes = u32::from(machine.1);
        let compiled = bench.call(text, &[register("v7", 1)], &[range("v9", 1)], "s_nop 0");
        let compiled = compiled.unwrap_or_else(|error| panic!("{machine:?}: {error}"));
        let names = shuffle(&compiled.bodies[0], &mut Numbers(3));
        let outcome = bench.run(&compiled, &names, &[(100..164).collect()], lanes);
        let expected: Vec<u32> =
            (0..lanes).map(|lane| (100 + (lane ^ 6)) << 16 | (100 + (lane ^ 1))).collect();
        assert_eq!(outcome.outputs[0][..expected.len()], expected, "{machine:?}");
    }
}

fn no_indexed(
    access: crate::hook::IndexedAccess,
    _: &mut Assembler,
) -> Result<InsertedCode, HookError> {
    panic!("{access:?}")
}

/// The bodies of all examples.
fn bodies(bench: &Bench) -> Vec<Body> {
    let compile = |example: &Example| {
        bench.call(example.text, &example.arguments, &example.results, "s_nop 0")
    };
    examples().iter().map(|example| compile(example).expect("compiles").bodies.remove(0)).collect()
}

#[test]
fn renaming_changes_only_registers() {
    for machine in MACHINES {
        let bench = bench(machine);
        let isa = bench.isa();
        let mut assembler = Assembler::new(bench.isa());
        let mut numbers = Numbers(3);
        for body in bodies(&bench) {
            let names = shuffle(&body, &mut numbers);
            for inst in &body.instructions {
                let BodyInst::Inst { inst, bytes } = inst else { continue };
                assert_eq!(assembler.assemble(&inst.text).expect("assembles"), bytes, "{inst}");
                let text = names.text(&inst.text);
                let renamed = assembler.assemble(&text).expect("assembles").to_vec();
                let renamed = isa.decode(&renamed, inst.pc).expect("decodes");
                assert_eq!(renamed.operation, inst.operation);
                assert_eq!(renamed.modifiers, inst.modifiers);
                let expected: Vec<_> = operands(inst).map(|range| names.range(range)).collect();
                assert_eq!(operands(&renamed).collect::<Vec<_>>(), expected, "{inst}: {renamed}");
                assert_eq!(renamed.flags, inst.flags);
            }
        }
    }
}

#[test]
fn identity_renaming_preserves_the_bytes() {
    let bench = bench(("gfx90a", 64));
    let mut assembler = Assembler::new(bench.isa());
    for body in bodies(&bench) {
        let names = Renaming::identity();
        let code = body.instantiate(&names, &mut assembler, Pc(0), no_indexed).expect("code");
        let bytes: Vec<u8> = code
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Bytes(bytes) => Some(bytes.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        let original: Vec<u8> = body
            .instructions
            .iter()
            .filter_map(|inst| match inst {
                BodyInst::Inst { bytes, .. } => Some(bytes.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        assert_eq!(bytes, original);
    }
}

#[test]
fn missing_instruction_changes_the_result() {
    let bench = bench(("gfx90a", 64));
    let example = &examples()[0];
    let compiled = bench.call(example.text, &example.arguments, &example.results, "s_nop 0");
    let mut compiled = compiled.expect("compiles");
    let names = shuffle(&compiled.bodies[0], &mut Numbers(8));
    assert!(check(&bench, example, &compiled, &names));
    compiled.bodies[0].instructions.pop();
    assert!(!check(&bench, example, &compiled, &names));
}

#[test]
fn invalid_renamings_are_refused() {
    let bench = bench(("gfx90a", 64));
    let text = "uint64_t f(uint64_t a, uint32_t b) { return a * 5 + b; }";
    let arguments = [register("v2", 2), register("v4", 1)];
    let body = bench.body(text, &arguments, &[range("v2", 2)]).expect("compiles");
    let at = |range: RegisterRange| {
        body.groups.iter().position(|group| group.range.contains(range.first)).expect("a group")
    };
    let original: Vec<Register> = body.groups.iter().map(|group| group.range.first).collect();
    assert_eq!(
        Renaming::new(&body, &original).expect("the original registers"),
        Renaming::identity()
    );
    let with = |index: usize, name: &str| {
        let mut firsts = original.clone();
        firsts[index] = name.parse().expect("a register");
        Renaming::new(&body, &firsts).expect_err("wrong").to_string()
    };
    let pair = at(body.inputs[0]);
    assert!(with(pair, "v101").contains("must start at a multiple of 2, not v101"));
    assert!(with(pair, "s4").contains("cannot become s4 in another file"));
    assert!(with(pair, "v255").contains("does not fit at v255"));
    let error = with(at(body.inputs[1]), &original[pair].to_string());
    assert!(error.contains("would overlap"), "{error}");
    let error = Renaming::new(&body, &original[1..]).expect_err("too few").to_string();
    assert!(error.contains("registers are given for"), "{error}");
}

#[test]
fn matrix_operations_have_accumulation_registers_of_any_number() {
    let bench = bench(("gfx90a", 64));
    let text = "typedef float f4 __attribute__((ext_vector_type(4)));\n\
        f4 f(float a, float b, f4 c) {\n\
            f4 d = __builtin_amdgcn_mfma_f32_4x4x1f32(a, b, c, 0, 0, 0);\n\
            // The compiler prefers VGPRs.\n\
            __asm__ volatile(\"\" : \"+a\"(d));\n\
            return d;\n}";
    let arguments = [register("v2", 1), register("v3", 1), register("a0", 4)];
    let compiled = bench.call(text, &arguments, &[range("a0", 4)], "s_nop 0").expect("compiles");
    let body = &compiled.bodies[0];
    let accumulates =
        |group: &crate::hook::RegisterGroup| matches!(group.range.first, Register::AccVgpr(_));
    assert!(body.groups.iter().any(accumulates), "{:?}", body.groups);
    // The same in every lane: four products of equal blocks.
    let bits = |value: f32| vec![value.to_bits()];
    let inputs = [bits(2.0), bits(3.0), bits(1.0), bits(10.0), bits(20.0), bits(30.0)];
    let outcome = bench.run(&compiled, &shuffle(body, &mut Numbers(12)), &inputs, 64);
    let found: Vec<f32> = (0..4).map(|at| f32::from_bits(outcome.outputs[at][5])).collect();
    assert_eq!(found, [7.0, 16.0, 26.0, 36.0]);
}

#[test]
#[ignore = "measures: cargo test --release -p flipwave-hooks -- --ignored --nocapture instances"]
fn instances_per_second() {
    let bench = bench(("gfx90a", 64));
    let mut assembler = Assembler::new(bench.isa());
    let mut numbers = Numbers(1);
    let bodies = bodies(&bench);
    let names: Vec<Renaming> = bodies.iter().map(|body| shuffle(body, &mut numbers)).collect();
    let mut count = 0;
    let mut start = std::time::Instant::now();
    for round in 0..2001 {
        if round == 1 {
            (count, start) = (0, std::time::Instant::now());
        }
        for (body, names) in bodies.iter().zip(&names) {
            body.instantiate(names, &mut assembler, Pc(0), no_indexed).expect("code");
            count += body.instructions.len();
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("{rate:.0} instructions per second");
}
