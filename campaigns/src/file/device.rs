//! What a campaign's program runs on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a campaign's program runs on while faults are injected. Faults are always planned on the
/// embedded GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`embedded` or `rocr`")]
pub enum CampaignDevice {
    /// The embedded GPU.
    #[default]
    Embedded,
    /// The GPU that AMD's runtime, ROCr, has on this machine.
    Rocr,
}

impl CampaignDevice {
    /// Whether it is a GPU of this machine. All others are the embedded one, run in some way.
    pub fn is_hardware(self) -> bool {
        self == CampaignDevice::Rocr
    }
}
