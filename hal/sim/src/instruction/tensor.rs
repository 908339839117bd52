//! Moves of tensors between memory and LDS (gfx1250).

/// Direction of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Memory to LDS.
    ToLds,
    /// LDS to memory.
    FromLds,
}

/// Returns the direction of the move with a canonical name.
pub fn find(name: &str) -> Option<Direction> {
    match name {
        "tensor_load_to_lds" => Some(Direction::ToLds),
        "tensor_store_from_lds" => Some(Direction::FromLds),
        _ => None,
    }
}
