//! Operations whose results the manual states within an error. The results are those of the exact function,
//! rounded to nearest even: they lie within any error of at least half a unit in the last place.

use super::float::{Rounding, format_of};
use super::row::{Operation, each, low};
use super::small_float::Format;
use crate::Gap;
use flipwave_machine::Exactness;
use flipwave_ptx::{Form, ScalarType};

/// The operation of a form whose result is an approximation; `None` for other forms.
pub(super) fn operation(form: &Form) -> Option<Result<Operation, Gap>> {
    let is_approximate = form.has("approx") || form.has("full");
    let is_always = matches!(form.opcode(), "sin" | "cos" | "lg2" | "ex2" | "tanh" | "rsqrt");
    if !is_approximate && !is_always {
        return None;
    }
    Some(approximation(form).ok_or_else(Gap::form))
}

/// A function of one or two numbers.
type Function = fn(f64, f64) -> f64;

/// The function of each opcode, and the error in its table of the manual.
fn function(form: &Form, kind: ScalarType) -> Option<(Function, &'static str)> {
    use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F64};
    Some(match (form.opcode(), kind) {
        ("div", F32) => (|a, b| a / b, "within 2 ULP"),
        ("rcp", F32) => (|a, _| 1.0 / a, "within 1 ULP"),
        ("rcp", F64) => (|a, _| 1.0 / a, "within a relative error of 2^-20"),
        ("sqrt", F32) => (|a, _| a.sqrt(), "within a relative error of 2^-23"),
        ("rsqrt", F32) => (|a, _| 1.0 / a.sqrt(), "within a relative error of 2^-22.9"),
        ("rsqrt", F64) => (|a, _| 1.0 / a.sqrt(), "within 2 ULP, in the upper half with .ftz"),
        ("sin", F32) => {
            (|a, _| libm::sin(a), "within an absolute error of 2^-20.5 for |x| below pi")
        }
        ("cos", F32) => {
            (|a, _| libm::cos(a), "within an absolute error of 2^-20.5 for |x| below pi")
        }
        ("lg2", F32) => (|a, _| libm::log2(a), "within an absolute error of 2^-22"),
        ("ex2", F32) => (|a, _| libm::exp2(a), "within 2 ULP"),
        ("ex2", F16 | F16x2) => (|a, _| libm::exp2(a), "within a relative error of 2^-9.9"),
        ("ex2", Bf16 | Bf16x2) => (|a, _| libm::exp2(a), "within a relative error of 2^-7"),
        ("tanh", F32) => (|a, _| libm::tanh(a), "within a relative error of 2^-11"),
        ("tanh", F16 | F16x2) => (|a, _| libm::tanh(a), "within an absolute error of 2^-10.987"),
        ("tanh", Bf16 | Bf16x2) => (|a, _| libm::tanh(a), "within an absolute error of 2^-8"),
        _ => return None,
    })
}

fn approximation(form: &Form) -> Option<Operation> {
    let kind = form.result()?;
    let format = format_of(kind)?;
    let (function, error) = function(form, kind)?;
    let rounding = Rounding::of(form);
    // The approximations in double precision compute the upper half of the result only.
    let is_upper_half = format == Format::F64 && form.has("ftz");
    let scalar = move |[a, b]: [u64; 2]| {
        let [a, b] = [a, b].map(|bits| rounding.operand(format, bits));
        let value = function(format.to_f64(a), format.to_f64(b));
        let result = rounding.result(format, format.of_f64(value), &[a]);
        if is_upper_half { result & !low(32) } else { result }
    };
    let bits = format.bits();
    let compute = match kind {
        ScalarType::F16x2 | ScalarType::Bf16x2 => each(move |operands: [u64; 2]| {
            let part = |shift: u32| scalar(operands.map(|value| value >> shift & low(bits)));
            part(0) | part(bits) << bits
        }),
        _ => each(scalar),
    };
    Some(Operation { compute, exactness: Exactness::WithinError(error.to_owned()) })
}
