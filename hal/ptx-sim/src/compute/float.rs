//! Floating-point arithmetic that PTX defines exactly (PTX ISA, "Floating Point Instructions",
//! "Half Precision Floating Point Instructions", "Mixed Precision Floating Point Instructions").

use super::row::{Compute, each};
use super::small_float::{Arithmetic, Format};
use crate::Gap;
use flipwave_ptx::{Form, ScalarType};
use rustc_apfloat::Round;

/// Modifiers that change results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounding {
    /// Direction of rounding.
    pub round: Round,
    /// `.ftz`: subnormal operands and results are zero.
    pub flushes: bool,
    /// `.sat`: results lie between 0 and 1.
    pub saturates: bool,
    /// `.relu`: negative results and NaNs become 0 and the canonical NaN.
    pub has_relu: bool,
}

impl Rounding {
    pub fn of(form: &Form) -> Rounding {
        let round = form.modifiers().find_map(|modifier| match modifier {
            "rn" => Some(Round::NearestTiesToEven),
            "rz" => Some(Round::TowardZero),
            "rm" => Some(Round::TowardNegative),
            "rp" => Some(Round::TowardPositive),
            "rna" => Some(Round::NearestTiesToAway),
            _ => None,
        });
        Rounding {
            round: round.unwrap_or(Round::NearestTiesToEven),
            flushes: form.has("ftz"),
            saturates: form.has("sat"),
            has_relu: form.has("relu"),
        }
    }

    /// An operand as the operation sees it.
    pub fn operand(self, format: Format, bits: u64) -> u64 {
        if self.flushes { format.flushed(bits) } else { bits }
    }

    /// The result of an operation as the instruction returns it. A NaN in double precision is that of the
    /// first operand that is one.
    pub fn result(self, format: Format, bits: u64, operands: &[u64]) -> u64 {
        if format.is_nan(bits) {
            if self.saturates {
                return 0;
            }
            let payload = operands.iter().find(|operand| format.is_nan(**operand));
            return match (format, payload) {
                (Format::F64, Some(nan)) => nan | 1 << 51,
                _ => format.nan(),
            };
        }
        let bits = if self.flushes { format.flushed(bits) } else { bits };
        let bits = if self.has_relu && bits & format.sign() != 0 { 0 } else { bits };
        if self.saturates { format.saturated(bits) } else { bits }
    }

    /// Arithmetic with the modifiers.
    pub fn arithmetic(self, format: Format, operation: Arithmetic, operands: [u64; 3]) -> u64 {
        let [a, b, c] = operands;
        let operand = |bits| self.operand(format, bits);
        let operands = [operand(a), operand(b), operand(c)];
        let count = if operation == Arithmetic::Fused { 3 } else { 2 };
        let result = format.arithmetic(operation, self.round, operands);
        self.result(format, result, &operands[..count])
    }
}

/// The format of a type of single numbers.
pub(super) fn format_of(kind: ScalarType) -> Option<Format> {
    match kind {
        ScalarType::F16 | ScalarType::F16x2 => Some(Format::F16),
        ScalarType::Bf16 | ScalarType::Bf16x2 => Some(Format::Bf16),
        ScalarType::F32 | ScalarType::F32x2 => Some(Format::F32),
        ScalarType::F64 => Some(Format::F64),
        _ => None,
    }
}

/// A function of single numbers: up to three operands.
pub(super) type Scalar = Box<dyn Fn([u64; 3]) -> u64 + Send + Sync>;

pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    if let [ScalarType::F32, ScalarType::F16 | ScalarType::Bf16] = form.types[..] {
        return mixed(form);
    }
    let scalar = scalar(form)?;
    Ok(each(scalar))
}

/// The operation on single numbers of a form, which may be packed.
pub(super) fn scalar(form: &Form) -> Result<Scalar, Gap> {
    let format = form.result().and_then(format_of).ok_or_else(Gap::form)?;
    let rounding = Rounding::of(form);
    let arithmetic = |operation: Arithmetic| -> Scalar {
        Box::new(move |operands| rounding.arithmetic(format, operation, operands))
    };
    let is_full = format.bits() >= 32;
    Ok(match form.opcode() {
        "add" => arithmetic(Arithmetic::Add),
        "sub" => arithmetic(Arithmetic::Subtract),
        "mul" => arithmetic(Arithmetic::Multiply),
        "fma" | "mad" if !form.has("oob") => arithmetic(Arithmetic::Fused),
        "div" if is_full => arithmetic(Arithmetic::Divide),
        "rcp" if is_full => Box::new(move |[a, _, _]| {
            let a = rounding.operand(format, a);
            let result =
                format.arithmetic(Arithmetic::Divide, rounding.round, [format.one(), a, 0]);
            rounding.result(format, result, &[a])
        }),
        "sqrt" if is_full => Box::new(move |[a, _, _]| {
            let a = rounding.operand(format, a);
            rounding.result(format, format.square_root(rounding.round, a), &[a])
        }),
        // The sign of NaNs changes as well.
        "abs" => Box::new(move |[a, _, _]| rounding.operand(format, a) & !format.sign()),
        "neg" => Box::new(move |[a, _, _]| rounding.operand(format, a) ^ format.sign()),
        "min" | "max" => extremum(form, format),
        "copysign" => Box::new(move |[a, b, _]| a & format.sign() | b & !format.sign()),
        _ => return Err(Gap::form()),
    })
}

/// `min` and `max`: a number wins over a NaN, unless `.NaN` is present; -0 is less than 0.
fn extremum(form: &Form, format: Format) -> Scalar {
    let rounding = Rounding { has_relu: false, ..Rounding::of(form) };
    let is_max = form.opcode() == "max";
    let (takes_nan, has_abs, has_xor) = (form.has("NaN"), form.has("abs"), form.has("xorsign"));
    Box::new(move |[a, b, _]| {
        let [mut a, mut b] = [a, b].map(|bits| rounding.operand(format, bits));
        let sign = if has_xor { (a ^ b) & format.sign() } else { 0 };
        if has_abs {
            [a, b] = [a, b].map(|bits| bits & !format.sign());
        }
        match (format.is_nan(a), format.is_nan(b)) {
            (true, true) => return format.nan(),
            (true, false) | (false, true) if takes_nan => return format.nan(),
            (true, false) => return b | sign,
            (false, true) => return a | sign,
            (false, false) => {}
        }
        let a_wins = (format.order(a) > format.order(b)) == is_max;
        (if a_wins { a } else { b }) | sign
    })
}

/// Sums and products of a number in single precision and smaller numbers, which are converted first.
fn mixed(form: &Form) -> Result<Compute, Gap> {
    let small = form.source().and_then(format_of).ok_or_else(Gap::form)?;
    let rounding = Rounding::of(form);
    let wide = move |bits: u64| Format::F32.of_f64(small.to_f64(bits));
    let arithmetic =
        move |operation, operands| rounding.arithmetic(Format::F32, operation, operands);
    Ok(match form.opcode() {
        "add" => each(move |[a, b]: [u64; 2]| arithmetic(Arithmetic::Add, [wide(a), b, 0])),
        "sub" => each(move |[a, b]: [u64; 2]| arithmetic(Arithmetic::Subtract, [wide(a), b, 0])),
        "fma" => {
            each(move |[a, b, c]: [u64; 3]| arithmetic(Arithmetic::Fused, [wide(a), wide(b), c]))
        }
        _ => return Err(Gap::form()),
    })
}
