//! Hazards of gfx12 (gfx1200 and gfx1201). [`super::SgprHazardState`] tracks hazards of scalar registers,
//! which depend on all earlier instructions.
//!
//! The table excludes these hazards of LLVM's `GCNHazardRecognizer`:
//! - those that need wait states on older generations, since hardware resolves data dependences
//!   (`FeatureNoDataDepHazard`);
//! - bugs of gfx11: results of transcendental operations, partial forwarding, overwritten lane masks and the
//!   priority of exports;
//! - LDS-direct loads, which encode their waits;
//! - hazards of gfx12.5: scratch bases, `s_getreg` of waits, asynchronous barriers, and matrix operations next
//!   to other operations.

use super::Hazard;
use super::gfx10::PERMLANE_AFTER_COMPARE;
use super::gfx11::{DEALLOCATION, WMMA_RESULT};

/// Hazards of both wave sizes.
pub(super) const GFX12: &[&[Hazard]] = &[PERMLANE_AFTER_COMPARE, WMMA_RESULT, DEALLOCATION];
