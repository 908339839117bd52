//! Values of all lanes, and functions of lanes as functions of waves.

use flipwave_machine::Exactness;
use std::sync::Arc;

/// Lanes of a wave.
pub(crate) const LANES: usize = 32;

/// A value per lane.
pub(crate) type Row = [u64; LANES];

/// Computes the results of an instruction from its sources, in the order of its operands. The mask has the
/// lanes that execute the instruction; results of other lanes are ignored.
pub(crate) type Compute = Arc<dyn Fn(&[Row], u32, &mut [Row]) + Send + Sync>;

/// An operation and its exactness.
#[derive(Clone)]
pub(crate) struct Operation {
    /// The results.
    pub compute: Compute,
    /// The exactness of the results.
    pub exactness: Exactness,
}

/// Applies a function of one source to each lane that executes the instruction.
pub(crate) fn one(f: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Compute {
    each(move |[a]| f(a))
}

/// Applies a function of two sources to each lane.
pub(crate) fn two(f: impl Fn(u64, u64) -> u64 + Send + Sync + 'static) -> Compute {
    each(move |[a, b]| f(a, b))
}

/// Applies a function of three sources to each lane.
pub(crate) fn three(f: impl Fn(u64, u64, u64) -> u64 + Send + Sync + 'static) -> Compute {
    each(move |[a, b, c]| f(a, b, c))
}

/// Applies a function of some sources to each lane that executes the instruction. Missing sources are
/// zero.
pub(crate) fn each<const N: usize>(f: impl Fn([u64; N]) -> u64 + Send + Sync + 'static) -> Compute {
    Arc::new(move |sources, mask, results| {
        let rows = rows(sources);
        let Some(result) = results.first_mut() else { return };
        if mask == u32::MAX {
            for (lane, value) in result.iter_mut().enumerate() {
                *value = f(column(&rows, lane));
            }
        } else {
            for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                result[lane] = f(column(&rows, lane));
            }
        }
    })
}

/// Applies a function with two results to each lane that executes the instruction.
pub(crate) fn pair<const N: usize>(
    f: impl Fn([u64; N]) -> [u64; 2] + Send + Sync + 'static,
) -> Compute {
    Arc::new(move |sources, mask, results| {
        let rows = rows(sources);
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let values = f(column(&rows, lane));
            for (row, value) in results.iter_mut().zip(values) {
                row[lane] = value;
            }
        }
    })
}

/// The first rows; missing ones are zero.
#[inline]
fn rows<const N: usize>(sources: &[Row]) -> [&Row; N] {
    let mut rows = [&[0; LANES]; N];
    for (row, source) in rows.iter_mut().zip(sources) {
        *row = source;
    }
    rows
}

/// Values of a lane. A loop is inlined more reliably than the methods of arrays.
#[inline]
fn column<const N: usize>(rows: &[&Row; N], lane: usize) -> [u64; N] {
    let mut values = [0; N];
    for (value, row) in values.iter_mut().zip(rows) {
        *value = row[lane];
    }
    values
}

/// Extends the sign of a value of `bits` bits.
pub(crate) fn signed(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

/// The lowest `bits` bits.
pub(crate) fn low(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}
