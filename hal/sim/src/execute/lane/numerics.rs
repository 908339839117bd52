//! What holds of an operation's arithmetic besides what it computes: denormals, rounding, NaNs
//! and accuracy. The tables of operations state it, and execution and documents read it there.

use crate::wave::Mode;

/// What holds of an operation's arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numerics {
    /// What becomes of denormals.
    pub denormals: Denormals,
    /// What decides how it rounds.
    pub rounds: Rounding,
    /// Which NaN comes out.
    pub nans: Nans,
    /// How far from exact it may be; `None` if it is exact, or correctly rounded.
    pub accuracy: Option<Accuracy>,
    /// What of it no source settles, and what is done here; `None` if all is known.
    pub unsettled: Option<&'static str>,
    /// What says that floating-point results are these, to the bit: a document, or a measurement.
    pub source: Option<&'static str>,
}

/// What becomes of denormals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denormals {
    /// They are kept.
    Kept,
    /// They are flushed as MODE says, in sources and in results.
    ByMode,
    /// They are kept in sources, and flushed in results as MODE says.
    ResultsByMode,
    /// They are flushed whatever MODE says, by the operation's own definition.
    Flushed,
}

impl Denormals {
    /// Whether MODE decides about results.
    pub(crate) const fn flushes_results(self) -> bool {
        matches!(self, Denormals::ByMode | Denormals::ResultsByMode)
    }
}

/// What of MODE decides how an operation rounds (ISA manual, "Denormalized and Rounding Modes";
/// LLVM marks the operations that read the field of double and half precision as
/// `FPDPRounding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Nothing: the result is exact, one of the sources, or an integer.
    Exact,
    /// Nothing: it rounds as its own definition says. Half-precision overflow is clamped as
    /// `FP16_OVFL` says.
    Fixed,
    /// The field of the result's format: `FP_ROUND[1:0]` for single precision, `FP_ROUND[3:2]`
    /// for double and half precision, where `FP16_OVFL` matters too.
    ByMode,
    /// First the field of single precision; then, for another format, that format's.
    SingleFirst,
}

impl Rounding {
    /// The bits of MODE that must be clear for rounding to nearest even to be right. `format` has
    /// those that matter to the format of the result.
    pub(crate) const fn mode_bits(self, format: u32) -> u32 {
        match self {
            Rounding::Exact => 0,
            Rounding::Fixed => format & Mode::FP16_OVERFLOW,
            Rounding::ByMode => format,
            Rounding::SingleFirst => format | Mode::ROUND_SINGLE,
        }
    }
}

/// Which NaN comes out of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nans {
    /// The one that its definition forms.
    Own,
    /// The first source that is one, quieted, or the default NaN.
    Settled,
    /// The same, but the default NaN is negative (ISA manual, functional examples of
    /// `V_SQRT_F32`).
    Negative,
}

/// How far from exact an operation may be, in units in the last place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accuracy {
    /// What results keep here, on every host.
    pub ulps: u32,
    /// What the ISA manual states, where it states a bound.
    pub stated: Option<u32>,
}
