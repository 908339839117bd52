//! The instruction set of a target.

use crate::{CARRY, DECLARED, Form, Inst, MatrixForm, OpcodeFacts, PREDICATES, WORDS};
use flipwave_arch::{
    Architecture, Instruction, OperationName, ProductShape, RegisterId, RegisterSpan, SimdShape,
};
use std::any::Any;

/// PTX for a target such as `sm_80`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    target: Box<str>,
}

impl Ptx {
    /// PTX for a target; `None` if its name does not have the form `sm_80` or `sm_90a`.
    pub fn new(target: &str) -> Option<Ptx> {
        let digits = target.strip_prefix("sm_")?.trim_end_matches(['a', 'f']);
        let is_known =
            (2..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        is_known.then(|| Ptx { target: target.into() })
    }

    /// The oldest version of PTX, major and minor, that has the target and its architecture-specific features
    /// (PTX ISA 9.1, "Release Notes"); at least 7.8.
    pub fn oldest_version(&self) -> (u32, u32) {
        let number = self.target.trim_start_matches("sm_");
        let digits = number.trim_end_matches(['a', 'f']);
        match (digits.parse::<u32>().unwrap_or(0), number.ends_with('f')) {
            (0..=89, _) => (7, 8),
            (90..=99, _) => (8, 0),
            (100 | 101, false) => (8, 6),
            (120, false) => (8, 7),
            (110, _) => (9, 0),
            _ => (8, 8),
        }
    }
}

/// Returns `true` for texts that can name a declared register: an identifier (PTX ISA, "Identifiers"), perhaps with a
/// suffix, or such a one after a function's name.
fn is_declarable(name: &str) -> bool {
    let (_, name) = name.rsplit_once(':').unwrap_or(("", name));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_$%.#".contains(c);
    let is_first = |c: char| c.is_ascii_alphabetic() || "_$%".contains(c);
    name.starts_with(is_first) && name.chars().all(is_plain)
}

impl Architecture for Ptx {
    fn target(&self) -> &str {
        &self.target
    }

    /// Also names that modules declare, in the form of [`Code::register_name`](crate::Code::register_name).
    fn register(&self, name: &str) -> Option<RegisterId> {
        let numbered =
            [&WORDS, &PREDICATES, &CARRY].into_iter().find_map(|class| class.parse(name));
        numbered.or_else(|| is_declarable(name).then(|| DECLARED.parse(name)).flatten())
    }

    fn register_examples(&self) -> &'static str {
        "a register that the function declares, like %r12, %rd3.lo or %p1, or %cc"
    }

    fn operation(&self, name: &str) -> Option<OperationName> {
        OpcodeFacts::of(name).map(|_| OperationName::interned(name))
    }

    fn span_examples(&self) -> &'static str {
        "%r12, %rd3, %rd3.lo or %p1 (registers that the code declares), %w4, %w[0:3] or %cc"
    }

    fn register_span(&self, text: &str) -> Option<RegisterSpan> {
        let range = |class: &'static flipwave_arch::RegisterClass, text: &str| {
            let flipwave_arch::RegisterNames::Numbered(prefix) = class.names else { return None };
            let inner = text.strip_prefix(prefix)?.strip_prefix('[')?.strip_suffix(']')?;
            let (first, last) = inner.split_once(':')?;
            let [first, last] =
                [first, last].map(|number| class.parse(&format!("{prefix}{number}")));
            let words = last?.number.checked_sub(first?.number)?.checked_add(1)?;
            Some(RegisterSpan::new(first?, words))
        };
        self.register(text)
            .map(|register| RegisterSpan::new(register, 1))
            .or_else(|| range(&WORDS, text))
            .or_else(|| range(&PREDICATES, text))
    }

    fn computes_numbers(&self, operation: &str) -> bool {
        Form::of(operation).result().is_some_and(crate::ScalarType::is_float)
    }

    fn any_vector_register(&self) -> RegisterId {
        RegisterId { class: &WORDS, number: 0 }
    }

    /// Four partitions of 16 lanes (NVIDIA's "CUDA C++ Programming Guide", "Compute Capabilities").
    fn simds(&self) -> SimdShape {
        SimdShape { count: 4, width: 16 }
    }

    fn matrix_shape(&self, inst: &dyn Instruction) -> Option<ProductShape> {
        let inst = inst.as_any().downcast_ref::<Inst>()?;
        MatrixForm::of(&inst.form).map(|form| form.shape())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_a_version_of_ptx() {
        for (target, expected) in [
            ("sm_75", (7, 8)),
            ("sm_90a", (8, 0)),
            ("sm_100", (8, 6)),
            ("sm_100f", (8, 8)),
            ("sm_120a", (8, 7)),
        ] {
            assert_eq!(Ptx::new(target).expect("a target").oldest_version(), expected, "{target}");
        }
    }

    #[test]
    fn names_of_registers_and_operations_are_read() {
        let ptx = Ptx::new("sm_90a").expect("a target");
        assert_eq!(ptx.register("%w7").map(|found| found.to_string()).as_deref(), Some("%w7"));
        assert_eq!(ptx.register("%cc").map(RegisterId::bits), Some(1));
        assert_eq!(ptx.register_span("%w[2:5]").map(|span| span.words), Some(4));
        assert_eq!(ptx.register_span("%w[5:2]"), None);
        for text in ["%r7", "p", "scale:%rd1.lo", "%r1#2"] {
            let declared = ptx.register(text).expect("a name");
            assert_eq!((declared.is_declared(), declared.to_string().as_str()), (true, text));
            assert_eq!(ptx.register(text), Some(declared));
            assert_eq!(ptx.register_span(text), Some(RegisterSpan::new(declared, 1)));
        }
        for text in ["", "7", "%r1=", "a b", "#2"] {
            assert_eq!(ptx.register(text), None);
        }
        assert!(ptx.operation("fma.rn.f32").is_some() && ptx.operation("v_fma_f32").is_none());
        for name in ["gfx90a", "sm_", "sm_8x", "compute_80"] {
            assert_eq!(Ptx::new(name), None);
        }
    }
}
