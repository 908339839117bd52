//! Rows of the tables of vector operation templates.

/// Treatment of NaNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nan {
    /// NaNs do not occur, or the template treats them as the operation does.
    Any,
    /// A NaN source gives a NaN result with unspecified bits.
    Propagates,
    /// The template is only correct if no source is a NaN.
    NotAmongSources,
}

/// The template of an operation.
pub struct Lowering {
    /// Name of the operation's row in `operations`.
    pub name: &'static str,
    /// Code of the template, see [`crate::compile::template`].
    pub code: &'static str,
    /// Treatment of NaNs.
    pub nan: Nan,
    /// Storage of the result.
    pub result: Stored,
    /// `true` if the template's `%n` contains lanes that must bail out.
    pub has_bailouts: bool,
    /// `true` if the argument after the sources is the lane number.
    pub takes_lanes: bool,
}

/// Storage of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The whole value.
    Whole,
    /// Low half, with zeros in the high half; a number is rounded to half precision.
    Half,
    /// Low half, preserving the high half; a number is rounded to half precision.
    LowHalf,
    /// High half, preserving the low half.
    HighHalf,
    /// Both results, each in a half; numbers are rounded to half precision.
    Halves,
}

/// A template for which NaNs need no treatment.
pub const fn any(name: &'static str, code: &'static str) -> Lowering {
    let (nan, result) = (Nan::Any, Stored::Whole);
    Lowering { name, code, nan, result, has_bailouts: false, takes_lanes: false }
}

/// A template with [`Nan::Propagates`].
pub const fn propagates(name: &'static str, code: &'static str) -> Lowering {
    Lowering { nan: Nan::Propagates, ..any(name, code) }
}

/// A template with [`Nan::NotAmongSources`].
pub const fn numbers(name: &'static str, code: &'static str) -> Lowering {
    Lowering { nan: Nan::NotAmongSources, ..any(name, code) }
}

/// The template with [`Stored::Half`].
pub const fn half(row: Lowering) -> Lowering {
    Lowering { result: Stored::Half, ..row }
}

/// The template with [`Stored::LowHalf`].
pub const fn low_half(row: Lowering) -> Lowering {
    Lowering { result: Stored::LowHalf, ..row }
}

/// The template with [`Stored::HighHalf`].
pub const fn high_half(row: Lowering) -> Lowering {
    Lowering { result: Stored::HighHalf, ..row }
}

/// The template with [`Stored::Halves`].
pub const fn halves(row: Lowering) -> Lowering {
    Lowering { result: Stored::Halves, ..row }
}

/// The template with the lane number as last argument.
pub const fn by_lane(row: Lowering) -> Lowering {
    Lowering { takes_lanes: true, ..row }
}

/// The template with lanes that bail out.
pub const fn bailing_out(row: Lowering) -> Lowering {
    Lowering { has_bailouts: true, ..row }
}

/// Call of an LLVM intrinsic.
macro_rules! call {
    ($name:literal, $type:literal, $($argument:literal),+ $(; $more:literal)?) => {
        concat!("%r = call ", $type, " @llvm.", $name, ".", $type, "(", call!(@ $type, $($argument),+),
            $(", ", $more,)? ")")
    };
    (@ $type:literal, $first:literal $(, $rest:literal)*) => {
        concat!($type, " ", $first $(, ", ", $type, " ", $rest)*)
    };
}

/// Concatenation of parts to a line of code.
macro_rules! line {
    ($($part:literal),+) => { concat!($($part,)+ "\n") };
}

pub(super) use {call, line};
