//! How faults are drawn, as the file writes it.

use flipwave_analysis::{Confidence, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Injections go on until rates are known.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `margin` and others")]
pub(crate) struct Until {
    /// How far rates may be from the true ones: one percentage point is 0.01.
    pub margin: f64,
    /// Probability with which they are within that.
    #[schemars(extend("default" = Confidence::P95.probability()))]
    pub confidence: Option<f64>,
    /// The outcomes whose rates are to become known.
    #[schemars(extend(
        "items" = {"enum": Outcome::ALL.map(Outcome::name)}, "default" = ["sdc", "due"]
    ))]
    pub of: Option<Vec<String>>,
    /// The parts of the program of which they are to become known.
    #[schemars(extend("default" = ["all"]))]
    pub per: Option<Vec<Per>>,
}

/// The parts of a program of which rates are to become known.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`all`, `kernel`, `group` or `opcode`")]
pub(crate) enum Per {
    /// The program as a whole.
    All,
    /// Each kernel.
    Kernel,
    /// Each group of instructions.
    Group,
    /// Each operation.
    Opcode,
}

/// How many of the faults each part gets that is sampled by itself.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`proportional`, `equal`, or a mapping with `optimal`")]
pub(crate) enum Allocation {
    /// In proportion to its places.
    Proportional,
    /// All the same number.
    Equal,
    /// In proportion to its places and to how much outcomes vary in it.
    Optimal(Optimal),
}

/// In proportion to places and to how much outcomes vary.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `pilot`")]
pub(crate) struct Optimal {
    /// The first faults, which show how much outcomes vary; they are allocated in proportion to places.
    pub pilot: u64,
    /// The outcomes whose rates are to become known; those of `until`, if there is one.
    #[schemars(extend("items" = {"enum": Outcome::ALL.map(Outcome::name)}, "default" = ["sdc"]))]
    pub of: Option<Vec<String>>,
}

/// What is equally likely to be struck.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`bits` or `instructions`")]
pub(crate) enum Draw {
    /// Each bit of each word.
    #[default]
    Bits,
    /// Each execution of an instruction by a thread; of its words one, and of that one of its bits.
    Instructions,
}

/// What becomes of places whose value nothing reads before it is gone.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`sampled` or `counted`")]
pub(crate) enum KnownMasked {
    /// They are struck like others.
    #[default]
    Sampled,
    /// They are counted in the fault-free run, and only the others are struck.
    Counted,
}
