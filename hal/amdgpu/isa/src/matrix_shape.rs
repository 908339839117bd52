//! Shapes of matrix operations, derived from their names.

/// The shape of an MFMA operation, dense or sparse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixShape {
    /// Rows and columns; `None` for unknown sizes.
    pub tile: Option<Tile>,
    /// The operation works on several blocks of narrow elements.
    pub has_blocks: bool,
    /// A and B have single precision.
    pub has_single_sources: bool,
}

/// Rows and columns of the result of a matrix operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tile {
    Size4,
    Size16,
    Size32,
}

impl MatrixShape {
    /// The shape in a canonical name: `16x16` of `v_mfma_f32_16x16x4f32`.
    pub fn from_name(name: &str) -> Option<MatrixShape> {
        let shape = name.strip_prefix("v_mfma_").or_else(|| name.strip_prefix("v_smfmac_"))?;
        let shape = shape.strip_prefix("scale_").unwrap_or(shape);
        let sizes = shape.split('_').nth(1).unwrap_or_default();
        let tile = [("4x4", Tile::Size4), ("16x16", Tile::Size16), ("32x32", Tile::Size32)]
            .into_iter()
            .find_map(|(size, tile)| sizes.starts_with(size).then_some(tile));
        let is_narrow =
            |source: &str| ["f16", "bf16", "i8"].iter().any(|narrow| source.starts_with(narrow));
        let has_blocks = ["16x16x4", "32x32x4"]
            .iter()
            .any(|size| name.split_once(size).is_some_and(|(_, source)| is_narrow(source)));
        let has_single_sources = name.ends_with("f32") && !name.ends_with("xf32");
        Some(MatrixShape { tile, has_blocks, has_single_sources })
    }
}
