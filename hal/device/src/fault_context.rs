//! State of the faulting wave, for messages: the instruction with its operands, the faulting lanes, and
//! the call chain.

use crate::Address;
use flipwave_codeobj::SourceLine;
use flipwave_isa::{Lane, LaneMask, Pc};
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// State of a faulting wave. It explains the fault to people; no result depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultContext {
    /// The faulting instruction, as printed by the assembler; empty if there is none.
    pub instruction: Box<str>,
    /// The active lanes.
    pub exec: LaneMask,
    /// The faulting lanes in ascending order; empty if the fault belongs to the whole wave.
    pub lanes: Vec<FaultingLane>,
    /// The registers that the instruction reads.
    pub operands: Vec<OperandValue>,
    /// The call chain, innermost frame first.
    pub frames: Vec<CallFrame>,
    /// The reason why the chain ends after the last frame.
    pub chain_end: ChainEnd,
}

/// A lane whose access faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultingLane {
    /// The lane.
    pub lane: Lane,
    /// The first inaccessible byte, or the misaligned address.
    pub address: Address,
}

/// A register operand and its value before the instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandValue {
    /// Name in the assembler, such as `v[2:3]`.
    pub name: Box<str>,
    /// The value.
    pub value: RegisterValue,
}

/// The value of consecutive registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterValue {
    /// A value for the whole wave.
    Scalar(Bits),
    /// A value per lane: the faulting lanes or, if the fault belongs to the whole wave, the active ones.
    PerLane(Vec<(Lane, Bits)>),
}

/// The bits of consecutive registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The 32-bit registers, lowest first.
    pub words: Box<[u32]>,
}

impl Bits {
    /// The value as a number, if it has at most 64 bits.
    fn number(&self) -> Option<u64> {
        match *self.words {
            [low] => Some(low.into()),
            [low, high] => Some(u64::from(low) | u64::from(high) << 32),
            _ => None,
        }
    }
}

impl fmt::Display for Bits {
    /// One number for one or two registers, otherwise a list of registers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number() {
            return write!(f, "{number:#0width$x}", width = 2 + 8 * self.words.len());
        }
        let words: Vec<String> = self.words.iter().map(|word| format!("{word:#010x}")).collect();
        write!(f, "{{{}}}", words.join(", "))
    }
}

/// A function of the call chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFrame {
    /// The demangled name of the function; `None` if neither debug information nor a symbol names it.
    pub function: Option<Box<str>>,
    /// Distance from the function's symbol, in bytes, if there is one.
    pub offset: Option<u64>,
    /// Address of the faulting instruction or, in callers, of the instruction to return to.
    pub pc: Pc,
    /// Source line of the faulting instruction or of the call.
    pub line: Option<SourceLine>,
    /// The way in which the function was entered.
    pub entry: FrameEntry,
}

/// The way in which a function of a call chain was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEntry {
    /// A call, or the launch of the kernel.
    Called,
    /// The compiler inlined the function into the next frame.
    Inlined,
}

/// The reason why a call chain ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChainEnd {
    /// The last frame is the kernel.
    #[default]
    Kernel,
    /// The caller of the last frame cannot be determined, with the reason.
    UnknownCaller(Cow<'static, str>),
    /// The chain is too long; its outer frames are left out.
    TooLong,
}

impl CallFrame {
    /// The source line of the innermost frame outside the device library, or else of the innermost frame.
    /// `frames` begin with the innermost one.
    pub fn user_line(frames: &[CallFrame]) -> Option<&SourceLine> {
        let user = frames.iter().find(|frame| !frame.is_in_library());
        user.or(frames.first())?.line.as_ref().filter(|line| line.line > 0)
    }

    /// Returns `true` if the frame belongs to the compiler's or the runtime's device library: `assert`,
    /// for example, is a function of the library that contains the trap.
    fn is_in_library(&self) -> bool {
        // C and C++ reserve these names for the implementation.
        let is_reserved = |name: &str| name.starts_with("__") || name.starts_with("abort");
        const FOLDERS: [&str; 4] = ["/hip/", "/lib/clang/", "/include/c++/", "/amdgcn/"];
        let is_in_folder =
            |line: &SourceLine| FOLDERS.iter().any(|folder| line.file.contains(folder));
        self.function.as_deref().is_some_and(is_reserved)
            || self.line.as_ref().is_some_and(is_in_folder)
    }
}

impl fmt::Display for CallFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function.as_deref().unwrap_or("an unknown function");
        write!(f, "{} in {}", self.pc, Escaped(function))?;
        match (&self.line, self.offset) {
            (Some(line), _) => write!(f, " at {}", Escaped(&line.to_string()))?,
            (None, Some(offset)) => write!(f, "+{offset:#x}")?,
            (None, None) => {}
        }
        match self.entry {
            FrameEntry::Called => Ok(()),
            FrameEntry::Inlined => f.write_str(" (inlined)"),
        }
    }
}

/// A name from a code object, whose control characters could change the lines of a message.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| {
            if character.is_control() {
                return write!(f, "{}", character.escape_default());
            }
            f.write_char(character)
        })
    }
}

impl FaultContext {
    /// The source line that the fault is attributed to, see [`CallFrame::user_line`].
    pub fn line(&self) -> Option<&SourceLine> {
        CallFrame::user_line(&self.frames)
    }

    /// Applies `map` to the address of every frame.
    pub(crate) fn map_addresses(&mut self, map: impl Fn(Pc) -> Pc) {
        for frame in &mut self.frames {
            let pc = map(frame.pc);
            let start = frame.offset.map(|offset| map(Pc(frame.pc.0.wrapping_sub(offset))));
            frame.offset = start.map(|start| pc.0.wrapping_sub(start.0));
            frame.pc = pc;
        }
    }

    fn lanes_text(&self) -> String {
        let addresses: Vec<(Lane, Bits)> = self.lanes.iter().map(FaultingLane::as_value).collect();
        let lanes = LaneRanges(&addresses);
        let lane = if addresses.len() == 1 { "lane" } else { "lanes" };
        let is_equal = self.lanes.windows(2).all(|pair| pair[0].address == pair[1].address);
        let address = if is_equal { "address" } else { "addresses" };
        let (faulting, active) = (addresses.len(), self.exec.count());
        format!(
            "{lane} {lanes} ({faulting} of {active} active): {address} {}",
            LaneValues { values: &addresses, format: number_text }
        )
    }
}

/// Formats an address without leading zeros, as [`Address`] does.
fn number_text(bits: &Bits) -> String {
    bits.number().map_or_else(|| bits.to_string(), |number| format!("{number:#x}"))
}

impl FaultingLane {
    fn as_value(&self) -> (Lane, Bits) {
        let Address(address) = self.address;
        (self.lane, Bits { words: Box::new([address as u32, (address >> 32) as u32]) })
    }
}

/// Maximum number of values or ranges of lanes that are printed.
const MAX_LANES: usize = 16;

/// Maximum number of frames that are printed.
const MAX_FRAMES: usize = 32;

/// The lanes of values, as ranges.
struct LaneRanges<'a>(&'a [(Lane, Bits)]);

impl fmt::Display for LaneRanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<[u8; 2]> = Vec::new();
        for (Lane(lane), _) in self.0 {
            match ranges.last_mut() {
                Some([_, last]) if u16::from(*last) + 1 == u16::from(*lane) => *last = *lane,
                _ => ranges.push([*lane; 2]),
            }
        }
        // Every third lane, for example, is one range.
        if let [[first, _], [second, _], .., [last, _]] = ranges[..] {
            let step = second - first;
            let in_steps = (first..=last).step_by(step.into()).map(|lane| [lane; 2]);
            if ranges.len() > 2 && in_steps.eq(ranges.iter().copied()) {
                return write!(f, "{first}-{last} in steps of {step}");
            }
        }
        let text = |[first, last]: &[u8; 2]| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        let printed: Vec<String> = ranges.iter().take(MAX_LANES).map(text).collect();
        f.write_str(&printed.join(", "))?;
        more(f, ranges.len(), MAX_LANES, "ranges")
    }
}

/// Values of several lanes: one value if all are equal, the first and the last if they differ by a fixed
/// stride from lane to lane, otherwise a list.
struct LaneValues<'a> {
    values: &'a [(Lane, Bits)],
    format: fn(&Bits) -> String,
}

impl fmt::Display for LaneValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaneValues { values, format } = self;
        let ([(_, first)] | [(_, first), .., (_, _)]) = values else {
            return f.write_str("no active lanes");
        };
        if values.iter().all(|(_, bits)| bits == first) {
            let shared = if values.len() > 1 { " in all these lanes" } else { "" };
            return write!(f, "{}{shared}", format(first));
        }
        if let (Some(stride), Some((_, last))) = (stride(values), values.last()) {
            return write!(f, "{} .. {}, stride {stride}", format(first), format(last));
        }
        for (index, (Lane(lane), bits)) in values.iter().take(MAX_LANES).enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}lane {lane}: {}", format(bits))?;
        }
        more(f, values.len(), MAX_LANES, "lanes")
    }
}

/// Difference of the values of neighbouring lanes, if it is the same for all. Two values always have a
/// stride, so at least three are required.
fn stride(values: &[(Lane, Bits)]) -> Option<i64> {
    let [(Lane(from), first), (Lane(to), second), _, ..] = values else { return None };
    let first = first.number()?;
    let (difference, lanes) = (second.number()?.wrapping_sub(first) as i64, i64::from(to - from));
    let stride = difference / lanes;
    let is_in_line = |(Lane(lane), bits): &(Lane, Bits)| {
        let distance = stride.wrapping_mul(i64::from(lane - from));
        bits.number() == Some(first.wrapping_add(distance as u64))
    };
    values.iter().all(is_in_line).then_some(stride)
}

/// Counts what is not printed.
fn more(f: &mut fmt::Formatter<'_>, all: usize, printed: usize, what: &str) -> fmt::Result {
    match all.checked_sub(printed) {
        None | Some(0) => Ok(()),
        Some(more) => write!(f, " and {more} more {what}"),
    }
}

/// Indentation of the lines below a fault's message.
pub(crate) const INDENT: &str = "\n    ";

impl fmt::Display for FaultContext {
    /// Indented lines, each preceded by a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.instruction.is_empty() {
            write!(f, "{INDENT}instruction: {}", self.instruction)?;
        }
        if !self.lanes.is_empty() {
            write!(f, "{INDENT}{}", self.lanes_text())?;
        }
        let width = self.operands.iter().map(|operand| operand.name.len()).max().unwrap_or(0);
        for OperandValue { name, value } in &self.operands {
            write!(f, "{INDENT}{name:<width$} = ")?;
            match value {
                RegisterValue::Scalar(bits) => write!(f, "{bits}")?,
                RegisterValue::PerLane(values) => {
                    write!(f, "{}", LaneValues { values, format: Bits::to_string })?;
                }
            }
        }
        if !self.frames.is_empty() {
            write!(f, "{INDENT}call chain:")?;
        }
        for (number, frame) in self.frames.iter().take(MAX_FRAMES).enumerate() {
            write!(f, "{INDENT}  #{number:<2} {frame}")?;
        }
        let left_out = self.frames.len().saturating_sub(MAX_FRAMES);
        if left_out > 0 {
            write!(f, "{INDENT}  and {left_out} more frames")?;
        }
        match &self.chain_end {
            ChainEnd::UnknownCaller(reason) if !self.frames.is_empty() => {
                write!(f, "{INDENT}  called from an unknown function: {reason}")
            }
            ChainEnd::TooLong => write!(f, "{INDENT}  called from more functions"),
            ChainEnd::Kernel | ChainEnd::UnknownCaller(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
