//! The validated content of a campaign file.

use crate::application::Application;
use crate::file::device::CampaignDevice;
use crate::file::faults::Faults;
use crate::file::kernels::Kernels;
use crate::file::schema::ResultsFormat;
use crate::golden::suspicion::Suspicion;
use crate::platform::CampaignTarget;
use crate::severity::JudgeSettings;
use flipwave_emulator::Instruction;
use flipwave_injector::CancellationToken;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A validated campaign file.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    /// Name of the campaign. The default results folder is named after it.
    pub name: String,
    /// Seed of random buffer contents and of fault sites.
    pub seed: u64,
    /// Path of the campaign file.
    pub file: PathBuf,
    /// GPU that the code is compiled for and executed on.
    pub target: CampaignTarget,
    /// Program that faults are injected into.
    pub workload: CampaignWorkload,
    /// Faults to inject; `None` if the file has no `faults`.
    pub faults: Option<Faults>,
    /// Suspicious properties that are permitted.
    pub allow: Vec<Suspicion>,
    /// Judge of the severity of SDC, if any.
    pub severity: Option<JudgeSettings>,
    /// File format of the rows.
    pub format: ResultsFormat,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    /// SHA-256 of the file's content without comments, name, seed and the number of faults.
    pub content: String,
    /// Token that cancels runs of the campaign. A new token is created when the file is read.
    pub cancellation: CancellationToken,
}

/// Program that faults are injected into.
#[derive(Clone, Debug, PartialEq)]
pub enum CampaignWorkload {
    /// Kernels and their buffers.
    Kernels(Kernels),
    /// An application.
    Application(Application),
    /// A recorded run of an application, replayed on the embedded GPU.
    Capture(CaptureSource),
}

/// A recorded run as a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSource {
    /// The file.
    pub file: PathBuf,
    /// Numbers of the dispatches that faults are injected into. The memory that these dispatches write is
    /// compared when the last of them has ended. If `None`, faults are injected into all dispatches, and
    /// the memory that the host reads is compared.
    pub dispatches: Option<RangeInclusive<u32>>,
}

impl Campaign {
    /// Returns the device that executes the program during injections.
    pub fn device(&self) -> CampaignDevice {
        match &self.workload {
            CampaignWorkload::Kernels(kernels) => kernels.device,
            CampaignWorkload::Application(application) => application.device,
            CampaignWorkload::Capture(_) => CampaignDevice::Embedded,
        }
    }

    /// Returns the kernels, if the workload consists of kernels.
    pub fn kernels(&self) -> Option<&Kernels> {
        match &self.workload {
            CampaignWorkload::Kernels(kernels) => Some(kernels),
            CampaignWorkload::Application(_) | CampaignWorkload::Capture(_) => None,
        }
    }

    /// Returns the proxy instructions.
    pub(crate) fn instructions(&self) -> &[Instruction] {
        self.kernels().map_or(&[], |kernels| &kernels.instructions)
    }
}
