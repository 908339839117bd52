//! Sites that a hook cannot strike.

use flipwave_injector::hooks::MissingLanes;
use flipwave_injector::{Place, Site, When};
use flipwave_isa::Register;

/// Reasons why a hook cannot inject a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Hooks cannot strike the place.
    #[error("hooks cannot strike {0}")]
    Place(Place),
    /// A 64-bit number in a pair of scalar registers.
    #[error("hooks can strike 64-bit numbers only in vector registers")]
    WideScalar,
    /// The program's code was already rewritten.
    #[error(
        "the code already contains hooks, of emulated instructions or a detector; use `--by embedded`"
    )]
    Emulated,
    /// No code can be inserted that always runs right after the instruction.
    #[error("a hook after `{instruction}` would not run before control leaves it")]
    NoAfter {
        /// The instruction.
        instruction: String,
    },
    /// The instruction chooses which of the active lanes it writes.
    #[error("`{instruction}` chooses the lanes that it writes by itself")]
    OwnLanes {
        /// The instruction.
        instruction: String,
    },
    /// The instruction computes a code address, which changes when a hook is inserted.
    #[error("`{instruction}` computes a code address, which changes when a hook is inserted")]
    CodeAddress {
        /// The instruction.
        instruction: String,
    },
    /// The instruction makes no decision, or one without effect.
    #[error("`{instruction}` is not a branch on SCC, VCC or EXEC with two different targets")]
    NoDecision {
        /// The instruction.
        instruction: String,
    },
    /// The wave does not have the lanes, or the half of a mask.
    #[error("the waves have {lanes} lanes")]
    Lanes {
        /// Number of lanes.
        lanes: u8,
    },
    /// The dispatch has too many waves.
    #[error("the dispatch has {waves} waves; hooks support at most {most}")]
    Waves {
        /// Waves of the dispatch.
        waves: u64,
        /// Maximum number of waves.
        most: u64,
    },
    /// The rewriter rejected the hook.
    #[error("{0}")]
    Engine(String),
}

impl From<MissingLanes> for Refusal {
    fn from(missing: MissingLanes) -> Refusal {
        Refusal::Lanes { lanes: missing.lanes }
    }
}

/// Checks whether hooks can strike sites of this kind. Problems of single instructions are only
/// detected at injection.
///
/// # Errors
/// [`Refusal`] with the reason.
pub fn supports(site: &Site) -> Result<(), Refusal> {
    let is_per_lane = match site.when {
        When::At(_) => site.place.is_per_lane(),
        When::Always(unit) => unit.slot.is_some(),
    };
    if site.action.words() > 1 && !is_per_lane {
        return Err(Refusal::WideScalar);
    }
    match site.place {
        Place::Encoding(_) | Place::ProgramCounter(_) | Place::Scratch(_) | Place::Sum(_) => {
            Err(Refusal::Place(site.place))
        }
        Place::Register(register) | Place::Source(register)
            if !Register::of_id(register).is_some_and(Register::can_be_struck) =>
        {
            Err(Refusal::Place(site.place))
        }
        Place::Register(_) | Place::Source(_) => Ok(()),
        Place::Lds(_) | Place::Memory { .. } | Place::Branch | Place::Destination(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_places_are_rejected_by_name() {
        let architecture = flipwave_sim::Amdgpu::new("gfx90a".parse().unwrap());
        let at = "dispatch=0 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0";
        for (what, refused) in [
            ("encoding=0 flip=0x1", "hooks cannot strike encoding=0"),
            ("program_counter=0 flip=0x4", "hooks cannot strike program_counter=0"),
            ("lane=1 scratch=0x8 flip=0x4", "hooks cannot strike scratch=0x8"),
            ("product=0,1 step=2 flip=0x4", "hooks cannot strike product=0,1 step=2"),
            ("register=s0 relative_f64=0.5", "hooks can strike 64-bit numbers only in vector"),
            ("lane=1 register=v0 relative_f64=0.5", ""),
            ("lane=1 register=v0 flip=0x4", ""),
            ("branch=decision flip=0x1", ""),
            ("lds=0x40 set=0x1", ""),
        ] {
            let site = Site::parse(&format!("{at} {what}"), &architecture).unwrap();
            let found = supports(&site).map_or_else(|refusal| refusal.to_string(), |()| "".into());
            assert!(found.starts_with(refused) && found.is_empty() == refused.is_empty(), "{what}");
        }
    }
}
