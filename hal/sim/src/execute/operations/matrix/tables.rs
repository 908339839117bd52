//! Table of the operations in [`super::wide`].

use super::fused::Rule;
use super::wide::{
    Format, Shape, Sum, dense, dense_sum, scaled, scaled_steps, scaled_sum, sparse, sparse_sum,
};
use crate::execute::lane::Kind;
use crate::execute::operations::row::{MatrixProduct, WholeWaveOperation};
use crate::execute::operations::sources;
use flipwave_isa::Float8;

const SOURCES: &[Kind] = &[Kind::Word; 4];
/// Sums of half precision and bfloat16.
const EIGHT: Sum = Sum::Fused(Rule::Together, 8);
/// Sums of `xf32`.
const FOUR: Sum = Sum::Fused(Rule::Together, 4);
/// Sums of 8-bit elements.
const SIXTEEN: Sum = Sum::Fused(Rule::EvenAndOdd, 16);

/// Unsettled behaviour of dense operations of gfx950.
pub(super) const DENSE: Option<&str> = Some("sums round as on gfx942");
/// Unsettled behaviour of sparse operations.
const SPARSE: Option<&str> = Some("sums round as those of dense operations of gfx942");

/// Rows: name, elements of A and of B, summation, rows and columns, products.
macro_rules! operations {
    ($(#[$documentation:meta])* $table:ident: dense, $($rest:tt)*) => {
        operations! { @rows $(#[$documentation])* $table: dense, dense_sum, 1, $($rest)* }
    };
    // A sparse A stores two of each four elements.
    ($(#[$documentation:meta])* $table:ident: sparse, $($rest:tt)*) => {
        operations! { @rows $(#[$documentation])* $table: sparse, sparse_sum, 2, $($rest)* }
    };
    (@rows $(#[$documentation:meta])* $table:ident: $multiply:ident, $sum_by_steps:ident, $share:literal,
     unsettled $unsettled:expr;
     $($name:literal $a:ident $b:ident $sum:ident $size:literal $depth:literal)*) => {
        $(#[$documentation])*
        const $table: &[WholeWaveOperation] = &[$({
            const SHAPE: Shape = Shape {
                size: $size,
                depth: $depth,
                a: Format::$a,
                b: Format::$b,
                sum: $sum,
            };
            WholeWaveOperation {
                unsettled: $unsettled,
                source: Some(sources::MATRICES),
                matrix: Some(MatrixProduct {
                    shape: SHAPE.steps($depth / $share),
                    sum: |wave, op, element, steps| {
                        $sum_by_steps(wave, op, &SHAPE, element, steps)
                    },
                }),
                ..WholeWaveOperation::new($name, SOURCES, |wave, op| $multiply(wave, op, &SHAPE))
            }
        }),*];
    };
}

use Sum::Integers as INTEGERS;

operations! {
    /// Integers.
    INTEGER: dense, unsettled None;
    "v_mfma_i32_16x16x32i8" Byte Byte INTEGERS 16 32
    "v_mfma_i32_32x32x16i8" Byte Byte INTEGERS 32 16
    "v_mfma_i32_16x16x64i8" Byte Byte INTEGERS 16 64
    "v_mfma_i32_32x32x32i8" Byte Byte INTEGERS 32 32
}

operations! {
    /// Sparse integers.
    SPARSE_INTEGER: sparse, unsettled None;
    "v_smfmac_i32_16x16x64_i8"  Byte Byte INTEGERS 16  64
    "v_smfmac_i32_32x32x32_i8"  Byte Byte INTEGERS 32  32
    "v_smfmac_i32_16x16x128_i8" Byte Byte INTEGERS 16 128
    "v_smfmac_i32_32x32x64_i8"  Byte Byte INTEGERS 32  64
}

operations! {
    /// Single precision truncated to 19 bits.
    XF32: dense, unsettled None;
    "v_mfma_f32_16x16x8_xf32" Xf32 Xf32 FOUR 16 8
    "v_mfma_f32_32x32x4_xf32" Xf32 Xf32 FOUR 32 4
}

/// Operations on half precision and bfloat16 that gfx90a also has and that compute one matrix.
macro_rules! short_operations {
    ($table:ident, unsettled $unsettled:expr) => {
        operations! {
            $table: dense, unsettled $unsettled;
            "v_mfma_f32_32x32x8f16"      F16  F16  EIGHT 32  8
            "v_mfma_f32_16x16x16f16"     F16  F16  EIGHT 16 16
            "v_mfma_f32_32x32x8bf16_1k"  BF16 BF16 EIGHT 32  8
            "v_mfma_f32_16x16x16bf16_1k" BF16 BF16 EIGHT 16 16
        }
    };
}

short_operations!(SHORT_CDNA3, unsettled None);
short_operations!(SHORT_CDNA4, unsettled DENSE);

operations! {
    /// Half precision and bfloat16 of gfx950.
    SHORT: dense, unsettled DENSE;
    "v_mfma_f32_16x16x32f16"     F16  F16  EIGHT 16 32
    "v_mfma_f32_32x32x16f16"     F16  F16  EIGHT 32 16
    "v_mfma_f32_16x16x32bf16_1k" BF16 BF16 EIGHT 16 32
    "v_mfma_f32_32x32x16bf16_1k" BF16 BF16 EIGHT 32 16
}

operations! {
    /// Sparse half precision and bfloat16.
    SPARSE_SHORT: sparse, unsettled SPARSE;
    "v_smfmac_f32_16x16x32_f16"  F16  F16  EIGHT 16 32
    "v_smfmac_f32_32x32x16_f16"  F16  F16  EIGHT 32 16
    "v_smfmac_f32_16x16x32_bf16" BF16 BF16 EIGHT 16 32
    "v_smfmac_f32_32x32x16_bf16" BF16 BF16 EIGHT 32 16
    "v_smfmac_f32_16x16x64_f16"  F16  F16  EIGHT 16 64
    "v_smfmac_f32_32x32x32_f16"  F16  F16  EIGHT 32 32
    "v_smfmac_f32_16x16x64_bf16" BF16 BF16 EIGHT 16 64
    "v_smfmac_f32_32x32x32_bf16" BF16 BF16 EIGHT 32 32
}

/// Operations on 8-bit elements, parameterized by their formats.
macro_rules! byte_operations {
    ($dense:ident $sparse:ident $fp8:ident $bf8:ident, unsettled $unsettled:expr) => {
        operations! {
            $dense: dense, unsettled $unsettled;
            "v_mfma_f32_16x16x32_fp8_fp8" $fp8 $fp8 SIXTEEN 16 32
            "v_mfma_f32_16x16x32_fp8_bf8" $fp8 $bf8 SIXTEEN 16 32
            "v_mfma_f32_16x16x32_bf8_fp8" $bf8 $fp8 SIXTEEN 16 32
            "v_mfma_f32_16x16x32_bf8_bf8" $bf8 $bf8 SIXTEEN 16 32
            "v_mfma_f32_32x32x16_fp8_fp8" $fp8 $fp8 SIXTEEN 32 16
            "v_mfma_f32_32x32x16_fp8_bf8" $fp8 $bf8 SIXTEEN 32 16
            "v_mfma_f32_32x32x16_bf8_fp8" $bf8 $fp8 SIXTEEN 32 16
            "v_mfma_f32_32x32x16_bf8_bf8" $bf8 $bf8 SIXTEEN 32 16
        }

        operations! {
            $sparse: sparse, unsettled SPARSE;
            "v_smfmac_f32_16x16x64_fp8_fp8"  $fp8 $fp8 SIXTEEN 16  64
            "v_smfmac_f32_16x16x64_fp8_bf8"  $fp8 $bf8 SIXTEEN 16  64
            "v_smfmac_f32_16x16x64_bf8_fp8"  $bf8 $fp8 SIXTEEN 16  64
            "v_smfmac_f32_16x16x64_bf8_bf8"  $bf8 $bf8 SIXTEEN 16  64
            "v_smfmac_f32_32x32x32_fp8_fp8"  $fp8 $fp8 SIXTEEN 32  32
            "v_smfmac_f32_32x32x32_fp8_bf8"  $fp8 $bf8 SIXTEEN 32  32
            "v_smfmac_f32_32x32x32_bf8_fp8"  $bf8 $fp8 SIXTEEN 32  32
            "v_smfmac_f32_32x32x32_bf8_bf8"  $bf8 $bf8 SIXTEEN 32  32
            "v_smfmac_f32_16x16x128_fp8_fp8" $fp8 $fp8 SIXTEEN 16 128
            "v_smfmac_f32_16x16x128_fp8_bf8" $fp8 $bf8 SIXTEEN 16 128
            "v_smfmac_f32_16x16x128_bf8_fp8" $bf8 $fp8 SIXTEEN 16 128
            "v_smfmac_f32_16x16x128_bf8_bf8" $bf8 $bf8 SIXTEEN 16 128
            "v_smfmac_f32_32x32x64_fp8_fp8"  $fp8 $fp8 SIXTEEN 32  64
            "v_smfmac_f32_32x32x64_fp8_bf8"  $fp8 $bf8 SIXTEEN 32  64
            "v_smfmac_f32_32x32x64_bf8_fp8"  $bf8 $fp8 SIXTEEN 32  64
            "v_smfmac_f32_32x32x64_bf8_bf8"  $bf8 $bf8 SIXTEEN 32  64
        }
    };
}

byte_operations!(OCP SPARSE_OCP FP8 BF8, unsettled DENSE);
byte_operations!(FNUZ SPARSE_FNUZ FP8_FNUZ BF8_FNUZ, unsettled None);

/// A row of [`MIXED`]: name, rows and columns, and whether there are scales.
macro_rules! mixed {
    ($name:literal $size:literal $has_scales:literal) => {
        WholeWaveOperation {
            unsettled: DENSE,
            matrix: Some(MatrixProduct {
                shape: scaled_steps($size),
                sum: |wave, op, element, steps| {
                    scaled_sum(wave, op, $size, $has_scales, element, steps)
                },
            }),
            ..WholeWaveOperation::new($name, SOURCES, |wave, op| {
                scaled(wave, op, $size, $has_scales);
            })
        }
    };
}

/// Operations of gfx950 whose formats are modifiers.
const MIXED: &[WholeWaveOperation] = &[
    mixed!("v_mfma_f32_16x16x128_f8f6f4" 16 false),
    mixed!("v_mfma_f32_32x32x64_f8f6f4" 32 false),
    mixed!("v_mfma_scale_f32_16x16x128_f8f6f4" 16 true),
    mixed!("v_mfma_scale_f32_32x32x64_f8f6f4" 32 true),
    // This is the first half of the two instructions above. Scales do not affect other operations.
    WholeWaveOperation {
        unsettled: Some("alone it does nothing"),
        ..WholeWaveOperation::new("v_mfma_ld_scale_b32", SOURCES, |wave, _| {
            wave.written_lanes = None;
        })
    },
];

/// Operations of CDNA 3 and CDNA 4, for the format of 8-bit elements.
pub(super) fn operations(kind: Float8) -> impl Iterator<Item = &'static WholeWaveOperation> {
    let byte_operations = match kind {
        Float8::Ocp => [SHORT_CDNA4, OCP, SPARSE_OCP],
        Float8::Fnuz => [SHORT_CDNA3, FNUZ, SPARSE_FNUZ],
    };
    let others = [INTEGER, SPARSE_INTEGER, XF32, SHORT, SPARSE_SHORT, MIXED];
    others.into_iter().chain(byte_operations).flatten()
}
