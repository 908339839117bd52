//! The device that executes a campaign's program.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Device that executes the program during injections. Fault sites are always determined on the embedded
/// GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[serde(expecting = "`embedded`, `rocr` or `cuda`")]
pub enum CampaignDevice {
    /// The embedded GPU.
    #[default]
    Embedded,
    /// A GPU of this machine, through AMD's runtime ROCr.
    Rocr,
    /// A GPU of this machine, through NVIDIA's driver.
    Cuda,
}

impl CampaignDevice {
    /// Returns `true` for a GPU of this machine.
    pub fn is_hardware(self) -> bool {
        self != CampaignDevice::Embedded
    }

    /// Name in campaign files.
    pub fn name(self) -> &'static str {
        match self {
            CampaignDevice::Embedded => "embedded",
            CampaignDevice::Rocr => "rocr",
            CampaignDevice::Cuda => "cuda",
        }
    }
}

impl fmt::Display for CampaignDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
