//! Arithmetic on two numbers in one register.

use super::float::{format_of, scalar};
use super::row::{Compute, each, low};
use crate::Gap;
use flipwave_ptx::Form;

pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    let bits = form.result().and_then(format_of).ok_or_else(Gap::form)?.bits();
    let scalar = scalar(form)?;
    Ok(each(move |operands: [u64; 3]| {
        let part = |shift: u32| scalar(operands.map(|value| value >> shift & low(bits)));
        part(0) | part(bits) << bits
    }))
}
