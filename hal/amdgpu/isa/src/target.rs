//! GPU targets: which processor, and what of its register files and allocation the code object
//! must state.

use crate::Vgpr;
use std::fmt;
use std::str::FromStr;

/// Processors that share encodings and allocation rules.
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
    /// The unit in which a kernel descriptor counts the VGPRs of waves of this many lanes
    /// (AMDGPUUsage, `GRANULATED_WORKITEM_VGPR_COUNT`).
    pub fn vgpr_granule(self, wave_size: u8) -> u8 {
        match self {
            Generation::Gfx90a | Generation::Gfx940 => 8,
            Generation::Gfx125 => 16,
            _ if self >= Generation::Gfx10 && wave_size == 32 => 8,
            _ => 4,
        }
    }

    /// The unit in which a kernel descriptor counts SGPRs, VCC and the like included; `None`
    /// from gfx10 on, where every wave has them all (AMDGPUUsage,
    /// `GRANULATED_WAVEFRONT_SGPR_COUNT`; gfx9 stores twice the number of these units).
    pub fn sgpr_granule(self) -> Option<u8> {
        match self {
            Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 => Some(8),
            _ if self < Generation::Gfx10 => Some(16),
            _ => None,
        }
    }
}

/// Where accumulation registers live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccVgprs {
    /// There are none.
    None,
    /// In a file of their own (gfx908).
    Separate,
    /// After the architectural VGPRs of the same file.
    Unified,
}

/// Where the base of private memory is kept (AMDGPUUsage, "Flat Scratch").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlatScratch {
    /// In a pair of scalar registers that the program sets up.
    Registers,
    /// In two hardware registers that the program sets up (gfx10).
    HardwareRegisters,
    /// The hardware sets it up; programs do not write it.
    Architected,
}

/// What the 8-bit floating-point operands `fp8` and `bf8` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float8 {
    /// E4M3 with a bias of 8 and E5M2 with one of 16, without infinities, the NaN in the place of
    /// minus zero (CDNA 3 ISA, "BF8 / FP8").
    Fnuz,
    /// E4M3 with a bias of 7, without infinities, and E5M2 as IEEE 754 would have it (OCP 8-bit
    /// Floating Point Specification; CDNA 4 ISA, "Small Float Data Formats").
    Ocp,
}

/// State of an optional feature in a target name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Code runs with the feature on or off.
    #[default]
    Any,
    /// `+`: only with the feature on.
    On,
    /// `-`: only with the feature off.
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
    /// Compute units of the product that stands for it.
    compute_units: Option<u32>,
}

const fn processor(name: &'static str, generation: Generation, elf_machine: u8) -> Processor {
    Processor { name, generation, elf_machine, compute_units: None }
}

/// A processor that is modelled, and how many compute units its product has.
const fn product(
    name: &'static str,
    generation: Generation,
    elf_machine: u8,
    compute_units: u32,
) -> Processor {
    Processor { name, generation, elf_machine, compute_units: Some(compute_units) }
}

/// The products are, by AMD's specifications, the Instinct MI50, MI100, MI210, MI300A (gfx940), MI300X
/// (gfx942) and MI355X (gfx950), and the Radeon RX 6900 XT, 6700 XT, 6600 XT, Van Gogh, RX 6500 XT, 680M,
/// 610M, RX 7900 XTX, 7800 XT, 7600, 780M, 890M, 8060S, 860M, 840M, RX 9060 XT and 9070 XT. Of products of
/// gfx1250 and gfx1251 nothing is published: they have as many units here as gfx950.
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

/// Generic targets, and the processors that each covers (AMDGPUUsage, "Generic Processors"). All are
/// covered since the first version of the target, so that its code runs there whatever its version
/// is ("Generic Processor Versioning").
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

    /// Processors that are modelled: those of which a product's compute units are known.
    pub fn modelled() -> impl Iterator<Item = &'static str> {
        PROCESSORS.iter().filter(|own| own.compute_units.is_some()).map(|own| own.name)
    }

    /// Compute units of the product that stands for the processor; nothing for processors that are
    /// not modelled.
    pub fn compute_units(&self) -> Option<u32> {
        self.processor.compute_units
    }

    /// The processor's generation.
    pub fn generation(&self) -> Generation {
        self.processor.generation
    }

    /// Lanes of a wave, unless a kernel's descriptor says otherwise. LLVM compiles for 32 lanes
    /// from gfx10 on (AMDGPUUsage, "Target Features", wavefrontsize64).
    pub fn default_wave_size(&self) -> u8 {
        self.wave_sizes()[0]
    }

    /// The sizes of waves there are, the default first.
    pub fn wave_sizes(&self) -> &'static [u8] {
        match self.generation() {
            Generation::Gfx125 => &[32],
            generation if generation >= Generation::Gfx10 => &[32, 64],
            _ => &[64],
        }
    }

    /// The accumulation registers of the target (AMDGPUUsage, "Memory Model gfx90a" and the
    /// MI100 and MI200 ISA documents).
    pub fn acc_vgprs(&self) -> AccVgprs {
        match self.generation() {
            Generation::Gfx90a | Generation::Gfx940 => AccVgprs::Unified,
            _ if self.processor() == "gfx908" => AccVgprs::Separate,
            _ => AccVgprs::None,
        }
    }

    /// VGPRs that a wave can have: architectural ones, and AccVGPRs where the file is unified.
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

    /// SGPRs that an instruction can name, without VCC and the like: up to s101 on gfx8 and
    /// gfx9, s103 before, s105 after (the ISA documents, "Scalar operands").
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

    /// Bytes of LDS that a workgroup can have (LLVM's feature AddressableLocalMemorySize).
    pub fn lds_bytes(&self) -> u32 {
        match self.generation() {
            Generation::Gfx6 => 32 << 10,
            Generation::Gfx125 => 320 << 10,
            _ if self.processor() == "gfx950" => 160 << 10,
            _ => 64 << 10,
        }
    }

    /// What `fp8` and `bf8` are, where the target has them.
    pub fn float8(&self) -> Float8 {
        match self.generation() {
            Generation::Gfx940 if self.processor() != "gfx950" => Float8::Fnuz,
            _ => Float8::Ocp,
        }
    }

    /// Whether trap registers have the position of a wave at its start: TTMP9 the workgroup's in x,
    /// TTMP7 those in y and z, in its halves, and TTMP8 the wave's number in bits 29:25 (LLVM,
    /// `FeatureArchitectedSGPRs`, `lowerWorkGroupId` and `lowerWaveID`).
    pub fn has_position_in_trap_registers(&self) -> bool {
        self.generation() >= Generation::Gfx12
    }

    /// Whether v0 holds all three work-item ids at the start, ten bits each, instead of v0 to v2
    /// (AMDGPUUsage, "Initial Kernel Execution State").
    pub fn packs_work_item_ids(&self) -> bool {
        matches!(self.generation(), Generation::Gfx90a | Generation::Gfx940)
            || self.generation() >= Generation::Gfx11
    }

    /// Where FLAT_SCRATCH is (AMDGPUUsage, "Flat Scratch").
    pub fn flat_scratch(&self) -> FlatScratch {
        match self.generation() {
            Generation::Gfx10 => FlatScratch::HardwareRegisters,
            generation if generation >= Generation::Gfx940 => FlatScratch::Architected,
            _ => FlatScratch::Registers,
        }
    }

    /// Whether private memory has flat addresses that all lanes of all waves share: the lane's number in
    /// bits 56:52, above the base in `src_flat_scratch_base` and the offset (LLVM,
    /// `FeatureGloballyAddressableScratch`, and its lowering of `addrspacecast`).
    pub fn has_global_scratch(&self) -> bool {
        self.generation() >= Generation::Gfx125
    }

    /// Whether `s_setreg_imm32_b32` to MODE takes the high bits of the numbers of vector registers from
    /// bits 19:12 of its literal, whatever field of MODE it writes (LLVM's feature
    /// SetregVGPRMSBFixup and `handleSetregMode`: gfx1250, not gfx1251).
    pub fn setreg_sets_banks(&self) -> bool {
        self.processor() == "gfx1250"
    }

    /// Lanes that `ds_permute_b32` and `ds_bpermute_b32` exchange data within (RDNA 3 ISA,
    /// "DS_BPERMUTE_B32"; LLVM's `supportsWaveWideBPermute`).
    pub fn permute_lanes(&self, wave_size: u8) -> u8 {
        match self.generation() {
            Generation::Gfx10 | Generation::Gfx11 => 32,
            _ => wave_size,
        }
    }

    /// Whether a branch over 63 words goes wrong (LLVM's feature Offset3fBug: gfx1010 to gfx1013).
    pub fn has_offset_3f_bug(&self) -> bool {
        self.is_gfx10_1()
    }

    /// gfx1010 to gfx1013, and code for all of them.
    pub(crate) fn is_gfx10_1(&self) -> bool {
        self.processor().starts_with("gfx101") || self.processor() == "gfx10-1-generic"
    }

    /// Whether code may be compiled for page-fault replay on or off (AMDGPUUsage, "AMDGPU
    /// Processors").
    pub fn supports_xnack(&self) -> bool {
        match self.generation() {
            Generation::Gfx8 => matches!(self.processor(), "gfx801" | "gfx810"),
            Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => true,
            Generation::Gfx10 => self.is_gfx10_1(),
            Generation::Gfx125 => true,
            _ => false,
        }
    }

    /// Whether code may be compiled for error-corrected SRAM on or off (AMDGPUUsage, "AMDGPU
    /// Processors").
    pub fn supports_sramecc(&self) -> bool {
        matches!(self.generation(), Generation::Gfx90a | Generation::Gfx940 | Generation::Gfx125)
            || matches!(self.processor(), "gfx906" | "gfx908")
    }

    /// Whether what loads a half of a register makes the other half zero, rather than keep it: SRAM that is
    /// corrected is written by whole words (LLVM's GCNSubtarget.h, `d16PreservesUnusedBits`). Libraries of
    /// such processors rely on it. Code that is for both settings may not.
    pub fn loads_whole_registers(&self) -> bool {
        self.supports_sramecc() && self.sramecc != Setting::Off
    }

    /// Whether it is no processor, but what several have in common.
    pub fn is_generic(&self) -> bool {
        GENERIC.iter().any(|(generic, _)| *generic == self.processor())
    }

    /// Whether code for `code` runs here: it is for the same processor, or a generic target that
    /// covers it. What feature settings say is not looked at.
    pub fn runs_code_for(&self, code: &Target) -> bool {
        let covers = |(generic, processors): &(&str, &[&str])| {
            *generic == code.processor() && processors.contains(&self.processor())
        };
        self.processor() == code.processor() || GENERIC.iter().any(covers)
    }

    /// The target that the machine byte of an ELF header's flags names.
    pub fn from_elf_machine(machine: u8) -> Option<Target> {
        PROCESSORS.iter().find(|row| row.elf_machine == machine).map(Target::of)
    }

    fn of(processor: &'static Processor) -> Target {
        Target { processor, xnack: Setting::Any, sramecc: Setting::Any }
    }

    /// Names of all processors in the table.
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

/// A target name that is not understood.
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
        let mut target = Target::of(row);
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
    fn names_and_machine_numbers_are_unique_and_lead_back() {
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
    fn code_runs_on_its_processor_and_on_those_that_a_generic_target_covers() {
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
                let own: Target = processor.parse().expect(processor);
                assert!(own.runs_code_for(&generic));
                assert_eq!(own.generation(), generic.generation(), "{processor}");
            }
        }
    }

    #[test]
    fn features_are_read_and_written() {
        let target: Target = "gfx90a:sramecc+:xnack-".parse().expect("a target");
        assert_eq!((target.sramecc, target.xnack), (Setting::On, Setting::Off));
        assert_eq!(target.to_string(), "gfx90a:sramecc+:xnack-");
        assert!("gfx90a:xnack".parse::<Target>().is_err());
        assert!("gfx9".parse::<Target>().is_err());
    }
}
