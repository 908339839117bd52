//! The address that an instruction accesses, as a C expression over raw inputs.

use super::{InputValue, Passing};
use flipwave_isa::{Encoding, Inst, MemoryOperand, MemorySpace, Register, RegisterRange};

/// Inputs with their values.
type Inputs = Vec<(Passing, InputValue)>;

/// An address as a sum of terms, with their inputs.
#[derive(Default)]
struct Sum {
    terms: Vec<String>,
    inputs: Inputs,
}

impl Sum {
    /// Adds an input and returns its name in the expression.
    fn input(&mut self, passing: Passing, value: InputValue) -> String {
        self.inputs.push((passing, value));
        format!("${}", self.inputs.len() - 1)
    }

    /// Adds an input in registers and returns its name in the expression.
    fn registers(&mut self, range: RegisterRange) -> String {
        let (passing, value) = InputValue::registers(range);
        self.input(passing, value)
    }

    /// Adds registers as an unsigned number.
    fn register(&mut self, range: Option<RegisterRange>) {
        if let Some(range) = range {
            let name = self.registers(range);
            self.terms.push(format!("(unsigned long){name}"));
        }
    }

    /// Adds a signed 32-bit offset, unless it is zero.
    fn offset(&mut self, offset: i64) {
        if offset != 0 {
            let value = InputValue::Constant(u64::from(offset as u32));
            let name = self.input(Passing::Scalar(1), value);
            self.terms.push(format!("(long)(int){name}"));
        }
    }

    /// The sum as an expression; zero without terms.
    fn expression(&self) -> String {
        if self.terms.is_empty() { "0ul".to_owned() } else { self.terms.join(" + ") }
    }
}

/// The expression for the address that `inst` accesses, and its inputs.
///
/// # Errors
/// The reason why the address cannot be computed.
pub(super) fn address_of(inst: &Inst) -> Result<(String, Inputs), String> {
    let operand = inst.memory_operand().ok_or_else(|| format!("`{inst}` accesses no memory"))?;
    let mut sum = Sum::default();
    let offset = operand.offsets.first().copied().unwrap_or_default();
    if operand.access.space == MemorySpace::Buffer {
        let expression = buffer(inst, &operand, offset, &mut sum)
            .ok_or_else(|| format!("the buffer of `{inst}` is not in registers"))?;
        return Ok((expression, sum.inputs));
    }
    sum.register(operand.saddr);
    sum.register(operand.vaddr);
    sum.register(operand.soffset);
    if let Some(resource) = operand.resource {
        let name = sum.registers(RegisterRange::new(resource.first, 2));
        sum.terms.push(format!("({name} & 0xfffffffffffful)"));
    }
    if operand.address_in_m0 {
        let name = sum.registers(RegisterRange::new(Register::M0, 1));
        sum.terms.push(format!("({name} & 0xffff)"));
    }
    if operand.adds_lane_id {
        sum.terms.push("4ul * flipwave_lane()".to_owned());
    }
    sum.offset(offset);
    let expression = sum.expression();
    match operand.access.space {
        // Loads of less than a dword use the lowest bits of their address.
        MemorySpace::Scalar if operand.access.bytes >= 4 => {
            Ok((format!("({expression}) & ~3ul"), sum.inputs))
        }
        // 32-bit offsets, whose sum wraps.
        MemorySpace::Scratch | MemorySpace::Lds => {
            Ok((format!("(unsigned long)(unsigned)({expression})"), sum.inputs))
        }
        _ => Ok((expression, sum.inputs)),
    }
}

/// Returns `true` if the access converts data.
fn is_formatted(inst: &Inst) -> bool {
    inst.encoding == Encoding::Mtbuf || inst.operation.name().contains("_format_")
}

/// The expression for a buffer address, computed by [`BUFFER_ADDRESS`]; `None` if the resource is not in
/// registers.
fn buffer(inst: &Inst, operand: &MemoryOperand, offset: i64, sum: &mut Sum) -> Option<String> {
    let resource = sum.registers(operand.resource?);
    let word = |at| {
        let first = operand.vaddr?.first.offset(at)?;
        Some(RegisterRange::new(first, 1))
    };
    let index = if operand.idxen { sum.registers(word(0)?) } else { "0".to_owned() };
    let mut within = Sum { terms: Vec::new(), inputs: std::mem::take(&mut sum.inputs) };
    if operand.offen {
        let name = within.registers(word(u8::from(operand.idxen))?);
        within.terms.push(name);
    }
    within.offset(offset);
    let offset = within.expression();
    sum.inputs = within.inputs;
    sum.register(operand.soffset);
    let scalar_offset = sum.expression();
    let (indexed, formatted) = (u8::from(operand.idxen), u8::from(is_formatted(inst)));
    Some(format!(
        "flipwave_buffer_address({resource}, {indexed}, {index}, {formatted}, {offset}, \
         {scalar_offset})"
    ))
}

/// C code that computes the address of a byte in a buffer. Adding the lane to the index and swizzling depend
/// on the generation; see the buffer rules of the simulator.
pub(super) const BUFFER_ADDRESS: &str = "\
static inline unsigned long flipwave_buffer_address(
    flipwave_words_4 resource, unsigned indexed, unsigned index, unsigned formatted,
    unsigned long offset, unsigned long scalar_offset)
{
    offset &= 0xfffffffful;
    unsigned long base = (resource.x | (unsigned long)resource.y << 32) & 0xfffffffffffful;
    unsigned long stride = resource.y >> 16 & 0x3fff;
    unsigned adds_lane = resource.w >> 23 & 1, element = 4;
#ifdef __GFX9__
    unsigned swizzles = resource.y >> 31 & adds_lane;
    adds_lane &= swizzles | !indexed;
    if (adds_lane && !formatted)
        stride |= (resource.w >> 15 & 0xf) << 14;
#else
#ifdef __GFX10__
    unsigned swizzles = resource.y >> 31;
#else
    unsigned swizzles = resource.y >> 30;
    element = swizzles == 3 ? 16 : 4;
#endif
    swizzles = swizzles && (indexed | adds_lane);
    adds_lane &= !indexed;
#endif
    if (adds_lane)
        index += flipwave_lane();
    unsigned long within = index * stride + offset;
    if (swizzles) {
        unsigned together = 8u << (resource.w >> 21 & 3);
        within = (index / together * stride + offset / element * element) * together
            + index % together * element + offset % element;
    }
    return base + scalar_offset + within;
}
";
