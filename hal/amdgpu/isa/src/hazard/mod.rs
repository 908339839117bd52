//! Manual hazards: pairs of instructions that need wait states or another instruction in between because
//! hardware does not resolve their dependence (the ISA documents, "Manually inserted wait states"; from gfx10
//! on only LLVM documents them). Each generation has a table of hazards with trigger, victim and mitigation.
//! LLVM's `GCNHazardRecognizer` is the authority for each row, and tests compare the tables with it.

mod check;
mod definition;
mod gfx10;
mod gfx11;
mod gfx12;
mod gfx125;
mod gfx9;
mod gfx908;
mod gfx950;
mod group;
mod index;
mod instrumented_sgprs;
mod matrix;
mod mitigation;
mod pattern;
mod preceding;
mod registers;
mod sgpr_hazards;
mod shift64;

pub use check::{HazardViolation, is_completed_by_insertion, mitigations, violations};
pub use definition::{
    Condition, Expiry, Hazard, LOOKBACK_WAIT_STATES, MAX_WAIT_STATES, MitigationRule, Pattern, Side,
};
use definition::{hazard, mitigated, side};
pub use group::Group;
pub use index::{HazardIndex, HazardRoles, OpenHazards};
pub use instrumented_sgprs::{InstrumentedSgprState, Origin};
pub use mitigation::Mitigation;
pub use preceding::{Preceding, preceding, wait_states};
pub use registers::Registers;
pub use sgpr_hazards::{SgprHazardState, SgprWait};
pub use shift64::shift64_high_reg_bug;

use crate::{Generation, Target};

/// The manual hazards of a target for a wave size, in families; `None` for generations without a table.
pub(crate) fn hazards(target: &Target, wave_size: u8) -> Option<&'static [&'static [Hazard]]> {
    Some(match target.generation() {
        Generation::Gfx9 if target.processor() == "gfx908" => gfx908::GFX908,
        Generation::Gfx9 => gfx9::GFX9,
        Generation::Gfx90a => gfx9::GFX90A,
        Generation::Gfx940 if target.processor() == "gfx950" => gfx950::GFX950,
        Generation::Gfx940 => gfx9::GFX940,
        Generation::Gfx10 if target.is_gfx10_1() => gfx10::GFX10_1,
        Generation::Gfx10 => gfx10::GFX10_3,
        Generation::Gfx11 => {
            let is_gfx11_5 = target.processor().starts_with("gfx115");
            match wave_size {
                32 if is_gfx11_5 => gfx11::GFX11_5_WAVE32,
                32 => gfx11::WAVE32,
                _ if is_gfx11_5 => gfx11::GFX11_5_WAVE64,
                _ => gfx11::WAVE64,
            }
        }
        Generation::Gfx12 => gfx12::GFX12,
        Generation::Gfx125 => gfx125::GFX125,
        Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 => return None,
    })
}
