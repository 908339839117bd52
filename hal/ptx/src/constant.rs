//! Values of constant expressions (PTX ISA, "Constant Expressions").

use crate::{Binary, Expression, Number, ScalarType, Unary};

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// An integer of 64 bits.
    Integer {
        /// The bits.
        bits: u64,
        /// `true` for the type `.u64`, `false` for `.s64`.
        is_unsigned: bool,
    },
    /// Bits of a number in single precision.
    Single(u32),
    /// A number in double precision.
    Double(f64),
}

/// Lanes of a wave: the value of `WARP_SZ`.
pub const WARP_SIZE: u8 = 32;

impl Constant {
    fn of_signed(value: i64) -> Constant {
        Constant::Integer { bits: value as u64, is_unsigned: false }
    }

    /// Evaluates an expression; `None` if it contains symbols or is undefined, such as a division by
    /// zero.
    pub fn of(expression: &Expression) -> Option<Constant> {
        Some(match expression {
            Expression::Number(number) => Constant::of_number(*number),
            Expression::Symbol(name) if &**name == "WARP_SZ" => {
                Constant::of_signed(WARP_SIZE.into())
            }
            Expression::Symbol(_) | Expression::Call(..) | Expression::Mask(..) => return None,
            Expression::Unary(operator, operand) => unary(*operator, Constant::of(operand)?)?,
            Expression::Binary(operator, operands) => {
                let [left, right] = &**operands;
                binary(*operator, Constant::of(left)?, Constant::of(right)?)?
            }
            Expression::Select(parts) => {
                let [condition, first, second] = &**parts;
                Constant::of(if Constant::of(condition)?.is_true() { first } else { second })?
            }
            Expression::Cast(kind, operand) => match (kind, Constant::of(operand)?) {
                (ScalarType::S64, Constant::Integer { bits, .. }) => {
                    Constant::Integer { bits, is_unsigned: false }
                }
                (ScalarType::U64, Constant::Integer { bits, .. }) => {
                    Constant::Integer { bits, is_unsigned: true }
                }
                _ => return None,
            },
        })
    }

    fn of_number(number: Number) -> Constant {
        match number {
            Number::Integer { value, is_unsigned, .. } => {
                let is_unsigned = is_unsigned || value > i64::MAX as u64;
                Constant::Integer { bits: value, is_unsigned }
            }
            Number::Single(bits) => Constant::Single(bits),
            Number::Double(bits) => Constant::Double(f64::from_bits(bits)),
        }
    }

    fn is_true(self) -> bool {
        match self {
            Constant::Integer { bits, .. } => bits != 0,
            Constant::Single(bits) => f32::from_bits(bits) != 0.0,
            Constant::Double(value) => value != 0.0,
        }
    }

    /// The value as bits of a type: numbers are converted to floating-point types, and truncated to the
    /// size of other types.
    pub fn bits(self, kind: ScalarType) -> u64 {
        let mask = if kind.bits() >= 64 { u64::MAX } else { (1 << kind.bits()) - 1 };
        match (self, kind) {
            (Constant::Integer { bits, .. }, _) => bits & mask,
            (Constant::Single(bits), ScalarType::F64) => f64::from(f32::from_bits(bits)).to_bits(),
            (Constant::Single(bits), _) => u64::from(bits) & mask,
            (Constant::Double(value), ScalarType::F32) => u64::from((value as f32).to_bits()),
            (Constant::Double(value), _) => value.to_bits() & mask,
        }
    }

    /// The value as an integer; `None` for floating-point numbers.
    pub fn integer(self) -> Option<u64> {
        match self {
            Constant::Integer { bits, .. } => Some(bits),
            Constant::Single(_) | Constant::Double(_) => None,
        }
    }
}

fn unary(operator: Unary, operand: Constant) -> Option<Constant> {
    Some(match (operator, operand) {
        (Unary::Plus, operand) => operand,
        (Unary::Not, operand) => Constant::of_signed(i64::from(!operand.is_true())),
        (Unary::Minus, Constant::Integer { bits, is_unsigned }) => {
            Constant::Integer { bits: bits.wrapping_neg(), is_unsigned }
        }
        (Unary::Minus, Constant::Single(bits)) => Constant::Single(bits ^ 1 << 31),
        (Unary::Minus, Constant::Double(value)) => Constant::Double(-value),
        (Unary::Complement, Constant::Integer { bits, is_unsigned }) => {
            Constant::Integer { bits: !bits, is_unsigned }
        }
        (Unary::Complement, _) => return None,
    })
}

fn binary(operator: Binary, left: Constant, right: Constant) -> Option<Constant> {
    let (
        Constant::Integer { bits: a, is_unsigned: first },
        Constant::Integer { bits: b, is_unsigned: second },
    ) = (left, right)
    else {
        return floating(operator, left, right);
    };
    let is_unsigned = first || second;
    let (signed_a, signed_b) = (a as i64, b as i64);
    let truth = |unsigned: bool, signed: bool| {
        Some(Constant::of_signed(i64::from(if is_unsigned { unsigned } else { signed })))
    };
    let shift = u32::try_from(b).unwrap_or(u32::MAX);
    let bits = match operator {
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide if is_unsigned => a.checked_div(b)?,
        Binary::Divide => signed_a.checked_div(signed_b)? as u64,
        Binary::Remainder if is_unsigned => a.checked_rem(b)?,
        Binary::Remainder => signed_a.checked_rem(signed_b)? as u64,
        Binary::Add => a.wrapping_add(b),
        Binary::Subtract => a.wrapping_sub(b),
        Binary::ShiftLeft => a.checked_shl(shift).unwrap_or(0),
        Binary::ShiftRight if first => a.checked_shr(shift).unwrap_or(0),
        Binary::ShiftRight => (signed_a >> shift.min(63)) as u64,
        Binary::Less => return truth(a < b, signed_a < signed_b),
        Binary::Greater => return truth(a > b, signed_a > signed_b),
        Binary::LessEqual => return truth(a <= b, signed_a <= signed_b),
        Binary::GreaterEqual => return truth(a >= b, signed_a >= signed_b),
        Binary::Equal => return truth(a == b, a == b),
        Binary::Unequal => return truth(a != b, a != b),
        Binary::And => a & b,
        Binary::Xor => a ^ b,
        Binary::Or => a | b,
        Binary::LogicalAnd => return truth(a != 0 && b != 0, a != 0 && b != 0),
        Binary::LogicalOr => return truth(a != 0 || b != 0, a != 0 || b != 0),
    };
    Some(Constant::Integer { bits, is_unsigned })
}

fn floating(operator: Binary, left: Constant, right: Constant) -> Option<Constant> {
    let value = |constant| match constant {
        Constant::Integer { .. } => None,
        Constant::Single(bits) => Some(f64::from(f32::from_bits(bits))),
        Constant::Double(value) => Some(value),
    };
    let (a, b) = (value(left)?, value(right)?);
    let truth = |truth: bool| Some(Constant::of_signed(i64::from(truth)));
    match operator {
        Binary::Multiply => Some(Constant::Double(a * b)),
        Binary::Divide => Some(Constant::Double(a / b)),
        Binary::Add => Some(Constant::Double(a + b)),
        Binary::Subtract => Some(Constant::Double(a - b)),
        Binary::Less => truth(a < b),
        Binary::Greater => truth(a > b),
        Binary::LessEqual => truth(a <= b),
        Binary::GreaterEqual => truth(a >= b),
        Binary::Equal => truth(a == b),
        Binary::Unequal => truth(a != b),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Initializer, parse};

    fn value(text: &str) -> Option<Constant> {
        let text = format!(".version 8.0\n.global .u64 a = {text};");
        let module = parse(&text).expect("a module");
        let declaration = module.variables().next().expect("a variable");
        match &declaration.declarators[0].initializer {
            Some(Initializer::Value(value)) => Constant::of(value),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn integer_expressions_follow_the_rules_of_c() {
        let cases: [(&str, i64); 12] = [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("-7 / 2", -3),
            ("-7 >> 1", -4),
            ("1 << 4 | 3 ^ 1", 18),
            ("1 < 2 ? 5 : 6", 5),
            ("~0 & 0xff", 255),
            ("!3 || 2 && 0", 0),
            ("WARP_SZ - 1", 31),
            ("10 - 3 - 2", 5),
            ("-1 > 0", 0),
            ("-1 > 0U", 1),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text).and_then(Constant::integer), Some(expected as u64), "{text}");
        }
        assert_eq!(value("1 / 0"), None);
        assert_eq!(value("b + 1"), None);
    }

    #[test]
    fn constants_convert_to_the_type_of_their_use() {
        let bits = |text: &str, kind| value(text).expect("a constant").bits(kind);
        assert_eq!(bits("1.5", ScalarType::F32), u64::from(1.5f32.to_bits()));
        assert_eq!(bits("0f3FC00000", ScalarType::F64), 1.5f64.to_bits());
        assert_eq!(bits("-1", ScalarType::U16), 0xffff);
        assert_eq!(bits("-0f3FC00000", ScalarType::B32), 0xbfc0_0000);
    }
}
