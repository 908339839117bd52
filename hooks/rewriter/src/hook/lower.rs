//! Lowering of arguments to raw inputs: registers and numbers, which the engine provides. Compiled code
//! computes the arguments from them.

use super::address;
use super::signature::{Parameter, Signature, TypeKind};
use super::{
    Argument, ArgumentShape, EntryPoint, EntryValue, Form, HookError, InputValue, LoweredCall,
    Passing,
};
use flipwave_isa::{Inst, MemorySpace, Register, RegisterRange, Value};

/// A lowered argument.
pub(super) struct Lowered {
    pub shape: ArgumentShape,
    pub values: Vec<InputValue>,
}

/// The reason why an argument cannot be lowered.
enum Mismatch {
    /// The argument does not match its parameter or the instruction.
    Call(String),
    /// The engine cannot compute the argument's value at the instruction.
    Site(String),
}

impl From<String> for Mismatch {
    fn from(reason: String) -> Mismatch {
        Mismatch::Call(reason)
    }
}

impl Signature {
    /// Lowers a call of this function at the instruction `site`, whose results permanently change the
    /// registers `results`.
    ///
    /// # Errors
    /// [`HookError::ArgumentCount`], [`HookError::Argument`] and [`HookError::Results`] if the arguments or
    /// results do not match the signature; [`HookError::Unavailable`] if the value of an argument cannot be
    /// computed at this instruction.
    pub fn call(
        &self,
        arguments: &[Argument],
        results: &[RegisterRange],
        site: &Inst,
        wave_size: u8,
    ) -> Result<LoweredCall, HookError> {
        if arguments.len() != self.parameters.len() {
            return Err(HookError::ArgumentCount {
                prototype: self.to_string(),
                expected: self.parameters.len(),
                given: arguments.len(),
            });
        }
        if !results.is_empty() && self.result == "void" {
            return Err(HookError::Results {
                function: self.name.clone(),
                reason: "returns nothing, but the call expects a result".into(),
            });
        }
        let mut shapes = Vec::new();
        let mut inputs = Vec::new();
        for (argument, parameter) in arguments.iter().zip(&self.parameters) {
            let (function, name) = (self.name.clone(), parameter.to_string());
            let lowered =
                lower(argument, parameter, site, wave_size).map_err(|error| match error {
                    Mismatch::Call(reason) => {
                        HookError::Argument { function, parameter: name, reason }
                    }
                    Mismatch::Site(reason) => {
                        HookError::Unavailable { function, parameter: name, reason }
                    }
                })?;
            shapes.push(lowered.shape);
            inputs.extend(lowered.values);
        }
        let results = results.iter().copied().map(Passing::of).collect();
        let entry = EntryPoint { function: self.name.clone(), arguments: shapes, results };
        Ok(LoweredCall { entry, inputs })
    }
}

/// Lowers an argument.
fn lower(
    argument: &Argument,
    parameter: &Parameter,
    site: &Inst,
    wave_size: u8,
) -> Result<Lowered, Mismatch> {
    let kind = parameter.ctype.kind();
    if let Argument::MemoryAddress = argument
        && site.memory().is_some()
    {
        let (expression, inputs) = address::address_of(site).map_err(Mismatch::Site)?;
        let bytes = match site.memory().map(|access| access.space) {
            Some(MemorySpace::Lds | MemorySpace::Scratch) => 4,
            _ => 8,
        };
        return Ok(wide_number(kind, bytes, &expression, inputs)?);
    }
    Ok(lower_value(argument, parameter, site, wave_size)?)
}

/// Lowers an argument whose value is available at every instruction. The error is the reason of a mismatch.
fn lower_value(
    argument: &Argument,
    parameter: &Parameter,
    site: &Inst,
    wave_size: u8,
) -> Result<Lowered, String> {
    let kind = parameter.ctype.kind();
    match argument {
        Argument::Register(range) => bits(*range, kind),
        Argument::Operand(index) => operand(site, *index, kind),
        Argument::Constant(number) => constant(*number, kind),
        Argument::LaneConstant(number) => {
            let mut lowered = constant(*number, kind)?;
            for passing in &mut lowered.shape.inputs {
                *passing = Passing::Vector(passing.words());
            }
            Ok(lowered)
        }
        Argument::Pc => constant(site.pc.0, kind),
        Argument::Exec => {
            let words = wave_size.div_ceil(32);
            let exec = InputValue::registers(RegisterRange::new(Register::ExecLo, words));
            wide_number(kind, 4 * words, "$0", vec![exec])
        }
        Argument::MemoryAddress => Err(format!("`{site}` accesses no memory")),
        Argument::MemoryBytes => match site.memory() {
            Some(access) => constant(access.bytes.into(), kind),
            None => Err(format!("`{site}` accesses no memory")),
        },
        Argument::Kernarg => {
            let value = InputValue::Entry(EntryValue::Kernarg);
            wide_number(kind, 8, &pointer(kind, 4), vec![(Passing::Scalar(2), value)])
        }
        Argument::WorkgroupId(dimension) => {
            if *dimension > 2 {
                return Err(format!("workgroups have dimensions 0 to 2, not {dimension}"));
            }
            let value = InputValue::Entry(EntryValue::WorkgroupId(*dimension));
            wide_number(kind, 4, "$0", vec![(Passing::Scalar(1), value)])
        }
        Argument::WaveInWorkgroup => {
            let value = InputValue::Entry(EntryValue::WaveInWorkgroup);
            wide_number(kind, 4, "$0", vec![(Passing::Scalar(1), value)])
        }
        Argument::Data { symbol, offset } => {
            let value = InputValue::Data { symbol: symbol.clone(), offset: *offset };
            wide_number(kind, 8, &pointer(kind, 1), vec![(Passing::Scalar(2), value)])
        }
    }
}

/// The expression of an address. Pointers have an address space (AMDGPUUsage, "Address Spaces": 1 global, 4
/// constant), so that accesses are not flat.
fn pointer(kind: TypeKind, space: u8) -> String {
    match kind {
        TypeKind::Pointer => format!("(__attribute__((address_space({space}))) void *)$0"),
        _ => "$0".to_owned(),
    }
}

/// Lowers the bits of registers.
fn bits(range: RegisterRange, kind: TypeKind) -> Result<Lowered, String> {
    let fits = |bytes: u8| bytes.div_ceil(4) == range.words;
    let expected = match kind {
        TypeKind::Integer(bytes) if !fits(bytes) => Some(bytes),
        TypeKind::Pointer if !fits(8) => Some(8),
        _ => None,
    };
    if let Some(bytes) = expected {
        let given = 4 * u32::from(range.words);
        return Err(format!("takes {bytes} bytes, {range} has {given}"));
    }
    let (passing, value) = InputValue::registers(range);
    Ok(Lowered {
        shape: ArgumentShape { inputs: vec![passing], form: Form::Bits },
        values: vec![value],
    })
}

/// Lowers an expression that yields a number of `bytes` bytes.
fn wide_number(
    kind: TypeKind,
    bytes: u8,
    expression: &str,
    inputs: Vec<(Passing, InputValue)>,
) -> Result<Lowered, String> {
    match kind {
        TypeKind::Integer(taken) if taken < bytes => {
            let expected = if bytes == 8 { "uint64_t" } else { "uint32_t" };
            Err(format!("takes {taken} bytes, but the number has {bytes}; expected {expected}"))
        }
        _ => number(kind, expression, inputs),
    }
}

/// Lowers an expression that yields a number.
fn number(
    kind: TypeKind,
    expression: &str,
    inputs: Vec<(Passing, InputValue)>,
) -> Result<Lowered, String> {
    if kind == TypeKind::Other {
        return Err("takes neither an integer nor a pointer, but a number is given".into());
    }
    let (inputs, values) = inputs.into_iter().unzip();
    let form = Form::Number(expression.to_owned());
    Ok(Lowered { shape: ArgumentShape { inputs, form }, values })
}

/// Lowers a constant, passed in as many words as the parameter's type has.
fn constant(value: u64, kind: TypeKind) -> Result<Lowered, String> {
    let bytes = match kind {
        TypeKind::Integer(bytes) => bytes,
        TypeKind::Pointer | TypeKind::Other => 8,
    };
    let unused = 64 - 8 * u32::from(bytes);
    let unsigned = value << unused >> unused;
    let signed = ((value as i64) << unused >> unused) as u64;
    if value != unsigned && value != signed {
        return Err(format!("takes {bytes} bytes, {value:#x} has more"));
    }
    let passing = Passing::Scalar(bytes.div_ceil(4));
    number(kind, &pointer(kind, 1), vec![(passing, InputValue::Constant(unsigned))])
}

/// Lowers an operand of the instruction.
fn operand(site: &Inst, index: usize, kind: TypeKind) -> Result<Lowered, String> {
    let operand = site.operands.get(index).ok_or_else(|| {
        format!(
            "`{site}` has no operand {index}: it has {} operands, counted from 0",
            site.operands.len()
        )
    })?;
    let value = match &operand.value {
        Value::Register(range) => return bits(*range, kind),
        Value::Integer(integer) => *integer as u64,
        _ => operand
            .constant_bits()
            .ok_or_else(|| format!("operand {index} of `{site}` has no value"))?,
    };
    constant(value, kind)
}
