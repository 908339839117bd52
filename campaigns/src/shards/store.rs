//! The fault-free run and what was counted in it, kept for all who run the same program: the first
//! shard makes it, whoever that is, and the others read it.

use super::layout::SharedFolder;
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::faults::Faults;
use crate::golden::{Reference, surveyed};
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

/// The format of kept golden runs, a part of the names they are kept under. Files have fields by their
/// order and variants by their number, without names: raise it whenever a type in [`Kept`] gains, loses
/// or moves a field or a variant, or the meaning of one changes. Renames leave it as it is.
pub(super) const FORMAT: u32 = 1;

/// What is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Wave instructions, lane operations and waves of each dispatch.
    statistics: Vec<[u64; 3]>,
    /// SHA-256 of each output.
    outputs: Vec<[u8; 32]>,
    profile: StoredProfile,
    fidelity: FidelityRecord,
    touched: Option<StoredFootprints>,
}

/// The fault-free run, as injections need it.
pub(super) struct Surveyed {
    pub reference: Reference,
    pub profile: Profile,
    pub fidelity: FidelityRecord,
    pub recorded: Option<RecordedRun>,
    /// Whether it was made here.
    pub is_new: bool,
}

/// Bytes of a digest.
const DIGEST: usize = 32;

/// The fault-free run that is kept under `key`, or a new one, which is kept then. `touches` says whether
/// what workgroups touch is to be known, and how many threads may make it.
///
/// # Errors
/// [`CampaignError`] as of a fault-free run; [`FolderError::Access`].
pub(super) fn survey(
    folder: &SharedFolder,
    key: &str,
    campaign: &Campaign,
    prepared: &Prepared,
    (touches, threads): (bool, NonZeroUsize),
) -> Result<Surveyed, CampaignError> {
    // Records of an application need not be the same on all machines.
    // What hooks reach is not kept.
    let is_kept = !matches!(campaign.workload, CampaignWorkload::Application(_))
        && prepared.path == InjectionPath::Embedded;
    let path = folder.golden(key);
    if let Some(kept) = is_kept
        .then(|| flipwave_host::input::read(&path, flipwave_host::input::BINARY).ok())
        .flatten()
        .and_then(|own| open(&own))
    {
        return Ok(kept.surveyed(campaign.faults()?));
    }
    let ProfiledRun { golden, profile, fidelity, recorded } =
        surveyed(campaign, prepared, touches, threads)?;
    let fidelity = FidelityRecord::of(&fidelity);
    let reference = Reference::new(&golden);
    if is_kept && let Some(profile) = StoredProfile::of(&profile) {
        let statistics = reference.statistics.iter();
        let kept = Kept {
            statistics: statistics
                .map(|own| [own.wave_instructions, own.lane_operations, own.waves])
                .collect(),
            outputs: reference.outputs.clone(),
            profile,
            fidelity: fidelity.clone(),
            touched: recorded.as_ref().map(|own| StoredFootprints::of(&own.touched)),
        };
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let bytes = seal(&kept).map_err(|error| failed(std::io::Error::other(error)))?;
        flipwave_host::output::publish(&path, bytes.as_slice()).map_err(failed)?;
    }
    Ok(Surveyed { reference, profile, fidelity, recorded, is_new: true })
}

impl Kept {
    fn surveyed(self, faults: &Faults) -> Surveyed {
        let statistics = self.statistics.into_iter().map(|own| {
            let [wave_instructions, lane_operations, waves] = own;
            Statistics { wave_instructions, lane_operations, waves }
        });
        let Faults { fault, selection, stratification, sample, .. } = faults;
        let (draw, known_masked) = (sample.draw, sample.known_masked);
        Surveyed {
            reference: Reference { statistics: statistics.collect(), outputs: self.outputs },
            profile: self.profile.profile(fault, selection, *stratification, draw, known_masked),
            fidelity: self.fidelity,
            recorded: self
                .touched
                .map(|own| RecordedRun { touched: own.touched(), checkpoints: None }),
            is_new: false,
        }
    }
}

/// What is kept as bytes, after a digest of them.
fn seal(kept: &Kept) -> postcard::Result<Vec<u8>> {
    let bytes = postcard::to_stdvec(kept)?;
    Ok([Sha256::digest(&bytes).as_slice(), &bytes].concat())
}

/// What bytes keep; nothing if they are not as they were written.
fn open(bytes: &[u8]) -> Option<Kept> {
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

    /// The types within are pinned where they are: `injector/src/stored.rs`. A change here needs another
    /// [`FORMAT`].
    #[test]
    fn kept_golden_runs_have_fixed_bytes() {
        // Of an empty profile, and of no workgroups.
        let profile = postcard::from_bytes(&[0; 4]).expect("a profile");
        let touched = postcard::from_bytes(&[0]).expect("workgroups");
        let kept = Kept {
            statistics: vec![[1, 2, 3]],
            outputs: vec![[0xaa; 32]],
            profile,
            fidelity: FidelityRecord::default(),
            touched: Some(touched),
        };
        let bytes = seal(&kept).expect("bytes");
        assert_eq!(bytes[..DIGEST], *Sha256::digest(&bytes[DIGEST..]));
        let expected = ["01010203", "01", &"aa".repeat(32), "00000000", "0000000000", "0100"];
        assert_eq!(hexadecimal(&bytes[DIGEST..]), expected.concat());
    }

    #[test]
    fn the_fault_free_run_is_made_once_and_what_is_damaged_again() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns");
        let own = tempfile::tempdir().expect("a folder");
        let folder = SharedFolder::new(own.path());
        folder.make().expect("a folder");
        for name in ["matmul", "reduction"] {
            let campaign = Campaign::read(&examples.join(name).with_extension("yaml"));
            let campaign = campaign.unwrap_or_else(|error| panic!("{error}"));
            let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
            let survey = || {
                let survey = survey(&folder, name, &campaign, &prepared, (true, NonZeroUsize::MIN));
                survey.unwrap_or_else(|error| panic!("{error}"))
            };
            let touched = |own: &Surveyed| {
                own.recorded.as_ref().map(|own| StoredFootprints::of(&own.touched))
            };
            let (first, second) = (survey(), survey());
            assert!(first.is_new && !second.is_new, "{name}");
            assert_eq!(first.reference, second.reference, "{name}");
            assert_eq!(first.profile, second.profile, "{name}");
            assert_eq!(first.fidelity, second.fidelity, "{name}");
            assert!(touched(&first).is_some());
            assert_eq!(touched(&first), touched(&second), "{name}");

            let path = folder.golden(name);
            let good = fs::read(&path).expect("it is kept");
            for at in [0, DIGEST, good.len() / 2, good.len() - 1] {
                let mut bad = good.clone();
                bad[at] ^= 1;
                fs::write(&path, bad).expect("written");
                assert!(survey().is_new, "{name}: byte {at}");
                assert_eq!(fs::read(&path).expect("it is kept"), good, "{name}");
            }
        }
    }
}
