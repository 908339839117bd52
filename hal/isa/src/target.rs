//! GPU targets: which processor, and what of its register files and allocation the code object
//! must state.

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
    /// gfx940, gfx941, gfx942.
    Gfx940,
    Gfx10,
    Gfx11,
    Gfx12,
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
}

const fn processor(name: &'static str, generation: Generation, elf_machine: u8) -> Processor {
    Processor { name, generation, elf_machine }
}

static PROCESSORS: [Processor; 37] = [
    processor("gfx600", Generation::Gfx6, 0x20),
    processor("gfx601", Generation::Gfx6, 0x21),
    processor("gfx700", Generation::Gfx7, 0x22),
    processor("gfx701", Generation::Gfx7, 0x23),
    processor("gfx702", Generation::Gfx7, 0x24),
    processor("gfx801", Generation::Gfx8, 0x28),
    processor("gfx802", Generation::Gfx8, 0x29),
    processor("gfx803", Generation::Gfx8, 0x2a),
    processor("gfx810", Generation::Gfx8, 0x2b),
    processor("gfx900", Generation::Gfx9, 0x2c),
    processor("gfx902", Generation::Gfx9, 0x2d),
    processor("gfx904", Generation::Gfx9, 0x2e),
    processor("gfx906", Generation::Gfx9, 0x2f),
    processor("gfx908", Generation::Gfx9, 0x30),
    processor("gfx909", Generation::Gfx9, 0x31),
    processor("gfx90c", Generation::Gfx9, 0x32),
    processor("gfx90a", Generation::Gfx90a, 0x3f),
    processor("gfx940", Generation::Gfx940, 0x40),
    processor("gfx941", Generation::Gfx940, 0x4b),
    processor("gfx942", Generation::Gfx940, 0x4c),
    processor("gfx1010", Generation::Gfx10, 0x33),
    processor("gfx1011", Generation::Gfx10, 0x34),
    processor("gfx1012", Generation::Gfx10, 0x35),
    processor("gfx1030", Generation::Gfx10, 0x36),
    processor("gfx1031", Generation::Gfx10, 0x37),
    processor("gfx1032", Generation::Gfx10, 0x38),
    processor("gfx1033", Generation::Gfx10, 0x39),
    processor("gfx1034", Generation::Gfx10, 0x3e),
    processor("gfx1035", Generation::Gfx10, 0x3d),
    processor("gfx1036", Generation::Gfx10, 0x45),
    processor("gfx1100", Generation::Gfx11, 0x41),
    processor("gfx1101", Generation::Gfx11, 0x46),
    processor("gfx1102", Generation::Gfx11, 0x47),
    processor("gfx1103", Generation::Gfx11, 0x44),
    processor("gfx1150", Generation::Gfx11, 0x43),
    processor("gfx1200", Generation::Gfx12, 0x48),
    processor("gfx1201", Generation::Gfx12, 0x4e),
];

impl Target {
    /// The processor's name, without feature settings.
    pub fn processor(&self) -> &'static str {
        self.processor.name
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
        if self.generation() >= Generation::Gfx10 { &[32, 64] } else { &[64] }
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
