//! Matrix multiply-add of gfx11 and gfx12 (WMMA), also with a sparse first matrix (SWMMAC): D = A *
//! B + C on matrices of 16 rows and columns spread over the lanes of a wave, regardless of EXEC.
//!
//! The layout of matrices in registers is the one AMD published (AMD Matrix Instruction Calculator,
//! RDNA 3 and RDNA 4). On gfx11 lanes 16 and up repeat A and B; only lanes 0 to 15 are read.
//!
//! The order and the roundings of the summation are neither documented nor publicly measured: here
//! it is a chain of fused multiply-adds in single precision in the order of k, beginning with C;
//! denormals are kept, MODE has no effect, and results of 16 bits are rounded to nearest even once,
//! at the end. Sums of integers are exact, and wrap or saturate.

use super::row::{MatrixProduct, WholeWaveOperation};
use crate::execute::lane::small_float::{SmallFloat, brain_to_single, single_to_brain};
use crate::execute::lane::{Kind, binary16};
use crate::execute::matrix_sum::{Fused, Steps, SummedElement, integers as add_integers, link};
use crate::execute::operand::scalar_word;
use crate::instruction::{Op, Word};
use crate::wave::{LANES, Wave};
use flipwave_arch::{MatrixElement, ProductShape, SumType};
use flipwave_isa::{Float8, Generation};
use half::f16;

/// Rows and columns.
const SIZE: usize = 16;
/// Maximum number of products per sum.
const MOST_DEPTH: usize = 128;

/// The type of the elements of A or B.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    F32,
    F16,
    Bf16,
    Fp8,
    Bf8,
    Iu8,
    Iu4,
}

impl Element {
    fn bits(self) -> usize {
        match self {
            Element::F32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::Fp8 | Element::Bf8 | Element::Iu8 => 8,
            Element::Iu4 => 4,
        }
    }

    fn float(self, bits: u32) -> f32 {
        match self {
            Element::F32 => f32::from_bits(bits),
            Element::F16 => binary16::to_f32(f16::from_bits(bits as u16)),
            Element::Bf16 => brain_to_single(bits as u16),
            Element::Fp8 => SmallFloat::fp8(Float8::Ocp).decode(bits),
            _ => SmallFloat::bf8(Float8::Ocp).decode(bits),
        }
    }

    fn integer(self, bits: u32, signed: bool) -> i64 {
        let above = 32 - self.bits() as u32;
        if signed { ((bits << above) as i32 >> above).into() } else { bits.into() }
    }
}

/// The type of the elements of C and D.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    F32,
    F16,
    Bf16,
    /// C in single precision, D in bfloat16.
    Bf16OfF32,
    I32,
}

impl Sum {
    /// Returns `true` if elements of D are half a register.
    fn is_short(self) -> bool {
        matches!(self, Sum::F16 | Sum::Bf16 | Sum::Bf16OfF32)
    }

    /// Returns `true` if elements of C are half a register.
    fn begins_short(self) -> bool {
        matches!(self, Sum::F16 | Sum::Bf16)
    }
}

/// Element types and dimensions of an operation.
#[derive(Clone, Copy)]
struct Shape {
    a: Element,
    b: Element,
    sum: Sum,
    /// Products per sum, including the zeros of a sparse matrix.
    depth: usize,
    /// `true` if A stores two of each four elements, whose positions the third source specifies.
    sparse: bool,
}

macro_rules! wave_matrices {
    ($($name:literal $a:ident $b:ident $sum:ident $depth:literal $sparse:literal)*) => {
        /// Table of operations.
        pub(super) static TABLE: &[WholeWaveOperation] = &[$({
            const SHAPE: Shape = Shape {
                a: Element::$a,
                b: Element::$b,
                sum: Sum::$sum,
                depth: $depth,
                sparse: $sparse,
            };
            WholeWaveOperation {
                name: $name,
                sources: &[Kind::Word, Kind::Word, Kind::Word],
                function: |wave, op| multiply_add(wave, op, &SHAPE),
                unsettled: match SHAPE.sum {
                    Sum::I32 => None,
                    _ => Some("fused steps in the order of k, denormals kept, the first NaN"),
                },
                source: None,
                matrix: Some(MatrixProduct {
                    shape: SHAPE.steps(),
                    sum: |wave, op, element, steps| {
                        sum_by_steps(wave, op, &SHAPE, element, steps)
                    },
                }),
            }
        }),*];
    };
}

wave_matrices! {
    "v_wmma_f32_16x16x16_f16"        F16  F16  F32  16 false
    "v_wmma_f32_16x16x16_bf16"       Bf16 Bf16 F32  16 false
    "v_wmma_f16_16x16x16_f16"        F16  F16  F16  16 false
    "v_wmma_bf16_16x16x16_bf16"      Bf16 Bf16 Bf16 16 false
    "v_wmma_i32_16x16x16_iu8"        Iu8  Iu8  I32  16 false
    "v_wmma_i32_16x16x16_iu4"        Iu4  Iu4  I32  16 false
    "v_wmma_i32_16x16x32_iu4"        Iu4  Iu4  I32  32 false
    "v_wmma_f32_16x16x16_fp8_fp8"    Fp8  Fp8  F32  16 false
    "v_wmma_f32_16x16x16_fp8_bf8"    Fp8  Bf8  F32  16 false
    "v_wmma_f32_16x16x16_bf8_fp8"    Bf8  Fp8  F32  16 false
    "v_wmma_f32_16x16x16_bf8_bf8"    Bf8  Bf8  F32  16 false
    "v_swmmac_f32_16x16x32_f16"      F16  F16  F32  32 true
    "v_swmmac_f32_16x16x32_bf16"     Bf16 Bf16 F32  32 true
    "v_swmmac_f16_16x16x32_f16"      F16  F16  F16  32 true
    "v_swmmac_bf16_16x16x32_bf16"    Bf16 Bf16 Bf16 32 true
    "v_swmmac_i32_16x16x32_iu8"      Iu8  Iu8  I32  32 true
    "v_swmmac_i32_16x16x32_iu4"      Iu4  Iu4  I32  32 true
    "v_swmmac_i32_16x16x64_iu4"      Iu4  Iu4  I32  64 true
    "v_swmmac_f32_16x16x32_fp8_fp8"  Fp8  Fp8  F32  32 true
    "v_swmmac_f32_16x16x32_fp8_bf8"  Fp8  Bf8  F32  32 true
    "v_swmmac_f32_16x16x32_bf8_fp8"  Bf8  Fp8  F32  32 true
    "v_swmmac_f32_16x16x32_bf8_bf8"  Bf8  Bf8  F32  32 true
    // gfx1250.
    "v_wmma_f32_16x16x4_f32"         F32  F32  F32  4 false
    "v_wmma_f32_16x16x32_f16"        F16  F16  F32  32 false
    "v_wmma_f32_16x16x32_bf16"       Bf16 Bf16 F32  32 false
    "v_wmma_f16_16x16x32_f16"        F16  F16  F16  32 false
    "v_wmma_bf16_16x16x32_bf16"      Bf16 Bf16 Bf16 32 false
    "v_wmma_bf16f32_16x16x32_bf16"   Bf16 Bf16 Bf16OfF32 32 false
    "v_wmma_i32_16x16x64_iu8"        Iu8  Iu8  I32  64 false
    "v_wmma_f32_16x16x64_fp8_fp8"    Fp8  Fp8  F32  64 false
    "v_wmma_f32_16x16x64_fp8_bf8"    Fp8  Bf8  F32  64 false
    "v_wmma_f32_16x16x64_bf8_fp8"    Bf8  Fp8  F32  64 false
    "v_wmma_f32_16x16x64_bf8_bf8"    Bf8  Bf8  F32  64 false
    "v_wmma_f16_16x16x64_fp8_fp8"    Fp8  Fp8  F16  64 false
    "v_wmma_f16_16x16x64_fp8_bf8"    Fp8  Bf8  F16  64 false
    "v_wmma_f16_16x16x64_bf8_fp8"    Bf8  Fp8  F16  64 false
    "v_wmma_f16_16x16x64_bf8_bf8"    Bf8  Bf8  F16  64 false
    "v_wmma_f32_16x16x128_fp8_fp8"   Fp8  Fp8  F32  128 false
    "v_wmma_f32_16x16x128_fp8_bf8"   Fp8  Bf8  F32  128 false
    "v_wmma_f32_16x16x128_bf8_fp8"   Bf8  Fp8  F32  128 false
    "v_wmma_f32_16x16x128_bf8_bf8"   Bf8  Bf8  F32  128 false
    "v_wmma_f16_16x16x128_fp8_fp8"   Fp8  Fp8  F16  128 false
    "v_wmma_f16_16x16x128_fp8_bf8"   Fp8  Bf8  F16  128 false
    "v_wmma_f16_16x16x128_bf8_fp8"   Bf8  Fp8  F16  128 false
    "v_wmma_f16_16x16x128_bf8_bf8"   Bf8  Bf8  F16  128 false
}

impl Shape {
    /// Shape as summation steps use it.
    const fn steps(&self) -> ProductShape {
        let products = if self.sparse { self.depth / 2 } else { self.depth };
        let sum = if matches!(self.sum, Sum::I32) { SumType::I32 } else { SumType::F32 };
        ProductShape { sum, ..ProductShape::square(SIZE, products) }
    }
}

/// Bits of the elements of A or of transposed B: row or column first, then k.
type Matrix = [[u32; MOST_DEPTH]; SIZE];

fn multiply_add(wave: &mut Wave, op: &Op, shape: &Shape) {
    let layout = Layout::of(wave, shape);
    #[cfg(target_arch = "x86_64")]
    if is_made_in_vectors(wave, op, shape, &layout) {
        return;
    }
    let a =
        if shape.sparse { sparse(wave, op, &layout, shape) } else { dense(wave, op, &layout, 0) };
    let b = dense(wave, op, &layout, 1);
    let modifiers = &op.inst.modifiers;
    let lanes = usize::from(wave.machine.lanes);
    let mut results = [[0u32; LANES]; 8];
    for lane in 0..lanes {
        for index in 0..layout.results() {
            let row = layout.row(lane, index);
            let (register, shift) = layout.result(index, modifiers.op_sel.unwrap_or(0));
            let initial = initial(wave, op, shape, lane, index, register, shift);
            let factors = a[row].iter().zip(&b[lane % SIZE]).take(shape.depth);
            let sum = match shape.sum {
                Sum::I32 => integers(op, shape, factors, initial),
                _ => floats(op, shape, factors, initial),
            };
            let result = &mut results[register][lane];
            if !shape.sum.is_short() {
                *result = sum;
            } else if layout.is_gfx11 {
                // The half of the register without a result is kept.
                let old = wave.row(op.destination.plus(register as u16)).0[lane];
                *result = old & !(0xffff << shift) | sum << shift;
            } else {
                *result |= sum << shift;
            }
        }
    }
    for (register, words) in results.iter().enumerate().take(layout.registers()) {
        let row = wave.row_mut(op.destination.plus(register as u16));
        row.0[..lanes].copy_from_slice(&words[..lanes]);
    }
    wave.written_lanes = Some(wave.machine.all_lanes());
}

/// Computes D with vectors; returns `false` without effect if the host does not have them.
#[cfg(target_arch = "x86_64")]
fn is_made_in_vectors(wave: &mut Wave, op: &Op, shape: &Shape, layout: &Layout) -> bool {
    use super::matrix::avx512::{
        Arithmetic, Elements, Nans, Number, Place, Positions, Repeated, Results, Signs, SparseRows,
        WaveProduct, multiply_wave, write_wave,
    };
    let modifiers = &op.inst.modifiers;
    let is_integer = shape.sum == Sum::I32;
    let elements = |side: u8, element: Element| {
        let bits = element.bits() as u8;
        match element {
            Element::F32 => Elements::Single,
            Element::F16 => Elements::Small(SmallFloat::F16),
            Element::Bf16 => Elements::Small(SmallFloat::BF16),
            Element::Fp8 => Elements::Small(SmallFloat::fp8(Float8::Ocp)),
            Element::Bf8 => Elements::Small(SmallFloat::bf8(Float8::Ocp)),
            _ if modifiers.neg_lo >> side & 1 != 0 => Elements::Signed(bits),
            _ => Elements::Unsigned(bits),
        }
    };
    let floats = |addend: Number, result: Number| Arithmetic::Floats {
        addend,
        result,
        nans: Nans::FirstSource,
        keeps_others: layout.is_gfx11 && result != Number::F32,
    };
    let arithmetic = match shape.sum {
        Sum::I32 if modifiers.clamp => Arithmetic::Saturating,
        Sum::I32 => Arithmetic::Wrapping,
        Sum::F32 => floats(Number::F32, Number::F32),
        Sum::F16 => floats(Number::F16, Number::F16),
        Sum::Bf16 => floats(Number::Bf16, Number::Bf16),
        Sum::Bf16OfF32 => floats(Number::F32, Number::Bf16),
    };
    let sign = |modifier: u8, source: usize| u32::from(modifier >> source & 1) << 31;
    let signs = Signs {
        factors: [0, 1].map(|side| [sign(modifiers.neg_lo, side), sign(modifiers.neg_hi, side)]),
        cleared: sign(modifiers.neg_hi, 2),
        inverted: sign(modifiers.neg_lo, 2),
    };
    let sparse = shape.sparse.then(|| {
        let holders = layout.holders(2);
        let positions = Positions {
            word: op.sources[2].words[0],
            first_bit: u32::from(modifiers.index_key) * holders.1 as u32,
            repeated: Repeated::Replaced,
        };
        SparseRows { holders, positions }
    });
    let op_sel = modifiers.op_sel.unwrap_or(0);
    let product = WaveProduct {
        elements: [elements(0, shape.a), elements(1, shape.b)],
        first_of_a: 0,
        depth: shape.depth,
        holders: layout.holders(1),
        runs: [layout.run(); 2],
        k: |_, lane, element| layout.k(lane, element),
        sparse,
        scales: [None; 2],
        signs: if is_integer { Signs::default() } else { signs },
        arithmetic,
        addend: first_of_sum(op, shape),
        results: Results { elements: layout.results(), registers: layout.registers() },
        place: |lane, index| {
            let (register, bit) = layout.result(index, op_sel);
            Place { row: layout.row(lane, index), register, bit }
        },
    };
    let Some(result) = multiply_wave(wave, op, &product) else { return false };
    write_wave(wave, op, 0, &result[..layout.registers()]);
    true
}

/// Bits of the `index`-th element of C of a lane; a destination of 16 bits is in the given register
/// at the given bit.
fn initial(
    wave: &Wave,
    op: &Op,
    shape: &Shape,
    lane: usize,
    index: usize,
    register: usize,
    shift: u32,
) -> u32 {
    if shape.sum.begins_short() {
        sum_word(wave, op, shape, lane, register) >> shift & 0xffff
    } else {
        sum_word(wave, op, shape, lane, index)
    }
}

/// Sums one element of the result of [`multiply_add`], step by step. Products with elements that a
/// sparse A does not store are added as zeros, and are not steps.
fn sum_by_steps(
    wave: &Wave,
    op: &Op,
    shape: &Shape,
    element: MatrixElement,
    steps: &mut Steps<'_>,
) -> Option<SummedElement> {
    let layout = Layout::of(wave, shape);
    let [row, column] = [element.row, element.column].map(usize::from);
    let mut places = (0..layout.lanes)
        .flat_map(|lane| (0..layout.results()).map(move |index| (lane, index)))
        .filter(|(lane, _)| lane % SIZE == column);
    let (lane, index) = places.find(|(lane, index)| layout.row(*lane, *index) == row)?;
    let (register, shift) = layout.result(index, op.inst.modifiers.op_sel.unwrap_or(0));
    let b = dense(wave, op, &layout, 1);
    let (a, is_there) = if shape.sparse {
        (sparse(wave, op, &layout, shape), present(wave, op, &layout)[row])
    } else {
        (dense(wave, op, &layout, 0), [true; MOST_DEPTH])
    };
    let factors = a[row].iter().zip(&b[column]).take(shape.depth);
    let initial = initial(wave, op, shape, lane, index, register, shift);
    let value = match shape.sum {
        Sum::I32 => {
            let products = factors.zip(is_there).filter(|(_, is_there)| *is_there);
            let products = products.map(|((a, b), _)| integer_product(op, shape, *a, *b) as i32);
            add_integers(products, initial as i32, op.inst.modifiers.clamp, steps) as u32
        }
        _ => {
            let mut sum = steps.begin(float_initial(op, shape, initial));
            let mut next = 0;
            for (k, ((a, b), is_there)) in factors.zip(is_there).enumerate() {
                let factors = float_factors(op, shape, k, *a, *b);
                if !is_there {
                    sum = f32::fused(factors[0], factors[1], sum);
                    continue;
                }
                // The zeros before a product belong to the previous sum.
                sum = if next > 0 { steps.sum(next - 1, sum) } else { sum };
                sum = link(next, factors, sum, steps);
                next += 1;
            }
            float_result(shape, steps.sum(next - 1, sum))
        }
    };
    let row = op.destination.plus(register as u16);
    let bits = if shape.sum.is_short() { 16 } else { 32 };
    Some(SummedElement { lane, row, bits, shift, value: value.into() })
}

/// The first word of C, which a sparse operation takes from its destination.
fn first_of_sum(op: &Op, shape: &Shape) -> Word {
    if shape.sparse { Word::Row(op.destination) } else { op.sources[2].words[0] }
}

/// Reads a word of C.
fn sum_word(wave: &Wave, op: &Op, shape: &Shape, lane: usize, register: usize) -> u32 {
    match first_of_sum(op, shape) {
        Word::Row(row) => wave.row(row.plus(register as u16)).0[lane],
        word => scalar_word(wave, word),
    }
}

fn integers<'a>(
    op: &Op,
    shape: &Shape,
    factors: impl Iterator<Item = (&'a u32, &'a u32)>,
    initial: u32,
) -> u32 {
    let products = factors.map(|(a, b)| integer_product(op, shape, *a, *b));
    let sum = i64::from(initial as i32) + products.sum::<i64>();
    if op.inst.modifiers.clamp {
        sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32
    } else {
        sum as u32
    }
}

/// Multiplies integers; `neg_lo` selects which matrices are signed.
fn integer_product(op: &Op, shape: &Shape, a: u32, b: u32) -> i64 {
    let signed = |source: u8| op.inst.modifiers.neg_lo >> source & 1 != 0;
    shape.a.integer(a, signed(0)) * shape.b.integer(b, signed(1))
}

fn floats<'a>(
    op: &Op,
    shape: &Shape,
    factors: impl Iterator<Item = (&'a u32, &'a u32)>,
    initial: u32,
) -> u32 {
    let mut sum = float_initial(op, shape, initial);
    for (k, (a, b)) in factors.enumerate() {
        let [a, b] = float_factors(op, shape, k, *a, *b);
        sum = f32::fused(a, b, sum);
    }
    float_result(shape, sum)
}

/// Decodes an element of C: `neg_hi` takes its absolute value, `neg_lo` negates it.
fn float_initial(op: &Op, shape: &Shape, bits: u32) -> f32 {
    let modifiers = &op.inst.modifiers;
    let mut value = match shape.sum {
        Sum::F16 => binary16::to_f32(f16::from_bits(bits as u16)),
        Sum::Bf16 => brain_to_single(bits as u16),
        _ => f32::from_bits(bits),
    };
    if modifiers.neg_hi >> 2 & 1 != 0 {
        value = value.abs();
    }
    if modifiers.neg_lo >> 2 & 1 != 0 {
        value = -value;
    }
    value
}

/// Decodes elements of A and B: `neg_lo` negates those whose k is even, `neg_hi` the others.
fn float_factors(op: &Op, shape: &Shape, k: usize, a: u32, b: u32) -> [f32; 2] {
    let modifiers = &op.inst.modifiers;
    let signed = |value: f32, source: u8| {
        let negates = [modifiers.neg_lo, modifiers.neg_hi][k % 2] >> source & 1 != 0;
        if negates { -value } else { value }
    };
    [signed(shape.a.float(a), 0), signed(shape.b.float(b), 1)]
}

/// Encodes an element of D.
fn float_result(shape: &Shape, sum: f32) -> u32 {
    match shape.sum {
        Sum::F16 => binary16::from_f32(sum).to_bits().into(),
        Sum::Bf16 | Sum::Bf16OfF32 => single_to_brain(sum).into(),
        _ => sum.to_bits(),
    }
}

/// Layout of matrix elements in registers.
struct Layout {
    is_gfx11: bool,
    /// gfx1250: AMD's rocjitsu (`wmma_input_loc`); Triton has the same layout for elements of 16
    /// and 32 bits (`AMDWmmaEncoding` of version 3), and shorter runs of 8 bits. A and B have the
    /// same layout, so that the runs affect only the order of sums.
    is_gfx125: bool,
    /// Lanes of a wave.
    lanes: usize,
    depth: usize,
    /// Bits of an element of A or B.
    bits: usize,
    sparse: bool,
    short_sums: bool,
}

impl Layout {
    fn of(wave: &Wave, shape: &Shape) -> Layout {
        Layout {
            is_gfx11: wave.machine.generation < Generation::Gfx12,
            is_gfx125: wave.machine.generation >= Generation::Gfx125,
            lanes: wave.machine.lanes.into(),
            depth: shape.depth,
            bits: shape.a.bits(),
            sparse: shape.sparse,
            short_sums: shape.sum.is_short(),
        }
    }

    /// Number of lanes that hold a matrix, the fewest that fill registers, and elements per lane.
    /// One of `share` elements is stored.
    fn holders(&self, share: usize) -> (usize, usize) {
        if self.is_gfx11 {
            return (SIZE, self.depth);
        }
        let elements = self.depth * SIZE / self.lanes;
        let is_full = elements / share * self.bits >= 32;
        if is_full { (self.lanes, elements) } else { (32, self.depth / 2) }
    }

    /// Number of consecutive elements of a lane with consecutive k.
    fn run(&self) -> usize {
        if self.is_gfx11 {
            self.depth
        } else if self.is_gfx125 {
            (self.depth / 4).clamp(2, 16)
        } else if self.bits == 16 {
            if self.sparse { 8 } else { 4 }
        } else {
            self.holders(1).1
        }
    }

    /// Index k of an element of a lane.
    fn k(&self, lane: usize, element: usize) -> usize {
        let (half, quarter) = (lane / 16 % 2, lane / 32);
        let run = self.run();
        if self.is_gfx11 {
            element
        } else if self.is_gfx125 {
            // The halves of the wave hold alternating runs.
            element % run + run * (half + 2 * (element / run))
        } else if self.bits == 16 {
            element % run + run * (half + 2 * (element / run + quarter))
        } else {
            self.depth / 2 * half + self.depth / 4 * quarter + element
        }
    }

    /// Elements of D per lane.
    fn results(&self) -> usize {
        SIZE * SIZE / self.lanes
    }

    /// Registers of D.
    fn registers(&self) -> usize {
        if self.short_sums && !self.is_gfx11 { self.results() / 2 } else { self.results() }
    }

    /// Row of an element of D; its column is the lane number modulo 16.
    fn row(&self, lane: usize, index: usize) -> usize {
        if self.is_gfx11 {
            lane / SIZE + self.lanes / SIZE * index
        } else {
            8 * (lane / 16 % 2) + 4 * (lane / 32) + index
        }
    }

    /// Register and lowest bit of an element of D. The third bit of `op_sel` selects the half on
    /// gfx11.
    fn result(&self, index: usize, op_sel: u8) -> (usize, u32) {
        match (self.short_sums, self.is_gfx11) {
            (false, _) => (index, 0),
            (true, true) => (index, u32::from(op_sel >> 2 & 1) * 16),
            (true, false) => (index / 2, index as u32 % 2 * 16),
        }
    }
}

/// Reads the bits of the element at index `at` of a lane.
fn element(wave: &Wave, op: &Op, layout: &Layout, source: usize, lane: usize, at: usize) -> u32 {
    let Some(first) = op.sources[source].row() else { return 0 };
    let bit = at * layout.bits;
    let word = wave.row(first.plus((bit / 32) as u16)).0[lane];
    word >> (bit % 32) & (u32::MAX >> (32 - layout.bits))
}

/// Reads A or B, all of whose elements are stored.
fn dense(wave: &Wave, op: &Op, layout: &Layout, source: usize) -> Matrix {
    let mut matrix = [[0; MOST_DEPTH]; SIZE];
    let (lanes, elements) = layout.holders(1);
    for lane in 0..lanes {
        for at in 0..elements {
            matrix[lane % SIZE][layout.k(lane, at)] = element(wave, op, layout, source, lane, at);
        }
    }
    matrix
}

/// Reads A, which stores two of each four elements: two bits of the third source are the position
/// of each. `index_key` selects among its parts.
fn sparse(wave: &Wave, op: &Op, layout: &Layout, shape: &Shape) -> Matrix {
    let mut matrix = [[0; MOST_DEPTH]; SIZE];
    debug_assert_eq!(shape.depth, layout.depth);
    for_each_kept(wave, op, layout, |lane, at, k| {
        matrix[lane % SIZE][k] = element(wave, op, layout, 0, lane, at);
    });
    matrix
}

/// Stored elements of a sparse A: two of each four. An index that names the same position as its
/// neighbour adds only one element.
fn present(wave: &Wave, op: &Op, layout: &Layout) -> [[bool; MOST_DEPTH]; SIZE] {
    let mut present = [[false; MOST_DEPTH]; SIZE];
    for_each_kept(wave, op, layout, |lane, _, k| present[lane % SIZE][k] = true);
    for four in present.iter_mut().flat_map(|row| row[..layout.depth].chunks_mut(4)) {
        if four.iter().filter(|is_there| **is_there).count() < 2
            && let Some(other) = four.iter_mut().find(|is_there| !**is_there)
        {
            *other = true;
        }
    }
    present
}

/// Calls `see` with the lane of each stored element of a sparse A, its number there, and its k.
fn for_each_kept(wave: &Wave, op: &Op, layout: &Layout, mut see: impl FnMut(usize, usize, usize)) {
    let (lanes, elements) = layout.holders(2);
    let key = u32::from(op.inst.modifiers.index_key) * elements as u32;
    for lane in 0..lanes {
        let index = match op.sources[2].row() {
            Some(row) => wave.row(row).0[lane],
            None => scalar_word(wave, op.sources[2].words[0]),
        };
        for at in 0..elements / 2 {
            let place = index >> ((key + 2 * at as u32) % 32) & 3;
            see(lane, at, layout.k(lane, at / 2 * 4) + place as usize);
        }
    }
}
