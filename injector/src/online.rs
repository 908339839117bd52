//! A fault in a program that runs by itself: its dispatches come one after another, and there is no
//! workload that could be run again.

use crate::InjectionError;
use crate::cell::Cells;
use crate::injection::Struck;
use crate::site::{Site, Unit};
use crate::strike::Strike;
use flipwave_device::WaveId;
use flipwave_isa::{Inst, Target};
use flipwave_sim::{Executed, Observer, Watch, WaveState};

/// Strikes at a site. Whoever runs the program shows it the dispatches that the site can be in.
/// There are no buffers: sites in memory are never struck.
pub struct OnlineStrike<'a>(Strike<'a>);

impl<'a> OnlineStrike<'a> {
    /// Nothing struck yet, on a device of this target.
    pub fn new(site: &'a Site, target: &Target) -> OnlineStrike<'a> {
        OnlineStrike(Strike::new(site, Cells { buffers: &[] }, Unit::simds(target)))
    }

    /// A dispatch with so many workgroups in x and y begins. It is the observer of this dispatch.
    pub fn begin(&mut self, workgroups: [u32; 2]) {
        self.0.begin(workgroups);
    }

    /// What was struck so far, if anything was.
    pub fn so_far(&self) -> Option<&Result<Struck, InjectionError>> {
        self.0.so_far()
    }
}

impl Observer for OnlineStrike<'_> {
    fn watches(&mut self, wave: WaveId) -> bool {
        self.0.watches(wave)
    }

    fn before(&mut self, inst: &Inst, wave: WaveId, state: &mut WaveState<'_>) {
        self.0.before(inst, wave, state);
    }

    fn after(&mut self, executed: &Executed<'_>, state: &mut WaveState<'_>) -> Watch {
        self.0.after(executed, state)
    }
}
