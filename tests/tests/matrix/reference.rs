//! Matrix products in plain Rust, with exact sums.

use super::format::Sum;
use super::inputs::{Inputs, SCALED, Values};
use super::variants::{Kind, Variant};

/// An exact sum as two doubles, the second far below the first.
#[derive(Clone, Copy, Default)]
struct Exact {
    high: f64,
    low: f64,
}

impl Exact {
    /// T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
    fn add(&mut self, value: f64) {
        let sum = self.high + value;
        let back = sum - self.high;
        self.low += (self.high - (sum - back)) + (value - back);
        self.high = sum;
    }

    fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        self.add(a.mul_add(b, -product));
    }
}

/// An element of D.
pub struct Element {
    sum: Exact,
    /// Sum of the magnitudes of all terms.
    magnitude: f64,
    /// Sum of the infinities and NaNs among the terms, if any.
    special: Option<f64>,
}

/// Terms of the elements of D.
pub struct Terms<'a> {
    variant: &'a Variant,
    inputs: &'a Inputs,
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
}

impl<'a> Terms<'a> {
    pub fn new(variant: &'a Variant, inputs: &'a Inputs) -> Terms<'a> {
        let decode = |format: super::format::Format, code: u64| {
            let value = format.value(code);
            let flushes = variant.flushes() && format.is_denormal(value);
            if flushes { 0.0 } else { value }
        };
        let decoded = |lines: &[Vec<u64>], format| -> Vec<Vec<f64>> {
            let line = |line: &Vec<u64>| line.iter().map(|code| decode(format, *code)).collect();
            lines.iter().map(line).collect()
        };
        let mut a = decoded(&inputs.a, variant.a);
        let b = decoded(&inputs.b, variant.b);
        if variant.negates_products() {
            a.iter_mut().flatten().for_each(|value| *value = -*value);
        }
        Terms { variant, inputs, a, b }
    }

    /// The element of C.
    pub fn before(&self, row: usize, column: usize) -> f64 {
        let before = self.inputs.c[row][column];
        if self.variant.subtracts() { -before.abs() } else { before }
    }

    /// Factors of the products; those of A include the scales.
    pub fn factors(&self, row: usize, column: usize) -> impl Iterator<Item = (f64, f64)> {
        self.a[row].iter().enumerate().map(move |(at, a)| {
            let place = self.place(row, at);
            (a * self.scale(row, column, place), self.b[column][place])
        })
    }

    /// Index in a column of B that corresponds to element `at` of a row of A.
    fn place(&self, row: usize, at: usize) -> usize {
        match self.variant.kind {
            Kind::Sparse => at / 2 * 4 + self.inputs.indices[row][at] as usize,
            _ => at,
        }
    }

    fn scale(&self, row: usize, column: usize, place: usize) -> f64 {
        let Inputs { a_scales, b_scales, .. } = self.inputs;
        match self.variant.kind {
            Kind::Scaled => {
                let scales = [a_scales[row][place / SCALED], b_scales[column][place / SCALED]];
                let exponent = scales[0] as i32 + scales[1] as i32 - 254;
                if scales.contains(&255) { f64::NAN } else { 2f64.powi(exponent) }
            }
            _ => 1.0,
        }
    }
}

/// Elements of D, by rows.
pub fn product(variant: &Variant, inputs: &Inputs) -> Vec<Vec<Element>> {
    let terms = Terms::new(variant, inputs);
    let element = |row: usize, column: usize| {
        let before = terms.before(row, column);
        let mut element = Element { sum: Exact::default(), magnitude: before.abs(), special: None };
        element.sum.add(before);
        let mut special = 0.0;
        for (a, b) in terms.factors(row, column) {
            let product = a * b;
            if a.is_finite() && b.is_finite() {
                element.magnitude += product.abs();
                element.sum.add_product(a, b);
            } else {
                special += product;
                element.special = Some(special);
            }
        }
        element
    };
    (0..variant.rows())
        .map(|row| (0..variant.columns()).map(|column| element(row, column)).collect())
        .collect()
}

/// Result of comparing D with a reference.
#[derive(Debug, Default)]
pub struct Compared {
    /// Number of wrong elements.
    pub wrong: usize,
    /// Description of the first wrong element.
    pub first: Option<String>,
    /// Number of elements that may have any value, because intermediate sums exceed their type.
    pub undetermined: usize,
    pub elements: usize,
}

/// Compares the bytes of D with a reference.
pub fn compare(
    variant: &Variant,
    values: Values,
    expected: &[Vec<Element>],
    found: &[u8],
) -> Compared {
    let mut compared = Compared::default();
    let elements = expected.iter().flatten().zip(found.chunks_exact(variant.sum.bytes()));
    for (at, (element, bytes)) in elements.enumerate() {
        let code = bytes.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
        compared.elements += 1;
        let verdict = match variant.sum.format() {
            None => Some(integer(variant, element) == code as i32),
            Some(format) => float(variant, values, element, format.value(code)),
        };
        match verdict {
            Some(true) => {}
            None => compared.undetermined += 1,
            Some(false) => {
                compared.wrong += 1;
                compared.first.get_or_insert_with(|| {
                    format!(
                        "row {} column {}: {code:#x}, not {:e} (of magnitude {:e}) or {:?}",
                        at / variant.columns(),
                        at % variant.columns(),
                        element.sum.high,
                        element.magnitude,
                        element.special,
                    )
                });
            }
        }
    }
    assert_eq!(compared.elements, variant.rows() * variant.columns());
    compared
}

/// Sums of integers are exact in a double.
fn integer(variant: &Variant, element: &Element) -> i32 {
    let sum = element.sum.high as i64;
    if variant.saturates() {
        sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    } else {
        sum as i32
    }
}

/// Returns `true` if a number is correct, and `None` if it may have any value.
fn float(variant: &Variant, values: Values, element: &Element, found: f64) -> Option<bool> {
    if element.special.is_some_and(f64::is_nan) {
        return Some(found.is_nan());
    }
    let (_, greatest, _) = variant.sum.precision();
    if element.magnitude > greatest / 2.0 {
        return None;
    }
    if let Some(infinity) = element.special {
        return Some(found == infinity);
    }
    if values == Values::Exact {
        return Some(found == element.sum.high);
    }
    Some((found - element.sum.high - element.sum.low).abs() <= bound(variant, element))
}

/// Error bound of a sum. Adding a product causes an error of at most one unit in the last place of the
/// largest term or of the partial sum, whether it is rounded or truncated; both are at most the sum of all
/// magnitudes. Each instruction rounds 16-bit results once more. Denormal sums may be flushed to zero.
fn bound(variant: &Variant, element: &Element) -> f64 {
    let (precision, _, least) = variant.sum.precision();
    let terms = (variant.total_depth() + 1) as f64;
    let instructions = variant.instructions() as f64;
    let (inner, tiny) = match variant.sum {
        Sum::F64 => (53, f64::MIN_POSITIVE),
        _ => (24, f64::from(f32::MIN_POSITIVE)),
    };
    let sum_error = terms * 2f64.powi(1 - inner) * element.magnitude;
    let result_error = match variant.sum {
        Sum::F16 | Sum::Bf16 => instructions * (2f64.powi(-precision) * element.magnitude + least),
        _ => 0.0,
    };
    sum_error + result_error + terms * tiny
}
