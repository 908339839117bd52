//! Stored golden runs with their profiles: the first shard of a program executes the golden run,
//! and the others read it.

use super::layout::SharedFolder;
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::faults::Faults;
use crate::golden::{Reference, profiled};
use crate::program::prepare::Prepared;
use crate::results::folder::FolderError;
use crate::run::injection_path::InjectionPath;
use flipwave_device::Statistics;
use flipwave_injector::{
    FidelityRecord, Profile, ProfiledRun, RecordedRun, StoredFootprints, StoredProfile,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;

/// Format of stored golden runs, a part of the name of the file. The files identify fields by order
/// and variants by number: increment the format when a type in [`StoredGolden`] gains, loses or
/// moves a field or a variant, or when the meaning of one changes. Renames do not change the
/// format.
pub(super) const FORMAT: u32 = 1;

/// Content of a file.
#[derive(Serialize, Deserialize)]
struct StoredGolden {
    /// Wave instructions, lane operations and waves of each dispatch.
    statistics: Vec<[u64; 3]>,
    /// SHA-256 of each output.
    outputs: Vec<[u8; 32]>,
    profile: StoredProfile,
    fidelity: FidelityRecord,
    touched: Option<StoredFootprints>,
}

/// A golden run with its profile.
pub(super) struct ProfiledGolden {
    pub reference: Reference,
    pub profile: Profile,
    pub fidelity: FidelityRecord,
    pub recorded: Option<RecordedRun>,
    /// `true` if this process executed the run.
    pub is_new: bool,
}

/// Length of a digest in bytes.
const DIGEST: usize = 32;

/// Reads the golden run stored under `key`, or executes the run on up to `threads` threads and
/// stores it. `footprints` requests the memory footprints of workgroups.
///
/// # Errors
/// [`CampaignError`] of a golden run; [`FolderError::Access`].
pub(super) fn load_or_profile(
    folder: &SharedFolder,
    key: &str,
    campaign: &Campaign,
    prepared: &Prepared,
    footprints: bool,
    threads: NonZeroUsize,
) -> Result<ProfiledGolden, CampaignError> {
    // Recorded runs of an application may differ between machines, and the sites that hooks cannot
    // reach are not part of the stored profile.
    let is_stored = !matches!(campaign.workload, CampaignWorkload::Application(_))
        && prepared.path == InjectionPath::Embedded;
    let path = folder.golden(key);
    if is_stored
        && let Ok(bytes) = flipwave_host::input::read(&path, flipwave_host::input::BINARY)
        && let Some(stored) = decode(&bytes)
    {
        return Ok(stored.profiled(campaign.faults()?));
    }
    let ProfiledRun { golden, profile, fidelity, recorded } =
        profiled(campaign, prepared, footprints, threads)?;
    let fidelity = FidelityRecord::of(&fidelity);
    let reference = Reference::new(&golden);
    if is_stored && let Some(profile) = StoredProfile::of(&profile) {
        let numbers = |dispatch: &Statistics| {
            [dispatch.wave_instructions, dispatch.lane_operations, dispatch.waves]
        };
        let stored = StoredGolden {
            statistics: reference.statistics.iter().map(numbers).collect(),
            outputs: reference.outputs.clone(),
            profile,
            fidelity: fidelity.clone(),
            touched: recorded.as_ref().map(|run| StoredFootprints::of(&run.touched)),
        };
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let bytes = encode(&stored).map_err(|error| failed(std::io::Error::other(error)))?;
        flipwave_host::output::publish(&path, bytes.as_slice()).map_err(failed)?;
    }
    Ok(ProfiledGolden { reference, profile, fidelity, recorded, is_new: true })
}

impl StoredGolden {
    fn profiled(self, faults: &Faults) -> ProfiledGolden {
        let statistics =
            self.statistics.into_iter().map(|[wave_instructions, lane_operations, waves]| {
                Statistics { wave_instructions, lane_operations, waves }
            });
        let Faults { fault, selection, stratification, sample, .. } = faults;
        let (draw, known_masked) = (sample.draw, sample.known_masked);
        ProfiledGolden {
            reference: Reference { statistics: statistics.collect(), outputs: self.outputs },
            profile: self.profile.profile(fault, selection, *stratification, draw, known_masked),
            fidelity: self.fidelity,
            recorded: self
                .touched
                .map(|footprints| RecordedRun { touched: footprints.touched(), checkpoints: None }),
            is_new: false,
        }
    }
}

/// Encodes a golden run as a digest followed by the digested bytes.
fn encode(stored: &StoredGolden) -> postcard::Result<Vec<u8>> {
    let bytes = postcard::to_stdvec(stored)?;
    Ok([Sha256::digest(&bytes).as_slice(), &bytes].concat())
}

/// Decodes a golden run; `None` if the bytes are damaged.
fn decode(bytes: &[u8]) -> Option<StoredGolden> {
    let (digest, bytes) = bytes.split_at_checked(DIGEST)?;
    (Sha256::digest(bytes).as_slice() == digest).then(|| postcard::from_bytes(bytes).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::hexadecimal;
    use crate::program::prepare::prepare;
    use std::fs;
    use std::path::Path;

    /// A change here requires another [`FORMAT`]. Tests in `injector/core/src/golden/stored.rs` fix
    /// the contained types.
    #[test]
    fn encoded_golden_runs_are_fixed() {
        // An empty profile, and footprints without workgroups.
        let profile = postcard::from_bytes(&[0; 4]).expect("a profile");
        let touched = postcard::from_bytes(&[0]).expect("workgroups");
        let stored = StoredGolden {
            statistics: vec![[1, 2, 3]],
            outputs: vec![[0xaa; 32]],
            profile,
            fidelity: FidelityRecord::default(),
            touched: Some(touched),
        };
        let bytes = encode(&stored).expect("bytes");
        assert_eq!(bytes[..DIGEST], *Sha256::digest(&bytes[DIGEST..]));
        let expected = ["01010203", "01", &"aa".repeat(32), "00000000", "0000000000", "0100"];
        assert_eq!(hexadecimal(&bytes[DIGEST..]), expected.concat());
    }

    #[test]
    fn golden_run_is_executed_once_and_again_if_damaged() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns");
        let directory = tempfile::tempdir().expect("a folder");
        let folder = SharedFolder::new(directory.path());
        folder.create().expect("a folder");
        for name in ["matmul", "reduction"] {
            let campaign = Campaign::read(&examples.join(name).with_extension("yaml"));
            let campaign = campaign.unwrap_or_else(|error| panic!("{error}"));
            let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
            let load = || {
                let threads = NonZeroUsize::MIN;
                let golden = load_or_profile(&folder, name, &campaign, &prepared, true, threads);
                golden.unwrap_or_else(|error| panic!("{error}"))
            };
            let footprints = |golden: &ProfiledGolden| {
                golden.recorded.as_ref().map(|run| StoredFootprints::of(&run.touched))
            };
            let (first, second) = (load(), load());
            assert!(first.is_new && !second.is_new, "{name}");
            assert_eq!(first.reference, second.reference, "{name}");
            assert_eq!(first.profile, second.profile, "{name}");
            assert_eq!(first.fidelity, second.fidelity, "{name}");
            assert!(footprints(&first).is_some());
            assert_eq!(footprints(&first), footprints(&second), "{name}");

            let path = folder.golden(name);
            let good = fs::read(&path).expect("a stored run");
            for at in [0, DIGEST, good.len() / 2, good.len() - 1] {
                let mut bad = good.clone();
                bad[at] ^= 1;
                fs::write(&path, bad).expect("written");
                assert!(load().is_new, "{name}: byte {at}");
                assert_eq!(fs::read(&path).expect("a stored run"), good, "{name}");
            }
        }
    }
}
