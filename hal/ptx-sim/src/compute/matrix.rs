//! Products of matrices in registers (PTX ISA, "mma").

use super::Operation;
use crate::Gap;
use flipwave_ptx::Form;

/// The product of a form; `counts` are the numbers of registers of D, A, B and C.
///
/// # Errors
/// A gap for forms that are not implemented.
pub(crate) fn matrix_product(form: &Form, counts: [usize; 4]) -> Result<Operation, Gap> {
    let _ = (form, counts);
    Err(Gap::form())
}
