//! Sites that a hook cannot strike.

use flipwave_injector::hooks::MissingLanes;
use flipwave_injector::{Place, Site};
use flipwave_ptx::INSTRUCTION_SET;

/// Reasons why a hook cannot inject a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The code was rewritten.
    #[error(
        "the code already contains hooks, of emulated instructions or a detector; use `--by embedded`"
    )]
    Rewritten,
    /// Hooks cannot strike the place.
    #[error("hooks cannot strike {0}")]
    Place(Place),
    /// No hook runs where the state after the instruction can be changed.
    #[error("no hook can strike {place} right after `{instruction}`, before control leaves it")]
    NoAfter {
        /// The instruction.
        instruction: String,
        /// The place.
        place: Place,
    },
    /// The instruction makes no decision, or one without effect.
    #[error("`{instruction}` is not a conditional branch with two different targets")]
    NoDecision {
        /// The instruction.
        instruction: String,
    },
    /// Diverged lanes that hooks cannot bring to the same target on paths of their own.
    #[error(
        "`{instruction}` leads backward, and the lanes that take it meet the others neither there nor behind it"
    )]
    Backward {
        /// The instruction.
        instruction: String,
    },
    /// The wave does not have the lanes.
    #[error("{0}")]
    Lanes(#[from] MissingLanes),
    /// The lanes do not execute the instruction.
    #[error(
        "the lanes {lanes:#010x} of the wave do not reach the instruction, and no hook reaches their registers; use \
         `scope: active_lanes`, or `--by embedded`"
    )]
    InactiveLanes {
        /// The lanes.
        lanes: u64,
    },
    /// The dispatch has too many waves.
    #[error("the dispatch has {waves} waves; hooks support at most {most}")]
    Waves {
        /// Waves of the dispatch.
        waves: u64,
        /// Maximum number of waves.
        most: u64,
    },
    /// The engine cannot insert the hook.
    #[error("{0}")]
    Engine(String),
}

/// Checks whether hooks can strike sites of this kind. Problems of single instructions are only detected at
/// injection.
///
/// # Errors
/// [`Refusal`] with the reason.
pub fn supports(site: &Site) -> Result<(), Refusal> {
    match site.place {
        Place::Register(register) | Place::Source(register)
            if register.class.instruction_set != INSTRUCTION_SET =>
        {
            Err(Refusal::Place(site.place))
        }
        Place::Encoding(_) | Place::ProgramCounter(_) | Place::Sum(_) => {
            Err(Refusal::Place(site.place))
        }
        Place::Register(_) | Place::Source(_) | Place::Destination(_) | Place::Branch => Ok(()),
        Place::Lds(_) | Place::Memory { .. } | Place::Scratch(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_ptx::Ptx;

    #[test]
    fn unsupported_places_are_rejected_by_name() {
        let architecture = Ptx::new("sm_80").expect("a target");
        let at = "dispatch=0 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0";
        for (what, refused) in [
            ("encoding=0 flip=0x1", "hooks cannot strike encoding=0"),
            ("program_counter=0 flip=0x4", "hooks cannot strike program_counter=0"),
            ("product=0,1 step=2 flip=0x4", "hooks cannot strike product=0,1 step=2"),
            ("lane=1 scratch=0x8 flip=0x4", ""),
            ("lane=1 register=%w0 relative_f64=0.5", ""),
            ("lane=1 source=%p0 flip=0x1", ""),
            ("branch=decision flip=0x1", ""),
            ("lds=0x40 set=0x1", ""),
        ] {
            let site = Site::parse(&format!("{at} {what}"), &architecture).expect("a site");
            let found = supports(&site).map_or_else(|refusal| refusal.to_string(), |()| "".into());
            assert!(found.starts_with(refused) && found.is_empty() == refused.is_empty(), "{what}");
        }
    }
}
