//! The targets that the embedded GPU executes, with each of their wave sizes.

use flipwave_depth::Depth;
use flipwave_isa::{AccVgprs, Rules, Target};

/// A target and a wave size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    processor: &'static str,
    /// Lanes of a wave.
    pub lanes: usize,
}

/// The default target.
pub const GFX90A: Machine = Machine::new("gfx90a", 64);

/// Every machine.
pub const MACHINES: [Machine; 13] = [
    Machine { processor: "gfx90a", lanes: 64 },
    Machine { processor: "gfx906", lanes: 64 },
    Machine { processor: "gfx908", lanes: 64 },
    Machine { processor: "gfx942", lanes: 64 },
    Machine { processor: "gfx1030", lanes: 32 },
    Machine { processor: "gfx1030", lanes: 64 },
    Machine { processor: "gfx1100", lanes: 32 },
    Machine { processor: "gfx1100", lanes: 64 },
    Machine { processor: "gfx950", lanes: 64 },
    Machine { processor: "gfx1151", lanes: 32 },
    Machine { processor: "gfx1201", lanes: 32 },
    Machine { processor: "gfx1201", lanes: 64 },
    Machine { processor: "gfx1250", lanes: 32 },
];

/// The machines of a test that is run on all: in short runs those are left out that are much like
/// another one.
pub fn machines() -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(|machine| is_long_run() || !machine.is_like_another())
}

/// Machines that differ much, for which kernels are rewritten; in long runs the newer ones in all
/// wave sizes besides.
pub fn rewritten_machines() -> impl Iterator<Item = Machine> {
    let is_wanted =
        |machine: &Machine| machine.is_typical() || is_long_run() && machine.is_like_another();
    MACHINES.into_iter().filter(is_wanted)
}

/// Machines whose VGPRs and AccVGPRs are one file: gfx90a and gfx942, in long runs gfx950 too. They
/// are also those that can preload arguments.
pub fn unified_machines() -> impl Iterator<Item = Machine> {
    machines().filter(|machine| machine.target().acc_vgprs() == AccVgprs::Unified)
}

/// Levels of optimisation at which rewritten kernels are run: without any, code is many times as
/// long, so that is left to the long tests.
pub fn rewritten_levels() -> &'static [&'static str] {
    if is_long_run() { &["-O0", "-O3"] } else { &["-O3"] }
}

/// Whether these are the long tests.
pub fn is_long_run() -> bool {
    Depth::asked() == Depth::Long
}

impl Machine {
    /// A machine of a processor that the embedded GPU executes.
    pub const fn new(processor: &'static str, lanes: usize) -> Machine {
        Machine { processor, lanes }
    }

    /// The target.
    pub fn target(self) -> Target {
        self.processor.parse().expect("a target")
    }

    /// What the compiler must be given beside the target.
    pub fn options(self) -> &'static [&'static str] {
        let default = usize::from(self.target().default_wave_size()) == self.lanes;
        if default { &[] } else { &["-mwavefrontsize64"] }
    }

    /// Whether the embedded GPU has the rules that its code must keep.
    pub fn has_strict_level(self) -> bool {
        Rules::of(&self.target(), self.lanes as u8).is_some_and(|rules| rules.are_complete)
    }

    /// Whether code for it can be changed: what its instructions must wait for is known, of those that
    /// are inserted at least.
    pub fn can_be_rewritten(self) -> bool {
        Rules::of(&self.target(), self.lanes as u8).is_some()
    }

    /// Whether it is one of those that stand for the others where a test of all takes too long: a
    /// unified register file of MI200, one of MI300, and waves of 32 lanes before gfx12 and on it.
    pub fn is_typical(self) -> bool {
        let typical = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];
        self.options().is_empty() && typical.contains(&self.processor)
    }

    /// Whether another machine has nearly all of its instructions and rules: gfx942 those of gfx950,
    /// gfx1100 those of gfx1151, and gfx1201 with 32 lanes those of it with 64.
    fn is_like_another(self) -> bool {
        match self.processor {
            "gfx950" | "gfx1151" => true,
            "gfx1201" => self.lanes == 64,
            _ => false,
        }
    }

    /// Whether it runs HIP: where waves may have 32 lanes, HIP has no others.
    pub fn runs_hip(self) -> bool {
        self.options().is_empty()
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {} lanes", self.processor, self.lanes)
    }
}
