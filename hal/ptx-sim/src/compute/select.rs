//! Moves and selections (PTX ISA, "Comparison and Selection Instructions", "Data Movement and Conversion
//! Instructions").

use super::compare;
use super::float::{Rounding, format_of};
use super::row::{Compute, one, signed, three};
use crate::Gap;
use crate::address::Windows;
use flipwave_ptx::Form;

pub(super) fn compute(form: &Form) -> Result<Compute, Gap> {
    Ok(match form.opcode() {
        "mov" => one(|a| a),
        "set" => return compare::set(form),
        "selp" => three(|a, b, predicate| if predicate & 1 != 0 { a } else { b }),
        "slct" => {
            let kind = form.source().ok_or_else(Gap::form)?;
            let (bits, format, rounding) = (kind.bits(), format_of(kind), Rounding::of(form));
            three(move |a, b, c| {
                let is_first = match format {
                    Some(format) => {
                        let c = rounding.operand(format, c);
                        !format.is_nan(c) && (c & format.sign() == 0 || c == format.sign())
                    }
                    None => signed(c, bits) >= 0,
                };
                if is_first { a } else { b }
            })
        }
        "cvta" => {
            let base = form.space.map_or(0, Windows::base);
            let base = if form.has("to") { base.wrapping_neg() } else { base };
            one(move |a| a.wrapping_add(base))
        }
        "isspacep" => {
            let space = form.space.ok_or_else(Gap::form)?;
            one(move |a| u64::from(Windows::space_of(a) == space))
        }
        // A cluster has one workgroup, whose rank is 0.
        "mapa" => one(|a| a),
        "getctarank" => one(|_| 0),
        // Hints about caches have no effect.
        "createpolicy" => one(|_| 0),
        _ => return Err(Gap::form()),
    })
}
