//! Sources that establish the bits of floating-point results. A row that computes with
//! floating-point numbers is exact if it names one of these, or a measurement; otherwise it is not.

/// A single correctly rounded operation. MODE decides the direction and the treatment of denormals.
pub const ROUNDED_ONCE: &str =
    "IEEE 754; MODE: Instinct MI200 ISA, \"Denormalized and Rounding Modes\"";
/// Results that the manual's definition determines without rounding: choices, comparisons, parts of
/// numbers, and conversions to formats that represent all sources.
pub const DEFINED: &str = "Instinct MI200 ISA, \"Instructions\": the operation's definition";
/// Results that the RDNA 4 manual's definition determines without rounding.
pub const DEFINED_BY_RDNA4: &str = "RDNA 4 ISA, \"Instructions\": the operation's definition";
/// Steps that the manual lists one by one.
pub const STEPS: &str = "Instinct MI200 ISA, the operation's functional example";
/// Two roundings: LLVM selects these for a fused multiply-add that is then narrowed.
pub const MIXED: &str =
    "Instinct MI200 ISA, `V_FMA_MIX_F32`; LLVM selects it for `fptrunc (fma ...)`";
/// Conversions of 8-bit formats.
pub const BYTES: &str = "OCP 8-bit Floating Point Specification; CDNA 3 ISA, \"BF8 / FP8\"";
/// Conversions with a scale.
pub const SCALED: &str =
    "OCP Microscaling Formats; CDNA 4 ISA, \"BF8 / FP8 and Smaller Formats and Conversions\"";
/// Conversions whose rounding direction LLVM takes from MODE.
pub const BY_MODE: &str = "IEEE 754; LLVM, `FPDPRounding` of the operation";
/// Products of matrices.
pub const MATRICES: &str =
    "AMD, MIOpen, \"MI200 MFMA behavior specifics\"; measured: MMA-Sim, arXiv:2511.10909";
