//! Kernel variants: one for each kind of matrix instruction of each target.

use super::format::{Format, Sum};
use flipwave_tests::Machine;

/// Additional operands of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Dense,
    /// Indices of the two stored elements among each four of A.
    Sparse,
    /// A scale for each 32 elements of A and of B.
    Scaled,
}

/// A kernel for a machine.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub machine: Machine,
    pub operation: &'static str,
    pub kind: Kind,
    pub a: Format,
    pub b: Format,
    pub sum: Sum,
    /// Rows and columns of a tile.
    pub size: usize,
    /// Products per sum.
    pub depth: usize,
    /// Types of a lane's operands for A and B.
    shares: [&'static str; 2],
    /// Additional options of the kernel.
    more: &'static [&'static str],
}

/// Tiles of D in a workgroup, one below the other; workgroups in each dimension; iterations of the kernel's
/// loop, each with two instructions.
pub const WAVES: usize = 2;
pub const WORKGROUPS: usize = 2;
pub const PAIRS: usize = 2;

impl Variant {
    pub fn rows(&self) -> usize {
        let blocks = if self.has("-DTALL=1") { self.blocks() } else { 1 };
        self.size * blocks * WAVES * WORKGROUPS
    }

    pub fn columns(&self) -> usize {
        let blocks = if self.has("-DTALL=0") { self.blocks() } else { 1 };
        self.size * blocks * WORKGROUPS
    }

    /// Tiles that an instruction computes.
    fn blocks(&self) -> usize {
        if self.has("-DBLOCKS=4") { 4 } else { 2 }
    }

    fn has(&self, option: &str) -> bool {
        self.more.contains(&option)
    }

    /// Products per element of D, including the zeros of a sparse matrix.
    pub fn total_depth(&self) -> usize {
        self.depth * self.instructions()
    }

    /// Instructions per element of D.
    pub fn instructions(&self) -> usize {
        2 * PAIRS
    }

    pub fn saturates(&self) -> bool {
        self.has("-DCLAMP=1")
    }

    pub fn negates_products(&self) -> bool {
        self.has("-DNEGATED") || self.has("-DBLGP=1")
    }

    /// Returns `true` if the kernel computes -A * B - |C|.
    pub fn subtracts(&self) -> bool {
        self.has("-DNEGATED")
    }

    /// Returns `true` if denormals of A and B are zeros (MIOpen, "MI200 matrix fused multiply-add (MFMA)
    /// behavior specifics"; dot products: llvm-project pull request 205101).
    pub fn flushes(&self) -> bool {
        let is_mi200 = self.machine.target().to_string() == "gfx90a";
        self.a.bits() == 16 && is_mi200
    }

    /// Part of the instruction's name.
    pub fn opcode(&self) -> &'static str {
        let names = ["swmmac", "smfmac", "wmma", "mfma", "dot"];
        names.into_iter().find(|name| self.operation.contains(name)).expect("a known one")
    }

    /// The compiler's options.
    pub fn options(&self) -> Vec<String> {
        let lanes = self.machine.lanes;
        let define = |name: &str, value: String| format!("-D{name}={value}");
        let mut options = vec![
            define("OPERATION", self.operation.replace("{}", &format!("w{lanes}"))),
            define("LANES", lanes.to_string()),
            define("SIZE", self.size.to_string()),
            define("BITS", self.a.bits().to_string()),
            define("B_BITS", self.b.bits().to_string()),
            define("ELEMENT", self.sum.types()[0].to_owned()),
            define("FRAGMENT", self.shares[0].to_owned()),
            define("B_FRAGMENT", self.shares[1].to_owned()),
        ];
        if self.operation.contains("wmma") && self.sum == Sum::I32
            || self.operation.contains("swmmac_i32")
        {
            let [a, b] = [self.a, self.b].map(|format| u32::from(format.is_signed()));
            options.push(define("SIGNS", (2 * a + b).to_string()));
        }
        match self.kind {
            Kind::Dense => {}
            Kind::Sparse => options.push("-DSPARSE".to_owned()),
            Kind::Scaled => {
                for (side, format) in [("A", self.a), ("B", self.b)] {
                    options.push(define(&format!("{side}_FORMAT"), format.number().to_string()));
                    // Narrow formats use only some of the words.
                    let words = self.depth * self.size * format.bits() as usize / lanes / 32;
                    options.push(define(&format!("{side}_WORDS"), words.to_string()));
                }
            }
        }
        options.extend(self.more.iter().map(|&option| option.to_owned()));
        options
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Variant { machine, operation, a, b, more, .. } = self;
        write!(f, "{operation} of {a:?} and {b:?} {} on {machine}", more.join(" "))
    }
}

/// One variant of each family: for each machine, the first with a kind of instruction and a type of sum.
pub fn everyday() -> Vec<Variant> {
    let mut chosen: Vec<Variant> = Vec::new();
    for variant in variants() {
        let family = |variant: &Variant| (variant.machine, variant.kind, variant.sum);
        if !chosen.iter().any(|present| family(present) == family(&variant)) {
            chosen.push(variant);
        }
    }
    chosen
}

/// Rows: processors and wave size; builtin (`{}` is a placeholder for the wave size), kind, element types
/// of A, of B, and of C and D, tile size, products per sum, types of a lane's operands for A and B, additional options.
macro_rules! table {
    ($($processors:literal $lanes:literal: $operation:literal $kind:ident
       $a:ident $b:ident $sum:ident, $size:literal $depth:literal,
       $left:literal $right:literal $($more:literal)*;)*) => {
        /// All variants, grouped by target.
        pub fn variants() -> Vec<Variant> {
            let mut variants = Vec::new();
            $(for processor in $processors.split(' ') {
                variants.push(Variant {
                    machine: Machine::new(processor, $lanes),
                    operation: $operation,
                    kind: Kind::$kind,
                    a: Format::$a,
                    b: Format::$b,
                    sum: Sum::$sum,
                    size: $size,
                    depth: $depth,
                    shares: [$left, $right],
                    more: &[$($more),*],
                });
            })*
            variants.sort_by_key(|variant| variant.machine.to_string());
            variants
        }
    };
}

table! {
    // All CDNA generations: half and single precision.
    "gfx908 gfx90a gfx942 gfx950" 64: "mfma_f32_16x16x16f16" Dense F16 F16 F32, 16 16, "half4" "half4";
    "gfx908 gfx90a gfx942 gfx950" 64: "mfma_f32_32x32x8f16" Dense F16 F16 F32, 32 8, "half4" "half4";
    "gfx908 gfx90a gfx942 gfx950" 64: "mfma_f32_16x16x4f32" Dense F32 F32 F32, 16 4, "float" "float";
    "gfx908 gfx90a" 64: "mfma_f32_32x32x2f32" Dense F32 F32 F32, 32 2, "float" "float";
    "gfx908" 64: "mfma_f32_16x16x8bf16" Dense Bf16 Bf16 F32, 16 8, "short2" "short2";
    "gfx908" 64: "mfma_f32_32x32x4bf16" Dense Bf16 Bf16 F32, 32 4, "short2" "short2";
    "gfx90a gfx942" 64: "mfma_f32_16x16x16bf16_1k" Dense Bf16 Bf16 F32, 16 16, "short4" "short4";
    "gfx90a gfx942" 64: "mfma_f32_32x32x8bf16_1k" Dense Bf16 Bf16 F32, 32 8, "short4" "short4";
    "gfx908 gfx90a" 64: "mfma_i32_16x16x16i8" Dense I8 I8 I32, 16 16, "int" "int";
    "gfx908 gfx90a" 64: "mfma_i32_32x32x8i8" Dense I8 I8 I32, 32 8, "int" "int";
    "gfx90a gfx942 gfx950" 64: "mfma_f64_16x16x4f64" Dense F64 F64 F64, 16 4, "double" "double";
    // Several tiles with one common operand.
    "gfx908 gfx90a gfx942" 64: "mfma_f32_16x16x4f16" Dense F16 F16 F32, 16 4, "half4" "half4" "-DBLOCKS=4" "-DTALL=0";
    "gfx908 gfx90a gfx950" 64: "mfma_f32_16x16x4f16" Dense F16 F16 F32, 16 4, "half4" "half4" "-DBLOCKS=4" "-DTALL=1";
    "gfx90a gfx942" 64: "mfma_f32_32x32x1f32" Dense F32 F32 F32, 32 1, "float" "float" "-DBLOCKS=2" "-DTALL=0";
    "gfx908 gfx942" 64: "mfma_f32_32x32x1f32" Dense F32 F32 F32, 32 1, "float" "float" "-DBLOCKS=2" "-DTALL=1";
    "gfx90a gfx942" 64: "mfma_f32_32x32x4bf16_1k" Dense Bf16 Bf16 F32, 32 4, "short4" "short4" "-DBLOCKS=2" "-DTALL=0";
    "gfx90a gfx950" 64: "mfma_i32_16x16x4i8" Dense I8 I8 I32, 16 4, "int" "int" "-DBLOCKS=4" "-DTALL=1";

    // CDNA 3.
    "gfx942 gfx950" 64: "mfma_f64_16x16x4f64" Dense F64 F64 F64, 16 4, "double" "double" "-DBLGP=1";
    "gfx942 gfx950" 64: "mfma_i32_16x16x32_i8" Dense I8 I8 I32, 16 32, "long" "long";
    "gfx942 gfx950" 64: "mfma_i32_32x32x16_i8" Dense I8 I8 I32, 32 16, "long" "long";
    "gfx942" 64: "mfma_f32_16x16x8_xf32" Dense Xf32 Xf32 F32, 16 8, "float2" "float2";
    "gfx942" 64: "mfma_f32_32x32x4_xf32" Dense Xf32 Xf32 F32, 32 4, "float2" "float2";
    "gfx942" 64: "mfma_f32_16x16x32_fp8_fp8" Dense Fp8Fnuz Fp8Fnuz F32, 16 32, "long" "long";
    "gfx942" 64: "mfma_f32_16x16x32_fp8_bf8" Dense Fp8Fnuz Bf8Fnuz F32, 16 32, "long" "long";
    "gfx942" 64: "mfma_f32_32x32x16_bf8_fp8" Dense Bf8Fnuz Fp8Fnuz F32, 32 16, "long" "long";
    "gfx942" 64: "mfma_f32_32x32x16_bf8_bf8" Dense Bf8Fnuz Bf8Fnuz F32, 32 16, "long" "long";
    "gfx942 gfx950" 64: "smfmac_f32_16x16x32_f16" Sparse F16 F16 F32, 16 32, "half4" "half8";
    "gfx942 gfx950" 64: "smfmac_f32_32x32x16_f16" Sparse F16 F16 F32, 32 16, "half4" "half8";
    "gfx942" 64: "smfmac_f32_16x16x32_bf16" Sparse Bf16 Bf16 F32, 16 32, "short4" "short8";
    "gfx942" 64: "smfmac_f32_32x32x16_bf16" Sparse Bf16 Bf16 F32, 32 16, "short4" "short8";
    "gfx942 gfx950" 64: "smfmac_i32_16x16x64_i8" Sparse I8 I8 I32, 16 64, "int2" "int4";
    "gfx942 gfx950" 64: "smfmac_i32_32x32x32_i8" Sparse I8 I8 I32, 32 32, "int2" "int4";
    "gfx942" 64: "smfmac_f32_16x16x64_fp8_fp8" Sparse Fp8Fnuz Fp8Fnuz F32, 16 64, "int2" "int4";
    "gfx942" 64: "smfmac_f32_16x16x64_bf8_fp8" Sparse Bf8Fnuz Fp8Fnuz F32, 16 64, "int2" "int4";
    "gfx942" 64: "smfmac_f32_32x32x32_fp8_bf8" Sparse Fp8Fnuz Bf8Fnuz F32, 32 32, "int2" "int4";
    "gfx942" 64: "smfmac_f32_32x32x32_bf8_bf8" Sparse Bf8Fnuz Bf8Fnuz F32, 32 32, "int2" "int4";

    // CDNA 4.
    "gfx950" 64: "mfma_f32_16x16x32_f16" Dense F16 F16 F32, 16 32, "half8" "half8";
    "gfx950" 64: "mfma_f32_32x32x16_f16" Dense F16 F16 F32, 32 16, "half8" "half8";
    "gfx950" 64: "mfma_f32_16x16x32_bf16" Dense Bf16 Bf16 F32, 16 32, "bfloat8" "bfloat8";
    "gfx950" 64: "mfma_f32_32x32x16_bf16" Dense Bf16 Bf16 F32, 32 16, "bfloat8" "bfloat8";
    "gfx950" 64: "mfma_i32_16x16x64_i8" Dense I8 I8 I32, 16 64, "int4" "int4";
    "gfx950" 64: "mfma_i32_32x32x32_i8" Dense I8 I8 I32, 32 32, "int4" "int4";
    "gfx950" 64: "mfma_f32_16x16x32_fp8_fp8" Dense Fp8 Fp8 F32, 16 32, "long" "long";
    "gfx950" 64: "mfma_f32_32x32x16_fp8_bf8" Dense Fp8 Bf8 F32, 32 16, "long" "long";
    "gfx950" 64: "mfma_f32_16x16x32_bf8_fp8" Dense Bf8 Fp8 F32, 16 32, "long" "long";
    "gfx950" 64: "mfma_f32_32x32x16_bf8_bf8" Dense Bf8 Bf8 F32, 32 16, "long" "long";
    "gfx950" 64: "mfma_scale_f32_16x16x128_f8f6f4" Scaled Fp8 Fp8 F32, 16 128, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_32x32x64_f8f6f4" Scaled Fp8 Bf8 F32, 32 64, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_16x16x128_f8f6f4" Scaled Bf8 Bf8 F32, 16 128, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_16x16x128_f8f6f4" Scaled Fp6 Fp6 F32, 16 128, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_32x32x64_f8f6f4" Scaled Fp6 Bf6 F32, 32 64, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_32x32x64_f8f6f4" Scaled Bf6 Bf6 F32, 32 64, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_16x16x128_f8f6f4" Scaled Fp4 Fp4 F32, 16 128, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_32x32x64_f8f6f4" Scaled Fp4 Fp4 F32, 32 64, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_16x16x128_f8f6f4" Scaled Fp8 Fp4 F32, 16 128, "int8" "int8";
    "gfx950" 64: "mfma_scale_f32_32x32x64_f8f6f4" Scaled Bf6 Fp8 F32, 32 64, "int8" "int8";
    "gfx950" 64: "smfmac_f32_16x16x64_f16" Sparse F16 F16 F32, 16 64, "half8" "half16";
    "gfx950" 64: "smfmac_f32_32x32x32_bf16" Sparse Bf16 Bf16 F32, 32 32, "bfloat8" "bfloat16";
    "gfx950" 64: "smfmac_i32_16x16x128_i8" Sparse I8 I8 I32, 16 128, "int4" "int8";
    "gfx950" 64: "smfmac_f32_16x16x128_fp8_fp8" Sparse Fp8 Fp8 F32, 16 128, "int4" "int8";
    "gfx950" 64: "smfmac_f32_32x32x64_bf8_fp8" Sparse Bf8 Fp8 F32, 32 64, "int4" "int8";

    // RDNA 2, which has only dot products.
    "gfx1030" 32: "fdot2" Dense F16 F16 F32, 16 8, "half2" "half2" "-DDOT" "-DA_WORDS=4" "-DB_WORDS=4";
    "gfx1030" 64: "sdot4" Dense I8 I8 I32, 16 16, "int" "int" "-DDOT" "-DA_WORDS=4" "-DB_WORDS=4";
    "gfx1030" 32: "udot4" Dense U8 U8 I32, 16 16, "uint" "uint" "-DDOT" "-DA_WORDS=4" "-DB_WORDS=4";
    "gfx1030" 64: "sdot8" Dense I4 I4 I32, 16 32, "int" "int" "-DDOT" "-DA_WORDS=4" "-DB_WORDS=4" "-DCLAMP=1";

    // RDNA 3.
    "gfx1100 gfx1151" 32: "wmma_f32_16x16x16_f16_{}" Dense F16 F16 F32, 16 16, "half16" "half16";
    "gfx1100 gfx1151" 64: "wmma_f32_16x16x16_f16_{}" Dense F16 F16 F32, 16 16, "half16" "half16";
    "gfx1100 gfx1151" 32: "wmma_f32_16x16x16_bf16_{}" Dense Bf16 Bf16 F32, 16 16, "short16" "short16";
    "gfx1100 gfx1151" 64: "wmma_f32_16x16x16_bf16_{}" Dense Bf16 Bf16 F32, 16 16, "short16" "short16";
    "gfx1100 gfx1151" 32: "wmma_f16_16x16x16_f16_{}" Dense F16 F16 F16, 16 16, "half16" "half16" "-DHIGH=1";
    "gfx1100 gfx1151" 64: "wmma_f16_16x16x16_f16_{}" Dense F16 F16 F16, 16 16, "half16" "half16" "-DHIGH=0";
    "gfx1100 gfx1151" 32: "wmma_bf16_16x16x16_bf16_{}" Dense Bf16 Bf16 Bf16, 16 16, "short16" "short16" "-DHIGH=0";
    "gfx1100 gfx1151" 64: "wmma_bf16_16x16x16_bf16_{}" Dense Bf16 Bf16 Bf16, 16 16, "short16" "short16" "-DHIGH=1";
    "gfx1100 gfx1151" 32: "wmma_i32_16x16x16_iu8_{}" Dense I8 I8 I32, 16 16, "int4" "int4";
    "gfx1100 gfx1151" 64: "wmma_i32_16x16x16_iu8_{}" Dense U8 I8 I32, 16 16, "int4" "int4" "-DCLAMP=1";
    "gfx1100 gfx1151" 32: "wmma_i32_16x16x16_iu4_{}" Dense I4 U4 I32, 16 16, "int2" "int2" "-DCLAMP=1";
    "gfx1100 gfx1151" 64: "wmma_i32_16x16x16_iu4_{}" Dense I4 I4 I32, 16 16, "int2" "int2";
    "gfx1100 gfx1151" 32: "wmma_f32_16x16x16_f16_{}" Dense F16 F16 F32, 16 16, "half16" "half16" "-DNEGATED";

    // RDNA 4.
    "gfx1201" 32: "wmma_f32_16x16x16_f16_{}_gfx12" Dense F16 F16 F32, 16 16, "half8" "half8";
    "gfx1201" 64: "wmma_f32_16x16x16_f16_{}_gfx12" Dense F16 F16 F32, 16 16, "half4" "half4" "-DNEGATED";
    "gfx1201" 32: "wmma_f32_16x16x16_bf16_{}_gfx12" Dense Bf16 Bf16 F32, 16 16, "short8" "short8";
    "gfx1201" 64: "wmma_f32_16x16x16_bf16_{}_gfx12" Dense Bf16 Bf16 F32, 16 16, "short4" "short4";
    "gfx1201" 32: "wmma_f16_16x16x16_f16_{}_gfx12" Dense F16 F16 F16, 16 16, "half8" "half8" "-DNEGATED";
    "gfx1201" 64: "wmma_f16_16x16x16_f16_{}_gfx12" Dense F16 F16 F16, 16 16, "half4" "half4";
    "gfx1201" 32: "wmma_bf16_16x16x16_bf16_{}_gfx12" Dense Bf16 Bf16 Bf16, 16 16, "short8" "short8";
    "gfx1201" 64: "wmma_bf16_16x16x16_bf16_{}_gfx12" Dense Bf16 Bf16 Bf16, 16 16, "short4" "short4";
    "gfx1201" 32: "wmma_f32_16x16x16_fp8_fp8_{}_gfx12" Dense Fp8 Fp8 F32, 16 16, "int2" "int2";
    "gfx1201" 64: "wmma_f32_16x16x16_fp8_fp8_{}_gfx12" Dense Fp8 Fp8 F32, 16 16, "int" "int";
    "gfx1201" 32: "wmma_f32_16x16x16_fp8_bf8_{}_gfx12" Dense Fp8 Bf8 F32, 16 16, "int2" "int2";
    "gfx1201" 64: "wmma_f32_16x16x16_bf8_fp8_{}_gfx12" Dense Bf8 Fp8 F32, 16 16, "int" "int";
    "gfx1201" 32: "wmma_f32_16x16x16_bf8_bf8_{}_gfx12" Dense Bf8 Bf8 F32, 16 16, "int2" "int2";
    "gfx1201" 32: "wmma_i32_16x16x16_iu8_{}_gfx12" Dense I8 U8 I32, 16 16, "int2" "int2" "-DCLAMP=1";
    "gfx1201" 64: "wmma_i32_16x16x16_iu8_{}_gfx12" Dense I8 I8 I32, 16 16, "int" "int";
    "gfx1201" 32: "wmma_i32_16x16x16_iu4_{}_gfx12" Dense U4 I4 I32, 16 16, "int" "int" "-DA_GROUPS=2" "-DB_GROUPS=2";
    "gfx1201" 64: "wmma_i32_16x16x16_iu4_{}_gfx12" Dense I4 I4 I32, 16 16, "int" "int" "-DA_GROUPS=2" "-DB_GROUPS=2";
    "gfx1201" 32: "wmma_i32_16x16x32_iu4_{}_gfx12" Dense I4 I4 I32, 16 32, "int2" "int2";
    "gfx1201" 64: "wmma_i32_16x16x32_iu4_{}_gfx12" Dense U4 U4 I32, 16 32, "int" "int";
    "gfx1201" 32: "swmmac_f32_16x16x32_f16_{}" Sparse F16 F16 F32, 16 32, "half8" "half16";
    "gfx1201" 64: "swmmac_f32_16x16x32_f16_{}" Sparse F16 F16 F32, 16 32, "half4" "half8";
    "gfx1201" 32: "swmmac_f32_16x16x32_bf16_{}" Sparse Bf16 Bf16 F32, 16 32, "short8" "short16";
    "gfx1201" 64: "swmmac_f32_16x16x32_bf16_{}" Sparse Bf16 Bf16 F32, 16 32, "short4" "short8";
    "gfx1201" 32: "swmmac_f16_16x16x32_f16_{}" Sparse F16 F16 F16, 16 32, "half8" "half16";
    "gfx1201" 64: "swmmac_f16_16x16x32_f16_{}" Sparse F16 F16 F16, 16 32, "half4" "half8";
    "gfx1201" 32: "swmmac_bf16_16x16x32_bf16_{}" Sparse Bf16 Bf16 Bf16, 16 32, "short8" "short16";
    "gfx1201" 64: "swmmac_bf16_16x16x32_bf16_{}" Sparse Bf16 Bf16 Bf16, 16 32, "short4" "short8";
    "gfx1201" 32: "swmmac_f32_16x16x32_fp8_fp8_{}" Sparse Fp8 Fp8 F32, 16 32, "int2" "int4";
    "gfx1201" 64: "swmmac_f32_16x16x32_bf8_fp8_{}" Sparse Bf8 Fp8 F32, 16 32, "int" "int2";
    "gfx1201" 32: "swmmac_f32_16x16x32_fp8_bf8_{}" Sparse Fp8 Bf8 F32, 16 32, "int2" "int4";
    "gfx1201" 64: "swmmac_f32_16x16x32_bf8_bf8_{}" Sparse Bf8 Bf8 F32, 16 32, "int" "int2";
    "gfx1201" 32: "swmmac_i32_16x16x32_iu8_{}" Sparse U8 I8 I32, 16 32, "int2" "int4";
    "gfx1201" 64: "swmmac_i32_16x16x32_iu8_{}" Sparse I8 I8 I32, 16 32, "int" "int2" "-DCLAMP=1";
    "gfx1201" 32: "swmmac_i32_16x16x32_iu4_{}" Sparse I4 I4 I32, 16 32, "int" "int2" "-DA_GROUPS=2";
    "gfx1201" 64: "swmmac_i32_16x16x32_iu4_{}" Sparse I4 U4 I32, 16 32, "int" "int" "-DA_GROUPS=2";
    "gfx1201" 32: "swmmac_i32_16x16x64_iu4_{}" Sparse I4 I4 I32, 16 64, "int2" "int4";
    "gfx1201" 64: "swmmac_i32_16x16x64_iu4_{}" Sparse U4 I4 I32, 16 64, "int" "int2";

    // CDNA 5.
    "gfx1250" 32: "wmma_f32_16x16x32_f16" Dense F16 F16 F32, 16 32, "half16" "half16";
    "gfx1250" 32: "wmma_f32_16x16x32_f16" Dense F16 F16 F32, 16 32, "half16" "half16" "-DNEGATED";
    "gfx1250" 32: "wmma_f32_16x16x32_bf16" Dense Bf16 Bf16 F32, 16 32, "bfloat16" "bfloat16";
    "gfx1250" 32: "wmma_f16_16x16x32_f16" Dense F16 F16 F16, 16 32, "half16" "half16";
    "gfx1250" 32: "wmma_f32_16x16x4_f32" Dense F32 F32 F32, 16 4, "float2" "float2";
    "gfx1250" 32: "wmma_i32_16x16x64_iu8" Dense I8 U8 I32, 16 64, "int8" "int8";
    "gfx1250" 32: "wmma_f32_16x16x64_fp8_fp8" Dense Fp8 Fp8 F32, 16 64, "int8" "int8";
    "gfx1250" 32: "wmma_f32_16x16x64_bf8_fp8" Dense Bf8 Fp8 F32, 16 64, "int8" "int8";
    "gfx1250" 32: "wmma_f16_16x16x64_fp8_bf8" Dense Fp8 Bf8 F16, 16 64, "int8" "int8";
    "gfx1250" 32: "wmma_f32_16x16x128_fp8_bf8" Dense Fp8 Bf8 F32, 16 128, "int16" "int16";
    "gfx1250" 32: "wmma_f32_16x16x128_bf8_bf8" Dense Bf8 Bf8 F32, 16 128, "int16" "int16";
    "gfx1250" 32: "wmma_scale_f32_16x16x128_f8f6f4" Scaled Fp8 Fp8 F32, 16 128, "int16" "int16";
    "gfx1250" 32: "wmma_scale_f32_16x16x128_f8f6f4" Scaled Bf8 Fp4 F32, 16 128, "int16" "int16";
    "gfx1250" 32: "wmma_scale_f32_16x16x128_f8f6f4" Scaled Fp6 Bf6 F32, 16 128, "int16" "int16";
    "gfx1250" 32: "wmma_scale_f32_16x16x128_f8f6f4" Scaled Fp4 Fp4 F32, 16 128, "int16" "int16";
}
