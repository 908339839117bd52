//! The sampling keys of a campaign file.

use flipwave_analysis::{Confidence, Outcome};
use schemars::JsonSchema;
use serde::Deserialize;

/// Stop the campaign once the rates are known with a given precision.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `margin` and others")]
pub(crate) struct Until {
    /// Maximum distance between the estimated and the true rates. Write one percentage point as 0.01.
    pub margin: f64,
    /// Probability with which the true rates are within the margin.
    #[schemars(extend("default" = Confidence::P95.probability()))]
    pub confidence: Option<f64>,
    /// Outcomes whose rates are estimated.
    #[schemars(extend(
        "items" = {"enum": Outcome::ALL.map(Outcome::name)}, "default" = ["sdc", "due"]
    ))]
    pub outcomes: Option<Vec<String>>,
    /// Parts of the program for which rates are estimated.
    #[schemars(extend("default" = ["all"]))]
    pub per: Option<Vec<Per>>,
}

/// Parts of a program for which rates are estimated.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`all`, `kernel`, `group` or `opcode`")]
pub(crate) enum Per {
    /// The whole program.
    All,
    /// Each kernel.
    Kernel,
    /// Each group of instructions.
    Group,
    /// Each opcode.
    Opcode,
}

/// Division of the faults among the strata.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`proportional`, `equal`, or a mapping with `optimal`")]
pub(crate) enum Allocation {
    /// Proportional to the number of fault sites of each stratum.
    Proportional,
    /// The same number for each stratum.
    Equal,
    /// Proportional to the number of fault sites and to the standard deviation of the outcomes in each
    /// stratum (Neyman allocation).
    Optimal(Optimal),
}

/// Allocation by the standard deviation of the outcomes, estimated in a pilot.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `pilot`")]
pub(crate) struct Optimal {
    /// Number of faults in the pilot, which estimates the standard deviations. The pilot is allocated
    /// proportionally.
    pub pilot: u64,
    /// Outcomes whose deviation counts. If the file has `until`, the default is the outcomes in it.
    #[schemars(extend("items" = {"enum": Outcome::ALL.map(Outcome::name)}, "default" = ["sdc"]))]
    pub outcomes: Option<Vec<String>>,
}

/// The unit that is drawn with equal probability.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`bits` or `instructions`")]
pub(crate) enum Draw {
    /// Each bit of each word a fault can hit.
    #[default]
    Bits,
    /// Each execution of an instruction by a thread. One of its words and one bit of that word are then
    /// drawn.
    Instructions,
}

/// Treatment of fault sites whose value is overwritten or discarded before it is read.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`sampled` or `counted`")]
pub(crate) enum KnownMasked {
    /// They are sampled like other fault sites.
    #[default]
    Sampled,
    /// They are counted as masked during the golden run, and only other fault sites are sampled.
    Counted,
}
