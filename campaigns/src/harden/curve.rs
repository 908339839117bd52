//! The same faults in the plain and in a hardened program.

use super::code::Version;
use super::error::HardeningError;
use super::ranking::is_ranked;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use flipwave_analysis::{Coverage, Outcome, Row, rows};
use flipwave_injector::{Duration, FaultTarget, Scope};
use flipwave_isa::{Pc, Register};
use std::io::BufReader;
use std::path::Path;

/// What became of the faults of the plain program in a hardened one.
pub(super) struct Reruns {
    pub coverage: Coverage,
    /// Injections whose faults a comparison should have seen, and their sites.
    pub escapes: Vec<(u64, String)>,
}

impl Reruns {
    /// Reads both tables side by side, the plain program's and the hardened one's. Coverage is that of the
    /// faults that are held out, if some are.
    ///
    /// # Errors
    /// [`HardeningError::Rows`], [`HardeningError::OtherFault`].
    pub fn read(
        campaign: &Campaign,
        [plain, hardened]: [&Path; 2],
        version: &Version,
        holds_out: bool,
    ) -> Result<Reruns, CampaignError> {
        let failed = |file: &Path, reason: String| HardeningError::Rows {
            file: file.display().to_string(),
            reason,
        };
        let open = |file: &Path| {
            let table = flipwave_host::input::open_lines(file)
                .map_err(|error| failed(file, error.to_string()))?;
            rows(BufReader::new(table)).map_err(|error| failed(file, error.to_string()))
        };
        let (mut one, mut other) = (open(plain)?, open(hardened)?);
        let watched = Watched::new(campaign, version)?;
        let mut reruns = Reruns { coverage: Coverage::default(), escapes: Vec::new() };
        loop {
            let one = one.next().transpose().map_err(|error| failed(plain, error.to_string()))?;
            let other = other.next().transpose();
            let other = other.map_err(|error| failed(hardened, error.to_string()))?;
            let (one, other) = match (one, other) {
                (Some(one), Some(other)) => (one, other),
                (None, None) => return Ok(reruns),
                (one, other) => {
                    let index = one.or(other).map_or(0, |row| row.index);
                    return Err(HardeningError::OtherFault { index }.into());
                }
            };
            if (one.index, &one.site) != (other.index, &other.site) {
                return Err(HardeningError::OtherFault { index: one.index }.into());
            }
            if other.outcome == Outcome::Sdc && watched.sees(&other) {
                reruns.escapes.push((other.index, other.site.clone()));
            }
            if !holds_out || !is_ranked(one.index) {
                reruns.coverage.add(&one, &other);
            }
        }
    }
}

/// The results that are compared.
struct Watched<'a> {
    version: &'a Version,
    /// The plain module of each dispatch.
    modules: Vec<Option<u32>>,
    /// Whether the campaign's faults strike results right after they are written.
    strikes_results: bool,
}

impl<'a> Watched<'a> {
    fn new(campaign: &Campaign, version: &'a Version) -> Result<Watched<'a>, CampaignError> {
        let fault = &campaign.faults()?.fault;
        let is_lane =
            matches!(fault.scope, Scope::Lane | Scope::ActiveLanes | Scope::LanesEvery(_));
        let strikes_results = fault.target == FaultTarget::DestinationRegister
            && is_lane
            && matches!(fault.duration, Duration::Transient);
        let plain = |id| version.modules.iter().find(|(_, own)| own.id == id).map(|(at, _)| *at);
        let dispatches = version.prepared.workload.program.dispatches.iter();
        let modules = dispatches.map(|own| plain(own.module)).collect();
        Ok(Watched { version, modules, strikes_results })
    }

    /// Whether a fault changes a result that is compared before anything uses it.
    fn sees(&self, row: &Row) -> bool {
        let dispatch = row.dispatch.and_then(|own| self.modules.get(own as usize).copied());
        let module = dispatch.flatten().and_then(|own| self.version.modules.get(&own));
        let Some((module, pc)) = module.zip(row.pc) else { return false };
        let Some(own) = module.hardened.duplicated.get(&Pc(pc)) else { return false };
        let Ok(place) = row.place.parse::<Register>() else { return false };
        self.strikes_results && own.results.iter().any(|range| range.contains(place))
    }
}
