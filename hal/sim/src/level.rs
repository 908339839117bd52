//! Functions compiled for each vector extension the host may have.

/// Defines a function that runs `body`, which is `#[inline(always)]`, compiled for the level of
/// the wave: the first argument, `wave: &mut Wave`.
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
            /// The host has AVX2, FMA and BMI2.
            #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma,bmi1,bmi2"))]
            unsafe fn avx2($wave: &mut Wave $(, $argument: $type)*) -> $result {
                $body($wave $(, $argument)*)
            }

            /// # Safety
            /// The host has AVX-512 F, BW, DQ and VL.
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
                $crate::vector::Level::Plain => plain($wave $(, $argument)*),
                // SAFETY: the level is one that the host was found to have.
                $crate::vector::Level::Avx2 => unsafe { avx2($wave $(, $argument)*) },
                // SAFETY: the level is one that the host was found to have.
                $crate::vector::Level::Avx512 => unsafe { avx512($wave $(, $argument)*) },
            }
        }
    };
}

pub(crate) use at_each_level;
