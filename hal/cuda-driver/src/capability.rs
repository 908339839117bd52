//! Compute capabilities of GPUs, and the targets of PTX that they execute.

use flipwave_arch::Architecture;
use flipwave_ptx::Ptx;
use std::fmt;

/// Compute capability of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capability {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Error returned for code that a GPU cannot execute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The target is newer than the GPU.
    #[error(
        "target {target} is newer than the GPU, {gpu} with compute capability {capability}; use a target up to \
         sm_{}{}", capability.major, capability.minor
    )]
    Newer {
        /// The target.
        target: String,
        /// Name of the GPU.
        gpu: String,
        /// Its compute capability.
        capability: Capability,
    },
    /// The target has features of one architecture or family, and the GPU is of another one.
    #[error(
        "target {target} runs only on GPUs of its own architecture, not on {gpu} with compute capability \
         {capability}; use sm_{}{}", capability.major, capability.minor
    )]
    OtherArchitecture {
        /// The target.
        target: String,
        /// Name of the GPU.
        gpu: String,
        /// Its compute capability.
        capability: Capability,
    },
}

impl Capability {
    /// Checks that a GPU of this capability with a name executes code for a target (PTX ISA, "PTX Module Directives:
    /// .target").
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn check(self, gpu: &str, target: &Ptx) -> Result<(), TargetError> {
        let name = target.target();
        let number = name.trim_start_matches("sm_");
        let digits = number.trim_end_matches(['a', 'f']);
        let digits: u32 = digits.parse().unwrap_or(u32::MAX);
        let wanted = Capability { major: digits / 10, minor: digits % 10 };
        let (target, gpu) = (name.to_owned(), gpu.to_owned());
        let is_own = match number.trim_start_matches(|c: char| c.is_ascii_digit()) {
            "a" => wanted == self,
            "f" => wanted.major == self.major,
            _ => true,
        };
        if wanted > self {
            Err(TargetError::Newer { target, gpu, capability: self })
        } else if !is_own {
            Err(TargetError::OtherArchitecture { target, gpu, capability: self })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_execute_older_targets_and_features_of_their_own() {
        let hopper = Capability { major: 9, minor: 0 };
        let check = |capability: Capability, target: &str| {
            let ptx = Ptx::new(target).expect("a target");
            capability.check("GPU", &ptx).map_err(|error| error.to_string())
        };
        for target in ["sm_75", "sm_80", "sm_90", "sm_90a"] {
            assert_eq!(check(hopper, target), Ok(()));
        }
        let newer = check(hopper, "sm_100").expect_err("newer");
        assert!(newer.contains("newer than the GPU, GPU with compute capability 9.0"), "{newer}");
        assert!(newer.ends_with("use a target up to sm_90"), "{newer}");
        let blackwell = Capability { major: 10, minor: 3 };
        let other = check(blackwell, "sm_90a").expect_err("another architecture");
        assert!(other.contains("only on GPUs of its own architecture"), "{other}");
        assert_eq!(check(blackwell, "sm_100f"), Ok(()));
        assert!(check(blackwell, "sm_100a").is_err() && check(blackwell, "sm_103a").is_ok());
    }
}
