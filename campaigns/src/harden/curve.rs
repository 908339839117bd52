//! Comparison of the outcomes of the same faults in the plain program and in a hardened one.

use super::code::HardenedProgram;
use super::error::HardeningError;
use super::ranking::is_ranked;
use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use flipwave_analysis::{Coverage, Outcome, Row, rows};
use flipwave_arch::Pc;
use flipwave_injector::{Duration, FaultTarget, Place, Scope, Site};
use std::io::BufReader;
use std::path::Path;

/// Outcomes in a hardened program of the faults of the plain program.
pub(super) struct Reruns {
    pub coverage: Coverage,
    /// Index and fault site of each fault that a comparison should have detected.
    pub escapes: Vec<(u64, String)>,
}

impl Reruns {
    /// Reads the tables of the plain and the hardened program. If `holds_out` is set, coverage is
    /// computed from the faults that are held out.
    ///
    /// # Errors
    /// [`HardeningError::Rows`], [`HardeningError::OtherFault`].
    pub fn read(
        campaign: &Campaign,
        [plain, hardened]: [&Path; 2],
        version: &HardenedProgram,
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
        let (mut plain_rows, mut hardened_rows) = (open(plain)?, open(hardened)?);
        let compared = ComparedResults::new(campaign, version)?;
        let mut reruns = Reruns { coverage: Coverage::default(), escapes: Vec::new() };
        loop {
            let before = plain_rows.next().transpose();
            let before = before.map_err(|error| failed(plain, error.to_string()))?;
            let after = hardened_rows.next().transpose();
            let after = after.map_err(|error| failed(hardened, error.to_string()))?;
            let (before, after) = match (before, after) {
                (Some(before), Some(after)) => (before, after),
                (None, None) => return Ok(reruns),
                (before, after) => {
                    let index = before.or(after).map_or(0, |row| row.injection);
                    return Err(HardeningError::OtherFault { index }.into());
                }
            };
            if (before.injection, &before.site) != (after.injection, &after.site) {
                return Err(HardeningError::OtherFault { index: before.injection }.into());
            }
            if after.outcome == Outcome::Sdc && compared.detects(&after) {
                reruns.escapes.push((after.injection, after.site.clone()));
            }
            if !holds_out || !is_ranked(before.injection) {
                reruns.coverage.add(&before, &after);
            }
        }
    }
}

/// Instruction results that the hardened program compares.
struct ComparedResults<'a> {
    version: &'a HardenedProgram,
    /// Module of the plain program for each dispatch.
    modules: Vec<Option<u32>>,
    /// `true` if the campaign's faults hit results right after they are written.
    hits_results: bool,
}

impl<'a> ComparedResults<'a> {
    fn new(
        campaign: &Campaign,
        version: &'a HardenedProgram,
    ) -> Result<ComparedResults<'a>, CampaignError> {
        let fault = &campaign.faults()?.fault;
        let is_lane =
            matches!(fault.scope, Scope::Lane | Scope::ActiveLanes | Scope::LanesEvery(_));
        let hits_results = fault.target == FaultTarget::DestinationRegister
            && is_lane
            && matches!(fault.duration, Duration::Transient);
        let plain = |id| {
            version.modules.iter().find(|(_, module)| module.id() == id).map(|(number, _)| *number)
        };
        let dispatches = version.prepared.workload.program.dispatches.iter();
        let modules = dispatches.map(|dispatch| plain(dispatch.module)).collect();
        Ok(ComparedResults { version, modules, hits_results })
    }

    /// Returns `true` if the fault changes a result that is compared before its first use.
    fn detects(&self, row: &Row) -> bool {
        let module = row.dispatch.and_then(|index| self.modules.get(index as usize).copied());
        let module = module.flatten().and_then(|number| self.version.modules.get(&number));
        let Some((module, pc)) = module.zip(row.pc) else { return false };
        let Some(duplicated) = module.duplicated().get(&Pc(pc)) else { return false };
        let workload = &self.version.prepared.workload;
        let Ok(site) = Site::parse(&row.site, workload.architecture()) else { return false };
        let Ok(Site { place: Place::Register(register), .. }) = workload.resolve_names(site) else {
            return false;
        };
        self.hits_results && duplicated.results.contains(&register)
    }
}
