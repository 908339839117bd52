//! What a runtime decides about dispatches.

use crate::dispatch::leads::Leads;
use crate::environment::{self, EnvironmentError};
use std::sync::OnceLock;

/// What a runtime may do one way or another, none of which a correct program depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Private memory that every work-item has at least, in bytes; more if its kernel asks for it.
    pub private_bytes: u32,
    /// Instructions that a wave executes before the next wave of its workgroup has its turn: from then
    /// on, its turn ends where it next jumps or leaves a page of code.
    pub wave_turn: u64,
    /// The same of the first turn after the waves of a workgroup have started or passed a barrier
    /// together. From turn to turn it is twice as many, up to `wave_turn`; until then turns end where
    /// waves branch. Nothing, the default, gives all turns the same length: the order of waves then
    /// hardly depends on hooks.
    pub first_turn: Option<u64>,
    /// How far the waves of a workgroup may be apart where they access LDS.
    pub leads: Leads,
    /// Rounds of turns that a workgroup has before the next one's turn, where few are resident.
    pub workgroup_turn: u32,
    /// Workgroups that are resident at least, whatever the kernel allocates.
    pub resident_workgroups: u32,
    /// What is done where nothing can happen any more because waves go round in loops.
    pub stalls: Stalls,
    /// What becomes code of the host.
    pub compiling: Compiling,
}

/// Which code is compiled to code of the host, and when. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiling {
    /// None: all is interpreted.
    Never,
    /// What is executed often.
    WhenHot,
    /// What is reached a second time: for tests.
    AtOnce,
}

impl Compiling {
    /// What is executed often, where the process has a service that compiles
    /// ([`flipwave_jit::use_service`]); or as the environment variable `FLIPWAVE_TIER` asks for:
    /// `interpreter`, or `compiled-at-once`, which compiles in the process itself.
    pub fn of_process() -> Compiling {
        static ASKED: OnceLock<Option<Compiling>> = OnceLock::new();
        let asked = ASKED.get_or_init(|| Compiling::asked().ok().flatten());
        let usual = match flipwave_jit::service() {
            Some(_) => Compiling::WhenHot,
            None => Compiling::Never,
        };
        asked.unwrap_or(usual)
    }

    /// What the environment asks for.
    pub(crate) fn asked() -> Result<Option<Compiling>, EnvironmentError> {
        let words = [("interpreter", Compiling::Never), ("compiled-at-once", Compiling::AtOnce)];
        environment::asked("FLIPWAVE_TIER", &words)
    }
}

/// What is done about waves that all wait, some of them in loops in which nothing changes. Waves that
/// only wait at barriers or have halted end the dispatch whatever this says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stalls {
    /// They are left to the watchdog, whose count does not depend on how workgroups are executed.
    #[default]
    Ignore,
    /// The dispatch ends: nobody else can change memory meanwhile.
    End,
    /// They are reported, and the dispatch continues: see [`Execution::take_stall`](super::execution::Execution::take_stall).
    Report,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            private_bytes: 0,
            wave_turn: 1024,
            first_turn: None,
            leads: Leads::CLOSE,
            workgroup_turn: 64,
            resident_workgroups: 0,
            stalls: Stalls::Ignore,
            compiling: Compiling::of_process(),
        }
    }
}
