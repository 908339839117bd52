//! Properties of an operation's arithmetic: denormals, rounding, NaNs and accuracy. The tables of
//! operations declare them; the execution and the documentation read them there.

use crate::wave::Mode;

/// Properties of an operation's arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numerics {
    /// Treatment of denormals.
    pub denormals: Denormals,
    /// Source of the rounding mode.
    pub rounds: Rounding,
    /// Choice of the NaN result.
    pub nans: Nans,
    /// Error bound; `None` if the operation is exact or correctly rounded.
    pub accuracy: Option<Accuracy>,
    /// Behaviour that no source settles, and the behaviour implemented here; `None` if all is
    /// known.
    pub unsettled: Option<&'static str>,
    /// Document or measurement which states that floating-point results are bit-exact.
    pub source: Option<&'static str>,
}

/// Treatment of denormals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denormals {
    /// Denormals are kept.
    Kept,
    /// Denormal sources and results are flushed if MODE says so.
    ByMode,
    /// Denormal sources are kept; denormal results are flushed if MODE says so.
    ResultsByMode,
    /// Denormals are always flushed, by the operation's definition.
    Flushed,
}

impl Denormals {
    /// Returns `true` if MODE decides whether results are flushed.
    pub(crate) const fn flushes_results(self) -> bool {
        matches!(self, Denormals::ByMode | Denormals::ResultsByMode)
    }
}

/// Fields of MODE that decide how an operation rounds (ISA manual, "Denormalized and Rounding
/// Modes"; LLVM marks the operations that read the field of double and half precision as
/// `FPDPRounding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Unaffected by MODE: the result is exact, one of the sources, or an integer.
    Exact,
    /// Unaffected by MODE: the operation's definition fixes the rounding. Half-precision overflow
    /// is clamped if `FP16_OVFL` is set.
    Fixed,
    /// The field of the result's format: `FP_ROUND[1:0]` for single precision, `FP_ROUND[3:2]` for
    /// double and half precision, where `FP16_OVFL` also applies.
    ByMode,
    /// First the field of single precision; then, for another format, the field of that format.
    SingleFirst,
}

impl Rounding {
    /// Bits of MODE that must be clear for rounding to nearest even to be right. `format` are the
    /// bits that apply to the format of the result.
    pub(crate) const fn mode_bits(self, format: u32) -> u32 {
        match self {
            Rounding::Exact => 0,
            Rounding::Fixed => format & Mode::FP16_OVERFLOW,
            Rounding::ByMode => format,
            Rounding::SingleFirst => format | Mode::ROUND_SINGLE,
        }
    }
}

/// Choice of the NaN result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nans {
    /// The NaN that the operation's definition forms.
    Own,
    /// The first source NaN, quieted, or else the default NaN.
    Settled,
    /// Like `Settled`, with a negative default NaN (ISA manual, functional examples of
    /// `V_SQRT_F32`).
    Negative,
}

/// Error bound of an operation, in units in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accuracy {
    /// Bound that results keep in this implementation, on every host.
    pub ulps: u32,
    /// Bound that the ISA manual states, if any.
    pub stated: Option<u32>,
}
