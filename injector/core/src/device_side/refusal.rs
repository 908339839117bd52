//! Sites that a hook cannot strike.

use crate::population::can_be_struck;
use crate::site::{Place, Site, When};

/// Why a hook cannot inject a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A place that no hook reaches.
    #[error("hooks do not reach {0}")]
    Place(Place),
    /// A number in a pair of registers that lanes share.
    #[error("hooks strike numbers of 64 bits in vector registers only")]
    WideScalar,
    /// The program's code was rewritten before.
    #[error("the code is emulated: hooks would be put into other hooks")]
    Emulated,
    /// Control does not come to code after the instruction at once.
    #[error("control does not come to a hook after `{instruction}` before it goes on")]
    NoAfter {
        /// The instruction.
        instruction: String,
    },
    /// The instruction decides which of the active lanes it writes.
    #[error("`{instruction}` itself chooses the lanes that it writes")]
    OwnLanes {
        /// The instruction.
        instruction: String,
    },
    /// The code is at another place with a hook in it.
    #[error("`{instruction}` computes an address of the code, which is another one with a hook")]
    CodeAddress {
        /// The instruction.
        instruction: String,
    },
    /// There is no decision, or it changes nothing.
    #[error("`{instruction}` is no branch that decides by SCC, VCC or EXEC between two places")]
    NoDecision {
        /// The instruction.
        instruction: String,
    },
    /// Lanes or halves of a mask that the wave does not have.
    #[error("the waves have {lanes} lanes")]
    Lanes {
        /// How many there are.
        lanes: u8,
    },
    /// A table of all waves would be too large.
    #[error("the dispatch has {waves} waves, hooks keep count of at most {most}")]
    Waves {
        /// Waves of the dispatch.
        waves: u64,
        /// How many there may be.
        most: u64,
    },
    /// The engine left the hook out.
    #[error("{0}")]
    Engine(String),
}

/// Whether a hook can strike sites of this kind. What one instruction lacks shows when the site is
/// injected.
///
/// # Errors
/// [`Refusal`]: why it cannot.
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
        Place::Register(register) | Place::Source(register) if !can_be_struck(register) => {
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
    fn what_hooks_do_not_reach_is_refused_by_name() {
        let at = "dispatch=0 workgroup=0,0,0 wave=0 pc=0x0 occurrence=0";
        for (what, refused) in [
            ("encoding=0 flip=0x1", "hooks do not reach encoding=0"),
            ("program_counter=0 flip=0x4", "hooks do not reach program_counter=0"),
            ("lane=1 scratch=0x8 flip=0x4", "hooks do not reach scratch=0x8"),
            ("product=0,1 step=2 flip=0x4", "hooks do not reach product=0,1 step=2"),
            ("register=s0 relative_f64=0.5", "hooks strike numbers of 64 bits in vector"),
            ("lane=1 register=v0 relative_f64=0.5", ""),
            ("lane=1 register=v0 flip=0x4", ""),
            ("branch=decision flip=0x1", ""),
            ("lds=0x40 set=0x1", ""),
        ] {
            let site: Site = format!("{at} {what}").parse().unwrap();
            let found = supports(&site).map_or_else(|refusal| refusal.to_string(), |()| "".into());
            assert!(found.starts_with(refused) && found.is_empty() == refused.is_empty(), "{what}");
        }
    }
}
