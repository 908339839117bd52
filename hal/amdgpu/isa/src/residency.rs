//! How many workgroups of a kernel a device keeps resident at once: what its compute units have, and
//! what a kernel takes of it.
//!
//! Sources: LLVM's `AMDGPUBaseInfo.cpp` (`getEUsPerCU`, `getMaxWavesPerEU`, `getMaxWorkGroupsPerCU`,
//! `getTotalNumVGPRs`, `getVGPRAllocGranule`, `getTotalNumSGPRs`, `getLocalMemorySize`), which agrees
//! with "Compute unit" and "LDS" in the ISA documents; AMDGPUUsage, `GRANULATED_LDS_SIZE`.

use crate::{Generation, Target};
use std::fmt;

/// SGPRs of a SIMD that waves share on gfx8 and gfx9; from gfx10 on every wave has them all.
const SGPRS_PER_SIMD: u32 = 800;
/// Bytes of LDS that the workgroups of a compute unit share, and the unit in which it is allocated
/// (gfx7 and later).
const LDS: (u32, u32) = (64 << 10, 512);
/// The same of gfx950 (CDNA 4 ISA, "LDS").
const GFX950_LDS: (u32, u32) = (160 << 10, 1280);
/// The same of gfx1250 (AMDGPUUsage, `GRANULATED_LDS_SIZE`; LLVM's feature
/// AddressableLocalMemorySize327680).
const GFX125_LDS: (u32, u32) = (320 << 10, 2048);
/// Workgroups of several waves that a compute unit can have; those of one have no barrier.
const WORKGROUPS_PER_UNIT: u32 = 16;

/// What a workgroup takes of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Waves.
    pub waves: u32,
    /// Lanes of a wave.
    pub wave_size: u8,
    /// VGPRs of a wave, AccVGPRs included where the file is unified.
    pub vgprs: u16,
    /// SGPRs of a wave, VCC and the like included.
    pub sgprs: u16,
    /// Bytes of LDS.
    pub lds_bytes: u32,
    /// Whether its waves may be on both compute units of a workgroup processor (gfx10 and later).
    pub workgroup_processor_mode: bool,
}

/// What keeps more workgroups from being resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidencyLimit {
    /// The waves that a SIMD can have.
    Waves,
    /// The workgroups of several waves that a compute unit can have.
    Workgroups,
    /// This many VGPRs of each wave.
    Vgprs(u16),
    /// This many SGPRs of each wave.
    Sgprs(u16),
    /// This many bytes of LDS of each workgroup.
    Lds(u32),
    /// This many bytes of private memory of each work-item.
    PrivateMemory(u32),
}

impl fmt::Display for ResidencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResidencyLimit::Waves => f.write_str("the waves that a SIMD can have"),
            ResidencyLimit::Workgroups => {
                f.write_str("the workgroups that a compute unit can have")
            }
            ResidencyLimit::Vgprs(count) => write!(f, "the {count} VGPRs of each wave"),
            ResidencyLimit::Sgprs(count) => write!(f, "the {count} SGPRs of each wave"),
            ResidencyLimit::Lds(bytes) => write!(f, "the {bytes} bytes of LDS of each workgroup"),
            ResidencyLimit::PrivateMemory(bytes) => {
                write!(f, "the {bytes} bytes of private memory of each work-item")
            }
        }
    }
}

/// How many workgroups are resident at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// On the whole device; at least 1 for an allocation that a compute unit can satisfy.
    pub workgroups: u32,
    /// What keeps it from having more.
    pub limit: ResidencyLimit,
}

impl Target {
    /// SIMDs of a compute unit.
    pub fn simds_per_unit(&self) -> u32 {
        match self.generation() {
            // Its compute units are what a workgroup processor is before: four SIMDs (LLVM,
            // `getEUsPerCU`).
            Generation::Gfx125 => 4,
            own if own >= Generation::Gfx10 => 2,
            _ => 4,
        }
    }

    /// Waves that a SIMD can have at once.
    pub fn waves_per_simd(&self) -> u32 {
        match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => 8,
            own if own < Generation::Gfx10 => 10,
            _ if self.is_gfx10_1() => 20,
            _ => 16,
        }
    }

    /// VGPRs of a SIMD that waves of `wave_size` lanes share; AccVGPRs included where the file is
    /// unified.
    pub fn vgprs_per_simd(&self, wave_size: u8) -> u32 {
        let of_64 = match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => 512,
            own if own < Generation::Gfx10 => 256,
            _ if self.has_large_vgpr_file() => 768,
            _ => 512,
        };
        of_wave(of_64, wave_size)
    }

    /// The unit in which a SIMD allocates VGPRs to waves, which is not always that of the
    /// [descriptor](Target::vgpr_granule).
    fn vgpr_allocation_granule(&self, wave_size: u8) -> u32 {
        let of_64 = match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => 8,
            own if own < Generation::Gfx10 => 4,
            _ if self.is_gfx10_1() => 4,
            _ if self.has_large_vgpr_file() => 12,
            _ => 8,
        };
        of_wave(of_64, wave_size)
    }

    /// Whether a SIMD has half as many VGPRs more than others (LLVM's feature 1_5xVGPRs).
    fn has_large_vgpr_file(&self) -> bool {
        matches!(self.processor(), "gfx1100" | "gfx1101" | "gfx1151" | "gfx1200" | "gfx1201")
    }

    /// VGPRs, AccVGPRs included, of each wave of a workgroup of `waves` waves of `wave_size` lanes,
    /// at most: all of them are resident at once, on the SIMDs of one compute unit, or of a
    /// workgroup processor (gfx10 and later) in `workgroup_processor_mode`.
    pub fn max_vgprs_of_workgroup(
        &self,
        waves: u32,
        wave_size: u8,
        workgroup_processor_mode: bool,
    ) -> u16 {
        let simds = self.simds_per_unit() * self.units_shared(workgroup_processor_mode);
        let granule = self.vgpr_allocation_granule(wave_size);
        let share =
            self.vgprs_per_simd(wave_size) / waves.div_ceil(simds).max(1) / granule * granule;
        share.min(self.max_vgprs().into()) as u16
    }

    /// Compute units that the waves of a workgroup may be on.
    fn units_shared(&self, workgroup_processor_mode: bool) -> u32 {
        let has_mode = (Generation::Gfx10..Generation::Gfx125).contains(&self.generation());
        if has_mode && workgroup_processor_mode { 2 } else { 1 }
    }

    /// How many workgroups the device keeps resident at once; nothing for processors that are not
    /// modelled.
    pub fn residency(&self, own: &Allocation) -> Option<Residency> {
        let shared = self.units_shared(own.workgroup_processor_mode);
        let places = self.compute_units()? / shared;
        let waves = own.waves.max(1);
        // Workgroups on the SIMDs of one place, each of which takes this many waves.
        let of_simds =
            |waves_per_simd: u32| waves_per_simd * self.simds_per_unit() * shared / waves;
        let vgprs = u32::from(own.vgprs.max(1))
            .next_multiple_of(self.vgpr_allocation_granule(own.wave_size));
        let mut limits = vec![
            (of_simds(self.waves_per_simd()), ResidencyLimit::Waves),
            (
                of_simds(self.vgprs_per_simd(own.wave_size) / vgprs),
                ResidencyLimit::Vgprs(own.vgprs),
            ),
        ];
        if self.generation() < Generation::Gfx10 {
            // Those of a wave are a multiple of their unit in its descriptor already.
            let sgprs = u32::from(own.sgprs.max(1));
            limits.push((of_simds(SGPRS_PER_SIMD / sgprs), ResidencyLimit::Sgprs(own.sgprs)));
        }
        if waves > 1 {
            limits.push((WORKGROUPS_PER_UNIT * shared, ResidencyLimit::Workgroups));
        }
        if own.lds_bytes > 0 {
            let (all, granule) = match self.generation() {
                Generation::Gfx125 => GFX125_LDS,
                _ if self.processor() == "gfx950" => GFX950_LDS,
                _ => LDS,
            };
            let lds = own.lds_bytes.next_multiple_of(granule);
            limits.push((all * shared / lds, ResidencyLimit::Lds(own.lds_bytes)));
        }
        let (of_place, limit) = limits.into_iter().min_by_key(|(count, _)| *count)?;
        Some(Residency { workgroups: of_place * places, limit })
    }
}

/// A number of VGPRs of 64 lanes as those of waves of `wave_size` lanes: the same bits are twice as
/// many of 32 lanes.
fn of_wave(of_64: u32, wave_size: u8) -> u32 {
    if wave_size == 32 { 2 * of_64 } else { of_64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        name.parse().expect("a target")
    }

    #[test]
    fn the_waves_of_a_workgroup_share_the_registers() {
        for (name, waves, wave_size, most) in [
            ("gfx90a", 16, 64, 128),
            ("gfx90a", 4, 64, 512),
            ("gfx906", 16, 64, 64),
            ("gfx1030", 32, 32, 128),
            ("gfx1100", 32, 32, 192),
            ("gfx1100", 1, 32, 256),
            // Five waves to a SIMD: 1024 / 5 is 204, and registers are given in sixteens.
            ("gfx1030", 20, 32, 192),
        ] {
            assert_eq!(target(name).max_vgprs_of_workgroup(waves, wave_size, true), most, "{name}");
        }
        assert_eq!(target("gfx1030").max_vgprs_of_workgroup(32, 32, false), 64);
    }

    const SMALL: Allocation = Allocation {
        waves: 1,
        wave_size: 64,
        vgprs: 24,
        sgprs: 32,
        lds_bytes: 0,
        workgroup_processor_mode: false,
    };

    fn residency(name: &str, allocation: Allocation) -> (u32, ResidencyLimit) {
        let Residency { workgroups, limit } =
            target(name).residency(&allocation).expect("a product that is modelled");
        let units = target(name).compute_units().expect("a product that is modelled");
        assert_eq!(workgroups % units, 0, "{name}: all compute units have as many");
        (workgroups / units, limit)
    }

    /// By hand from the ISA documents and AMD's occupancy tables.
    #[test]
    fn what_runs_out_first_limits_the_workgroups_of_a_compute_unit() {
        use ResidencyLimit::{Lds, Sgprs, Vgprs, Waves, Workgroups};
        for (name, own, expected) in [
            ("gfx90a", SMALL, (32, Waves)),
            ("gfx906", SMALL, (40, Waves)),
            ("gfx942", SMALL, (32, Waves)),
            ("gfx90a", Allocation { waves: 2, ..SMALL }, (16, Waves)),
            ("gfx906", Allocation { waves: 2, ..SMALL }, (16, Workgroups)),
            ("gfx90a", Allocation { vgprs: 512, ..SMALL }, (4, Vgprs(512))),
            ("gfx90a", Allocation { vgprs: 128, waves: 4, ..SMALL }, (4, Vgprs(128))),
            ("gfx906", Allocation { vgprs: 84, ..SMALL }, (12, Vgprs(84))),
            ("gfx906", Allocation { sgprs: 112, ..SMALL }, (28, Sgprs(112))),
            ("gfx90a", Allocation { lds_bytes: 65536, ..SMALL }, (1, Lds(65536))),
            ("gfx90a", Allocation { lds_bytes: 4097, ..SMALL }, (14, Lds(4097))),
            ("gfx950", Allocation { lds_bytes: 160 << 10, ..SMALL }, (1, Lds(160 << 10))),
            ("gfx950", Allocation { lds_bytes: 65536, ..SMALL }, (2, Lds(65536))),
            ("gfx1030", Allocation { wave_size: 32, ..SMALL }, (32, Waves)),
            ("gfx1030", Allocation { wave_size: 32, vgprs: 200, ..SMALL }, (8, Vgprs(200))),
            ("gfx1100", Allocation { wave_size: 32, vgprs: 200, ..SMALL }, (14, Vgprs(200))),
        ] {
            assert_eq!(residency(name, own), expected, "{name} {own:?}");
        }
    }

    #[test]
    fn a_workgroup_processor_is_two_compute_units_for_one_workgroup() {
        let wide = Allocation { wave_size: 32, waves: 32, lds_bytes: 65536, ..SMALL };
        let both = Allocation { workgroup_processor_mode: true, ..wide };
        let count = |own| target("gfx1100").residency(&own).map(|own| own.workgroups);
        assert_eq!((count(wide), count(both)), (Some(96), Some(96)));
        // One unit has too few waves for it; the two have.
        let wider = Allocation { vgprs: 128, ..wide };
        let both = Allocation { workgroup_processor_mode: true, ..wider };
        assert_eq!((count(wider), count(both)), (Some(0), Some(48)));
    }

    #[test]
    fn a_processor_that_is_not_modelled_has_no_residency() {
        assert_eq!(target("gfx1010").residency(&SMALL), None);
    }
}
