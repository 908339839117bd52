//! Targets that the embedded GPU executes, with each of their wave sizes.

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

/// Machines for tests that run on all. Short runs leave out machines that are similar to another one.
pub fn machines() -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(|machine| is_long_run() || !machine.is_like_another())
}

/// Machines for tests that rewrite kernels: a few different ones, and in long runs also the similar ones.
pub fn rewritten_machines() -> impl Iterator<Item = Machine> {
    let is_wanted =
        |machine: &Machine| machine.is_typical() || is_long_run() && machine.is_like_another();
    MACHINES.into_iter().filter(is_wanted)
}

/// Machines with a unified file of VGPRs and AccVGPRs: gfx90a and gfx942, in long runs gfx950 too. Only
/// these machines preload arguments.
pub fn unified_machines() -> impl Iterator<Item = Machine> {
    machines().filter(|machine| machine.target().acc_vgprs() == AccVgprs::Unified)
}

/// Optimisation levels for tests that run rewritten kernels. Unoptimised code is many times as long, so
/// only long runs use it.
pub fn rewritten_levels() -> &'static [&'static str] {
    if is_long_run() { &["-O0", "-O3"] } else { &["-O3"] }
}

/// Returns `true` in long runs.
pub fn is_long_run() -> bool {
    Depth::asked() == Depth::Long
}

impl Machine {
    /// Creates a machine from a processor name and a wave size.
    pub const fn new(processor: &'static str, lanes: usize) -> Machine {
        Machine { processor, lanes }
    }

    /// The target.
    pub fn target(self) -> Target {
        self.processor.parse().expect("a target")
    }

    /// Compiler options in addition to the target.
    pub fn options(self) -> &'static [&'static str] {
        let default = usize::from(self.target().default_wave_size()) == self.lanes;
        if default { &[] } else { &["-mwavefrontsize64"] }
    }

    /// Returns `true` if the embedded GPU has all hardware rules of the machine.
    pub fn has_strict_level(self) -> bool {
        Rules::of(&self.target(), self.lanes as u8).is_some_and(|rules| rules.are_complete)
    }

    /// Returns `true` if code for the machine can be rewritten: the rules of all inserted instructions are
    /// known.
    pub fn can_be_rewritten(self) -> bool {
        Rules::of(&self.target(), self.lanes as u8).is_some()
    }

    /// Returns `true` for the representatives used if testing all machines takes too long: the unified
    /// register files of MI200 and MI300, and waves of 32 lanes before gfx12 and on gfx12.
    pub fn is_typical(self) -> bool {
        let typical = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];
        self.options().is_empty() && typical.contains(&self.processor)
    }

    /// Returns `true` if another machine has nearly the same instructions and rules: gfx942 for gfx950,
    /// gfx1100 for gfx1151, and gfx1201 with 32 lanes for gfx1201 with 64.
    fn is_like_another(self) -> bool {
        match self.processor {
            "gfx950" | "gfx1151" => true,
            "gfx1201" => self.lanes == 64,
            _ => false,
        }
    }

    /// Returns `true` if the machine runs HIP, which uses only the default wave size.
    pub fn runs_hip(self) -> bool {
        self.options().is_empty()
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {} lanes", self.processor, self.lanes)
    }
}
