//! GPU targets: processors with their register files, allocation rules and features.

use crate::Vgpr;
use flipwave_arch::Float8;
use std::fmt;
use std::str::FromStr;

/// A generation: processors that share encodings and allocation rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Generation {
    Gfx6,
    Gfx7,
    Gfx8,
    Gfx9,
    /// gfx90a: gfx9 with a unified vector register file and matrix units.
    Gfx90a,
    /// gfx940, gfx941, gfx942, gfx950.
    Gfx940,
    Gfx10,
    Gfx11,
    Gfx12,
    /// gfx1250 and gfx1251.
    Gfx125,
}

impl Generation {
    /// The granule of the VGPR count in kernel descriptors for waves of `wave_size` lanes
    /// (AMDGPUUsage, `GRANULATED_WORKITEM_VGPR_COUNT`).
    pub fn vgpr_granule(self, wave_size: u8) -> u8 {
        match self {
            Generation::Gfx90a | Generation::Gfx940 => 8,
            Generation::Gfx125 => 16,
            _ if self >= Generation::Gfx10 && wave_size == 32 => 8,
            _ => 4,
        }
    }

    /// The granule of the SGPR count in kernel descriptors, which includes VCC and other special registers;
    /// `None` from gfx10 on, where every wave has the maximum number (AMDGPUUsage,
    /// `GRANULATED_WAVEFRONT_SGPR_COUNT`; gfx9 stores twice the number of granules).
    pub fn sgpr_granule(self) -> Option<u8> {
        match self {
            Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 => Some(8),
            _ if self < Generation::Gfx10 => Some(16),
            _ => None,
        }
    }
}

/// The register file of the accumulation registers (AccVGPRs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccVgprs {
    /// The target has no AccVGPRs.
    None,
    /// AccVGPRs are in a separate file (gfx908).
    Separate,
    /// AccVGPRs follow the architectural VGPRs in the same file.
    Unified,
}

/// The location of the base of private memory (AMDGPUUsage, "Flat Scratch").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlatScratch {
    /// A pair of scalar registers that the program initializes.
    Registers,
    /// Two hardware registers that the program initializes (gfx10).
    HardwareRegisters,
    /// Initialized by hardware; programs do not write it.
    Architected,
}

/// The setting of an optional feature in a target name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Code runs with the feature on or off.
    #[default]
    Any,
    /// `+`: code requires the feature to be on.
    On,
    /// `-`: code requires the feature to be off.
    Off,
}

/// A processor with its feature settings, such as `gfx90a:sramecc+:xnack-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    processor: &'static Processor,
    /// Page-fault replay.
    pub xnack: Setting,
    /// Error-corrected SRAM.
    pub sramecc: Setting,
}

/// A row of the processor table.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Processor {
    name: &'static str,
    generation: Generation,
    /// `EF_AMDGPU_MACH` in the ELF header's flags (AMDGPUUsage, "AMDGPU ELF Header").
    elf_machine: u8,
    /// Number of compute units of the modelled product.
    compute_units: Option<u32>,
}

const fn processor(name: &'static str, generation: Generation, elf_machine: u8) -> Processor {
    Processor { name, generation, elf_machine, compute_units: None }
}

/// A modelled processor with the number of compute units of its product.
const fn product(
    name: &'static str,
    generation: Generation,
    elf_machine: u8,
    compute_units: u32,
) -> Processor {
    Processor { name, generation, elf_machine, compute_units: Some(compute_units) }
}

/// The processor table. According to AMD's specifications, the products are the Instinct MI50, MI100, MI210,
/// MI300A (gfx940), MI300X (gfx942) and MI355X (gfx950), and the Radeon RX 6900 XT, 6700 XT, 6600 XT, Van
/// Gogh, RX 6500 XT, 680M, 610M, RX 7900 XTX, 7800 XT, 7600, 780M, 890M, 8060S, 860M, 840M, RX 9060 XT and
/// 9070 XT. Nothing is published about products with gfx1250 and gfx1251; the table gives them as many
/// compute units as gfx950.
static PROCESSORS: [Processor; 55] = [
    processor("gfx600", Generation::Gfx6, 0x20),
    processor("gfx601", Generation::Gfx6, 0x21),
    processor("gfx602", Generation::Gfx6, 0x3a),
    processor("gfx700", Generation::Gfx7, 0x22),
    processor("gfx701", Generation::Gfx7, 0x23),
    processor("gfx702", Generation::Gfx7, 0x24),
    processor("gfx703", Generation::Gfx7, 0x25),
    processor("gfx704", Generation::Gfx7, 0x26),
    processor("gfx705", Generation::Gfx7, 0x3b),
    processor("gfx801", Generation::Gfx8, 0x28),
    processor("gfx802", Generation::Gfx8, 0x29),
    processor("gfx803", Generation::Gfx8, 0x2a),
    processor("gfx805", Generation::Gfx8, 0x3c),
    processor("gfx810", Generation::Gfx8, 0x2b),
    processor("gfx900", Generation::Gfx9, 0x2c),
    processor("gfx902", Generation::Gfx9, 0x2d),
    processor("gfx904", Generation::Gfx9, 0x2e),
    product("gfx906", Generation::Gfx9, 0x2f, 60),
    product("gfx908", Generation::Gfx9, 0x30, 120),
    processor("gfx909", Generation::Gfx9, 0x31),
    processor("gfx90c", Generation::Gfx9, 0x32),
    product("gfx90a", Generation::Gfx90a, 0x3f, 104),
    product("gfx940", Generation::Gfx940, 0x40, 228),
    processor("gfx941", Generation::Gfx940, 0x4b),
    product("gfx942", Generation::Gfx940, 0x4c, 304),
    product("gfx950", Generation::Gfx940, 0x4f, 256),
    processor("gfx9-generic", Generation::Gfx9, 0x51),
    processor("gfx9-4-generic", Generation::Gfx940, 0x5f),
    processor("gfx1010", Generation::Gfx10, 0x33),
    processor("gfx1011", Generation::Gfx10, 0x34),
    processor("gfx1012", Generation::Gfx10, 0x35),
    processor("gfx1013", Generation::Gfx10, 0x42),
    product("gfx1030", Generation::Gfx10, 0x36, 80),
    product("gfx1031", Generation::Gfx10, 0x37, 40),
    product("gfx1032", Generation::Gfx10, 0x38, 32),
    product("gfx1033", Generation::Gfx10, 0x39, 8),
    product("gfx1034", Generation::Gfx10, 0x3e, 16),
    product("gfx1035", Generation::Gfx10, 0x3d, 12),
    product("gfx1036", Generation::Gfx10, 0x45, 2),
    processor("gfx10-1-generic", Generation::Gfx10, 0x52),
    processor("gfx10-3-generic", Generation::Gfx10, 0x53),
    product("gfx1100", Generation::Gfx11, 0x41, 96),
    product("gfx1101", Generation::Gfx11, 0x46, 60),
    product("gfx1102", Generation::Gfx11, 0x47, 32),
    product("gfx1103", Generation::Gfx11, 0x44, 12),
    product("gfx1150", Generation::Gfx11, 0x43, 16),
    product("gfx1151", Generation::Gfx11, 0x4a, 40),
    product("gfx1152", Generation::Gfx11, 0x55, 8),
    product("gfx1153", Generation::Gfx11, 0x58, 4),
    processor("gfx11-generic", Generation::Gfx11, 0x54),
    product("gfx1200", Generation::Gfx12, 0x48, 32),
    product("gfx1201", Generation::Gfx12, 0x4e, 64),
    processor("gfx12-generic", Generation::Gfx12, 0x59),
    product("gfx1250", Generation::Gfx125, 0x49, 256),
    product("gfx1251", Generation::Gfx125, 0x5a, 256),
];

/// Generic targets with the processors that they cover (AMDGPUUsage, "Generic Processors"). The first
/// version of each target already covers all of them, so the version of the code need not be checked
/// ("Generic Processor Versioning").
static GENERIC: [(&str, &[&str]); 6] = [
    ("gfx9-generic", &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    ("gfx9-4-generic", &["gfx942", "gfx950"]),
    ("gfx10-1-generic", &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    (
        "gfx10-3-generic",
        &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    ),
    (
        "gfx11-generic",
        &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

impl Target {
    /// The processor's name, without feature settings.
    pub fn processor(&self) -> &'static str {
        self.processor.name
    }

    /// The names of the modelled processors: those with a known number of compute units.
    pub fn modelled() -> impl Iterator<Item = &'static str> {
        PROCESSORS.iter().filter(|row| row.compute_units.is_some()).map(|row| row.name)
    }

    /// The number of compute units of the modelled product; `None` for processors that are not modelled.
    pub fn compute_units(&self) -> Option<u32> {
        self.processor.compute_units
    }

    /// The processor's generation.
    pub fn generation(&self) -> Generation {
        self.processor.generation
    }

    /// The default number of lanes per wave; a kernel descriptor can select another. LLVM compiles for
    /// wave32 from gfx10 on (AMDGPUUsage, "Target Features", wavefrontsize64).
    pub fn default_wave_size(&self) -> u8 {
        self.wave_sizes()[0]
    }

    /// The supported wave sizes, with the default first.
    pub fn wave_sizes(&self) -> &'static [u8] {
        match self.generation() {
            Generation::Gfx125 => &[32],
            generation if generation >= Generation::Gfx10 => &[32, 64],
            _ => &[64],
        }
    }

    /// The file of the accumulation registers (AMDGPUUsage, "Memory Model gfx90a" and the
    /// MI100 and MI200 ISA documents).
    pub fn acc_vgprs(&self) -> AccVgprs {
        match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => AccVgprs::Unified,
            _ if self.processor() == "gfx908" => AccVgprs::Separate,
            _ => AccVgprs::None,
        }
    }

    /// The maximum number of VGPRs per wave, including AccVGPRs in a unified file.
    pub fn max_vgprs(&self) -> u16 {
        match self.generation() {
            Generation::Gfx125 => Vgpr::COUNT,
            _ if self.acc_vgprs() == AccVgprs::Unified => 512,
            _ => 256,
        }
    }

    /// See [`Generation::vgpr_granule`].
    pub fn vgpr_granule(&self, wave_size: u8) -> u8 {
        self.generation().vgpr_granule(wave_size)
    }

    /// The number of SGPRs that instructions can name, without VCC and other special registers: up to
    /// s101 on gfx8 and gfx9, s103 before, s105 after (the ISA documents, "Scalar operands").
    pub fn max_sgprs(&self) -> u8 {
        match self.generation() {
            Generation::Gfx6 | Generation::Gfx7 => 104,
            generation if generation < Generation::Gfx10 => 102,
            _ => 106,
        }
    }

    /// See [`Generation::sgpr_granule`].
    pub fn sgpr_granule(&self) -> Option<u8> {
        self.generation().sgpr_granule()
    }

    /// The maximum LDS size of a workgroup in bytes (LLVM's feature AddressableLocalMemorySize).
    pub fn lds_bytes(&self) -> u32 {
        match self.generation() {
            Generation::Gfx6 => 32 << 10,
            Generation::Gfx125 => 320 << 10,
            _ if self.processor() == "gfx950" => 160 << 10,
            _ => 64 << 10,
        }
    }

    /// The encoding of `fp8` and `bf8`, if the target has them.
    pub fn float8(&self) -> Float8 {
        match self.generation() {
            Generation::Gfx940 if self.processor() != "gfx950" => Float8::Fnuz,
            _ => Float8::Ocp,
        }
    }

    /// Returns `true` if the initial TTMP registers hold the workgroup id, x in TTMP9 and y and z in the
    /// halves of TTMP7, and the wave id in bits 29:25 of TTMP8 (LLVM, `FeatureArchitectedSGPRs`,
    /// `lowerWorkGroupId` and `lowerWaveID`).
    pub fn has_architected_sgprs(&self) -> bool {
        self.generation() >= Generation::Gfx12
    }

    /// Returns `true` if v0 initially holds all three work-item ids, ten bits each, instead of v0 to v2
    /// (AMDGPUUsage, "Initial Kernel Execution State").
    pub fn packs_work_item_ids(&self) -> bool {
        matches!(self.generation(), Generation::Gfx90a | Generation::Gfx940)
            || self.generation() >= Generation::Gfx11
    }

    /// The location of FLAT_SCRATCH (AMDGPUUsage, "Flat Scratch").
    pub fn flat_scratch(&self) -> FlatScratch {
        match self.generation() {
            Generation::Gfx10 => FlatScratch::HardwareRegisters,
            generation if generation >= Generation::Gfx940 => FlatScratch::Architected,
            _ => FlatScratch::Registers,
        }
    }

    /// Returns `true` if flat addresses of private memory are valid in every lane of every wave. They
    /// consist of the lane id in bits 56:52, the base in `src_flat_scratch_base` and the offset (LLVM,
    /// `FeatureGloballyAddressableScratch`, and its lowering of `addrspacecast`).
    pub fn has_globally_addressable_scratch(&self) -> bool {
        self.generation() >= Generation::Gfx125
    }

    /// Returns `true` if `s_setreg_imm32_b32` to any field of MODE also sets the VGPR MSBs, from bits 19:12
    /// of its literal (LLVM's feature SetregVGPRMSBFixup and `handleSetregMode`: gfx1250, not gfx1251).
    pub fn setreg_sets_vgpr_msb(&self) -> bool {
        self.processor() == "gfx1250"
    }

    /// The number of lanes within which `ds_permute_b32` and `ds_bpermute_b32` exchange data (RDNA 3
    /// ISA, "DS_BPERMUTE_B32"; LLVM's `supportsWaveWideBPermute`).
    pub fn permute_lanes(&self, wave_size: u8) -> u8 {
        match self.generation() {
            Generation::Gfx10 | Generation::Gfx11 => 32,
            _ => wave_size,
        }
    }

    /// Returns `true` if branches with an offset of 63 words fail (LLVM's feature Offset3fBug: gfx1010 to
    /// gfx1013).
    pub fn has_offset_3f_bug(&self) -> bool {
        self.is_gfx10_1()
    }

    /// Returns `true` for gfx1010 to gfx1013 and their generic target.
    pub(crate) fn is_gfx10_1(&self) -> bool {
        self.processor().starts_with("gfx101") || self.processor() == "gfx10-1-generic"
    }

    /// Returns `true` if code can be compiled with XNACK (page-fault replay) on or off (AMDGPUUsage,
    /// "AMDGPU Processors").
    pub fn supports_xnack(&self) -> bool {
        match self.generation() {
            Generation::Gfx8 => matches!(self.processor(), "gfx801" | "gfx810"),
            Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => true,
            Generation::Gfx10 => self.is_gfx10_1(),
            Generation::Gfx125 => true,
            _ => false,
        }
    }

    /// Returns `true` if code can be compiled with SRAM ECC on or off (AMDGPUUsage, "AMDGPU
    /// Processors").
    pub fn supports_sramecc(&self) -> bool {
        matches!(self.generation(), Generation::Gfx90a | Generation::Gfx940 | Generation::Gfx125)
            || matches!(self.processor(), "gfx906" | "gfx908")
    }

    /// Returns `true` if loads of half a register clear the other half instead of preserving it: SRAM with
    /// ECC is written in whole words (LLVM's GCNSubtarget.h, `d16PreservesUnusedBits`). Libraries for such
    /// processors rely on this; code for both settings must not.
    pub fn d16_loads_zero_unused_bits(&self) -> bool {
        self.supports_sramecc() && self.sramecc != Setting::Off
    }

    /// Returns `true` for a generic target, which covers several processors.
    pub fn is_generic(&self) -> bool {
        GENERIC.iter().any(|(generic, _)| *generic == self.processor())
    }

    /// Returns `true` if code for target `code` runs on this processor: `code` has the same processor, or is
    /// a generic target that covers it. Feature settings are ignored.
    pub fn runs_code_for(&self, code: &Target) -> bool {
        let covers = |(generic, processors): &(&str, &[&str])| {
            *generic == code.processor() && processors.contains(&self.processor())
        };
        self.processor() == code.processor() || GENERIC.iter().any(covers)
    }

    /// The target with `EF_AMDGPU_MACH` value `machine`.
    pub fn from_elf_machine(machine: u8) -> Option<Target> {
        PROCESSORS.iter().find(|row| row.elf_machine == machine).map(Target::new)
    }

    fn new(processor: &'static Processor) -> Target {
        Target { processor, xnack: Setting::Any, sramecc: Setting::Any }
    }

    /// The names of all processors and generic targets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROCESSORS.iter().map(|row| row.name)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.processor.name)?;
        for (name, setting) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match setting {
                Setting::Any => {}
                Setting::On => write!(f, ":{name}+")?,
                Setting::Off => write!(f, ":{name}-")?,
            }
        }
        Ok(())
    }
}

/// Error returned when parsing an unknown target name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a known AMDGPU target; expected a name like gfx90a or gfx90a:sramecc+:xnack-"
)]
pub struct UnknownTarget(pub String);

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Target, UnknownTarget> {
        let unknown = || UnknownTarget(name.to_owned());
        let mut parts = name.split(':');
        let processor = parts.next().unwrap_or_default();
        let row = PROCESSORS.iter().find(|row| row.name == processor).ok_or_else(unknown)?;
        let mut target = Target::new(row);
        for feature in parts {
            match feature {
                "xnack+" => target.xnack = Setting::On,
                "xnack-" => target.xnack = Setting::Off,
                "sramecc+" => target.sramecc = Setting::On,
                "sramecc-" => target.sramecc = Setting::Off,
                _ => return Err(unknown()),
            }
        }
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_elf_machines_round_trip() {
        let machines: HashSet<u8> = PROCESSORS.iter().map(|row| row.elf_machine).collect();
        assert_eq!(machines.len(), PROCESSORS.len());
        for name in Target::names() {
            let target: Target = name.parse().expect(name);
            assert_eq!(target.to_string(), name);
            assert_eq!(Target::from_elf_machine(target.processor.elf_machine), Some(target));
        }
        assert_eq!(Target::from_elf_machine(0), None);
    }

    #[test]
    fn code_runs_on_its_processor_and_on_processors_covered_by_its_generic_target() {
        let runs = |device: &str, code: &str| {
            let [device, code]: [Target; 2] = [device, code].map(|name| name.parse().expect(name));
            device.runs_code_for(&code)
        };
        assert!(runs("gfx90a:xnack+", "gfx90a"));
        assert!(!runs("gfx90a", "gfx908"));
        assert!(runs("gfx1151", "gfx11-generic"));
        assert!(!runs("gfx1200", "gfx11-generic"));
        assert!(!runs("gfx90a", "gfx9-generic"), "gfx90a has no generic target");
        for (generic, processors) in GENERIC {
            let generic: Target = generic.parse().expect(generic);
            for processor in processors {
                let covered: Target = processor.parse().expect(processor);
                assert!(covered.runs_code_for(&generic));
                assert_eq!(covered.generation(), generic.generation(), "{processor}");
            }
        }
    }

    #[test]
    fn feature_settings_round_trip() {
        let target: Target = "gfx90a:sramecc+:xnack-".parse().expect("a target");
        assert_eq!((target.sramecc, target.xnack), (Setting::On, Setting::Off));
        assert_eq!(target.to_string(), "gfx90a:sramecc+:xnack-");
        assert!("gfx90a:xnack".parse::<Target>().is_err());
        assert!("gfx9".parse::<Target>().is_err());
    }
}
