//! Instructions assembled by LLVM and executed, checked against independent references.

mod atomics;
mod buffers;
mod cdna;
mod control;
mod interpolation;
mod lds;
mod newest;
mod scalar_memory;
mod transposed;

use crate::tests::operations::Random;

/// Computes the memory result of an atomic in wide arithmetic. `operation` is an LDS name
/// (`add_u32`) or a memory name (`add`, `smin_x2`). `second` is the comparison value, or the first
/// data operand of LDS atomics with two.
fn atomic_reference(operation: &str, old: u64, data: u64, second: u64) -> u64 {
    let wide = operation.ends_with("_x2") || operation.ends_with("64");
    let bits = if wide { 64 } else { 32 };
    let signed = |value: u64| i128::from(value) - (i128::from(value >> (bits - 1) & 1) << bits);
    let modulus = 1i128 << bits;
    let (old, data, second) = (i128::from(old), i128::from(data), i128::from(second));
    let float = |value: i128| {
        if wide { f64::from_bits(value as u64) } else { f32::from_bits(value as u32).into() }
    };
    let base = operation.trim_end_matches("_x2");
    let kind = base.rsplit_once('_').map_or("", |(_, kind)| kind);
    let lesser = |signed_order: bool| {
        let key = |value: i128| if signed_order { signed(value as u64) } else { value };
        if kind.starts_with('f') { float(data) < float(old) } else { key(data) < key(old) }
    };
    let greater = |signed_order: bool| {
        let key = |value: i128| if signed_order { signed(value as u64) } else { value };
        if kind.starts_with('f') { float(data) > float(old) } else { key(data) > key(old) }
    };
    let take = |yes: bool| if yes { data } else { old };
    let new = match base.split('_').next().unwrap_or("") {
        "swap" | "wrxchg" => data,
        "cmpswap" => take(old == second),
        "cmpst" if kind.starts_with('f') => take(float(old) == float(second)),
        "cmpst" => take(old == second),
        "add" if kind == "f32" => ((f64::from(f32::from_bits(old as u32))
            + f64::from(f32::from_bits(data as u32))) as f32)
            .to_bits()
            .into(),
        "add" if kind == "f64" => (float(old) + float(data)).to_bits().into(),
        "add" => old + data,
        "sub" => old - data,
        "rsub" => data - old,
        "inc" => {
            if old >= data {
                0
            } else {
                old + 1
            }
        }
        "dec" => {
            if old == 0 || old > data {
                data
            } else {
                old - 1
            }
        }
        "smin" => take(lesser(true)),
        "umin" => take(lesser(false)),
        "smax" => take(greater(true)),
        "umax" => take(greater(false)),
        "min" => take(lesser(kind.starts_with('i'))),
        "max" => take(greater(kind.starts_with('i'))),
        "and" => old & data,
        "or" => old | data,
        "xor" => old ^ data,
        "mskor" => (old & !second) | data,
        "wrap" => {
            if old >= second {
                old - second
            } else {
                old + data
            }
        }
        other => panic!("no reference for {other}"),
    };
    new.rem_euclid(modulus) as u64
}

/// Returns a `bits`-wide value: small, an edge case, or arbitrary; never a NaN.
fn value(random: &mut Random, bits: u32) -> u64 {
    let sign = 1u64 << (bits - 1);
    let small = random.next() & 3;
    let float = if bits == 64 { 1.5f64.to_bits() } else { 1.5f32.to_bits().into() };
    let any = random.next() & (sign - 1) & !(sign >> 1);
    let negative = if random.next() & 1 != 0 { sign } else { 0 };
    random.choose(&[small, any, any | negative, float, float | sign, sign | small])
}
