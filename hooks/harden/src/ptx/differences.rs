//! Registers that collect differences, and their code.

use flipwave_ptx::{Expression, Guard, Instruction, Name, Number, Operand, Radix, ScalarType};

/// Width of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
    /// 16 bits.
    Half,
    /// A predicate.
    Predicate,
}

impl Width {
    /// Width of registers of a type; `None` if they cannot be compared.
    pub fn of(kind: ScalarType) -> Option<Width> {
        match kind.bits() {
            1 => Some(Width::Predicate),
            16 => Some(Width::Half),
            32 => Some(Width::Word),
            64 => Some(Width::Double),
            _ => None,
        }
    }

    /// Type of registers of this width.
    pub fn kind(self) -> ScalarType {
        match self {
            Width::Word => ScalarType::B32,
            Width::Double => ScalarType::B64,
            Width::Half => ScalarType::B16,
            Width::Predicate => ScalarType::Pred,
        }
    }

    /// Number of instructions of a comparison.
    pub fn instructions(self) -> u32 {
        if self == Width::Word { 1 } else { 2 }
    }
}

/// `(a ^ b) | c` for `lop3`: applied to 0xF0, 0xCC and 0xAA (PTX ISA, "lop3").
const ADD_DIFFERENCE: u64 = (0xf0 ^ 0xcc) | 0xaa;

/// Registers for the differences of one width in a function.
#[derive(Clone, Debug)]
pub struct Differences {
    /// Width of the registers.
    pub width: Width,
    /// The bits in which a result has differed from its shadow.
    pub sum: Name,
    /// The bits that differ in a comparison.
    pub current: Name,
}

impl Differences {
    /// Code that clears the sum.
    pub fn clear(&self) -> Instruction {
        op("mov", self.width, vec![symbol(&self.sum), number(0)])
    }

    /// Code that adds the difference of two registers to the sum, in lanes for which the guard is true.
    pub fn compare(&self, result: &Name, shadow: &Name, guard: Option<&Guard>) -> Vec<Instruction> {
        let (sum, [result, shadow]) = (symbol(&self.sum), [result, shadow].map(symbol));
        let mut code = if self.width == Width::Word {
            let table = hexadecimal(ADD_DIFFERENCE);
            vec![op("lop3", self.width, vec![sum.clone(), result, shadow, sum, table])]
        } else {
            let current = symbol(&self.current);
            vec![
                op("xor", self.width, vec![current.clone(), result, shadow]),
                op("or", self.width, vec![sum.clone(), sum, current]),
            ]
        };
        code.iter_mut().for_each(|inst| inst.guard = guard.cloned());
        code
    }

    /// Code that sets a predicate if the sum is not zero. Unless it is the first, it leaves the predicate set.
    fn test(&self, found: &Name, is_first: bool) -> Instruction {
        let (found, sum) = (symbol(found), symbol(&self.sum));
        match (self.width, is_first) {
            (Width::Predicate, true) => op("mov", self.width, vec![found, sum]),
            (Width::Predicate, false) => op("or", self.width, vec![found.clone(), found, sum]),
            (_, true) => op("setp.ne", self.width, vec![found, sum, number(0)]),
            (_, false) => op("setp.ne.or", self.width, vec![found.clone(), sum, number(0), found]),
        }
    }
}

/// Predicates for counting differences.
#[derive(Clone, Debug)]
pub struct Report {
    /// Set in lanes with a difference.
    pub found: Name,
    /// The inverse of a guard.
    pub inverse: Name,
}

impl Report {
    /// Code that adds 1 to a variable in lanes with a difference for which the guard is true.
    pub fn code(
        &self,
        differences: &[&Differences],
        variable: &str,
        guard: Option<&Guard>,
    ) -> Vec<Instruction> {
        let all = differences.iter().enumerate();
        let mut code: Vec<Instruction> =
            all.map(|(index, found)| found.test(&self.found, index == 0)).collect();
        let found = symbol(&self.found);
        if let Some(guard) = guard {
            let mut condition = symbol(&guard.register);
            if guard.is_negated {
                let inverse = symbol(&self.inverse);
                code.push(op("not", Width::Predicate, vec![inverse.clone(), condition]));
                condition = inverse;
            }
            code.push(op("and", Width::Predicate, vec![found.clone(), found, condition]));
        }
        let address = Operand::Address(vec![symbol(variable)]);
        code.push(Instruction {
            guard: Some(Guard { register: self.found.clone(), is_negated: false }),
            name: "red.global.add.u64".into(),
            operands: vec![address, number(1)],
        });
        code
    }
}

fn op(name: &str, width: Width, operands: Vec<Operand>) -> Instruction {
    let name = format!("{name}.{}", width.kind().name()).into();
    Instruction { guard: None, name, operands }
}

fn symbol(name: impl AsRef<str>) -> Operand {
    Operand::symbol(name.as_ref())
}

fn number(value: u64) -> Operand {
    Operand::Value(Expression::Number(Number::decimal(value)))
}

fn hexadecimal(value: u64) -> Operand {
    let radix = Radix::Hexadecimal;
    Operand::Value(Expression::Number(Number::Integer { value, radix, is_unsigned: false }))
}
