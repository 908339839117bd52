//! Types of constant operands: the operation decides which bits an inline constant or literal stands
//! for.
//!
//! The type of an operand follows from LLVM's operand type (`AMDGPU::OperandType` in LLVM 22's
//! `SIDefines.h`), the bits of a constant of that type from the ISA manuals, "Inline constants"
//! and "Literal constants".

use crate::inst::Modifiers;
use crate::{DataType, Family, Generation, Operation, Value};
use half::f16;

/// The type of the constants of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantType {
    /// 16-bit integer. Floating-point constants have their single-precision bits, of which the operation
    /// reads the low half unless `op_sel` selects the high one (LLVM, `SIInstrInfo::isInlineConstant`).
    I16,
    /// 32-bit integer or bits. Floating-point constants have their single-precision bits.
    I32,
    /// 64-bit unsigned integer or bits. Literals are zero-extended; floating-point constants have their
    /// double-precision bits.
    U64,
    /// 64-bit signed integer. Literals are sign-extended; floating-point constants have their
    /// double-precision bits.
    I64,
    /// Half precision.
    F16,
    /// Bfloat16.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision. A literal gives the upper half.
    F64,
    /// Two 16-bit integers. The single-precision bits of a floating-point constant span both.
    PackedI16,
    /// Two half-precision numbers. A floating-point constant is the low one; the high one is zero.
    PackedF16,
    /// Two half-precision numbers; a floating-point constant is both of them (`v_pk_fmac_f16` from gfx11
    /// on; LLVM, `getPKFMACF16InlineEncoding`).
    SplatF16,
    /// Two bfloat16 numbers. A floating-point constant is the low one; the high one is zero.
    PackedBf16,
    /// One or two bfloat16 numbers on gfx1250. Floating-point constants have their single-precision bits,
    /// whose high half is the number in bfloat16; operations read it if `op_sel` selects the high half
    /// (LLVM, `FeatureBF16InlineConstFromUpperFP32` of later versions).
    UpperBf16,
    /// Two 32-bit words. A constant is the low one; the high one is zero.
    PackedI32,
    /// Two single-precision numbers. A constant is the low one; the high one is zero. (The hardware's value
    /// of the high one is not published; LLVM makes both results read the low one.)
    PackedF32,
}

impl ConstantType {
    /// The constant type for a number of LLVM's `AMDGPU::OperandType`; `None` for operands that cannot be
    /// constants.
    pub(crate) fn from_operand_type(number: u8) -> Option<ConstantType> {
        use ConstantType::*;
        /// `MCOI::OPERAND_FIRST_TARGET`.
        const FIRST: u8 = 13;
        // `correctConstants` in shim/mc.cpp repeats the numbers of I16 and PackedI16: keep them in sync.
        #[rustfmt::skip]
        const TYPES: [Option<ConstantType>; 31] = [
            // OPERAND_REG_IMM_
            Some(I32), Some(U64), Some(I16), Some(F32), Some(F64), Some(Bf16), Some(F16),
            Some(PackedBf16), Some(PackedF16), Some(SplatF16), Some(PackedI16),
            // OPERAND_REG_IMM_NOINLINE_V2FP16
            Some(PackedF16),
            Some(PackedI32), Some(PackedF32),
            // OPERAND_REG_INLINE_C_
            Some(I16), Some(I32), Some(U64), Some(Bf16), Some(F16), Some(F32), Some(F64),
            Some(PackedI16), Some(PackedBf16), Some(PackedF16),
            // OPERAND_INLINE_SPLIT_BARRIER_INT32
            None,
            // OPERAND_KIMM32, OPERAND_KIMM16, OPERAND_KIMM64
            Some(F32), Some(F16), Some(F64),
            // OPERAND_REG_INLINE_AC_
            Some(I32), Some(F32), Some(F64),
        ];
        TYPES.get(usize::from(number.checked_sub(FIRST)?)).copied().flatten()
    }

    /// Refines LLVM's type for source number `source` (from 0) of an operation. LLVM ignores signedness,
    /// and `op_sel_hi` selects half or single precision for each source of a mixed-precision operation.
    pub(crate) fn refine(
        self,
        operation: Operation,
        modifiers: &Modifiers,
        source: usize,
        generation: Generation,
    ) -> ConstantType {
        let name = operation.name();
        let is_upper = generation >= Generation::Gfx125 && !operation.is(Family::Wmma);
        match self {
            ConstantType::SplatF16 if generation < Generation::Gfx11 => ConstantType::PackedF16,
            ConstantType::U64 if name.split('_').any(|part| part == "i64") => ConstantType::I64,
            ConstantType::F16 | ConstantType::Bf16 if operation.is(Family::MixedPrecision) => {
                let halves = modifiers.op_sel_hi.unwrap_or(0);
                match self {
                    _ if halves >> source & 1 == 0 => ConstantType::F32,
                    ConstantType::Bf16 if is_upper => ConstantType::UpperBf16,
                    described => described,
                }
            }
            ConstantType::Bf16 | ConstantType::PackedBf16 if is_upper => ConstantType::UpperBf16,
            // LLVM gives all WMMA constants the double-precision type.
            _ if operation.is(Family::Wmma) => match operation.data_type() {
                DataType::F32 => ConstantType::F32,
                DataType::F16 if generation >= Generation::Gfx12 => ConstantType::SplatF16,
                DataType::F16 => ConstantType::F16,
                DataType::Bf16 => ConstantType::Bf16,
                _ => ConstantType::I32,
            },
            described => described,
        }
    }

    /// Returns `true` if operands of this type are half a register, selected by `op_sel`.
    pub(crate) fn is_half(self) -> bool {
        matches!(self, ConstantType::I16 | ConstantType::F16 | ConstantType::Bf16)
    }

    /// The bits of a constant of this type, zero-extended; `None` if `value` is not a constant.
    pub fn bits(self, value: &Value) -> Option<u64> {
        use ConstantType::*;
        let is_wide = matches!(self, U64 | I64 | F64);
        Some(match (value, self) {
            (Value::Integer(integer), _) if is_wide => *integer as u64,
            (Value::Integer(integer), _) => u64::from(*integer as u32),
            (Value::Float(float), F16 | PackedF16) => f16::from_f64(*float).to_bits().into(),
            (Value::Float(float), SplatF16) => {
                u64::from(f16::from_f64(*float).to_bits()) * 0x1_0001
            }
            // Truncated, not rounded; only 1/(2 pi) differs.
            (Value::Float(float), Bf16 | PackedBf16) => u64::from((*float as f32).to_bits() >> 16),
            (Value::Float(float), _) if is_wide => float.to_bits(),
            (Value::Float(float), _) => (*float as f32).to_bits().into(),
            (Value::WideLiteral(bits), _) => *bits,
            (Value::Literal(bits), F64) => u64::from(*bits) << 32,
            (Value::Literal(bits), I64) => i64::from(*bits as i32) as u64,
            (Value::Literal(bits), _) => (*bits).into(),
            (Value::Register(_) | Value::Off | Value::Symbol(_), _) => return None,
        })
    }
}
