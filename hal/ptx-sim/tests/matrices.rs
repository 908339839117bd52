//! Matrix products, compared with products of whole matrices on the host.

use crate::common::forms::Random;
use crate::common::{Bench, arguments};
use flipwave_arch::{Instruction, MatrixElement, SumPart};
use flipwave_device::{Completion, WaveId};
use flipwave_machine::{Executed, Machine, Observer, Progress, SummedElement, Watch, WaveState};
use half::{bf16, f16};

/// Computes each element of a product before the instruction, and compares it with the result.
#[derive(Default)]
struct Sums {
    summed: Vec<SummedElement>,
    elements: usize,
}

impl Observer for Sums {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, _: &dyn Instruction, _: WaveId, state: &mut dyn WaveState) {
        let Some(shape) = state.matrix_shape() else { return };
        for row in 0..shape.rows {
            for column in 0..shape.columns {
                let element = MatrixElement { block: 0, row, column };
                let mut parts = Vec::new();
                let summed = state.sum_matrix_element(element, &mut |part, step, bits| {
                    parts.push((part, step));
                    bits
                });
                self.summed.push(summed.expect("an element"));
                let steps = (0..shape.products)
                    .flat_map(|step| [(SumPart::Product, step), (SumPart::PartialSum, step)]);
                let expected: Vec<_> =
                    [(SumPart::Accumulator, 0)].into_iter().chain(steps).collect();
                assert_eq!(parts, expected);
            }
        }
    }

    fn after(&mut self, _: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        for summed in self.summed.drain(..) {
            assert!(!state.write_matrix_element(&summed), "another result");
            self.elements += 1;
        }
        Watch::On
    }
}

/// A form: shape, and types of D, A, B and C.
struct Case {
    shape: [usize; 3],
    types: [&'static str; 4],
    /// Bits that are flipped in the first register of A, after the expected result was computed.
    damage: u64,
}

fn bits(kind: &str) -> usize {
    match kind {
        "f64" => 64,
        "f32" | "s32" | "tf32" => 32,
        "f16" | "bf16" => 16,
        _ => 8,
    }
}

/// Small numbers whose products and sums are exact in every type.
fn encode(kind: &str, value: i32) -> u64 {
    match kind {
        "f64" => f64::from(value).to_bits(),
        "f32" | "tf32" => (value as f32).to_bits().into(),
        "f16" => f16::from_f32(value as f32).to_bits().into(),
        "bf16" => bf16::from_f32(value as f32).to_bits().into(),
        "s32" => (value as u32).into(),
        "u8" | "s8" => (value as u8).into(),
        "e4m3" => small(value, 7, 3),
        "e5m2" => small(value, 15, 2),
        _ => panic!("{kind}"),
    }
}

/// A number from -7 to 7 with a bias and bits of fraction.
fn small(value: i32, bias: u64, fraction: u32) -> u64 {
    let sign = u64::from(value < 0) << 7;
    let magnitude = value.unsigned_abs();
    match magnitude.checked_ilog2() {
        None => sign,
        Some(exponent) => {
            let rest = u64::from(magnitude - (1 << exponent)) << fraction >> exponent;
            sign | (bias + u64::from(exponent)) << fraction | rest
        }
    }
}

fn check(case: &Case) {
    let [rows, columns, products] = case.shape;
    let mut random = Random(17);
    let least = if case.types[1].starts_with('u') { 0 } else { -3 };
    let mut matrix = |count: usize| -> Vec<i32> {
        (0..count).map(|_| least + (random.next() % 4) as i32).collect()
    };
    let (a, b, c) = (matrix(rows * products), matrix(products * columns), matrix(rows * columns));
    let [d_kind, a_kind, b_kind, c_kind] = case.types;
    // The fragments of the manual: which element each part of each register of a lane is.
    let left = |lane: usize, register: usize, part: usize, width: usize| {
        let (row, block) = if rows == 16 {
            (lane / 4 + register % 2 * 8, register / 2)
        } else {
            (lane / 4, register)
        };
        a[row * products + lane % 4 * width + part + block * 4 * width]
    };
    let right = |lane: usize, register: usize, part: usize, width: usize| {
        b[(lane % 4 * width + part + register * 4 * width) * columns + lane / 4]
    };
    let sums = |lane: usize, register: usize, part: usize, width: usize| {
        let element = register * width + part;
        (lane / 4 + element / 2 * 8) * columns + lane % 4 * 2 + element % 2
    };
    let count = |size: usize, kind: &str| size / 32 / (32 / bits(kind)).max(1);
    let word = |kind: &str, value: &dyn Fn(usize, usize) -> i32| {
        let width = (32 / bits(kind)).max(1);
        (0..width)
            .fold(0, |word, part| word | encode(kind, value(part, width)) << (bits(kind) * part))
    };
    let counts = [
        count(rows * columns, d_kind),
        count(rows * products, a_kind),
        count(products * columns, b_kind),
        count(rows * columns, c_kind),
    ];
    let mut input = Vec::new();
    for lane in 0..32 {
        let mut words = Vec::new();
        words.extend(
            (0..counts[1]).map(|r| word(a_kind, &|part, width| left(lane, r, part, width))),
        );
        words.extend(
            (0..counts[2]).map(|r| word(b_kind, &|part, width| right(lane, r, part, width))),
        );
        words.extend(
            (0..counts[3]).map(|r| word(c_kind, &|part, width| c[sums(lane, r, part, width)])),
        );
        words.resize(32, 0);
        input.extend(words);
    }
    input[0] ^= case.damage;
    let names = |prefix: &str, count: usize, from: usize| {
        let names: Vec<String> = (from..from + count).map(|n| format!("%{prefix}{n}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let (width, prefix) = if bits(a_kind) == 64 { ("b64", "d") } else { ("b32", "r") };
    let total = counts[1] + counts[2] + counts[3];
    let loads: String = (0..total)
        .map(|n| format!("ld.global.{width} %{prefix}{n}, [%address+{}];\n", 8 * n))
        .collect();
    let stores: String = (0..counts[0])
        .map(|n| format!("st.global.{width} [%result+{}], %{prefix}{};\n", 8 * n, total + n))
        .collect();
    let inst = format!(
        "mma.sync.aligned.m{rows}n{columns}k{products}.row.col.{} {}, {}, {}, {}",
        case.types.join("."),
        names(prefix, counts[0], total),
        names(prefix, counts[1], 0),
        names(prefix, counts[2], counts[1]),
        names(prefix, counts[3], counts[1] + counts[2]),
    );
    let text = format!(
        ".version 8.4\n.target sm_90\n.address_size 64\n.entry k(.param .u64 in, .param .u64 out) {{ .reg \
         .b64 %address, %result, %d<40>; .reg .b32 %r<40>, %t; ld.param.u64 %address, [in]; ld.param.u64 \
         %result, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %address, %t, 256, %address; mad.wide.u32 %result, \
         %t, 64, %result;\n{loads}{inst};\n{stores}ret; }}"
    );
    let mut bench = Bench::new(&text);
    let input = bench.buffer(&arguments(&input));
    let output = bench.buffer(&[0; 64 * 32]);
    let dispatch = bench.dispatch("k", 32, 32, &arguments(&[input.0, output.0]));
    let mut execution = bench.gpu.begin(&dispatch).expect("a dispatch");
    let mut observer = Sums::default();
    let end = bench.gpu.advance(&mut execution, &mut observer, u64::MAX).expect("an end");
    assert!(matches!(end, Progress::Ended(Completion::Completed(_))), "{inst}: {end:?}");
    assert_eq!(observer.elements, rows * columns, "{inst}");
    let found = bench.read(output, 64 * 32);
    for lane in 0..32 {
        for register in 0..counts[0] {
            let expected = word(d_kind, &|part, width| {
                let place = sums(lane, register, part, width);
                let (row, column) = (place / columns, place % columns);
                let products =
                    (0..products).map(|k| a[row * products + k] * b[k * columns + column]);
                c[place] + products.sum::<i32>()
            });
            let bytes = &found[lane * 64 + register * 8..][..8];
            let found = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            assert_eq!(found, expected, "{inst}: lane {lane}, register {register}");
        }
    }
}

#[test]
fn products_are_those_of_whole_matrices() {
    let cases: [([usize; 3], [&str; 4]); 17] = [
        ([16, 8, 8], ["f32", "f16", "f16", "f32"]),
        ([16, 8, 16], ["f32", "f16", "f16", "f32"]),
        ([16, 8, 16], ["f16", "f16", "f16", "f16"]),
        ([16, 8, 16], ["f32", "bf16", "bf16", "f32"]),
        ([16, 8, 8], ["f32", "bf16", "bf16", "f32"]),
        ([16, 8, 4], ["f32", "tf32", "tf32", "f32"]),
        ([16, 8, 8], ["f32", "tf32", "tf32", "f32"]),
        ([8, 8, 4], ["f64", "f64", "f64", "f64"]),
        ([16, 8, 4], ["f64", "f64", "f64", "f64"]),
        ([16, 8, 16], ["f64", "f64", "f64", "f64"]),
        ([8, 8, 16], ["s32", "s8", "s8", "s32"]),
        ([16, 8, 16], ["s32", "u8", "u8", "s32"]),
        ([16, 8, 32], ["s32", "s8", "s8", "s32"]),
        ([16, 8, 32], ["s32", "u8", "u8", "s32"]),
        ([16, 8, 32], ["f32", "e4m3", "e4m3", "f32"]),
        ([16, 8, 32], ["f32", "e5m2", "e4m3", "f32"]),
        ([16, 8, 16], ["f16", "e5m2", "e5m2", "f16"]),
    ];
    for (shape, types) in cases {
        check(&Case { shape, types, damage: 0 });
    }
}

/// Negative control: a changed element of A is noticed.
#[test]
#[should_panic(expected = "mma.sync")]
fn wrong_products_are_noticed() {
    let types = ["f32", "f16", "f16", "f32"];
    check(&Case { shape: [16, 8, 16], types, damage: 0x4000 });
}
