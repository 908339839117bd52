//! Matrix products of warpgroups, compared with products of whole matrices on the host.

use crate::common::forms::Random;
use crate::common::{Bench, arguments};
use half::{bf16, f16};
use std::fmt::Write;

const ROWS: usize = 64;

/// Start of A and of B in shared memory. Swizzling patterns begin at multiples of 1024.
const STARTS: [usize; 2] = [1024, 1024 + 16384];

/// Bytes of shared memory.
const BYTES: usize = STARTS[1] + 16384;

/// How a matrix lies in shared memory.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of a row of the swizzling pattern; 16 for none.
    swizzle: usize,
    /// `true` if rows of A or columns of B are consecutive.
    is_transposed: bool,
}

impl Layout {
    /// Distances of blocks: the leading dimension's and the stride dimension's.
    fn distances(self) -> (usize, usize) {
        match (self.is_transposed, self.swizzle) {
            (false, 16) => (4096, 128),
            (false, swizzle) => (0, 8 * swizzle),
            (true, 16) => (2048, 128),
            (true, swizzle) => (16 * swizzle, 8 * swizzle),
        }
    }

    /// Offset of an element with a size, by the figures of the manual: blocks of eight rows, in which unit
    /// `u` of 16 bytes of row `r` is exchanged with another unit of its row.
    fn offset(self, outer: usize, inner: usize, size: usize) -> usize {
        let (leading, stride) = self.distances();
        let (line, byte) =
            if self.is_transposed { (inner, outer * size) } else { (outer, inner * size) };
        let (block, row, next) = (line / 8, line % 8, byte / self.swizzle);
        let byte = byte % self.swizzle;
        let (unit, row_of_128) = (byte / 16, row * self.swizzle / 128);
        let unit = if self.swizzle == 16 { unit } else { unit ^ row_of_128 };
        // Without swizzling, strides are those of the matrix's rows or columns.
        let (by_block, by_unit) = match (self.is_transposed, self.swizzle) {
            (true, 16) => (leading, stride),
            _ => (stride, leading),
        };
        block * by_block + next * by_unit + row * self.swizzle + unit * 16 + byte % 16
    }

    fn descriptor(self, start: usize) -> u64 {
        let (leading, stride) = self.distances();
        let mode = match self.swizzle {
            128 => 1,
            64 => 2,
            32 => 3,
            _ => 0,
        };
        let field = |bytes: usize| (bytes / 16) as u64;
        mode << 62 | field(stride) << 32 | field(leading) << 16 | field(start)
    }
}

struct Case {
    columns: usize,
    /// Types of D, A and B.
    types: [&'static str; 3],
    /// A in shared memory; `None` for registers.
    left: Option<Layout>,
    right: Layout,
    /// Constants after the predicate.
    constants: &'static str,
    /// 1, or -1 if the constants change the sign of one matrix.
    sign: i32,
    accumulates: bool,
}

fn size(kind: &str) -> usize {
    match kind {
        "f32" | "s32" | "tf32" => 4,
        "f16" | "bf16" => 2,
        _ => 1,
    }
}

/// Small numbers whose products and sums are exact in every type.
fn encode(kind: &str, value: i32) -> u32 {
    match kind {
        "f32" | "tf32" => (value as f32).to_bits(),
        "f16" => f16::from_f32(value as f32).to_bits().into(),
        "bf16" => bf16::from_f32(value as f32).to_bits().into(),
        "s32" => value as u32,
        "s8" | "u8" => (value as u8).into(),
        // 1, 2, 3 and their negatives.
        "e4m3" => [0, 0x38, 0x40, 0x44][value.unsigned_abs() as usize] | u32::from(value < 0) << 7,
        _ => panic!("{kind}"),
    }
}

fn check(case: &Case, damage: u8) {
    let [d_kind, a_kind, b_kind] = case.types;
    let products = 32 / size(a_kind);
    let columns = case.columns;
    let mut random = Random(5);
    let mut matrix =
        |count: usize| -> Vec<i32> { (0..count).map(|_| (random.next() % 4) as i32).collect() };
    let (a, b) = (matrix(ROWS * products), matrix(products * columns));
    let mut shared = vec![0u8; BYTES];
    let mut put =
        |start: usize, layout: Layout, outer: usize, inner: usize, kind: &str, value: i32| {
            let at = start + layout.offset(outer, inner, size(kind));
            shared[at..at + size(kind)]
                .copy_from_slice(&encode(kind, value).to_le_bytes()[..size(kind)]);
        };
    for k in 0..products {
        for row in 0..ROWS {
            if let Some(layout) = case.left {
                put(STARTS[0], layout, row, k, a_kind, a[row * products + k]);
            }
        }
        for column in 0..columns {
            put(STARTS[1], case.right, column, k, b_kind, b[k * columns + column]);
        }
    }
    shared[STARTS[1]] ^= damage;
    // Registers of A: those of `mma` with 16 rows.
    let width = 4 / size(a_kind);
    let mut fragments = Vec::new();
    for thread in 0..128 {
        let (wave, lane) = (thread / 32, thread % 32);
        for register in 0..4 {
            let row = 16 * wave + lane / 4 + register % 2 * 8;
            let word = (0..width).fold(0, |word, part| {
                let k = lane % 4 * width + part + register / 2 * 4 * width;
                word | encode(a_kind, a[row * products + k]) << (8 * size(a_kind) * part)
            });
            fragments.push(u64::from(word));
        }
    }
    let per_register = 4 / size(d_kind);
    let count = columns / 2 / per_register;
    let names: Vec<String> = (0..count).map(|number| format!("%d{number}")).collect();
    let left = match case.left {
        Some(layout) => layout.descriptor(STARTS[0]).to_string(),
        None => "{%a0, %a1, %a2, %a3}".to_owned(),
    };
    let one = encode(d_kind, 1);
    let start = if per_register == 2 { one << 16 | one } else { one };
    let mut body = String::new();
    for name in &names {
        writeln!(body, "mov.b32 {name}, {start};").expect("text");
    }
    let inst = format!(
        "wgmma.mma_async.sync.aligned.m64n{columns}k{products}.{} {{{}}}, {left}, {}, %p{}",
        case.types.join("."),
        names.join(", "),
        case.right.descriptor(STARTS[1]),
        case.constants,
    );
    writeln!(body, "wgmma.fence.sync.aligned;\n{inst};").expect("text");
    body += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
    for (number, name) in names.iter().enumerate() {
        writeln!(body, "st.global.b32 [%result+{}], {name};", 4 * number).expect("text");
    }
    let compare = if case.accumulates { "eq" } else { "ne" };
    let text = format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n.entry \
         k(.param .u64 in, .param .u64 fragments, .param .u64 out) {{ .reg .b64 %in, %from, %result, \
         %fragment; .reg .b32 %t, %at, %x, %d<128>, %a<4>; .reg .pred %p, %more;\n\
         ld.param.u64 %in, [in]; ld.param.u64 %fragment, [fragments]; ld.param.u64 %result, [out];\n\
         mov.u32 %t, %tid.x; mad.wide.u32 %result, %t, 512, %result;\n\
         mad.wide.u32 %fragment, %t, 32, %fragment;\n\
         ld.global.b32 %a0, [%fragment]; ld.global.b32 %a1, [%fragment+8];\n\
         ld.global.b32 %a2, [%fragment+16]; ld.global.b32 %a3, [%fragment+24];\n\
         shl.b32 %at, %t, 2;\n\
         copy: cvt.u64.u32 %from, %at; add.u64 %from, %in, %from; ld.global.b32 %x, [%from];\n\
         st.shared.b32 [%at], %x; add.u32 %at, %at, 512; setp.lt.u32 %more, %at, {BYTES}; @%more bra copy;\n\
         bar.sync 0; setp.{compare}.u32 %p, 0, 0;\n{body}ret; }}"
    );
    let mut bench = Bench::new(&text);
    let input = bench.buffer(&shared);
    let fragments = bench.buffer(&arguments(&fragments));
    let output = bench.buffer(&[0; 512 * 128]);
    let mut dispatch = bench.dispatch("k", 128, 128, &arguments(&[input.0, fragments.0, output.0]));
    dispatch.dynamic_lds = BYTES as u32;
    dispatch.instruction_limit = u64::MAX;
    bench.run(&dispatch);
    let found = bench.read(output, 512 * 128);
    for thread in 0..128 {
        let (wave, lane) = (thread / 32, thread % 32);
        for element in 0..columns / 2 {
            let row = 16 * wave + lane / 4 + element / 2 % 2 * 8;
            let column = element / 4 * 8 + lane % 4 * 2 + element % 2;
            let products = (0..products).map(|k| a[row * products + k] * b[k * columns + column]);
            let sum = products.sum::<i32>() * case.sign + i32::from(case.accumulates);
            let bytes = &found[thread * 512 + element * size(d_kind)..][..size(d_kind)];
            let expected = &encode(d_kind, sum).to_le_bytes()[..size(d_kind)];
            assert_eq!(bytes, expected, "{inst}: row {row}, column {column}");
        }
    }
}

const PLAIN: Layout = Layout { swizzle: 16, is_transposed: false };

fn swizzled(swizzle: usize, is_transposed: bool) -> Layout {
    Layout { swizzle, is_transposed }
}

#[test]
fn products_of_warpgroups_are_those_of_whole_matrices() {
    for swizzle in [16, 32, 64, 128] {
        for (left, right, constants) in [
            (false, false, ", 1, 1, 0, 0"),
            (true, false, ", 1, 1, 1, 0"),
            (false, true, ", 1, 1, 0, 1"),
            (true, true, ", 1, 1, 1, 1"),
        ] {
            check(
                &Case {
                    columns: 72,
                    types: ["f32", "f16", "f16"],
                    left: Some(swizzled(swizzle, left)),
                    right: swizzled(swizzle, right),
                    constants,
                    sign: 1,
                    accumulates: true,
                },
                0,
            );
        }
    }
    for (types, columns, left, constants, sign, accumulates) in [
        (["f32", "bf16", "bf16"], 256, None, ", 1, 1, 0", 1, true),
        (["f16", "f16", "f16"], 64, None, ", -1, 1, 0", -1, false),
        (["f32", "tf32", "tf32"], 8, Some(PLAIN), ", 1, -1", -1, true),
        (["f16", "e4m3", "e4m3"], 16, Some(PLAIN), ", -1, -1", 1, true),
        (["s32", "s8", "u8"], 24, Some(PLAIN), "", 1, true),
        (["s32", "u8", "u8"], 32, None, "", 1, false),
    ] {
        check(&Case { columns, types, left, right: PLAIN, constants, sign, accumulates }, 0);
    }
}

/// Negative control: a changed element of B is noticed.
#[test]
#[should_panic(expected = "wgmma.mma_async")]
fn wrong_products_of_warpgroups_are_noticed() {
    let case = Case {
        columns: 8,
        types: ["s32", "s8", "s8"],
        left: None,
        right: PLAIN,
        constants: "",
        sign: 1,
        accumulates: false,
    };
    check(&case, 4);
}
