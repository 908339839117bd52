//! Rows of the tables of vector operations.

/// What becomes of NaNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nan {
    /// They are no matter, or what the code does with them is what the operation does.
    Any,
    /// A NaN among the sources gives one; the code does not say which.
    Propagates,
    /// The code is right where no source is a NaN.
    NotAmongSources,
}

/// What an operation does.
pub struct Lowering {
    /// Its name, as the rows of `operations` have it.
    pub name: &'static str,
    /// A template, see [`crate::compile::template`].
    pub code: &'static str,
    /// What becomes of NaNs.
    pub nan: Nan,
    /// What becomes of the result.
    pub result: Stored,
    /// Whether its `%n` has lanes that the code does not do right.
    pub has_bailouts: bool,
    /// Whether the argument after its sources is the number of each lane.
    pub takes_lanes: bool,
}

/// How a result is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As it is.
    Whole,
    /// In the low half, with zeros in the other one: in half precision if it is a number.
    Half,
    /// The same, and the other half stays.
    LowHalf,
    /// In the high half; the other half stays.
    HighHalf,
    /// This and the second result, each in a half: in half precision if they are numbers.
    Halves,
}

pub const fn any(name: &'static str, code: &'static str) -> Lowering {
    let (nan, result) = (Nan::Any, Stored::Whole);
    Lowering { name, code, nan, result, has_bailouts: false, takes_lanes: false }
}

pub const fn propagates(name: &'static str, code: &'static str) -> Lowering {
    Lowering { nan: Nan::Propagates, ..any(name, code) }
}

pub const fn numbers(name: &'static str, code: &'static str) -> Lowering {
    Lowering { nan: Nan::NotAmongSources, ..any(name, code) }
}

pub const fn half(row: Lowering) -> Lowering {
    Lowering { result: Stored::Half, ..row }
}

pub const fn low_half(row: Lowering) -> Lowering {
    Lowering { result: Stored::LowHalf, ..row }
}

pub const fn high_half(row: Lowering) -> Lowering {
    Lowering { result: Stored::HighHalf, ..row }
}

pub const fn halves(row: Lowering) -> Lowering {
    Lowering { result: Stored::Halves, ..row }
}

pub const fn by_lane(row: Lowering) -> Lowering {
    Lowering { takes_lanes: true, ..row }
}

pub const fn bailing_out(row: Lowering) -> Lowering {
    Lowering { has_bailouts: true, ..row }
}

/// A call of an intrinsic of LLVM.
macro_rules! call {
    ($name:literal, $type:literal, $($argument:literal),+ $(; $more:literal)?) => {
        concat!("%r = call ", $type, " @llvm.", $name, ".", $type, "(", call!(@ $type, $($argument),+),
            $(", ", $more,)? ")")
    };
    (@ $type:literal, $first:literal $(, $rest:literal)*) => {
        concat!($type, " ", $first $(, ", ", $type, " ", $rest)*)
    };
}

/// A line of code of its parts.
macro_rules! line {
    ($($part:literal),+) => { concat!($($part,)+ "\n") };
}

pub(super) use {call, line};
