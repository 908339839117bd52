//! LDS operations on all lanes at once. If an element is out of range or misaligned, or the data of an
//! atomic operation is a constant, they return `false` without side effects that a repetition would not
//! have.

use super::operands::{addresses, by_thread, two_offsets};
use crate::execute::lane_access::{self, Part, Placed};
use crate::instruction::lds::LdsAccess;
use crate::instruction::{Element, Op};
use crate::memory::atomic::Atomic;
use crate::wave::{LANES, Row, RowIndex, Wave};

/// Executes an operation that makes one or two accesses per lane.
#[inline(always)]
pub fn at_once(wave: &mut Wave, op: &Op, access: LdsAccess, lds: &mut [u8]) -> bool {
    match access {
        LdsAccess::Read(element) => {
            let addresses = addresses(wave, op, op.immediate as u32);
            load(wave, op.destination, element, &addresses, lds)
        }
        LdsAccess::ReadExchanged(elements) => {
            let addresses = addresses(wave, op, op.immediate as u32);
            load(wave, op.destination, Element::Words(elements.words()), &addresses, lds)
        }
        LdsAccess::Read2 { words, scale } => {
            let addresses = addresses(wave, op, 0);
            let [first, second] = two_offsets(op).map(|at| at * scale);
            match words {
                1 => load_rows(wave, op.destination, &addresses, [first, second], lds),
                _ => {
                    let places = [first, first + 4, second, second + 4];
                    load_rows(wave, op.destination, &addresses, places, lds)
                }
            }
        }
        LdsAccess::ReadByThread => {
            load(wave, op.destination, Element::Words(1), &by_thread(wave, op), lds)
        }
        LdsAccess::Write(element) => {
            write(wave, op, 1, element, &addresses(wave, op, op.immediate as u32), lds)
        }
        LdsAccess::Write2 { words, scale } => {
            let [first, second] = two_offsets(op).map(|at| addresses(wave, op, at * scale));
            write(wave, op, 1, Element::Words(words), &first, lds)
                && write(wave, op, 2, Element::Words(words), &second, lds)
        }
        LdsAccess::WriteByThread => {
            write(wave, op, 1, Element::Words(1), &by_thread(wave, op), lds)
        }
        LdsAccess::Atomic { atomic, returns } => {
            let addresses = addresses(wave, op, op.immediate as u32);
            match atomic.bytes {
                4 => modify::<1>(wave, op, atomic, returns, &addresses, lds),
                _ => modify::<2>(wave, op, atomic, returns, &addresses, lds),
            }
        }
        _ => false,
    }
}

#[inline(always)]
fn write(
    wave: &Wave,
    op: &Op,
    source: usize,
    element: Element,
    addresses: &Row,
    lds: &mut [u8],
) -> bool {
    let Some(first) = op.sources[source].row() else { return false };
    store(wave, first, element, addresses, lds)
}

/// Modifies a word of each active lane.
#[inline(always)]
fn modify<const WORDS: usize>(
    wave: &mut Wave,
    op: &Op,
    atomic: Atomic,
    returns: bool,
    addresses: &Row,
    lds: &mut [u8],
) -> bool {
    if op.sources[1].row().is_none() {
        return false;
    }
    let (exec, active) = (wave.exec(), wave.exec_row());
    let mut low_bits = 0;
    for lane in 0..LANES {
        low_bits |= addresses.0[lane] & active.0[lane];
    }
    let places = std::array::from_fn(|word| 4 * word as u32);
    let mut placed_row = None;
    let mut placed =
        Placed::<_, u32, WORDS>::new(lds, addresses, (active, exec), places, &mut placed_row);
    if low_bits % (4 * WORDS as u32) != 0 || placed.lanes() != exec {
        return false;
    }
    let rows = |source: usize| -> [&Row; WORDS] {
        let first = op.sources[source].row();
        std::array::from_fn(|word| {
            first.map_or(&Row::ZERO, |first| wave.row(first.plus(word as u16)))
        })
    };
    // With two operands, the comparison value or the mask comes first.
    let [data, second] = if atomic.has_second_operand() {
        [rows(2), rows(1)]
    } else {
        [rows(1), [&Row::ZERO; WORDS]]
    };
    let before = placed.modify(false, atomic, data, second);
    if returns {
        wave.write_rows(op.destination, &before);
    }
    true
}

/// Loads an element of each active lane.
#[inline(always)]
pub fn load(
    wave: &mut Wave,
    first: RowIndex,
    element: Element,
    addresses: &Row,
    lds: &[u8],
) -> bool {
    match element {
        Element::Words(1) => load_rows(wave, first, addresses, [0], lds),
        Element::Words(2) => load_rows(wave, first, addresses, [0, 4], lds),
        Element::Words(3) => load_rows(wave, first, addresses, [0, 4, 8], lds),
        Element::Words(_) => load_rows(wave, first, addresses, [0, 4, 8, 12], lds),
        Element::Part { bytes: 1, .. } => load_part::<u8>(wave, first, element, addresses, lds),
        Element::Part { .. } => load_part::<u16>(wave, first, element, addresses, lds),
    }
}

#[inline(always)]
fn load_rows<const WORDS: usize>(
    wave: &mut Wave,
    first: RowIndex,
    addresses: &Row,
    places: [u32; WORDS],
    lds: &[u8],
) -> bool {
    let exec = wave.exec();
    let (rows, active) = wave.rows_and_exec(first, WORDS as u8);
    let Some(rows) = rows.first_chunk_mut::<WORDS>() else { return false };
    let mut placed_row = None;
    let placed =
        Placed::<_, u32, WORDS>::new(lds, addresses, (active, exec), places, &mut placed_row);
    placed.lanes() == exec && {
        placed.load(rows);
        true
    }
}

#[inline(always)]
fn load_part<P: Part>(
    wave: &mut Wave,
    first: RowIndex,
    element: Element,
    addresses: &Row,
    lds: &[u8],
) -> bool {
    let exec = wave.exec();
    let (rows, active) = wave.rows_and_exec(first, 1);
    let Some(row) = rows.first_mut() else { return false };
    let mut placed_row = None;
    let placed = Placed::<_, P, 1>::new(lds, addresses, (active, exec), [0], &mut placed_row);
    placed.lanes() == exec && {
        let mut loaded = [Row::ZERO];
        placed.load(&mut loaded);
        lane_access::extend(element, row, &loaded[0], active);
        true
    }
}

/// Stores an element of each active lane; returns `false` like [`load`] does.
#[inline(always)]
pub fn store(
    wave: &Wave,
    first: RowIndex,
    element: Element,
    addresses: &Row,
    lds: &mut [u8],
) -> bool {
    let rows = wave.rows_of(first, element.words());
    match element {
        Element::Words(1) => store_rows::<u32, 1>(wave, rows, addresses, [0], lds),
        Element::Words(2) => store_rows::<u32, 2>(wave, rows, addresses, [0, 4], lds),
        Element::Words(3) => store_rows::<u32, 3>(wave, rows, addresses, [0, 4, 8], lds),
        Element::Words(_) => store_rows::<u32, 4>(wave, rows, addresses, [0, 4, 8, 12], lds),
        Element::Part { bytes, .. } => {
            let parts = [lane_access::parts(element, wave.row(first))];
            match bytes {
                1 => store_rows::<u8, 1>(wave, &parts, addresses, [0], lds),
                _ => store_rows::<u16, 1>(wave, &parts, addresses, [0], lds),
            }
        }
    }
}

#[inline(always)]
fn store_rows<P: Part, const PARTS: usize>(
    wave: &Wave,
    rows: &[Row],
    addresses: &Row,
    places: [u32; PARTS],
    lds: &mut [u8],
) -> bool {
    let Some(rows) = rows.first_chunk::<PARTS>() else { return false };
    let exec = wave.exec();
    let mut placed_row = None;
    let mut placed = Placed::<_, P, PARTS>::new(
        lds,
        addresses,
        (wave.exec_row(), exec),
        places,
        &mut placed_row,
    );
    placed.lanes() == exec && {
        placed.store(rows);
        true
    }
}
