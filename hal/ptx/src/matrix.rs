//! Forms of matrix products in registers (PTX ISA, "mma").

use crate::Form;
use flipwave_arch::{ProductShape, SumType};

/// Columns of B.
const COLUMNS: u8 = 8;

/// Type of the elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatrixType {
    F16,
    Bf16,
    F32,
    F64,
    /// Single precision of which 10 bits of the fraction count.
    Tf32,
    /// 8 bits with 4 bits of exponent.
    E4M3,
    /// 8 bits with 5 bits of exponent.
    E5M2,
    S8,
    U8,
    S32,
}

impl MatrixType {
    fn parse(name: &str) -> Option<MatrixType> {
        Some(match name {
            "f16" => MatrixType::F16,
            "bf16" => MatrixType::Bf16,
            "f32" => MatrixType::F32,
            "f64" => MatrixType::F64,
            "tf32" => MatrixType::Tf32,
            "e4m3" => MatrixType::E4M3,
            "e5m2" => MatrixType::E5M2,
            "s8" => MatrixType::S8,
            "u8" => MatrixType::U8,
            "s32" => MatrixType::S32,
            _ => return None,
        })
    }

    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            MatrixType::F64 => 64,
            MatrixType::F32 | MatrixType::Tf32 | MatrixType::S32 => 32,
            MatrixType::F16 | MatrixType::Bf16 => 16,
            MatrixType::E4M3 | MatrixType::E5M2 | MatrixType::S8 | MatrixType::U8 => 8,
        }
    }

    /// Elements in a register.
    pub fn per_register(self) -> usize {
        (32 / self.bits()).max(1) as usize
    }

    /// Returns `true` for integers.
    pub fn is_integer(self) -> bool {
        matches!(self, MatrixType::S8 | MatrixType::U8 | MatrixType::S32)
    }
}

/// A product D = A * B + C of matrices that a wave holds in registers. B has 8 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixForm {
    /// Rows of A: 8 or 16.
    pub rows: usize,
    /// Products per sum.
    pub products: usize,
    /// Types of D, A, B and C.
    pub types: [MatrixType; 4],
    /// `.satfinite`: integers are clamped.
    pub clamps: bool,
}

impl MatrixForm {
    /// The product of a form; `None` for other instructions, and for products with other layouts: sparse and
    /// scaled ones, those of 4 bits or less, and `m8n8k4` of `.f16`.
    pub fn of(form: &Form) -> Option<MatrixForm> {
        let has_all = ["sync", "row", "col"].iter().all(|name| form.has(name));
        let has_other = form.modifiers().any(|name| {
            name == "sp" || name.starts_with("sp::") || name == "block_scale" || name == "popc"
        });
        if form.opcode() != "mma" || !has_all || has_other {
            return None;
        }
        let (rows, products) = form.modifiers().find_map(shape)?;
        let mut types = form.modifiers().filter_map(MatrixType::parse);
        let all = [types.next()?, types.next()?, types.next()?, types.next()?];
        let [d, a, b, c] = all;
        let is_old = rows == 8 && a == MatrixType::F16;
        let is_mixed = all.iter().any(|kind| kind.is_integer() != d.is_integer());
        let is_complete = types.next().is_none() && d.bits() >= 16 && c.bits() >= 16;
        let fills = |size: usize, kind: MatrixType| {
            size > 0 && size.is_multiple_of(32 * kind.per_register())
        };
        let is_whole = fills(rows * products, a)
            && fills(products * usize::from(COLUMNS), b)
            && [c, d].iter().all(|kind| fills(rows * usize::from(COLUMNS), *kind));
        let are_alike = a == b || a.bits() == 8 && b.bits() == 8;
        let is_known = !is_old && !is_mixed && are_alike && is_complete && is_whole;
        let clamps = form.has("satfinite");
        is_known.then_some(MatrixForm { rows, products, types: all, clamps })
    }

    /// Type of the sums.
    pub fn sum(&self) -> SumType {
        match self.types[0] {
            MatrixType::F64 => SumType::F64,
            kind if kind.is_integer() => SumType::I32,
            _ => SumType::F32,
        }
    }

    /// Dimensions of the product.
    pub fn shape(&self) -> ProductShape {
        let (rows, products) = (self.rows as u8, self.products as u8);
        ProductShape { blocks: 1, rows, columns: COLUMNS, products, group: 1, sum: self.sum() }
    }

    /// Numbers of registers of D, A, B and C.
    pub fn registers(&self) -> [usize; 4] {
        let columns = usize::from(COLUMNS);
        let sizes = [
            self.rows * columns,
            self.rows * self.products,
            self.products * columns,
            self.rows * columns,
        ];
        let mut counts = [0; 4];
        for ((count, size), kind) in counts.iter_mut().zip(sizes).zip(self.types) {
            *count = size / 32 / kind.per_register();
        }
        counts
    }
}

/// A product D = A * B + D of a warpgroup: four waves compute 16 rows each (PTX ISA, "wgmma.mma_async").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpgroupForm {
    /// Columns of B, a multiple of 8.
    pub columns: usize,
    /// The product of one wave with 8 columns of B.
    pub part: MatrixForm,
}

impl WarpgroupForm {
    /// The product of a form; `None` for other instructions, and for sparse and binary products.
    pub fn of(form: &Form) -> Option<WarpgroupForm> {
        let is_dense = form.name().starts_with("wgmma.mma_async.sync.aligned.");
        let [rows, columns, products] = form.modifiers().find_map(dimensions)?;
        let mut types = form.modifiers().filter_map(MatrixType::parse);
        let [d, a, b] = [types.next()?, types.next()?, types.next()?];
        let sums: &[MatrixType] = match a {
            MatrixType::F16 | MatrixType::E4M3 | MatrixType::E5M2 => {
                &[MatrixType::F16, MatrixType::F32]
            }
            MatrixType::Bf16 | MatrixType::Tf32 => &[MatrixType::F32],
            MatrixType::S8 | MatrixType::U8 => &[MatrixType::S32],
            MatrixType::F32 | MatrixType::F64 | MatrixType::S32 => return None,
        };
        let are_alike = a == b || a.bits() == 8 && a.is_integer() == b.is_integer();
        // A row of A and a column of B have 32 bytes.
        let is_whole = rows == 64 && products * a.bits() as usize == 256;
        let has_columns = (8..=256).contains(&columns) && columns.is_multiple_of(8);
        let is_known = is_dense && is_whole && has_columns && are_alike && sums.contains(&d);
        let clamps = form.has("satfinite");
        let part = MatrixForm { rows: 16, products, types: [d, a, b, d], clamps };
        (is_known && types.next().is_none()).then_some(WarpgroupForm { columns, part })
    }
}

/// Rows and products of `m16n8k16`.
fn shape(name: &str) -> Option<(usize, usize)> {
    let [rows, columns, products] = dimensions(name)?;
    (columns == 8 && matches!(rows, 8 | 16) && products <= 64).then_some((rows, products))
}

/// The numbers in `m16n8k16`.
fn dimensions(name: &str) -> Option<[usize; 3]> {
    let (rows, rest) = name.strip_prefix('m')?.split_once('n')?;
    let (columns, products) = rest.split_once('k')?;
    Some([rows.parse().ok()?, columns.parse().ok()?, products.parse().ok()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_registers_follow_from_the_form() {
        let of = |name: &str| MatrixForm::of(&Form::of(name));
        let half = of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").expect("a product");
        assert_eq!((half.registers(), half.shape().products), ([4, 4, 2, 4], 16));
        let bytes =
            of("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32").expect("a product");
        assert_eq!((bytes.registers(), bytes.clamps), ([4, 4, 2, 4], true));
        let double = of("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64").expect("a product");
        assert_eq!((double.registers(), double.sum()), ([2, 1, 1, 2], SumType::F64));
        for name in [
            "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
            "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
            "mma.sync.aligned.m16n8k16.row.col.s32.f16.f16.s32",
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
            "add.f32",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn products_of_warpgroups_follow_from_the_form() {
        let of = |name: &str| {
            WarpgroupForm::of(&Form::of(&format!("wgmma.mma_async.sync.aligned.{name}")))
        };
        let half = of("m64n128k16.f32.f16.f16").expect("a product");
        assert_eq!((half.columns, half.part.registers()), (128, [4, 4, 2, 4]));
        let bytes = of("m64n8k32.satfinite.s32.s8.u8").expect("a product");
        assert_eq!((bytes.part.registers(), bytes.part.clamps), ([4, 4, 2, 4], true));
        for name in [
            "m64n12k16.f32.f16.f16",
            "m64n264k16.f32.f16.f16",
            "m64n8k8.f32.f16.f16",
            "m64n8k16.f16.bf16.bf16",
            "m64n8k32.f32.s8.s8",
            "m64n8k256.s32.b1.b1.and.popc",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
