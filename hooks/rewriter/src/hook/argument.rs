//! What a hook is given, and from where.

use super::Passing;
use flipwave_isa::RegisterRange;

/// What a parameter of a hook is given at a site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// The bits of registers: of VGPRs and AccVGPRs each lane's own, of all others the wave's.
    Register(RegisterRange),
    /// The instruction's operand of this number, counted from 0 in the assembler's order: the bits
    /// of its registers before negation and absolute value, or the bits of its constant.
    Operand(usize),
    /// A number, into an integer or a pointer.
    Constant(u64),
    /// The same in VGPRs, which saves a move where a hook needs it there.
    LaneConstant(u64),
    /// The original instruction's ELF address.
    Pc,
    /// The lanes that the instruction runs on, bit i for lane i.
    Exec,
    /// Where the instruction accesses memory: each lane's address, for scalar memory the wave's.
    /// Global and flat accesses: the virtual address. Buffers: the virtual address, before the
    /// range check. LDS and scratch: the offset from the beginning of the workgroup's LDS, of
    /// the lane's scratch; of two-address LDS operations the first element's.
    MemoryAddress,
    /// Bytes that the access moves per lane, for scalar memory per wave.
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
        /// Bytes after its first.
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

/// What the engine puts into an input of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InputValue {
    /// The values that registers have at the site.
    Registers(RegisterRange),
    /// A number, one or two words, the low first.
    Constant(u64),
    /// A value from the wave's start.
    Entry(EntryValue),
    /// The address of a byte of the hooks' data, two words.
    Data {
        /// A variable of the hook's source.
        symbol: String,
        /// Bytes after its first.
        offset: u64,
    },
}

impl InputValue {
    /// Registers as an input, and what they are passed in.
    pub(super) fn registers(range: RegisterRange) -> (Passing, InputValue) {
        (Passing::of(range), InputValue::Registers(range))
    }
}

/// How the compiled code of a parameter's value is made from raw inputs. Sites that differ only in
/// which registers and numbers the inputs are share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgumentShape {
    /// What the inputs are passed in.
    pub inputs: Vec<Passing>,
    /// How the value follows from them.
    pub form: Form,
}

/// How a parameter's value follows from its inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The bits of the only input are the parameter's; a type of one or two bytes takes the lowest.
    Bits,
    /// An expression of C, cast to the parameter's type, in which `$0`, `$1` and so on are the
    /// inputs: an `unsigned int`, an `unsigned long` or a vector of `unsigned int`, by their size.
    Number(String),
}

/// A wrapper to be compiled: a hook with its arguments made from raw inputs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryPoint {
    /// The hook.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<ArgumentShape>,
    /// What its results go to.
    pub results: Vec<Passing>,
}

/// A hook called at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredCall {
    /// What is to be compiled; many calls share one.
    pub entry: EntryPoint,
    /// What goes into each input of the body.
    pub inputs: Vec<InputValue>,
}
