//! Operations that are not lane by lane: moves between lanes and scalars, exchanges, and operations
//! whose results are wider than two words.

use super::media::masked_difference;
use super::row::WholeWaveOperation;
use crate::execute::lane::Kind;
use crate::execute::operand::scalar_word;
use crate::instruction::Op;
use crate::wave::{Row, RowIndex, ScalarIndex, Wave, blend};
use flipwave_isa::LaneMask;

/// The operations.
pub(super) static TABLE: &[WholeWaveOperation] = &[
    WholeWaveOperation::new("v_readfirstlane_b32", &[Kind::Word], read_first_lane),
    WholeWaveOperation::new("v_readlane_b32", &[Kind::Word, Kind::Word], read_lane),
    WholeWaveOperation::new("v_writelane_b32", &[Kind::Word, Kind::Word], write_lane),
    WholeWaveOperation::new(
        "v_permlane16_b32",
        &[Kind::Word, Kind::Word, Kind::Word],
        permute_within_rows,
    ),
    WholeWaveOperation::new(
        "v_permlanex16_b32",
        &[Kind::Word, Kind::Word, Kind::Word],
        permute_across_rows,
    ),
    WholeWaveOperation::new("v_movrels_b32", &[Kind::Word], move_from_relative),
    WholeWaveOperation::new("v_movreld_b32", &[Kind::Word], move_to_relative),
    WholeWaveOperation::new("v_movrelsd_b32", &[Kind::Word], move_between_relative),
    WholeWaveOperation::new("v_movrelsd_2_b32", &[Kind::Word], move_between_two_relative),
    WholeWaveOperation::new("v_swaprel_b32", &[Kind::Word], swap_relative),
    WholeWaveOperation::new("v_permlane64_b32", &[Kind::Word], swap_half_waves),
    WholeWaveOperation::new(
        "v_permlane16_var_b32",
        &[Kind::Word, Kind::Word],
        permute_within_rows_by_lane,
    ),
    WholeWaveOperation::new(
        "v_permlanex16_var_b32",
        &[Kind::Word, Kind::Word],
        permute_across_rows_by_lane,
    ),
    WholeWaveOperation::new("v_swap_b32", &[Kind::Word], swap),
    WholeWaveOperation::new("v_swap_b16", &[Kind::Half], swap_halves),
    WholeWaveOperation::new("v_mqsad_u32_u8", &[Kind::Wide, Kind::Word, Kind::Wide], masked_sums),
    WholeWaveOperation {
        unsettled: Some("lanes that are not active count as in DPP"),
        ..WholeWaveOperation::new("v_permlane16_swap_b32", &[Kind::Word], swap_rows)
    },
    WholeWaveOperation {
        unsettled: Some("lanes that are not active count as in DPP"),
        ..WholeWaveOperation::new("v_permlane32_swap_b32", &[Kind::Word], swap_halves_of_wave)
    },
];

/// Word of one lane of the first source.
fn lane_of_source(wave: &Wave, op: &Op, lane: usize) -> u32 {
    match op.sources[0].row() {
        Some(row) => wave.row(row).0[lane],
        None => scalar_word(wave, op.sources[0].words[0]),
    }
}

/// Lane that the second source selects.
fn selected_lane(wave: &Wave, op: &Op) -> usize {
    scalar_word(wave, op.sources[1].words[0]) as usize % usize::from(wave.machine.lanes)
}

/// Reads the lowest active lane, or lane 0 if none is active.
fn read_first_lane(wave: &mut Wave, op: &Op) {
    let first = wave.exec().nth(0).map_or(0, |lane| lane.0.into());
    let value = lane_of_source(wave, op, first);
    wave.write_scalar(op.scalar_destination, value);
}

/// Reads a lane regardless of EXEC.
fn read_lane(wave: &mut Wave, op: &Op) {
    let value = lane_of_source(wave, op, selected_lane(wave, op));
    wave.write_scalar(op.scalar_destination, value);
}

/// Writes a lane regardless of EXEC.
fn write_lane(wave: &mut Wave, op: &Op) {
    let lane = selected_lane(wave, op);
    let value = scalar_word(wave, op.sources[0].words[0]);
    wave.row_mut(op.destination).0[lane] = value;
    wave.written_lanes = Some(LaneMask(1 << lane));
}

/// Each lane takes the word of a lane of its row of 16 (RDNA 3 ISA, "V_PERMLANE16_B32").
fn permute_within_rows(wave: &mut Wave, op: &Op) {
    permute_rows(wave, op, 0);
}

/// Each lane takes the word of a lane of the other row of its pair (RDNA 3 ISA,
/// "V_PERMLANEX16_B32").
fn permute_across_rows(wave: &mut Wave, op: &Op) {
    permute_rows(wave, op, 16);
}

/// The second and third source select the lane of the row at `distance`, four bits per lane. An
/// inactive lane is read with `op_sel` 0; otherwise it gives zero with `op_sel` 1, and keeps the
/// destination without.
fn permute_rows(wave: &mut Wave, op: &Op, distance: usize) {
    let [low, high] = [1, 2].map(|source: usize| scalar_word(wave, op.sources[source].words[0]));
    let select = u64::from(low) | u64::from(high) << 32;
    permute_rows_by(wave, op, distance, |lane| (select >> (4 * (lane % 16)) & 15) as usize);
}

/// Each lane takes the word of the lane of its row that the second source selects for it (RDNA 4
/// ISA, "V_PERMLANE16_VAR_B32").
fn permute_within_rows_by_lane(wave: &mut Wave, op: &Op) {
    let select = vector_source(wave, op, 1);
    permute_rows_by(wave, op, 0, |lane| (select.0[lane] & 15) as usize);
}

/// Each lane takes a lane of the other row of its pair that the second source selects (RDNA 4 ISA,
/// "V_PERMLANEX16_VAR_B32").
fn permute_across_rows_by_lane(wave: &mut Wave, op: &Op) {
    let select = vector_source(wave, op, 1);
    permute_rows_by(wave, op, 16, |lane| (select.0[lane] & 15) as usize);
}

/// Reads a source in all lanes.
fn vector_source(wave: &Wave, op: &Op, source: usize) -> Row {
    match op.sources[source].row() {
        Some(row) => *wave.row(row),
        None => Row::splat(scalar_word(wave, op.sources[source].words[0])),
    }
}

fn permute_rows_by(wave: &mut Wave, op: &Op, distance: usize, select: impl Fn(usize) -> usize) {
    let op_sel = op.inst.modifiers.op_sel.unwrap_or(0);
    let (fetch_inactive, bound_control) = (op_sel & 1 != 0, op_sel & 2 != 0);
    let exec = wave.exec();
    let mut result = Row::ZERO;
    let mut written = LaneMask::EMPTY;
    for lane in exec.lanes() {
        let index = usize::from(lane.0);
        let from = (index & !15 ^ distance) + select(index);
        let readable = fetch_inactive || exec.0 >> from & 1 != 0;
        if readable {
            result.0[index] = lane_of_source(wave, op, from);
        }
        if readable || bound_control {
            written.0 |= 1 << index;
        }
    }
    blend(wave.row_mut(op.destination), &result, &Row::expand(written));
    wave.written_lanes = Some(written);
}

/// Swaps the halves of a wave of 64 lanes; does nothing with 32 lanes. Reads regardless of EXEC
/// (RDNA 3 ISA, "V_PERMLANE64_B32").
fn swap_half_waves(wave: &mut Wave, op: &Op) {
    if wave.machine.lanes == 64 {
        let source = vector_source(wave, op, 0);
        let swapped = Row(std::array::from_fn(|lane| source.0[lane ^ 32]));
        wave.write_row(op.destination, &swapped);
    }
}

/// Register at distance M0 from `row`; `None` outside the wave's allocation.
fn relative(wave: &Wave, row: RowIndex) -> Option<RowIndex> {
    at_distance(wave, row, wave.scalar(ScalarIndex::M0))
}

fn at_distance(wave: &Wave, row: RowIndex, distance: u32) -> Option<RowIndex> {
    let index = u32::from(row.0).checked_add(distance)?;
    (index < wave.vgpr_count.into()).then_some(RowIndex(index as u16))
}

/// Source register and destination register, at the distances M0[9:0] and M0[25:16] (RDNA 3 ISA,
/// "V_MOVRELSD_2_B32").
fn two_relative(wave: &Wave, op: &Op) -> [Option<RowIndex>; 2] {
    let m0 = wave.scalar(ScalarIndex::M0);
    let source = op.sources[0].row();
    [
        source.and_then(|row| at_distance(wave, row, m0 & 0x3ff)),
        at_distance(wave, op.destination, m0 >> 16 & 0x3ff),
    ]
}

/// Moves between registers with a separate distance for each.
fn move_between_two_relative(wave: &mut Wave, op: &Op) {
    let [source, destination] = two_relative(wave, op);
    if let Some(destination) = destination {
        let value = match op.sources[0].row() {
            Some(_) => *wave.row(source.unwrap_or(RowIndex(0))),
            None => vector_source(wave, op, 0),
        };
        write_moved(wave, op, destination, value);
    }
}

/// Swaps registers with a separate distance for each; does nothing if one is outside the wave's
/// allocation.
fn swap_relative(wave: &mut Wave, op: &Op) {
    if let [Some(source), Some(destination)] = two_relative(wave, op) {
        let values = [*wave.row(source), *wave.row(destination)];
        wave.write_row(destination, &values[0]);
        wave.write_row(source, &values[1]);
    }
}

/// The first source; a register outside the wave's allocation reads as `v0`.
fn relative_source(wave: &Wave, op: &Op) -> Row {
    match op.sources[0].row() {
        Some(row) => *wave.row(relative(wave, row).unwrap_or(RowIndex(0))),
        None => Row::splat(scalar_word(wave, op.sources[0].words[0])),
    }
}

/// Moves from the register at distance M0.
fn move_from_relative(wave: &mut Wave, op: &Op) {
    let value = relative_source(wave, op);
    write_moved(wave, op, op.destination, value);
}

/// Writes a row, with its lanes moved by the instruction's DPP or permutation modifier.
fn write_moved(wave: &mut Wave, op: &Op, destination: RowIndex, value: Row) {
    match op.lane_move() {
        None => wave.write_row(destination, &value),
        Some(lane_move) => {
            let mut rows = [value];
            let written = lane_move.apply(&mut rows, wave.exec_row()).0 & wave.exec().0;
            blend(wave.row_mut(destination), &rows[0], &Row::expand(LaneMask(written)));
        }
    }
}

/// Moves to the register at distance M0.
fn move_to_relative(wave: &mut Wave, op: &Op) {
    let value = match op.sources[0].row() {
        Some(row) => *wave.row(row),
        None => Row::splat(scalar_word(wave, op.sources[0].words[0])),
    };
    if let Some(destination) = relative(wave, op.destination) {
        write_moved(wave, op, destination, value);
    }
}

/// Moves between registers, both at distance M0.
fn move_between_relative(wave: &mut Wave, op: &Op) {
    let value = relative_source(wave, op);
    if let Some(destination) = relative(wave, op.destination) {
        write_moved(wave, op, destination, value);
    }
}

/// Swaps two registers in the active lanes.
fn swap(wave: &mut Wave, op: &Op) {
    let Some(other) = op.sources[0].row() else { return };
    let values = [*wave.row(op.destination), *wave.row(other)];
    wave.write_row(op.destination, &values[1]);
    wave.write_row(other, &values[0]);
}

/// Swaps odd rows of 16 lanes of the first register with even rows of the second (CDNA 4 ISA,
/// "V_PERMLANE16_SWAP_B32").
fn swap_rows(wave: &mut Wave, op: &Op) {
    swap_lanes(wave, op, 16);
}

/// Swaps the upper half of the lanes of the first register with the lower half of the second (CDNA
/// 4 ISA, "V_PERMLANE32_SWAP_B32").
fn swap_halves_of_wave(wave: &mut Wave, op: &Op) {
    swap_lanes(wave, op, 32);
}

/// Swaps the upper group of each two groups of lanes of the first register with the lower group of
/// the second. Inactive lanes are not written; the value of an inactive lane is read with `fi`, is
/// zero with `bound_ctrl`, and otherwise leaves its counterpart unchanged.
fn swap_lanes(wave: &mut Wave, op: &Op, distance: usize) {
    let Some(other) = op.sources[0].row() else { return };
    let (fetch_inactive, bound_control) = op
        .inst
        .modifiers
        .dpp
        .as_ref()
        .map_or((false, false), |dpp| (dpp.fetch_inactive, dpp.bound_control));
    let exec = wave.exec();
    let [first, second] = [*wave.row(op.destination), *wave.row(other)];
    for lane in exec.lanes() {
        let lane = usize::from(lane.0);
        let partner = lane ^ distance;
        let is_upper = lane & distance != 0;
        let (register, from) = if is_upper { (op.destination, &second) } else { (other, &first) };
        if fetch_inactive || exec.0 >> partner & 1 != 0 {
            wave.row_mut(register).0[lane] = from.0[partner];
        } else if bound_control {
            wave.row_mut(register).0[lane] = 0;
        }
    }
}

/// Swaps half registers; the other halves stay unchanged.
fn swap_halves(wave: &mut Wave, op: &Op) {
    let Some(other) = op.sources[0].row() else { return };
    let high = op.inst.modifiers.op_sel.unwrap_or(0);
    let shifts = [0, 1].map(|operand| u32::from(high >> operand & 1) * 16);
    for lane in wave.exec().lanes() {
        let lane = usize::from(lane.0);
        let half = |row: RowIndex, shift: u32| wave.row(row).0[lane] >> shift & 0xffff;
        let halves = [half(op.destination, shifts[0]), half(other, shifts[1])];
        for (row, shift, half) in
            [(op.destination, shifts[0], halves[1]), (other, shifts[1], halves[0])]
        {
            let word = &mut wave.row_mut(row).0[lane];
            *word = *word & !(0xffff << shift) | half << shift;
        }
    }
}

/// `v_mqsad_u32_u8`: sums of differences between the second source and the four words that start at
/// the low bytes of the first, each added to a word of the third source, which is four words wide.
fn masked_sums(wave: &mut Wave, op: &Op) {
    let row = |source: usize, word: usize| match op.sources[source].words[word] {
        crate::instruction::Word::Row(row) => *wave.row(row),
        other => Row::splat(scalar_word(wave, other)),
    };
    let bytes = [row(0, 0), row(0, 1)];
    let reference = row(1, 0);
    let sums: [Row; 4] = std::array::from_fn(|word| match op.sources[2].row() {
        Some(RowIndex(first)) => *wave.row(RowIndex(first + word as u16)),
        None => row(2, word.min(1)),
    });
    for (word, sums) in sums.iter().enumerate() {
        let result = Row(std::array::from_fn(|lane| {
            let all = u64::from(bytes[0].0[lane]) | u64::from(bytes[1].0[lane]) << 32;
            let difference = masked_difference((all >> (8 * word)) as u32, reference.0[lane]);
            if op.inst.modifiers.clamp {
                sums.0[lane].saturating_add(difference)
            } else {
                sums.0[lane].wrapping_add(difference)
            }
        }));
        wave.write_row(op.destination.plus(word as u16), &result);
    }
}
