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

use super::row::{LANES, Operation, Row, low, signed};
use super::small_float::Format;
use crate::Gap;
use flipwave_machine::Exactness;
use flipwave_ptx::Form;
use std::sync::Arc;

/// Columns of B.
const COLUMNS: usize = 8;

/// Type of the elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Float(Format),
    /// Single precision of which only 10 bits of the fraction count.
    Tf32,
    /// 8 bits with 4 bits of exponent.
    E4M3,
    /// 8 bits with 5 bits of exponent.
    E5M2,
    Signed8,
    Unsigned8,
    /// 32 bits.
    Integer,
}

impl Element {
    fn parse(name: &str) -> Option<Element> {
        Some(match name {
            "f16" => Element::Float(Format::F16),
            "bf16" => Element::Float(Format::Bf16),
            "f32" => Element::Float(Format::F32),
            "f64" => Element::Float(Format::F64),
            "tf32" => Element::Tf32,
            "e4m3" => Element::E4M3,
            "e5m2" => Element::E5M2,
            "s8" => Element::Signed8,
            "u8" => Element::Unsigned8,
            "s32" => Element::Integer,
            _ => return None,
        })
    }

    fn bits(self) -> u32 {
        match self {
            Element::Float(format) => format.bits(),
            Element::Tf32 | Element::Integer => 32,
            Element::E4M3 | Element::E5M2 | Element::Signed8 | Element::Unsigned8 => 8,
        }
    }

    /// Elements in a register.
    fn per_register(self) -> usize {
        (32 / self.bits()).max(1) as usize
    }

    fn is_integer(self) -> bool {
        matches!(self, Element::Signed8 | Element::Unsigned8 | Element::Integer)
    }

    /// The value, which double precision represents exactly.
    fn value(self, bits: u64) -> f64 {
        match self {
            Element::Float(format) => format.to_f64(bits),
            Element::Tf32 => Format::F32.to_f64(bits & !0x1fff),
            Element::E4M3 => super::small_float::of_e4m3(bits as u8),
            // The upper half of a number in half precision.
            Element::E5M2 => Format::F16.to_f64(bits << 8),
            Element::Signed8 => signed(bits, 8) as f64,
            Element::Unsigned8 => bits as f64,
            Element::Integer => signed(bits, 32) as f64,
        }
    }
}

/// Rows and products of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    rows: usize,
    products: usize,
}

impl Shape {
    /// `m16n8k16`.
    fn parse(name: &str) -> Option<Shape> {
        let (rows, rest) = name.strip_prefix('m')?.split_once('n')?;
        let (columns, products) = rest.split_once('k')?;
        let shape = Shape { rows: rows.parse().ok()?, products: products.parse().ok()? };
        (columns == "8" && matches!(shape.rows, 8 | 16)).then_some(shape)
    }
}

/// A matrix that lanes hold together, by rows.
type Matrix = Vec<f64>;

/// The product of a form; `counts` are the numbers of registers of D, A, B and C.
///
/// # Errors
/// A gap for forms that are not implemented.
pub(crate) fn matrix_product(form: &Form, counts: [usize; 4]) -> Result<Operation, Gap> {
    let shape = form.modifiers().find_map(Shape::parse).ok_or_else(Gap::form)?;
    let mut types = form.modifiers().filter_map(Element::parse);
    let (Some(d), Some(a), Some(b), Some(c), None) =
        (types.next(), types.next(), types.next(), types.next(), types.next())
    else {
        return Err(Gap::form());
    };
    let is_supported = ["sync", "row", "col"].iter().all(|name| form.has(name))
        && !form.has("sp")
        && !form.modifiers().any(|name| name.starts_with("sp::") || name == "block_scale");
    let registers = |size: usize, element: Element| size / LANES / element.per_register();
    let needed = [
        registers(shape.rows * COLUMNS, d),
        registers(shape.rows * shape.products, a),
        registers(shape.products * COLUMNS, b),
        registers(shape.rows * COLUMNS, c),
    ];
    // The oldest shape, m8n8k4 of f16, has another layout.
    let is_old = shape.rows == 8 && a == Element::Float(Format::F16);
    if !is_supported || is_old || needed != counts || needed.contains(&0) {
        return Err(Gap::form());
    }
    if d.is_integer() != a.is_integer() || a.is_integer() != b.is_integer() {
        return Err(Gap::form());
    }
    let clamps = form.has("satfinite");
    let exactness = if d.is_integer() {
        Exactness::Exact
    } else {
        let text = "not settled: the manual leaves the order and precision of sums open; products are \
                    added to the accumulator in order, in double precision";
        Exactness::NotSettled(text.to_owned())
    };
    let [_, a_count, b_count, _] = counts;
    let compute = move |sources: &[Row], _: u32, results: &mut [Row]| {
        let (left, rest) = sources.split_at(a_count);
        let (right, accumulators) = rest.split_at(b_count);
        let left = gather_left(left, a, shape);
        let right = gather_right(right, b, shape);
        for lane in 0..LANES {
            let (group, number) = (lane / 4, lane % 4);
            for element in 0..shape.rows * COLUMNS / LANES {
                let (row, column) = (group + 8 * (element / 2), 2 * number + element % 2);
                let per_register = c.per_register();
                let word = accumulators[element / per_register][lane];
                let bits = word >> (c.bits() * (element % per_register) as u32) & low(c.bits());
                let mut sum = c.value(bits);
                for k in 0..shape.products {
                    let (x, y) = (left[row * shape.products + k], right[k * COLUMNS + column]);
                    // Products of numbers with at most 26 bits of fraction are exact.
                    sum = x.mul_add(y, sum);
                }
                let result = rounded(d, sum, clamps);
                let per_register = d.per_register();
                let shift = d.bits() * (element % per_register) as u32;
                let register = &mut results[element / per_register][lane];
                *register = *register & !(low(d.bits()) << shift) | result << shift;
            }
        }
    };
    Ok(Operation { compute: Arc::new(compute), exactness })
}

/// A sum in the type of the result. Sums of integers are exact in double precision.
fn rounded(kind: Element, sum: f64, clamps: bool) -> u64 {
    match kind {
        Element::Float(format) if sum.is_nan() => format.nan(),
        Element::Float(format) => format.of_f64(sum),
        _ if clamps => u64::from(sum as i32 as u32),
        _ => u64::from(sum as i64 as u32),
    }
}

fn gather_left(registers: &[Row], element: Element, shape: Shape) -> Matrix {
    let mut matrix = vec![0.0; shape.rows * shape.products];
    for_each_element(registers, element, |lane, register, part, value| {
        let (group, number) = (lane / 4, lane % 4);
        let width = element.per_register();
        let (row, block) = if shape.rows == 16 {
            (group + 8 * (register % 2), register / 2)
        } else {
            (group, register)
        };
        let column = width * number + part + 4 * width * block;
        matrix[row * shape.products + column] = value;
    });
    matrix
}

fn gather_right(registers: &[Row], element: Element, shape: Shape) -> Matrix {
    let mut matrix = vec![0.0; shape.products * COLUMNS];
    for_each_element(registers, element, |lane, register, part, value| {
        let width = element.per_register();
        let row = width * (lane % 4) + part + 4 * width * register;
        matrix[row * COLUMNS + lane / 4] = value;
    });
    matrix
}

/// Calls `visit` with the lane, register, position in the register and value of each element.
fn for_each_element(
    registers: &[Row],
    element: Element,
    mut visit: impl FnMut(usize, usize, usize, f64),
) {
    for (register, row) in registers.iter().enumerate() {
        for (lane, word) in row.iter().enumerate() {
            for part in 0..element.per_register() {
                let bits = word >> (element.bits() * part as u32) & low(element.bits());
                visit(lane, register, part, element.value(bits));
            }
        }
    }
}
