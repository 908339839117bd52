//! Host vector extensions, and functions compiled for each of them.

use flipwave_jit::Extensions;

/// Vector extensions of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The extensions of the build's target.
    Plain = 0,
    /// AVX2 and FMA.
    Avx2 = 1,
    /// AVX-512 F, BW, DQ, VL.
    Avx512 = 2,
}

impl Level {
    /// Returns the best level of this host. `FLIPWAVE_SIMD` (`plain`, `avx2`) selects a lower one.
    pub fn detect() -> Level {
        match Extensions::of_process() {
            Some(Extensions::Avx512) => Level::Avx512,
            Some(Extensions::Avx2) => Level::Avx2,
            None => Level::Plain,
        }
    }
}

/// Defines a function that runs `body`, which is `#[inline(always)]`, compiled for the level of the
/// wave, which is the first argument, `wave: &mut Wave`.
macro_rules! at_each_level {
    (
        $(#[$documentation:meta])*
        pub fn $name:ident($wave:ident: &mut Wave $(, $argument:ident: $type:ty)* $(,)?)
            -> $result:ty = $body:ident;
    ) => {
        $(#[$documentation])*
        #[inline(always)]
        pub fn $name($wave: &mut Wave $(, $argument: $type)*) -> $result {
            /// # Safety
            /// The host must have AVX2, FMA and BMI2.
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi1,bmi2"))]
            unsafe fn avx2($wave: &mut Wave $(, $argument: $type)*) -> $result {
                $body($wave $(, $argument)*)
            }

            /// # Safety
            /// The host must have AVX-512 F, BW, DQ and VL.
            #[cfg_attr(
                target_arch = "x86_64",
                target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,bmi1,bmi2")
            )]
            unsafe fn avx512($wave: &mut Wave $(, $argument: $type)*) -> $result {
                $body($wave $(, $argument)*)
            }

            #[inline(never)]
            fn plain($wave: &mut Wave $(, $argument: $type)*) -> $result {
                $body($wave $(, $argument)*)
            }

            match $wave.level {
                $crate::wave::Level::Plain => plain($wave $(, $argument)*),
                // SAFETY: the host was detected to have this level.
                $crate::wave::Level::Avx2 => unsafe { avx2($wave $(, $argument)*) },
                // SAFETY: the host was detected to have this level.
                $crate::wave::Level::Avx512 => unsafe { avx512($wave $(, $argument)*) },
            }
        }
    };
}

pub(crate) use at_each_level;
