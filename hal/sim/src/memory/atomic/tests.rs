use super::*;

fn apply(atomic: Atomic, old: u64, data: u64, second: u64) -> u64 {
    let mask = if atomic.bytes == 4 { 0xffff_ffff } else { u64::MAX };
    atomic.apply(old, data, second) & mask
}

#[test]
fn signed_minimum_of_words_compares_bit_31() {
    let smin = find_memory("smin").unwrap();
    assert_eq!(apply(smin, 1, 0xffff_ffff, 0), 0xffff_ffff);
    assert_eq!(apply(find_memory("umin").unwrap(), 1, 0xffff_ffff, 0), 1);
    assert_eq!(apply(find_memory("smin_x2").unwrap(), 1, u64::MAX, 0), u64::MAX);
}

#[test]
fn increment_and_decrement_wrap_at_the_operand() {
    let inc = find_memory("inc").unwrap();
    assert_eq!(apply(inc, 4, 5, 0), 5);
    assert_eq!(apply(inc, 5, 5, 0), 0);
    let dec = find_lds("dec_u32").unwrap();
    assert_eq!(apply(dec, 0, 5, 0), 5);
    assert_eq!(apply(dec, 6, 5, 0), 5);
    assert_eq!(apply(dec, 3, 5, 0), 2);
}

#[test]
fn compare_and_swap_swaps_only_on_equality() {
    let cas = find_memory("cmpswap_x2").unwrap();
    assert_eq!(cas.bytes, 8);
    assert_eq!(apply(cas, 7, 9, 7), 9);
    assert_eq!(apply(cas, 8, 9, 7), 8);
}

#[test]
fn packed_halves_do_not_carry_into_each_other() {
    let add = find_memory("pk_add_f16").unwrap();
    assert_eq!(apply(add, 0x7bff_3c00, 0x7bff_3c00, 0), 0x7c00_4000);
}
