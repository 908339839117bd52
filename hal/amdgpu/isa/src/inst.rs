//! Decoded instructions.

use crate::{
    Class, ConstantType, DataType, Generation, Half, MemoryAccess, Operation, Pc, RegisterRange,
};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A decoded instruction at an address. Instructions with the same encoding share their [`InstWords`],
/// to which this type dereferences.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// The address that the instruction was decoded at.
    pub pc: Pc,
    /// The target of a direct branch.
    pub branch_target: Option<Pc>,
    /// The position-independent part.
    pub words: Arc<InstWords>,
}

/// The position-independent part of a decoded instruction: everything that follows from its words.
#[derive(Clone, Debug, PartialEq)]
pub struct InstWords {
    /// Length in bytes.
    pub size: u8,
    /// The operation, with one name across encodings and generations.
    pub operation: Operation,
    /// The instruction format.
    pub encoding: Encoding,
    /// Explicit operands in assembler order, destinations first.
    pub operands: Vec<Operand>,
    /// Modifiers, which the assembler prints after the operands.
    pub modifiers: Modifiers,
    /// The immediate field of SOPP and SOPK instructions and of those with a
    /// [`Value::Symbol`], as encoded: 16 bits, not sign-extended. A SOPK operand printed as a
    /// number is a [`Value::Integer`] with the value that the operation uses.
    pub immediate: Option<i64>,
    /// Registers read, including implicit ones (EXEC, VCC, SCC, M0, MODE ...) and destinations
    /// that partly keep their old value regardless of EXEC. Registers accessed through an index
    /// in M0 (`v_movrels`, `s_movreld`, GPR index mode) are not included.
    pub reads: Vec<RegisterRange>,
    /// Registers written, including implicit ones. Inactive lanes keep their values.
    pub writes: Vec<RegisterRange>,
    /// Properties from LLVM's instruction description.
    pub flags: Flags,
    /// LLVM's opcode name, including the generation suffix.
    pub opcode_name: &'static str,
    /// The assembler text, including the mnemonic suffix and modifiers.
    pub text: String,
}

impl Deref for Inst {
    type Target = InstWords;

    fn deref(&self) -> &InstWords {
        &self.words
    }
}

impl DerefMut for Inst {
    /// Clones the shared part first, so that other instructions are unaffected.
    fn deref_mut(&mut self) -> &mut InstWords {
        Arc::make_mut(&mut self.words)
    }
}

impl Inst {
    /// The unit that executes the instruction.
    pub fn class(&self) -> Class {
        self.operation.class()
    }

    /// The memory access of the instruction, if any.
    pub fn memory(&self) -> Option<MemoryAccess> {
        self.operation.memory()
    }

    /// The element type of the result, or of the compared values.
    pub fn data_type(&self) -> DataType {
        self.operation.data_type()
    }

    /// The operands that the instruction writes.
    pub fn destinations(&self) -> impl Iterator<Item = &Operand> {
        self.operands.iter().filter(|operand| operand.role == Role::Destination)
    }

    /// The operands that the instruction reads, without tied destinations.
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
    /// Any other format known to LLVM.
    Other,
}

/// The role of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Written, and also read if the operation accumulates into it.
    Destination,
    /// Read.
    Source,
}

/// An explicit operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The role: read or written.
    pub role: Role,
    /// The register or constant.
    pub value: Value,
    /// The type of the constant, if the operand is a constant that a register could replace.
    pub constant: Option<ConstantType>,
    /// Arithmetic negation of the value read.
    pub negate: bool,
    /// Absolute value, taken before negation.
    pub absolute: bool,
    /// Sign extension of an SDWA sub-dword select.
    pub sign_extend: bool,
    /// The accessed half of the register: for 16-bit operands named as a half (from gfx11 on) and for the
    /// data of loads and stores of a half. Informational: the semantics follow from
    /// [`Modifiers::op_sel`] or from the operation.
    pub half: Option<Half>,
}

impl Operand {
    /// The bits that a register would have to hold to give the same result as this constant; `None` if
    /// the operand is not a constant.
    pub fn constant_bits(&self) -> Option<u64> {
        self.constant.unwrap_or(ConstantType::I32).bits(&self.value)
    }
}

/// The value of an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One or several registers of one file.
    Register(RegisterRange),
    /// An inline integer, -16 to 64, or an immediate field.
    Integer(i64),
    /// An inline floating-point constant: 0.5, 1.0, 2.0 or 4.0 of either sign, or 1/(2 pi). Its bits
    /// follow from the operand's [`ConstantType`]. LLVM may print a literal with the same bits as
    /// this constant; it is then decoded as the constant.
    Float(f64),
    /// A 32-bit literal that follows the instruction word. Its bits follow from the operand's
    /// [`ConstantType`].
    Literal(u32),
    /// A 64-bit literal that follows the instruction word (gfx1250).
    WideLiteral(u64),
    /// `off`: no register.
    Off,
    /// A symbolic immediate: `hwreg(...)`, `sendmsg(...)`, wait counters. The number is in
    /// [`InstWords::immediate`].
    Symbol(String),
}

/// Properties from LLVM's instruction description.
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
    /// Is a call, which returns to the next instruction.
    pub call: bool,
    /// Ends a basic block (LLVM's `isTerminator`).
    pub terminator: bool,
    /// Never falls through to the next instruction (LLVM's `isBarrier`).
    pub barrier: bool,
    /// The first destination is also read.
    pub tied: bool,
    /// May have effects beyond its operands. LLVM leaves this set on most instructions, so only its
    /// absence is meaningful.
    pub side_effects: bool,
}

/// Modifiers of an instruction. Absent modifiers have their neutral value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modifiers {
    /// `clamp`: the result is clamped.
    pub clamp: bool,
    /// Scale of the result.
    pub output_scale: OutputScale,
    /// `op_sel`: bit i for source i, the bit after the last source for the destination, and the next one
    /// for a second destination.
    pub op_sel: Option<u8>,
    /// `op_sel_hi`, bit i for source i.
    pub op_sel_hi: Option<u8>,
    /// `neg_lo`, bit i for source i.
    pub neg_lo: u8,
    /// `neg_hi`, bit i for source i.
    pub neg_hi: u8,
    /// Byte offset of FLAT, MUBUF and one-address DS instructions, and of SMEM instructions that also have
    /// an offset register; the offset of other SMEM instructions is their last operand.
    pub offset: i64,
    /// First element offset of two-address DS instructions.
    pub offset0: u8,
    /// Second element offset of two-address DS instructions.
    pub offset1: u8,
    /// The encoded pattern of `ds_swizzle_b32`.
    pub swizzle: Option<u16>,
    /// `glc`: an atomic returns the old value; for other instructions a cache policy. (gfx940 uses `sc0`
    /// instead. On every generation, an atomic that returns has a destination.)
    pub glc: bool,
    /// Other cache policies as printed: slc, dlc, scc, nt, sc0, sc1; from gfx12 on temporal
    /// hints and scopes, such as `th:TH_LOAD_NT` and `scope:SCOPE_DEV`.
    pub cache_policy: Vec<String>,
    /// MUBUF: an address register holds a byte offset.
    pub offen: bool,
    /// MUBUF: an address register holds an index.
    pub idxen: bool,
    /// MTBUF: the format of the data in memory. `None` if the instruction has no format or the default
    /// one, [`BufferFormat::default`].
    pub buffer_format: Option<BufferFormat>,
    /// `scale_offset`: the offset register counts elements of the access size instead of bytes (gfx1250).
    pub scale_offset: bool,
    /// `lds`: loaded data goes to LDS instead of registers.
    pub lds: bool,
    /// `gds`: the access uses the global data share instead of LDS.
    pub gds: bool,
    /// `tfe` ("texture fault enable"): a fetch from a non-resident page writes a status to the register
    /// after the data. The destination includes that register.
    pub tfe: bool,
    /// `byte_sel` of 8-bit float conversions from gfx12 on: the byte of the register that is read or
    /// written.
    pub byte_select: u8,
    /// `index_key` of sparse matrix operations from gfx12 on: the part of the index register that is used.
    pub index_key: u8,
    /// Sub-dword selects.
    pub sdwa: Option<Sdwa>,
    /// Data-parallel primitive.
    pub dpp: Option<Dpp>,
    /// MFMA: log2 of the size of the broadcast block. For matrix operations with selectable formats,
    /// including those of gfx1250: the format number of A.
    pub cbsz: u8,
    /// MFMA: the index of the broadcast block.
    pub abid: u8,
    /// MFMA: the lane permutation of the second source. For matrix operations with selectable formats: the
    /// format number of B.
    pub blgp: u8,
    /// WMMA with scales (gfx1250): for A and B, `true` if the upper half of the wave holds the scales.
    pub scale_rows: [bool; 2],
    /// WMMA with scales (gfx1250): the formats of the scales of A and B.
    pub scale_formats: [ScaleFormat; 2],
    /// `scale_sel` of conversions with scales of several lanes (gfx1250).
    pub scale_select: u8,
    /// `v_bitop3`: the truth table, with one result bit for each combination of the three source bits.
    pub bitop3: u8,
    /// `neg` of double-precision MFMA on gfx940, which replaces `blgp`: negated sources, bit i for
    /// source i.
    pub negated_sources: u8,
    /// Modifiers that this parser does not recognize, as printed.
    pub unrecognized: Vec<String>,
}

/// The format of the scales of a matrix (LLVM, `MatrixScaleFMT`). All have eight bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ScaleFormat {
    /// An exponent without mantissa.
    #[default]
    E8,
    /// Five bits of exponent and three of mantissa, without sign.
    E5M3,
    /// Four bits of exponent and three of mantissa, with sign.
    E4M3,
}

/// The format of typed buffer data in memory, by the data and number formats up to gfx9 (ISA manual,
/// "Buffer resource descriptor", DATA_FORMAT and NUM_FORMAT). Newer generations have one number for
/// both, see [`BufferFormat::unified`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferFormat {
    /// Data format: the components and their widths, 0 to 15.
    pub data: u8,
    /// Number format: the interpretation of a component, 0 to 7.
    pub number: u8,
}

impl BufferFormat {
    /// A format without components.
    pub const NONE: BufferFormat = BufferFormat { data: 0, number: 0 };

    /// The format for a unified format number of gfx10 or later (RDNA 2 and RDNA 3 ISA, "Buffer image
    /// formats").
    pub fn unified(number: u8, generation: Generation) -> BufferFormat {
        /// Data formats in numbering order, with the number formats of each.
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
        let order = if generation >= Generation::Gfx11 {
            order(&[7], &[0, 1, 4, 5])
        } else {
            order(ALL, NO_FLOAT)
        };
        // Number 0 is invalid.
        let Some(index) = number.checked_sub(1) else { return BufferFormat::NONE };
        let mut all = order.iter().flat_map(|(data, numbers)| {
            numbers.iter().map(|number| BufferFormat { data: *data, number: *number })
        });
        all.nth(index.into()).unwrap_or(BufferFormat::NONE)
    }
}

impl Default for BufferFormat {
    /// One unsigned normalized byte.
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

/// The part of a dword that an SDWA operand selects.
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
    /// The position and width of the part in bits (Vega ISA manual, "SDWA": `DST_SEL`).
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

/// The treatment of destination bits that an SDWA write does not select.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SdwaUnused {
    #[default]
    Pad,
    SignExtend,
    Preserve,
}

/// The SDWA fields of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sdwa {
    /// Selected part of the destination.
    pub destination: SdwaSelect,
    /// Treatment of the unselected destination bits.
    pub unused: SdwaUnused,
    /// Selected parts of the sources.
    pub sources: [SdwaSelect; 2],
}

impl Sdwa {
    /// Selects full dwords everywhere.
    pub const FULL_DWORDS: Sdwa = Sdwa {
        destination: SdwaSelect::Dword,
        unused: SdwaUnused::Pad,
        sources: [SdwaSelect::Dword; 2],
    };
}

/// Lane movement of a DPP instruction ("DPP_CTRL").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DppControl {
    /// Lane i of each group of four reads lane `[i]` of the group.
    QuadPerm([u8; 4]),
    /// Lane i reads lane i+n of its row of 16.
    RowShiftLeft(u8),
    /// Lane i reads lane i-n of its row of 16.
    RowShiftRight(u8),
    /// Lane i reads lane i-n of its row of 16, wrapping around.
    RowRotateRight(u8),
    /// Lane i reads lane i+1 of the wave.
    WaveShiftLeft,
    /// Lane i reads lane i+1 of the wave, wrapping around.
    WaveRotateLeft,
    /// Lane i reads lane i-1 of the wave.
    WaveShiftRight,
    /// Lane i reads lane i-1 of the wave, wrapping around.
    WaveRotateRight,
    /// Reverses the lanes of each row.
    RowMirror,
    /// Reverses the lanes of each half row.
    RowHalfMirror,
    /// Broadcasts lane 15 of each row to the next row.
    RowBroadcast15,
    /// Broadcasts lane 31 to rows 2 and 3.
    RowBroadcast31,
    /// Broadcasts lane n of each row to the whole row.
    RowNewBroadcast(u8),
    /// Broadcasts lane n of each row to the whole row (gfx10 name).
    RowShare(u8),
    /// Lane i reads lane i^n of its row.
    RowXmask(u8),
    /// Lane i of each group of eight reads lane `[i]` of the group.
    Dpp8([u8; 8]),
}

/// The DPP fields of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dpp {
    /// The lane movement.
    pub control: DppControl,
    /// Rows of 16 lanes that are written, bit i for row i.
    pub row_mask: u8,
    /// Banks of 4 lanes within each row that are written, bit i for bank i.
    pub bank_mask: u8,
    /// Invalid source lanes read as zero instead of disabling the write.
    pub bound_control: bool,
    /// Inactive source lanes may be read.
    pub fetch_inactive: bool,
}
