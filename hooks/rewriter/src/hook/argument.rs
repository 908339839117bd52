//! Arguments of hooks and their values.

use super::Passing;
use flipwave_isa::RegisterRange;

/// An argument of a hook call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// The bits of registers: per lane for VGPRs and AccVGPRs, per wave for all others.
    Register(RegisterRange),
    /// The instruction's operand with this index in assembler order: the bits of its registers before
    /// negation and absolute value, or the bits of its constant.
    Operand(usize),
    /// A number, for an integer or a pointer.
    Constant(u64),
    /// A number passed in VGPRs, which saves a move if the hook needs it there.
    LaneConstant(u64),
    /// The original instruction's ELF address.
    Pc,
    /// Active lanes of the instruction, bit i for lane i.
    Exec,
    /// The address of the instruction's memory access: per lane, for scalar memory per wave. For global and
    /// flat accesses, this is the virtual address; for buffers, the virtual address before the range check;
    /// for LDS and scratch, the offset in the workgroup's LDS or the lane's scratch. For two-address LDS
    /// operations, it is that of the first element.
    MemoryAddress,
    /// Size of the access in bytes: per lane, for scalar memory per wave.
    MemoryBytes,
    /// Address of the kernel's arguments.
    Kernarg,
    /// The workgroup's number in this dimension, 0 to 2.
    WorkgroupId(u8),
    /// The wave's number in its workgroup.
    WaveInWorkgroup,
    /// The address of a byte of the hooks' data.
    Data {
        /// A variable of the hook's source.
        symbol: String,
        /// Offset in the variable in bytes.
        offset: u64,
    },
}

/// A value that is known when a wave starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryValue {
    /// Address of the kernel's arguments, two words.
    Kernarg,
    /// The workgroup's number in this dimension, 0 to 2, one word.
    WorkgroupId(u8),
    /// The wave's number in its workgroup, one word.
    WaveInWorkgroup,
}

/// Value of an input of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InputValue {
    /// The values that registers have at the site.
    Registers(RegisterRange),
    /// A number of one or two words.
    Constant(u64),
    /// A value from the wave's start.
    Entry(EntryValue),
    /// The address of a byte of the hooks' data, two words.
    Data {
        /// A variable of the hook's source.
        symbol: String,
        /// Offset in the variable in bytes.
        offset: u64,
    },
}

impl InputValue {
    /// An input with the values of registers, and the registers in which it is passed.
    pub(super) fn registers(range: RegisterRange) -> (Passing, InputValue) {
        (Passing::of(range), InputValue::Registers(range))
    }
}

/// Computation of an argument from raw inputs. Calls that differ only in registers and numbers share
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgumentShape {
    /// Registers in which the inputs are passed.
    pub inputs: Vec<Passing>,
    /// Computation of the argument from the inputs.
    pub form: Form,
}

/// Computation of an argument from its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The bits of the only input; types of one or two bytes take the lowest bits.
    Bits,
    /// A C expression, cast to the parameter's type. `$0`, `$1` and so on are the inputs: an `unsigned int`,
    /// an `unsigned long` or a vector of `unsigned int`, depending on their size.
    Number(String),
}

/// Description of a wrapper: a hook with arguments computed from raw inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryPoint {
    /// The hook.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<ArgumentShape>,
    /// Registers in which its results are returned.
    pub results: Vec<Passing>,
}

/// A hook call with lowered arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredCall {
    /// The entry point to compile, which many calls share.
    pub entry: EntryPoint,
    /// Value of each input of the body.
    pub inputs: Vec<InputValue>,
}
