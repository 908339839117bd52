//! AMD's instruction sets.

use crate::execute::operations::matrix_shape;
use flipwave_arch::{
    Architecture, Float8, Instruction, OperationName, ProductShape, RegisterId, RegisterSpan,
    SimdShape,
};
use flipwave_isa::{DataType, Inst, Operation, Register, RegisterRange, Target, Vgpr};
use std::any::Any;

/// The instruction set of an AMD target.
#[derive(Clone, Debug)]
pub struct Amdgpu {
    target: Target,
    name: String,
}

impl Amdgpu {
    /// The instruction set of a target.
    pub fn new(target: Target) -> Amdgpu {
        Amdgpu { name: target.to_string(), target }
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }
}

impl Architecture for Amdgpu {
    fn target(&self) -> &str {
        &self.name
    }

    fn register(&self, name: &str) -> Option<RegisterId> {
        name.parse::<Register>().ok().map(RegisterId::from)
    }

    fn register_examples(&self) -> &'static str {
        "a register like v4, a0, s12, vcc_lo, exec_hi, m0 or scc"
    }

    fn operation(&self, name: &str) -> Option<OperationName> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_valid = !name.is_empty() && name.bytes().all(is_name);
        is_valid.then(|| OperationName::interned(name))
    }

    fn span_examples(&self) -> &'static str {
        "v4, s[0:3], vcc, m0 or scc"
    }

    fn register_span(&self, text: &str) -> Option<RegisterSpan> {
        let pair = match text {
            "vcc" => Some(Register::VccLo),
            "exec" => Some(Register::ExecLo),
            "flat_scratch" => Some(Register::FlatScratchLo),
            _ => None,
        };
        let range = || {
            let (file, numbers) = text.strip_suffix(']')?.split_once('[')?;
            let (first, last) = numbers.split_once(':')?;
            let [first, last] = [first, last].map(|number| number.parse::<u8>().ok());
            let words = last?.checked_sub(first?)?.checked_add(1)?;
            let first: Register = format!("{file}{}", first?).parse().ok()?;
            Some(RegisterRange::new(first, words))
        };
        let single = || text.parse().ok().map(|register| RegisterRange::new(register, 1));
        let range = pair.map(|first| RegisterRange::new(first, 2)).or_else(range).or_else(single);
        range.map(RegisterSpan::from)
    }

    fn computes_numbers(&self, operation: &str) -> bool {
        matches!(
            Operation::named(operation).data_type(),
            DataType::F64 | DataType::F32 | DataType::F16 | DataType::Bf16
        )
    }

    fn float8(&self) -> Float8 {
        self.target.float8()
    }

    fn any_vector_register(&self) -> RegisterId {
        Register::Vgpr(Vgpr(0)).into()
    }

    /// Four SIMDs of 16 lanes up to gfx9 ("Compute unit" in the CDNA and Vega ISA documents), two of
    /// 32 lanes from gfx10 on (RDNA ISA documents).
    fn simds(&self) -> SimdShape {
        match self.target.simds_per_unit() {
            2 => SimdShape { count: 2, width: 32 },
            _ => SimdShape { count: 4, width: 16 },
        }
    }

    fn matrix_shape(&self, inst: &dyn Instruction) -> Option<ProductShape> {
        matrix_shape(inst.as_any().downcast_ref::<Inst>()?, &self.target)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
