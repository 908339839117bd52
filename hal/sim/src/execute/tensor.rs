//! Moves tiles of tensors between memory and LDS, regardless of EXEC (gfx1250; CDNA 5 ISA, 10.11,
//! as public documents restate it; MLIR, the lowering of `amdgpu.make_dma_descriptor`; Triton,
//! `fillTDMDescriptor`). Descriptors that use unsupported features are refused. MLIR and Triton
//! disagree on which bit enables the gathering of rows and which selects long indices; this
//! implementation follows Triton.

use super::lds;
use crate::instruction::tensor::Direction;
use crate::instruction::{Op, Word};
use crate::memory::atomic::Atomic;
use crate::memory::{Memory, read_bytes, write_bytes};
use crate::wave::{ScalarIndex, Wave};
use flipwave_device::{AccessKind, FaultCause};
use flipwave_isa::Lane;
use std::ops::Range;

/// Maximum number of elements of a tile, over all its iterations: the byte size of the LDS address
/// space (LLVM's feature AddressableLocalMemorySize327680).
const MOST_ELEMENTS: u64 = 320 << 10;

/// Bits of a descriptor: four groups of scalar registers, one after the other.
struct Bits([u32; 20]);

impl Bits {
    /// Reads the groups in the sources: four registers, eight, four and four.
    fn of(wave: &Wave, op: &Op) -> Bits {
        let mut words = [0; 20];
        for (source, (start, count)) in op.sources.iter().zip([(0, 4), (4, 8), (12, 4), (16, 4)]) {
            if let Word::Scalar(first) = source.words[0] {
                for at in 0..count {
                    words[start + at] = wave.scalar(ScalarIndex(first.0.saturating_add(at as u8)));
                }
            }
        }
        Bits(words)
    }

    /// Reads `count` bits of a group, starting at bit `first`.
    fn field(&self, group: usize, first: u32, count: u32) -> u64 {
        let start = [0, 128, 384, 512][group] + first as usize;
        (0..count as usize).fold(0, |value, at| {
            let bit = self.0[(start + at) / 32] >> ((start + at) % 32) & 1;
            value | u64::from(bit) << at
        })
    }
}

/// A tile of a tensor, and its location.
struct Tile {
    lds: u64,
    global: u64,
    /// Bytes per element.
    element: u64,
    /// Elements of the tensor from the tile's start on, in each dimension.
    tensor: [u64; 5],
    /// Elements of the tile; zero in unused dimensions.
    tile: [u64; 5],
    /// Distance between neighbours in each dimension, in elements.
    strides: [u64; 5],
    /// Padding in LDS: the bytes after which padding follows, and the bytes of padding.
    padding: Option<(u64, u64)>,
    /// Number of iterations, and the distance between them in LDS and in memory, in elements.
    iterations: (u64, u64, u64),
    /// Rows to gather, instead of consecutive ones.
    rows: Option<Vec<u64>>,
    /// LDS address of the barrier that the move arrives at.
    barrier: Option<u32>,
}

impl Tile {
    /// Decodes a descriptor; `None` if nothing is moved. Returns the reason if the descriptor is
    /// not supported.
    fn of(bits: &Bits, direction: Direction) -> Result<Option<Tile>, &'static str> {
        let is_set = |group, bit| bits.field(group, bit, 1) != 0;
        match bits.field(0, 0, 2) {
            0 => return Ok(None),
            1 if bits.field(0, 126, 2) == 2 => {}
            _ => return Err("unknown descriptor type"),
        }
        // Stores have no workgroup mask.
        if direction == Direction::ToLds && bits.field(1, 0, 16) > 1 {
            return Err("workgroup clusters are not supported");
        }
        if bits.field(1, 112, 16) == 0 {
            return Ok(None);
        }
        let (gathers, iterates) = (is_set(0, 31), is_set(1, 19));
        let count = bits.field(1, 128, 16);
        let rows = gathers.then(|| {
            let (width, most) = if is_set(0, 30) { (32, 8) } else { (16, 16) };
            (0..count.min(most)).map(|at| bits.field(2, width * at as u32, width)).collect()
        });
        let has_more = !gathers;
        let more = |group, first, width| if has_more { bits.field(group, first, width) } else { 0 };
        let third = |first, width| if iterates { 0 } else { more(2, first, width) };
        let tile = Tile {
            lds: bits.field(0, 32, 32),
            global: bits.field(0, 64, 57),
            element: 1 << bits.field(1, 16, 2),
            tensor: [
                bits.field(1, 48, 32),
                bits.field(1, 80, 32),
                more(2, 0, 32),
                third(32, 32),
                more(3, 48, 32),
            ],
            tile: [
                bits.field(1, 112, 16),
                count,
                more(1, 144, 16),
                third(112, 16),
                more(3, 80, 16),
            ],
            strides: [
                1,
                bits.field(1, 160, 48),
                bits.field(1, 208, 48),
                third(64, 48),
                more(3, 0, 48),
            ],
            padding: is_set(1, 20)
                .then(|| (8 << bits.field(1, 22, 3), 4 * (bits.field(1, 25, 7) + 1))),
            iterations: if iterates && has_more {
                (bits.field(2, 112, 16) + 1, bits.field(2, 32, 32), bits.field(2, 64, 48))
            } else {
                (1, 0, 0)
            },
            rows,
            barrier: is_set(1, 18).then(|| 8 * bits.field(1, 32, 16) as u32),
        };
        let all = tile.tile.iter().chain([&tile.iterations.0]);
        let count = all.fold(1u64, |count, size| count.saturating_mul((*size).max(1)));
        if count > MOST_ELEMENTS {
            Err("the tile has more elements than LDS has bytes")
        } else {
            Ok(Some(tile))
        }
    }

    /// LDS and memory addresses of the tile's elements, in order; `None` for memory outside the
    /// tensor.
    fn places(&self, is_padded: bool) -> impl Iterator<Item = (u64, Option<u64>)> {
        let [columns, tile_rows, planes, third, fourth] = self.tile.map(|size| size.max(1));
        let rows = self.rows.as_ref().map_or(tile_rows, |rows| rows.len() as u64);
        let each = columns * rows * planes * third * fourth;
        let (times, lds_apart, global_apart) = self.iterations;
        (0..times).flat_map(move |time| {
            (0..each).map(move |at| {
                let row = at / columns % rows;
                let row = self.rows.as_ref().map_or(row, |rows| rows[row as usize]);
                let place = [
                    at % columns,
                    row,
                    at / (columns * rows) % planes,
                    at / (columns * rows * planes) % third,
                    at / (columns * rows * planes * third),
                ];
                let bounds = self.tensor.iter().zip(&self.tile);
                let is_inside = place
                    .iter()
                    .zip(bounds)
                    .all(|(place, (size, tile))| *tile == 0 || place < size);
                let distance = place.iter().zip(self.strides).fold(0u64, |sum, (place, stride)| {
                    sum.wrapping_add(place.wrapping_mul(stride))
                });
                let bytes = |elements: u64| elements.wrapping_mul(self.element);
                let left_out = match self.padding {
                    Some((after, amount)) if is_padded => bytes(at) / after * amount,
                    _ => 0,
                };
                let lds = self.lds + bytes(time * lds_apart + at) + left_out;
                let global = self.global.wrapping_add(bytes(time * global_apart + distance));
                (lds, is_inside.then_some(global))
            })
        })
    }
}

/// Returns the bytes of LDS that a move writes; none if its descriptor is not supported.
pub fn written_lds(wave: &Wave, op: &Op, direction: Direction) -> Vec<Range<u32>> {
    let tile = match Tile::of(&Bits::of(wave, op), direction) {
        Ok(Some(tile)) if direction == Direction::ToLds => tile,
        _ => return Vec::new(),
    };
    let bytes = tile.element as u32;
    let starts = tile.places(true).filter_map(|(in_lds, _)| u32::try_from(in_lds).ok());
    starts.map(|start| start..start.saturating_add(bytes)).collect()
}

/// Moves a tile. Elements outside the tensor are zero in LDS, and are not written to memory.
///
/// # Errors
/// A memory violation, or a descriptor that uses unsupported features.
#[cold]
#[inline(never)]
pub fn execute(
    wave: &mut Wave,
    op: &Op,
    direction: Direction,
    memory: &mut dyn Memory,
    own_lds: &mut [u8],
) -> Result<(), FaultCause> {
    let tile = Tile::of(&Bits::of(wave, op), direction);
    let tile = tile.map_err(|reason| FaultCause::Unimplemented {
        instruction: op.inst.text.as_str().into(),
        reason: reason.into(),
    })?;
    let Some(tile) = tile else { return Ok(()) };
    let bytes = tile.element as usize;
    for (in_lds, in_memory) in tile.places(direction == Direction::ToLds) {
        // Addresses beyond the LDS address space are out of range.
        let in_lds = u32::try_from(in_lds).unwrap_or(u32::MAX);
        match (direction, in_memory) {
            (Direction::ToLds, place) => {
                let mut element = [0; 8];
                if let Some(at) = place {
                    read_bytes(memory, at, &mut element[..bytes], AccessKind::Read, None)?;
                }
                lds::write(own_lds, in_lds, &element[..bytes]);
            }
            (Direction::FromLds, Some(at)) => {
                let element = lds::read(own_lds, in_lds, bytes);
                write_bytes(memory, at, &element[..bytes], AccessKind::Write, None)?;
            }
            (Direction::FromLds, None) => {}
        }
    }
    if let Some(barrier) = tile.barrier {
        lds::modify(own_lds, barrier, Lane(0), Atomic::BARRIER_ARRIVE, [1, 0])?;
    }
    Ok(())
}
