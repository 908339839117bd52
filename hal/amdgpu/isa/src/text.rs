//! Parser of instructions as LLVM prints them. The text names every modifier, unlike the MC
//! instruction.

use crate::inst::{
    BufferFormat, Dpp, DppControl, Modifiers, OutputScale, ScaleFormat, Sdwa, SdwaSelect,
    SdwaUnused, Value,
};
use crate::{AccVgpr, Half, Register, RegisterRange, Sgpr, Ttmp, Vgpr};

/// A parsed instruction.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    /// Mnemonic with encoding suffix. A VOPD instruction has two mnemonics, joined by ` :: `.
    pub mnemonic: String,
    /// Operands in printed order.
    pub operands: Vec<PrintedOperand>,
    /// Index of the first operand of the second half of a VOPD instruction.
    pub second_half: Option<usize>,
    /// Modifiers.
    pub modifiers: Modifiers,
    /// Number of operands with a bit in `op_sel`.
    pub op_sel_entries: u8,
}

/// A parsed operand.
#[derive(Debug, PartialEq)]
pub(crate) struct PrintedOperand {
    pub value: Value,
    pub negate: bool,
    pub absolute: bool,
    pub sign_extend: bool,
    /// The register half that the name includes.
    pub half: Option<Half>,
}

/// The syntax of words after an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Words after an operand are modifiers.
    Modifiers,
    /// The format has no modifiers: words after an operand (`vmcnt(0) lgkmcnt(0)`) belong to it.
    Symbolic,
}

/// Parses an instruction.
pub(crate) fn parse(text: &str, syntax: Syntax) -> Printed {
    let mut printed = Printed::default();
    for (half, part) in text.split(" :: ").enumerate() {
        let part = part.trim();
        let (mnemonic, operands) = part.split_once(char::is_whitespace).unwrap_or((part, ""));
        if half == 1 {
            printed.second_half = Some(printed.operands.len());
            printed.mnemonic.push_str(" :: ");
        }
        printed.mnemonic.push_str(mnemonic);
        for segment in split(operands.trim(), ',') {
            match syntax {
                Syntax::Symbolic => printed.operands.push(operand(segment)),
                Syntax::Modifiers => parse_segment(segment, &mut printed),
            }
        }
    }
    printed
}

/// Parses a segment between commas: an optional operand and optional modifiers.
fn parse_segment(segment: &str, printed: &mut Printed) {
    for (index, word) in split(segment, ' ').enumerate() {
        // The segment of an export has the target and the first source. Only VGPRs count as operands
        // here: `a16` is an image modifier.
        let is_operand = match value(word) {
            Value::Register(range) => matches!(range.first, Register::Vgpr(_)),
            value => value == Value::Off,
        };
        if is_modifier(word) || (index > 0 && !is_operand) {
            if let Some(list) = word.strip_prefix("op_sel:") {
                printed.op_sel_entries = list.split(',').count() as u8;
            }
            modifier(word, &mut printed.modifiers);
        } else if let Some(list) = word.strip_prefix('[').and_then(|w| w.strip_suffix(']')) {
            // Non-sequential addresses (NSA) of image instructions.
            printed.operands.extend(split(list, ',').map(operand));
        } else {
            printed.operands.push(operand(word));
        }
    }
}

/// The non-empty parts of `text` between separators outside brackets.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    text.split(move |c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && c == separator
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

/// Returns `true` for modifiers that can follow a mnemonic without operands.
fn is_modifier(word: &str) -> bool {
    matches!(word, "glc" | "slc" | "dlc" | "scc" | "nt" | "sc0" | "sc1" | "gds")
        || (word.contains(':') && !word.contains('['))
}

fn operand(word: &str) -> PrintedOperand {
    let mut operand = PrintedOperand {
        value: Value::Off,
        negate: false,
        absolute: false,
        sign_extend: false,
        half: None,
    };
    let mut inner = word;
    loop {
        let is_negative_number = || inner[1..].starts_with(|c: char| c.is_ascii_digit());
        if inner.starts_with('-') && !is_negative_number() {
            operand.negate = true;
            inner = &inner[1..];
        } else if let Some(negated) = enclosed(inner, "neg(", ")") {
            operand.negate = true;
            inner = negated;
        } else if let Some(value) = enclosed(inner, "|", "|").or(enclosed(inner, "abs(", ")")) {
            operand.absolute = true;
            inner = value;
        } else if let Some(extended) = enclosed(inner, "sext(", ")") {
            operand.sign_extend = true;
            inner = extended;
        } else {
            break;
        }
    }
    (inner, operand.half) = match (inner.strip_suffix(".l"), inner.strip_suffix(".h")) {
        (Some(register), _) => (register, Some(Half::Low)),
        (_, Some(register)) => (register, Some(Half::High)),
        _ => (inner, None),
    };
    operand.value = value(inner);
    operand
}

fn enclosed<'a>(word: &'a str, open: &str, close: &str) -> Option<&'a str> {
    word.strip_prefix(open)?.strip_suffix(close)
}

/// Parses a value. Unknown words are symbols.
pub(crate) fn value(word: &str) -> Value {
    if word == "off" {
        return Value::Off;
    }
    if let Some(range) = register(word) {
        return Value::Register(range);
    }
    // LLVM prints `lit(...)` for a literal with the bits of an inline constant.
    let literal = enclosed(word, "lit(", ")").unwrap_or(word);
    if let Some(digits) = literal.strip_prefix("0x") {
        // LLVM prints the extended literal of a 64-bit operation; the low half is encoded.
        if let Ok(bits) = u64::from_str_radix(digits, 16) {
            return Value::Literal(bits as u32);
        }
    }
    let negative = word.strip_prefix("-0x").map(|digits| i64::from_str_radix(digits, 16));
    if let Some(Ok(magnitude)) = negative {
        return Value::Integer(-magnitude);
    }
    if let Ok(integer) = word.parse() {
        return Value::Integer(integer);
    }
    match word.parse::<f64>() {
        // The only inline constant that LLVM prints rounded.
        Ok(_) if word.starts_with("0.15915494") => {
            Value::Float(f64::from_bits(INVERSE_TWO_PI_BITS))
        }
        Ok(float) if word.contains('.') => Value::Float(float),
        _ => Value::Symbol(word.to_owned()),
    }
}

/// The hardware's double-precision 1/(2 pi). Rounding it gives the single- and half-precision constants.
pub(crate) const INVERSE_TWO_PI_BITS: u64 = 0x3fc4_5f30_6dc9_c882;

/// Parses a register or register range.
fn register(word: &str) -> Option<RegisterRange> {
    let pair = match word {
        "vcc" => Some(Register::VccLo),
        "exec" => Some(Register::ExecLo),
        "flat_scratch" => Some(Register::FlatScratchLo),
        "xnack_mask" => Some(Register::XnackMaskLo),
        _ => None,
    };
    if let Some(first) = pair {
        return Some(RegisterRange::new(first, 2));
    }
    let single = match word {
        "src_scc" => Some(Register::Scc),
        "src_vccz" => Some(Register::Vccz),
        "src_execz" => Some(Register::Execz),
        "src_lds_direct" => Some(Register::LdsDirect),
        _ => word.parse().ok(),
    };
    if let Some(first) = single {
        return Some(RegisterRange::new(first, 1));
    }
    let (file, bounds) = word.strip_suffix(']')?.split_once('[')?;
    let (low, high) = bounds.split_once(':')?;
    let (low, high): (u16, u16) = (low.parse().ok()?, high.parse().ok()?);
    let words = u8::try_from(high.checked_sub(low)?.checked_add(1)?).ok()?;
    if file == "v" {
        return Some(RegisterRange::new(Register::Vgpr(Vgpr(low)), words));
    }
    let low = u8::try_from(low).ok()?;
    let first = match file {
        "a" => Register::AccVgpr(AccVgpr(low)),
        "s" => Register::Sgpr(Sgpr(low)),
        "ttmp" => Register::Ttmp(Ttmp(low)),
        _ => return None,
    };
    Some(RegisterRange::new(first, words))
}

/// Parses one modifier.
fn modifier(word: &str, modifiers: &mut Modifiers) {
    let known = match word.split_once(':') {
        Some((key, value)) => keyed_modifier(key, value, modifiers),
        None => plain_modifier(word, modifiers),
    };
    if known.is_none() {
        modifiers.unrecognized.push(word.to_owned());
    }
}

fn plain_modifier(word: &str, modifiers: &mut Modifiers) -> Option<()> {
    match word {
        "clamp" => modifiers.clamp = true,
        "glc" => modifiers.glc = true,
        "slc" | "dlc" | "scc" | "nt" | "sc0" | "sc1" | "nv" => {
            modifiers.cache_policy.push(word.to_owned());
        }
        "scale_offset" => modifiers.scale_offset = true,
        "offen" => modifiers.offen = true,
        "idxen" => modifiers.idxen = true,
        "lds" => modifiers.lds = true,
        "gds" => modifiers.gds = true,
        // Hints that the matrix unit keeps a matrix for the next operation; results are unaffected.
        "matrix_a_reuse" | "matrix_b_reuse" => {}
        // The length of an image resource; tensor moves have the bit but do not use it.
        "r128" => {}
        "tfe" => modifiers.tfe = true,
        "row_mirror" => dpp(modifiers).control = DppControl::RowMirror,
        "row_half_mirror" => dpp(modifiers).control = DppControl::RowHalfMirror,
        _ => return None,
    }
    Some(())
}

fn keyed_modifier(key: &str, value: &str, modifiers: &mut Modifiers) -> Option<()> {
    match key {
        "mul" if value == "2" => modifiers.output_scale = OutputScale::Times2,
        "mul" if value == "4" => modifiers.output_scale = OutputScale::Times4,
        "div" if value == "2" => modifiers.output_scale = OutputScale::Half,
        "op_sel" => modifiers.op_sel = Some(bits(value)?),
        "op_sel_hi" => modifiers.op_sel_hi = Some(bits(value)?),
        "neg_lo" => modifiers.neg_lo = bits(value)?,
        "neg_hi" => modifiers.neg_hi = bits(value)?,
        // The pattern is taken from the MC instruction.
        "offset" if value.starts_with("swizzle(") => {}
        "offset" => modifiers.offset = number(value)?,
        "offset0" => modifiers.offset0 = small(value)?,
        "offset1" => modifiers.offset1 = small(value)?,
        "format" => modifiers.buffer_format = Some(buffer_format(value)?),
        "th" | "scope" => modifiers.cache_policy.push(format!("{key}:{value}")),
        // Waits encoded in LDS-direct loads.
        "wait_vdst" | "wait_exp" | "wait_va_vdst" | "wait_vm_vsrc" => {}
        "byte_sel" => modifiers.byte_select = small(value)?,
        "index_key" => modifiers.index_key = small(value)?,
        "cbsz" => modifiers.cbsz = small(value)?,
        "abid" => modifiers.abid = small(value)?,
        "blgp" => modifiers.blgp = small(value)?,
        "matrix_a_fmt" => modifiers.cbsz = matrix_format(value)?,
        "matrix_b_fmt" => modifiers.blgp = matrix_format(value)?,
        "scale_sel" => modifiers.scale_select = small(value)?,
        "matrix_a_scale_fmt" => modifiers.scale_formats[0] = scale_format(value)?,
        "matrix_b_scale_fmt" => modifiers.scale_formats[1] = scale_format(value)?,
        "matrix_a_scale" => modifiers.scale_rows[0] = scale_row(value)?,
        "matrix_b_scale" => modifiers.scale_rows[1] = scale_row(value)?,
        "bitop3" => modifiers.bitop3 = small(value)?,
        "neg" => modifiers.negated_sources = bits(value)?,
        "dst_sel" => sdwa(modifiers).destination = select(value)?,
        "dst_unused" => sdwa(modifiers).unused = unused(value)?,
        "src0_sel" => sdwa(modifiers).sources[0] = select(value)?,
        "src1_sel" => sdwa(modifiers).sources[1] = select(value)?,
        "row_mask" => dpp(modifiers).row_mask = small(value)?,
        "bank_mask" => dpp(modifiers).bank_mask = small(value)?,
        "bound_ctrl" => dpp(modifiers).bound_control = true,
        "fi" => dpp(modifiers).fetch_inactive = value == "1",
        _ => dpp(modifiers).control = dpp_control(key, value)?,
    }
    Some(())
}

/// The number of a matrix element format of gfx1250 (LLVM, `MatrixFMT`).
fn matrix_format(value: &str) -> Option<u8> {
    const NAMES: [&str; 5] = ["FP8", "BF8", "FP6", "BF6", "FP4"];
    // Reserved formats are printed as numbers.
    let Some(name) = value.strip_prefix("MATRIX_FMT_") else { return small(value) };
    NAMES.iter().position(|known| *known == name).map(|number| number as u8)
}

/// The format of scales of gfx1250 (LLVM, `MatrixScaleFMT`).
fn scale_format(value: &str) -> Option<ScaleFormat> {
    Some(match value {
        "MATRIX_SCALE_FMT_E8" => ScaleFormat::E8,
        "MATRIX_SCALE_FMT_E5M3" => ScaleFormat::E5M3,
        "MATRIX_SCALE_FMT_E4M3" => ScaleFormat::E4M3,
        _ => return None,
    })
}

/// Parses a row of scales: `false` for row 0, `true` for row 1.
fn scale_row(value: &str) -> Option<bool> {
    match value {
        "MATRIX_SCALE_ROW0" => Some(false),
        "MATRIX_SCALE_ROW1" => Some(true),
        _ => None,
    }
}

/// Names of buffer data formats, by number.
const DATA_FORMATS: [&str; 16] = [
    "INVALID",
    "8",
    "16",
    "8_8",
    "32",
    "16_16",
    "10_11_11",
    "11_11_10",
    "10_10_10_2",
    "2_10_10_10",
    "8_8_8_8",
    "32_32",
    "16_16_16_16",
    "32_32_32",
    "32_32_32_32",
    "RESERVED_15",
];

/// Names of buffer number formats, by number.
const NUMBER_FORMATS: [&str; 8] =
    ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"];

/// Parses a buffer format: `[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_FLOAT]`, where a default part may be missing;
/// from gfx10 on `[BUF_FMT_32_FLOAT]`, or an invalid number.
fn buffer_format(list: &str) -> Option<BufferFormat> {
    if number(list).is_some() {
        return Some(BufferFormat::NONE);
    }
    let number_of =
        |names: &[&str], name| u8::try_from(names.iter().position(|known| *known == name)?).ok();
    let mut format = BufferFormat::default();
    for name in enclosed(list, "[", "]")?.split(',') {
        if let Some(unified) = name.strip_prefix("BUF_FMT_") {
            let Some((data, number)) = unified.rsplit_once('_') else {
                return Some(BufferFormat::NONE);
            };
            format.data = number_of(&DATA_FORMATS, data)?;
            format.number = number_of(&NUMBER_FORMATS, number)?;
        } else if let Some(data) = name.strip_prefix("BUF_DATA_FORMAT_") {
            format.data = number_of(&DATA_FORMATS, data)?;
        } else {
            let number = name.strip_prefix("BUF_NUM_FORMAT_")?;
            format.number = number_of(&NUMBER_FORMATS, number)?;
        }
    }
    Some(format)
}

fn dpp_control(key: &str, value: &str) -> Option<DppControl> {
    Some(match key {
        "quad_perm" => DppControl::QuadPerm(list(value)?),
        "dpp8" => DppControl::Dpp8(list(value)?),
        "row_shl" => DppControl::RowShiftLeft(small(value)?),
        "row_shr" => DppControl::RowShiftRight(small(value)?),
        "row_ror" => DppControl::RowRotateRight(small(value)?),
        "wave_shl" => DppControl::WaveShiftLeft,
        "wave_rol" => DppControl::WaveRotateLeft,
        "wave_shr" => DppControl::WaveShiftRight,
        "wave_ror" => DppControl::WaveRotateRight,
        "row_bcast" if value == "15" => DppControl::RowBroadcast15,
        "row_bcast" if value == "31" => DppControl::RowBroadcast31,
        "row_newbcast" => DppControl::RowNewBroadcast(small(value)?),
        "row_share" => DppControl::RowShare(small(value)?),
        "row_xmask" => DppControl::RowXmask(small(value)?),
        _ => return None,
    })
}

fn dpp(modifiers: &mut Modifiers) -> &mut Dpp {
    modifiers.dpp.get_or_insert(Dpp {
        control: DppControl::QuadPerm([0, 1, 2, 3]),
        row_mask: 0xf,
        bank_mask: 0xf,
        bound_control: false,
        fetch_inactive: false,
    })
}

fn sdwa(modifiers: &mut Modifiers) -> &mut Sdwa {
    modifiers.sdwa.get_or_insert_default()
}

fn select(value: &str) -> Option<SdwaSelect> {
    Some(match value {
        "BYTE_0" => SdwaSelect::Byte0,
        "BYTE_1" => SdwaSelect::Byte1,
        "BYTE_2" => SdwaSelect::Byte2,
        "BYTE_3" => SdwaSelect::Byte3,
        "WORD_0" => SdwaSelect::Word0,
        "WORD_1" => SdwaSelect::Word1,
        "DWORD" => SdwaSelect::Dword,
        _ => return None,
    })
}

fn unused(value: &str) -> Option<SdwaUnused> {
    Some(match value {
        "UNUSED_PAD" => SdwaUnused::Pad,
        "UNUSED_SEXT" => SdwaUnused::SignExtend,
        "UNUSED_PRESERVE" => SdwaUnused::Preserve,
        _ => return None,
    })
}

/// Parses a decimal or hexadecimal number with an optional sign.
fn number(word: &str) -> Option<i64> {
    match value(word) {
        Value::Integer(integer) => Some(integer),
        Value::Literal(bits) => Some(i64::from(bits)),
        _ => None,
    }
}

/// Parses a number below 256.
fn small(word: &str) -> Option<u8> {
    u8::try_from(number(word)?).ok()
}

/// Parses `[1,0,1]` as the bit mask 0b101.
fn bits(list: &str) -> Option<u8> {
    let items = enclosed(list, "[", "]")?.split(',');
    items.enumerate().try_fold(0, |bits, (index, item)| {
        let bit = if item.trim() == "0" { 0 } else { 1u8.checked_shl(index as u32)? };
        Some(bits | bit)
    })
}

/// Parses `[3,2,1,0]` as an array.
fn list<const N: usize>(list: &str) -> Option<[u8; N]> {
    let items = enclosed(list, "[", "]")?.split(',').map(|item| small(item.trim()));
    items.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generation, testing::inst};

    #[test]
    fn buffer_format_numbers_match_llvm() {
        for (target, generation, count) in
            [("gfx1030", Generation::Gfx10, 78), ("gfx1100", Generation::Gfx11, 64)]
        {
            for number in 0..count {
                let line = format!("tbuffer_load_format_x v0, off, s[0:3], format:{number}, 0");
                let named = inst(target, &line).modifiers.buffer_format.unwrap_or_default();
                assert_eq!(named, BufferFormat::unified(number, generation), "{target}: {number}");
            }
            assert_eq!(BufferFormat::unified(count + 40, generation), BufferFormat::NONE);
        }
    }
}
