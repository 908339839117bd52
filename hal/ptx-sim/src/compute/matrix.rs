//! Products of matrices in registers (PTX ISA, "mma").
//!
//! Lane `l` belongs to group `l / 4`, and is number `l % 4` in it. In a register with `E` elements, element
//! `e` of register `r` is in
//!
//! | matrix | row | column |
//! |---|---|---|
//! | A with 16 rows | group + 8 (r mod 2) | E number + e + 4E (r / 2) |
//! | A with 8 rows | group | E number + e + 4E r |
//! | B | E number + e + 4E r | group |
//! | C and D, element i of the lane | group + 8 (i / 2) | 2 number + i mod 2 |
//!
//! The manual leaves the order and the precision of sums open. Here, products are added to the accumulator one
//! after the other, in the type of the sum.

use super::row::{Row, low, signed};
use super::small_float::{Format, of_e4m3};
use flipwave_arch::{SumPart, SumType};
use flipwave_machine::Exactness;
use flipwave_ptx::{MatrixForm, MatrixType};

/// Columns of B.
const COLUMNS: usize = 8;

/// Receives a part of a sum with its step and bits, and returns the bits with which the sum continues.
pub(crate) type Touch<'a> = &'a mut dyn FnMut(SumPart, u8, u64) -> u64;

/// Place of an element of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElementPlace {
    /// The lane.
    pub lane: usize,
    /// Number of the register of D.
    pub register: usize,
    /// Position of the lowest bit in the register.
    pub shift: u32,
    /// Width in bits.
    pub bits: u32,
}

/// Matrices that the lanes hold together, by rows.
pub(crate) struct Operands {
    form: MatrixForm,
    left: Vec<f64>,
    right: Vec<f64>,
    /// Registers of C.
    accumulators: Vec<Row>,
}

/// Exactness of a product.
pub(crate) fn exactness(form: &MatrixForm) -> Exactness {
    if form.sum() == SumType::I32 {
        return Exactness::Exact;
    }
    let text = "not settled: the manual leaves the order and the precision of sums open; products are \
                added to the accumulator one after the other, in the type of the sum";
    Exactness::NotSettled(text.to_owned())
}

/// Place of an element of C or D.
pub(crate) fn place(kind: MatrixType, row: usize, column: usize) -> ElementPlace {
    let element = row / 8 * 2 + column % 2;
    let per_register = kind.per_register();
    ElementPlace {
        lane: row % 8 * 4 + column / 2,
        register: element / per_register,
        shift: kind.bits() * (element % per_register) as u32,
        bits: kind.bits(),
    }
}

impl Operands {
    /// The matrices in the registers of A, B and C.
    pub fn new(form: MatrixForm, sources: &[Row]) -> Operands {
        let [_, a, b, c] = form.types;
        let [_, a_count, b_count, _] = form.registers();
        let (left_rows, rest) = sources.split_at(a_count.min(sources.len()));
        let (right_rows, accumulators) = rest.split_at(b_count.min(rest.len()));
        let mut left = vec![0.0; form.rows * form.products];
        for_each_element(left_rows, a, |lane, register, part, value| {
            let (group, number) = (lane / 4, lane % 4);
            let width = a.per_register();
            let (row, block) = if form.rows == 16 {
                (group + 8 * (register % 2), register / 2)
            } else {
                (group, register)
            };
            left[row * form.products + width * number + part + 4 * width * block] = value;
        });
        let mut right = vec![0.0; form.products * COLUMNS];
        for_each_element(right_rows, b, |lane, register, part, value| {
            let width = b.per_register();
            let row = width * (lane % 4) + part + 4 * width * register;
            right[row * COLUMNS + lane / 4] = value;
        });
        debug_assert!(c.bits() >= 16);
        Operands { form, left, right, accumulators: accumulators.to_vec() }
    }

    /// The elements of A, by rows, without columns of the other matrices.
    pub fn of_left(form: MatrixForm, left: Vec<f64>) -> Operands {
        Operands { form, left, right: Vec::new(), accumulators: Vec::new() }
    }

    /// Sets the elements of B, by rows, and the registers of C.
    pub fn set_columns(&mut self, right: Vec<f64>, accumulators: Vec<Row>) {
        self.right = right;
        self.accumulators = accumulators;
    }

    /// Elements of A, by rows.
    pub fn left(&self) -> &[f64] {
        &self.left
    }

    /// Computes all elements of the result.
    pub fn compute(&self, results: &mut [Row]) {
        for row in 0..self.form.rows {
            for column in 0..COLUMNS {
                let bits = self.element(row, column, &mut |_, _, bits| bits);
                let ElementPlace { lane, register, shift, bits: width } =
                    place(self.form.types[0], row, column);
                if let Some(register) = results.get_mut(register) {
                    register[lane] = register[lane] & !(low(width) << shift) | bits << shift;
                }
            }
        }
    }

    /// Computes an element of the result, as bits of its type.
    pub fn element(&self, row: usize, column: usize, touch: Touch<'_>) -> u64 {
        let [d, _, _, c] = self.form.types;
        let place = place(c, row, column);
        let word = self.accumulators.get(place.register).map_or(0, |register| register[place.lane]);
        let accumulator = value(c, word >> place.shift & low(place.bits));
        let factors =
            |k: usize| (self.left[row * self.form.products + k], self.right[k * COLUMNS + column]);
        let steps = 0..self.form.products;
        match self.form.sum() {
            SumType::F32 => {
                let single = |bits: u64| f32::from_bits(bits as u32);
                let bits = |value: f32| u64::from(value.to_bits());
                let start = touch(SumPart::Accumulator, 0, bits(accumulator as f32));
                let sum = steps.fold(single(start), |sum, k| {
                    let (x, y) = factors(k);
                    // Exact, unless the product leaves the range of single precision.
                    let product = touch(SumPart::Product, k as u8, bits((x * y) as f32));
                    single(touch(SumPart::PartialSum, k as u8, bits(sum + single(product))))
                });
                match d {
                    MatrixType::F16 => rounded(Format::F16, sum.into()),
                    _ => rounded(Format::F32, sum.into()),
                }
            }
            SumType::F64 => {
                let start = touch(SumPart::Accumulator, 0, accumulator.to_bits());
                let sum = steps.fold(f64::from_bits(start), |sum, k| {
                    let (x, y) = factors(k);
                    let product = (x * y).to_bits();
                    let touched = touch(SumPart::Product, k as u8, product);
                    let new = if touched == product {
                        x.mul_add(y, sum)
                    } else {
                        sum + f64::from_bits(touched)
                    };
                    f64::from_bits(touch(SumPart::PartialSum, k as u8, new.to_bits()))
                });
                rounded(Format::F64, sum)
            }
            SumType::I32 => {
                let word = |value: i64| u64::from(value as u32);
                let start = touch(SumPart::Accumulator, 0, word(accumulator as i64));
                let sum = steps.fold(i64::from(start as u32 as i32), |sum, k| {
                    let (x, y) = factors(k);
                    let product = touch(SumPart::Product, k as u8, word((x * y) as i64));
                    let exact = sum + i64::from(product as u32 as i32);
                    // The bits of the sum continue, unless clamping needs the exact value.
                    let shown = word(exact);
                    let touched = touch(SumPart::PartialSum, k as u8, shown);
                    if touched == shown { exact } else { i64::from(touched as u32 as i32) }
                });
                let clamped = sum.clamp(i32::MIN.into(), i32::MAX.into());
                word(if self.form.clamps { clamped } else { sum })
            }
        }
    }
}

/// A sum in the type of the result.
fn rounded(format: Format, sum: f64) -> u64 {
    if sum.is_nan() { format.nan() } else { format.of_f64(sum) }
}

/// The value of an element, which double precision represents exactly.
pub(crate) fn value(kind: MatrixType, bits: u64) -> f64 {
    match kind {
        MatrixType::F16 => Format::F16.to_f64(bits),
        MatrixType::Bf16 => Format::Bf16.to_f64(bits),
        MatrixType::F32 => Format::F32.to_f64(bits),
        MatrixType::F64 => Format::F64.to_f64(bits),
        MatrixType::Tf32 => Format::F32.to_f64(bits & !0x1fff),
        MatrixType::E4M3 => of_e4m3(bits as u8),
        // The upper half of a number in half precision.
        MatrixType::E5M2 => Format::F16.to_f64(bits << 8),
        MatrixType::S8 => signed(bits, 8) as f64,
        MatrixType::U8 => bits as f64,
        MatrixType::S32 => signed(bits, 32) as f64,
    }
}

/// Calls `visit` with the lane, register, position in the register and value of each element.
fn for_each_element(
    registers: &[Row],
    kind: MatrixType,
    mut visit: impl FnMut(usize, usize, usize, f64),
) {
    for (register, row) in registers.iter().enumerate() {
        for (lane, word) in row.iter().enumerate() {
            for part in 0..kind.per_register() {
                let bits = word >> (kind.bits() * part as u32) & low(kind.bits());
                visit(lane, register, part, value(kind, bits));
            }
        }
    }
}
