//! Hazards of gfx12 (gfx1200 and gfx1201). What vector operations read from scalar registers is
//! kept by [`super::ScalarReads`], as it depends on all that ran before.
//!
//! Of what LLVM's `GCNHazardRecognizer` looks for, this is not in the table: what needs wait states
//! on older generations, since hardware stops for data (`FeatureNoDataDepHazard`); results of
//! transcendental operations and partial forwarding, masks that are overwritten, and the priority
//! of exports, which are defects of gfx11; LDS-direct loads, which carry their waits themselves;
//! scratch bases, `s_getreg` of waits, asynchronous barriers and matrix operations beside others,
//! which are gfx12.5's.

use super::Hazard;
use super::gfx10::PERMLANE_BEHIND_COMPARE;
use super::gfx11::{DEALLOCATION, WMMA_RESULT};

/// Waves of either size.
pub(super) const GFX12: &[&[Hazard]] = &[PERMLANE_BEHIND_COMPARE, WMMA_RESULT, DEALLOCATION];
