//! Number of workgroups of a kernel that are resident on a device at once, from the resources of its compute
//! units and the kernel's allocation.
//!
//! Sources: LLVM's `AMDGPUBaseInfo.cpp` (`getEUsPerCU`, `getMaxWavesPerEU`, `getMaxWorkGroupsPerCU`,
//! `getTotalNumVGPRs`, `getVGPRAllocGranule`, `getTotalNumSGPRs`, `getLocalMemorySize`), which agrees
//! with "Compute unit" and "LDS" in the ISA documents; AMDGPUUsage, `GRANULATED_LDS_SIZE`.

use crate::{Generation, Target};
use std::fmt;

/// SGPRs of a SIMD, shared by its waves, on gfx8 and gfx9. From gfx10 on every wave has the maximum.
const SGPRS_PER_SIMD: u32 = 800;

/// The LDS of a compute unit.
struct Lds {
    /// Bytes shared by the workgroups of the unit.
    bytes: u32,
    /// Allocation granule in bytes.
    granule: u32,
}

/// LDS of most targets (gfx7 and later).
const LDS: Lds = Lds { bytes: 64 << 10, granule: 512 };
/// LDS of gfx950 (CDNA 4 ISA, "LDS").
const GFX950_LDS: Lds = Lds { bytes: 160 << 10, granule: 1280 };
/// LDS of gfx1250 (AMDGPUUsage, `GRANULATED_LDS_SIZE`; LLVM's feature
/// AddressableLocalMemorySize327680).
const GFX125_LDS: Lds = Lds { bytes: 320 << 10, granule: 2048 };
/// Maximum number of workgroups with several waves per compute unit. Workgroups of one wave need no barrier
/// and are not limited.
const WORKGROUPS_PER_UNIT: u32 = 16;

/// The resources that a workgroup occupies on a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Number of waves.
    pub waves: u32,
    /// Lanes per wave.
    pub wave_size: u8,
    /// VGPRs per wave, including AccVGPRs in a unified file.
    pub vgprs: u16,
    /// SGPRs per wave, including VCC and other special registers.
    pub sgprs: u16,
    /// Bytes of LDS.
    pub lds_bytes: u32,
    /// The waves may run on both compute units of a workgroup processor (gfx10 and later).
    pub workgroup_processor_mode: bool,
}

/// The waves of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkgroupShape {
    /// Number of waves.
    pub waves: u32,
    /// Lanes per wave.
    pub wave_size: u8,
    /// The waves may run on both compute units of a workgroup processor (gfx10 and later).
    pub workgroup_processor_mode: bool,
}

/// The resource that limits the number of resident workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidencyLimit {
    /// The maximum number of waves per SIMD.
    Waves,
    /// The maximum number of workgroups with several waves per compute unit.
    Workgroups,
    /// The VGPRs that each wave needs.
    Vgprs(u16),
    /// The SGPRs that each wave needs.
    Sgprs(u16),
    /// The bytes of LDS that each workgroup needs.
    Lds(u32),
    /// The bytes of private memory that each work-item needs.
    PrivateMemory(u32),
}

impl fmt::Display for ResidencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResidencyLimit::Waves => f.write_str("the maximum number of waves per SIMD"),
            ResidencyLimit::Workgroups => {
                f.write_str("the maximum number of workgroups per compute unit")
            }
            ResidencyLimit::Vgprs(count) => write!(f, "{count} VGPRs per wave"),
            ResidencyLimit::Sgprs(count) => write!(f, "{count} SGPRs per wave"),
            ResidencyLimit::Lds(bytes) => write!(f, "{bytes} bytes of LDS per workgroup"),
            ResidencyLimit::PrivateMemory(bytes) => {
                write!(f, "{bytes} bytes of private memory per work-item")
            }
        }
    }
}

/// The maximum number of resident workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residency {
    /// Workgroups on the whole device; at least 1 if a compute unit can satisfy the allocation.
    pub workgroups: u32,
    /// The limiting resource.
    pub limit: ResidencyLimit,
}

impl Target {
    /// SIMDs per compute unit.
    pub fn simds_per_unit(&self) -> u32 {
        match self.generation() {
            // A gfx1250 compute unit corresponds to a workgroup processor of older targets and has four
            // SIMDs (LLVM, `getEUsPerCU`).
            Generation::Gfx125 => 4,
            generation if generation >= Generation::Gfx10 => 2,
            _ => 4,
        }
    }

    /// Maximum number of waves per SIMD.
    pub fn waves_per_simd(&self) -> u32 {
        match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => 8,
            generation if generation < Generation::Gfx10 => 10,
            _ if self.is_gfx10_1() => 20,
            _ => 16,
        }
    }

    /// VGPRs of a SIMD, shared by its waves of `wave_size` lanes; includes AccVGPRs in a unified file.
    pub fn vgprs_per_simd(&self, wave_size: u8) -> u32 {
        let wave64 = match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => 512,
            generation if generation < Generation::Gfx10 => 256,
            _ if self.has_large_vgpr_file() => 768,
            _ => 512,
        };
        vgprs_for_wave_size(wave64, wave_size)
    }

    /// The granule in which a SIMD allocates VGPRs to waves. It can differ from that of the
    /// [descriptor](Target::vgpr_granule).
    fn vgpr_allocation_granule(&self, wave_size: u8) -> u32 {
        let wave64 = match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => 8,
            generation if generation < Generation::Gfx10 => 4,
            _ if self.is_gfx10_1() => 4,
            _ if self.has_large_vgpr_file() => 12,
            _ => 8,
        };
        vgprs_for_wave_size(wave64, wave_size)
    }

    /// Returns `true` if a SIMD has 1.5 times as many VGPRs as usual (LLVM's feature 1_5xVGPRs).
    fn has_large_vgpr_file(&self) -> bool {
        matches!(self.processor(), "gfx1100" | "gfx1101" | "gfx1151" | "gfx1200" | "gfx1201")
    }

    /// The maximum number of VGPRs per wave, including AccVGPRs, with which all waves of a workgroup fit
    /// on the SIMDs of one compute unit, or of one workgroup processor in workgroup processor mode.
    pub fn max_vgprs_of_workgroup(&self, workgroup: WorkgroupShape) -> u16 {
        let WorkgroupShape { waves, wave_size, workgroup_processor_mode } = workgroup;
        let simds = self.simds_per_unit() * self.units_per_workgroup(workgroup_processor_mode);
        let granule = self.vgpr_allocation_granule(wave_size);
        let share =
            self.vgprs_per_simd(wave_size) / waves.div_ceil(simds).max(1) / granule * granule;
        share.min(self.max_vgprs().into()) as u16
    }

    /// Number of compute units that the waves of a workgroup may run on.
    fn units_per_workgroup(&self, workgroup_processor_mode: bool) -> u32 {
        let has_mode = (Generation::Gfx10..Generation::Gfx125).contains(&self.generation());
        if has_mode && workgroup_processor_mode { 2 } else { 1 }
    }

    /// The number of workgroups with an allocation that are resident on the device at once; `None` for
    /// processors that are not modelled.
    pub fn residency(&self, allocation: &Allocation) -> Option<Residency> {
        // A group of compute units that a workgroup may run on: one unit or a workgroup processor.
        let group_size = self.units_per_workgroup(allocation.workgroup_processor_mode);
        let groups = self.compute_units()? / group_size;
        let waves = allocation.waves.max(1);
        let workgroups_per_group =
            |waves_per_simd: u32| waves_per_simd * self.simds_per_unit() * group_size / waves;
        let vgprs = u32::from(allocation.vgprs.max(1))
            .next_multiple_of(self.vgpr_allocation_granule(allocation.wave_size));
        let mut limits = vec![
            (workgroups_per_group(self.waves_per_simd()), ResidencyLimit::Waves),
            (
                workgroups_per_group(self.vgprs_per_simd(allocation.wave_size) / vgprs),
                ResidencyLimit::Vgprs(allocation.vgprs),
            ),
        ];
        if self.generation() < Generation::Gfx10 {
            // The descriptor already gives a multiple of the SGPR granule.
            let sgprs = u32::from(allocation.sgprs.max(1));
            let workgroups = workgroups_per_group(SGPRS_PER_SIMD / sgprs);
            limits.push((workgroups, ResidencyLimit::Sgprs(allocation.sgprs)));
        }
        if waves > 1 {
            limits.push((WORKGROUPS_PER_UNIT * group_size, ResidencyLimit::Workgroups));
        }
        if allocation.lds_bytes > 0 {
            let Lds { bytes, granule } = match self.generation() {
                Generation::Gfx125 => GFX125_LDS,
                _ if self.processor() == "gfx950" => GFX950_LDS,
                _ => LDS,
            };
            let allocated = allocation.lds_bytes.next_multiple_of(granule);
            let limit = ResidencyLimit::Lds(allocation.lds_bytes);
            limits.push((bytes * group_size / allocated, limit));
        }
        let (per_group, limit) = limits.into_iter().min_by_key(|(count, _)| *count)?;
        Some(Residency { workgroups: per_group * groups, limit })
    }
}

/// Converts a number of wave64 VGPRs to VGPRs of `wave_size` lanes: wave32 VGPRs have half the bits, so
/// there are twice as many.
fn vgprs_for_wave_size(wave64: u32, wave_size: u8) -> u32 {
    if wave_size == 32 { 2 * wave64 } else { wave64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        name.parse().expect("a target")
    }

    #[test]
    fn waves_of_a_workgroup_share_the_vgprs() {
        let max_vgprs = |name: &str, waves, wave_size, workgroup_processor_mode| {
            let shape = WorkgroupShape { waves, wave_size, workgroup_processor_mode };
            target(name).max_vgprs_of_workgroup(shape)
        };
        for (name, waves, wave_size, expected) in [
            ("gfx90a", 16, 64, 128),
            ("gfx90a", 4, 64, 512),
            ("gfx906", 16, 64, 64),
            ("gfx1030", 32, 32, 128),
            ("gfx1100", 32, 32, 192),
            ("gfx1100", 1, 32, 256),
            // Five waves per SIMD: 1024 / 5 is 204, rounded down to the granule of 16.
            ("gfx1030", 20, 32, 192),
        ] {
            assert_eq!(max_vgprs(name, waves, wave_size, true), expected, "{name}");
        }
        assert_eq!(max_vgprs("gfx1030", 32, 32, false), 64);
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
        assert_eq!(workgroups % units, 0, "{name}: compute units have equal numbers of workgroups");
        (workgroups / units, limit)
    }

    /// The expectations are computed by hand from the ISA documents and AMD's occupancy tables.
    #[test]
    fn scarcest_resource_limits_residency() {
        use ResidencyLimit::{Lds, Sgprs, Vgprs, Waves, Workgroups};
        for (name, allocation, expected) in [
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
            assert_eq!(residency(name, allocation), expected, "{name} {allocation:?}");
        }
    }

    #[test]
    fn workgroup_processor_mode_uses_two_compute_units() {
        let one_unit = Allocation { wave_size: 32, waves: 32, lds_bytes: 65536, ..SMALL };
        let two_units = Allocation { workgroup_processor_mode: true, ..one_unit };
        let workgroups = |allocation| {
            target("gfx1100").residency(&allocation).map(|residency| residency.workgroups)
        };
        assert_eq!((workgroups(one_unit), workgroups(two_units)), (Some(96), Some(96)));
        // With 128 VGPRs per wave, the workgroup fits on two compute units but not on one.
        let one_unit = Allocation { vgprs: 128, ..one_unit };
        let two_units = Allocation { workgroup_processor_mode: true, ..one_unit };
        assert_eq!((workgroups(one_unit), workgroups(two_units)), (Some(0), Some(48)));
    }

    #[test]
    fn processor_without_model_has_no_residency() {
        assert_eq!(target("gfx1010").residency(&SMALL), None);
    }
}
