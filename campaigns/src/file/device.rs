//! The device that executes a campaign's program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Device that executes the program during injections. Fault sites are always determined on the embedded
/// GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`embedded` or `rocr`")]
pub enum CampaignDevice {
    /// The embedded GPU.
    #[default]
    Embedded,
    /// A GPU of this machine, through AMD's runtime ROCr.
    Rocr,
}

impl CampaignDevice {
    /// Returns `true` for a GPU of this machine.
    pub fn is_hardware(self) -> bool {
        self == CampaignDevice::Rocr
    }
}
