//! Def-use pruning for one site.

use crate::fault_space::SiteAnalysis;
use crate::inject::cell::Cells;
use crate::resolve::def_use::{Effect, NextUse, NextUses};
use crate::site::{Event, Place, Site};
use crate::{GoldenError, Workload};
use flipwave_arch::{Instruction, Lane, LaneMask, RegisterId};
use flipwave_device::WaveId;
use flipwave_machine::{Executed, Observer, Watch, WaveState};

/// Runs `workload` without a fault and determines what the golden run reveals about a fault at `site`,
/// as a plan does for its faults. Returns `None` for sites that are not reached and for faults that
/// strike anything but one execution by one wave.
///
/// # Errors
/// [`GoldenError`] if the run does not complete.
pub fn analyze_site(workload: &Workload, site: &Site) -> Result<Option<SiteAnalysis>, GoldenError> {
    let event = match site.event() {
        Some(event) if event.is_single() => *event,
        _ => return Ok(None),
    };
    let mut look = Look {
        site,
        event,
        occurrences: 0,
        exec: LaneMask::EMPTY,
        next_uses: NextUses::default(),
        found: None,
    };
    workload.run_fault_free(|index, device, dispatch| {
        if index == event.dispatch {
            workload.run(device, dispatch, &mut look, None)
        } else {
            workload.dispatch(device, dispatch)
        }
    })?;
    let decided = look.next_uses.into_decided();
    let mut found = look.found;
    if let (Some(SiteAnalysis { next_use: Some(next_use), .. }), Some((_, decided))) =
        (&mut found, decided.first())
    {
        *next_use = *decided;
    }
    Ok(found)
}

/// Reads the value of a site before the fault strikes. Returns the value, and the register and lanes
/// with which it can be followed.
pub(crate) fn value_at(
    site: &Site,
    active: LaneMask,
    all: LaneMask,
    value: &mut dyn FnMut(Place, Lane, u8) -> Option<u64>,
) -> Option<(u64, Option<(RegisterId, LaneMask)>)> {
    let Place::Register(register) = site.place else { return None };
    let lanes = site.lanes.map_or(LaneMask(1), |lanes| lanes.of(active, all));
    let words = site.action.words();
    let before = value(site.place, lanes.nth(0).unwrap_or(Lane(0)), words)?;
    let followed = (words == 1 && register.class.has_known_readers).then_some((register, lanes));
    Some((before, followed))
}

/// Observer that finds the site and then follows its value.
struct Look<'a> {
    site: &'a Site,
    event: Event,
    /// Executions of the site's instruction by the site's wave so far.
    occurrences: u64,
    /// EXEC before the current instruction.
    exec: LaneMask,
    next_uses: NextUses,
    found: Option<SiteAnalysis>,
}

impl Observer for Look<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.event.strikes_wave(wave)
    }

    fn before(&mut self, _: &dyn Instruction, _: WaveId, state: &mut dyn WaveState) {
        self.exec = state.active();
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut dyn WaveState) -> Watch {
        let Executed { inst, wave, lanes } = *executed;
        self.next_uses.observe(wave, &Effect { inst, exec: self.exec, written: lanes });
        if self.found.is_none() && inst.pc() == self.event.pc {
            if self.event.strikes(self.occurrences) {
                let all = state.all_lanes();
                let time = state.executed().saturating_sub(1);
                let cells = Cells { buffers: &[] };
                let mut read = |place, lane, words| cells.read(state, place, lane, words);
                let value = value_at(self.site, lanes, all, &mut read);
                if let Some((_, Some((register, lanes)))) = value {
                    self.next_uses.follow(0, wave, register, lanes);
                }
                let before = value.map(|(before, _)| before);
                let next_use = before.map(|_| NextUse::Read);
                self.found = Some(SiteAnalysis { time, next_use, before });
            }
            self.occurrences += 1;
        }
        let is_over = self.found.is_some() && !self.next_uses.follows(wave);
        if is_over { Watch::Off } else { Watch::On }
    }
}
