//! A decoded instruction.

use crate::{Class, ConstantType, DataType, Generation, MemoryAccess, Operation, RegisterRange};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Address of an instruction, in bytes. Inside a code object: the ELF virtual address, as
/// disassemblers print it. On a device: where the code was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pc(pub u64);

impl fmt::Display for Pc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// One instruction: what it does, on what, and what it touches. All but where it stands is shared by
/// instructions of the same words, and is reached as if it were here.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// Where it was decoded.
    pub pc: Pc,
    /// Where a direct branch goes.
    pub branch_target: Option<Pc>,
    /// What its words say.
    pub words: Arc<InstWords>,
}

/// What the words of an instruction say, wherever it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct InstWords {
    /// Length in bytes.
    pub size: u8,
    /// The operation, one name across encodings and generations.
    pub operation: Operation,
    /// How it is encoded.
    pub encoding: Encoding,
    /// Explicit operands in the order the assembler prints them, destinations first.
    pub operands: Vec<Operand>,
    /// Everything the assembler prints after the operands.
    pub modifiers: Modifiers,
    /// The immediate field of SOPP and SOPK instructions and of those with a
    /// [`Value::Symbol`], as encoded: 16 bits, not sign-extended. A SOPK operand printed as a
    /// number is a [`Value::Integer`] with the value that the operation takes.
    pub immediate: Option<i64>,
    /// Registers read, implicit ones included (EXEC, VCC, SCC, M0, MODE ...), and destinations
    /// of which a part keeps its old value whatever EXEC is. Registers reached through an index
    /// in M0 (`v_movrels`, `s_movreld`, GPR index mode) are not named.
    pub reads: Vec<RegisterRange>,
    /// Registers written, implicit ones included. Lanes that EXEC excludes keep their values.
    pub writes: Vec<RegisterRange>,
    /// What LLVM's instruction description says of it.
    pub flags: Flags,
    /// LLVM's name of the opcode, generation suffix included.
    pub opcode_name: &'static str,
    /// The assembler's text, mnemonic suffix and modifiers included.
    pub text: String,
}

impl Deref for Inst {
    type Target = InstWords;

    fn deref(&self) -> &InstWords {
        &self.words
    }
}

impl DerefMut for Inst {
    /// Of this instruction alone: what others share stays.
    fn deref_mut(&mut self) -> &mut InstWords {
        Arc::make_mut(&mut self.words)
    }
}

impl Inst {
    /// The unit it runs on.
    pub fn class(&self) -> Class {
        self.operation.class()
    }

    /// What it does to memory.
    pub fn memory(&self) -> Option<MemoryAccess> {
        self.operation.memory()
    }

    /// The element type of its result, or of what it compares.
    pub fn data_type(&self) -> DataType {
        self.operation.data_type()
    }

    /// The operands the instruction writes.
    pub fn destinations(&self) -> impl Iterator<Item = &Operand> {
        self.operands.iter().filter(|operand| operand.role == Role::Destination)
    }

    /// The operands the instruction reads, tied destinations left out.
    pub fn sources(&self) -> impl Iterator<Item = &Operand> {
        self.operands.iter().filter(|operand| operand.role == Role::Source)
    }
}

impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Instruction formats of the ISA manuals ("Microcode formats").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Encoding {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3,
    Vop3p,
    /// Vector operation with sub-dword selects.
    Sdwa,
    /// Vector operation with data-parallel primitives.
    Dpp,
    /// Two operations in one instruction (gfx11 and later).
    Vopd,
    Vintrp,
    Ds,
    Mubuf,
    Mtbuf,
    Mimg,
    Flat,
    Global,
    Scratch,
    Export,
    /// An encoding that LLVM has and this list has not.
    Other,
}

/// Whether an operand is written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Written (and read as well where the operation accumulates into it).
    Destination,
    /// Read.
    Source,
}

/// An explicit operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Read or written.
    pub role: Role,
    /// What it names.
    pub value: Value,
    /// The type of its constants, where it is one and a register could stand in its place.
    pub constant: Option<ConstantType>,
    /// Arithmetic negation of the value read.
    pub negate: bool,
    /// Absolute value, taken before negation.
    pub absolute: bool,
    /// Sign extension of an SDWA sub-dword select.
    pub sign_extend: bool,
    /// The half of the register that alone is read or written, where the instruction names one, as 16-bit
    /// operands are named from gfx11 on, or is a load or a store of one. What the operation does follows
    /// from [`Modifiers::op_sel`], or from what it is.
    pub half: Option<Half>,
}

/// Half a vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// Bits 15:0.
    Low,
    /// Bits 31:16.
    High,
}

impl Operand {
    /// The bits that a constant has for the operation: those that a register would have to hold
    /// to give the same result. `None` for what is no constant.
    pub fn constant_bits(&self) -> Option<u64> {
        self.constant.unwrap_or(ConstantType::I32).bits(&self.value)
    }
}

/// What an operand names.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One or several registers of one file.
    Register(RegisterRange),
    /// An inline integer, -16 to 64, or an immediate field.
    Integer(i64),
    /// An inline floating-point constant, 0.5 to 4.0, negative or not, or 1/(2 pi). Its bits
    /// follow from the operand's [`ConstantType`]. A literal with the same bits may be printed,
    /// and thus given, as the constant.
    Float(f64),
    /// A 32-bit literal that follows the instruction word. Its bits follow from the operand's
    /// [`ConstantType`].
    Literal(u32),
    /// A 64-bit literal that follows the instruction word, with all its bits (gfx1250).
    WideLiteral(u64),
    /// `off`: no register in this place.
    Off,
    /// A symbolic immediate: `hwreg(...)`, `sendmsg(...)`, wait counters. The number is in
    /// [`InstWords::immediate`].
    Symbol(String),
}

/// Facts of LLVM's instruction description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// May read memory.
    pub loads: bool,
    /// May write memory.
    pub stores: bool,
    /// May change the PC to something other than the next instruction.
    pub branch: bool,
    /// Is a conditional branch.
    pub conditional: bool,
    /// Calls: control comes back after it.
    pub call: bool,
    /// Ends the wave or a function.
    pub terminator: bool,
    /// Control never reaches the next instruction directly.
    pub barrier: bool,
    /// The first destination is also read.
    pub tied: bool,
    /// May have effects that the operands do not show. LLVM leaves this set on most encodings,
    /// so only its absence means something.
    pub side_effects: bool,
}

/// What stands after the operands. Absent modifiers have their neutral value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modifiers {
    /// Result clamped.
    pub clamp: bool,
    /// Result scaled.
    pub output_scale: OutputScale,
    /// `op_sel`, bit i for source i, the bit after the last source for the destination, the next one
    /// for a second destination.
    pub op_sel: Option<u8>,
    /// `op_sel_hi`, bit i for source i.
    pub op_sel_hi: Option<u8>,
    /// `neg_lo`, bit i for source i.
    pub neg_lo: u8,
    /// `neg_hi`, bit i for source i.
    pub neg_hi: u8,
    /// Byte offset of FLAT, MUBUF and one-address DS instructions, and of SMEM instructions with
    /// an offset register besides; an SMEM offset that stands alone is the last operand.
    pub offset: i64,
    /// First element offset of two-address DS instructions.
    pub offset0: u8,
    /// Second element offset of two-address DS instructions.
    pub offset1: u8,
    /// The raw pattern of `ds_swizzle_b32`, however it is printed.
    pub swizzle: Option<u16>,
    /// Atomic returns the old value; elsewhere a cache policy. (gfx940 has `sc0` for it. On any
    /// generation an atomic that returns has a destination.)
    pub glc: bool,
    /// Other cache policy words, as printed: slc, dlc, scc, nt, sc0, sc1; from gfx12 on temporal
    /// hints and scopes, `th:TH_LOAD_NT`, `scope:SCOPE_DEV`.
    pub cache_policy: Vec<String>,
    /// MUBUF: an address register holds a byte offset.
    pub offen: bool,
    /// MUBUF: an address register holds an index.
    pub idxen: bool,
    /// MTBUF: the format of the data in memory. Absent where the instruction has none and where it
    /// is the default, [`BufferFormat::default`].
    pub buffer_format: Option<BufferFormat>,
    /// The offset register counts elements, as many bytes each as are accessed (gfx1250).
    pub scale_offset: bool,
    /// Data goes to LDS directly.
    pub lds: bool,
    /// Global data share instead of LDS.
    pub gds: bool,
    /// A fetch that hits a page which is not resident writes a status to the register after the
    /// data ("texture fault enable"): the destination has that register besides.
    pub tfe: bool,
    /// Conversions of 8-bit floating-point numbers from gfx12 on: the byte of the register that is
    /// read or written.
    pub byte_select: u8,
    /// Sparse matrix operations from gfx12 on: which part of the register of indices is used.
    pub index_key: u8,
    /// Sub-dword selects.
    pub sdwa: Option<Sdwa>,
    /// Data-parallel primitive.
    pub dpp: Option<Dpp>,
    /// MFMA: broadcast of a block, log2 of its size. Products of matrices of chosen formats, as those of
    /// gfx1250: the number of A's format.
    pub cbsz: u8,
    /// MFMA: which block is broadcast.
    pub abid: u8,
    /// MFMA: permutation of the lanes of the second source. Products of matrices of chosen formats: the
    /// number of B's.
    pub blgp: u8,
    /// WMMA with scales: of A and of B, whether the upper half of the wave holds them (gfx1250).
    pub scale_rows: [bool; 2],
    /// `v_bitop3`: a bit of the result for each three bits of the sources.
    pub bitop3: u8,
    /// MFMA in double precision on gfx940, which has it in the place of `blgp`: the sources that are
    /// negated, bit i for source i.
    pub negated_sources: u8,
    /// Words that this parser does not recognise, as printed.
    pub other: Vec<String>,
}

/// How typed buffers lie in memory: the numbers that the data format and the number format have up
/// to gfx9 (ISA manual, "Buffer resource descriptor", DATA_FORMAT and NUM_FORMAT). Newer generations
/// have one number for both, see [`BufferFormat::unified`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferFormat {
    /// Components and their widths, 0 to 15.
    pub data: u8,
    /// What the bits of a component mean, 0 to 7.
    pub number: u8,
}

impl BufferFormat {
    /// A format without components.
    pub const NONE: BufferFormat = BufferFormat { data: 0, number: 0 };

    /// The format of a number of gfx10 or later (RDNA 2 and RDNA 3 ISA, "Buffer image formats").
    pub fn unified(number: u8, generation: Generation) -> BufferFormat {
        /// Data formats in order, with the number formats that each has.
        type Order = [(u8, &'static [u8]); 14];
        const ALL: &[u8] = &[0, 1, 2, 3, 4, 5, 7];
        const NO_FLOAT: &[u8] = &[0, 1, 2, 3, 4, 5];
        const WORDS: &[u8] = &[4, 5, 7];
        const fn order(short: &'static [u8], first_packed: &'static [u8]) -> Order {
            [
                (1, NO_FLOAT),
                (2, ALL),
                (3, NO_FLOAT),
                (4, WORDS),
                (5, ALL),
                (6, short),
                (7, short),
                (8, first_packed),
                (9, NO_FLOAT),
                (10, NO_FLOAT),
                (11, WORDS),
                (12, ALL),
                (13, WORDS),
                (14, WORDS),
            ]
        }
        let order = match generation >= Generation::Gfx11 {
            true => order(&[7], &[0, 1, 4, 5]),
            false => order(ALL, NO_FLOAT),
        };
        // Number 0 is no format.
        let Some(index) = number.checked_sub(1) else { return BufferFormat::NONE };
        let mut all = order.iter().flat_map(|(data, numbers)| {
            numbers.iter().map(|number| BufferFormat { data: *data, number: *number })
        });
        all.nth(index.into()).unwrap_or(BufferFormat::NONE)
    }
}

impl Default for BufferFormat {
    /// One unsigned byte that stands for 0 to 1.
    fn default() -> BufferFormat {
        BufferFormat { data: 1, number: 0 }
    }
}

/// Scale applied to a floating-point result before clamping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OutputScale {
    #[default]
    None,
    Times2,
    Times4,
    Half,
}

/// The part of a dword an SDWA operand selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SdwaSelect {
    Byte0,
    Byte1,
    Byte2,
    Byte3,
    Word0,
    Word1,
    #[default]
    Dword,
}

impl SdwaSelect {
    /// Where the part begins, and how many bits it has (Vega ISA manual, "SDWA": `DST_SEL`).
    pub fn field(self) -> (u32, u32) {
        match self {
            SdwaSelect::Byte0 => (0, 8),
            SdwaSelect::Byte1 => (8, 8),
            SdwaSelect::Byte2 => (16, 8),
            SdwaSelect::Byte3 => (24, 8),
            SdwaSelect::Word0 => (0, 16),
            SdwaSelect::Word1 => (16, 16),
            SdwaSelect::Dword => (0, 32),
        }
    }
}

/// What happens to the bits of the destination that an SDWA write does not select.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SdwaUnused {
    #[default]
    Pad,
    SignExtend,
    Preserve,
}

/// SDWA fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sdwa {
    /// Select of the destination.
    pub destination: SdwaSelect,
    /// Treatment of the unselected destination bits.
    pub unused: SdwaUnused,
    /// Selects of the sources.
    pub sources: [SdwaSelect; 2],
}

impl Sdwa {
    /// No part of a word is selected.
    pub const WORDS: Sdwa = Sdwa {
        destination: SdwaSelect::Dword,
        unused: SdwaUnused::Pad,
        sources: [SdwaSelect::Dword; 2],
    };
}

/// Lane movement of a DPP instruction ("DPP_CTRL").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DppControl {
    /// Any permutation within groups of four lanes.
    QuadPerm([u8; 4]),
    /// Lane i reads lane i+n of its row of 16.
    RowShiftLeft(u8),
    /// Lane i reads lane i-n of its row of 16.
    RowShiftRight(u8),
    /// Lane i reads lane i-n, around within its row of 16.
    RowRotateRight(u8),
    /// Whole wave, lane i reads lane i+1.
    WaveShiftLeft,
    /// Whole wave, lane i reads lane i+1, around.
    WaveRotateLeft,
    /// Whole wave, lane i reads lane i-1.
    WaveShiftRight,
    /// Whole wave, lane i reads lane i-1, around.
    WaveRotateRight,
    /// Lanes of a row in reverse.
    RowMirror,
    /// Lanes of each half row in reverse.
    RowHalfMirror,
    /// Lane 15 of each row to the next row.
    RowBroadcast15,
    /// Lane 31 to rows 2 and 3.
    RowBroadcast31,
    /// One lane of each row to the whole row.
    RowNewBroadcast(u8),
    /// One lane of each row to the whole row (gfx10 name).
    RowShare(u8),
    /// Lane i reads lane i^n of its row.
    RowXmask(u8),
    /// Any permutation within groups of eight lanes.
    Dpp8([u8; 8]),
}

/// DPP fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dpp {
    /// The lane movement.
    pub control: DppControl,
    /// Rows of 16 lanes that are written, bit i for row i.
    pub row_mask: u8,
    /// Banks of 4 lanes within each row that are written.
    pub bank_mask: u8,
    /// Invalid source lanes read as zero instead of disabling the write.
    pub bound_control: bool,
    /// Disabled source lanes may be read.
    pub fetch_inactive: bool,
}
