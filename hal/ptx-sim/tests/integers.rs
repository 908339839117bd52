//! Integer arithmetic and operations on bits, compared with the host's.

use crate::common::forms::{Operands, check, execute, operands};

fn words() -> Vec<Operands> {
    operands(&[0, 1, 2, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1234_5678, 255], 300)
}

fn longs() -> Vec<Operands> {
    operands(&[0, 1, 63, 64, 65, 1 << 31, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX, 12345], 300)
}

/// Checks an operation on 32-bit operands with the modifiers `.u32` and `.s32`.
fn check_words(name: &str, unsigned: fn(u32, u32, u32) -> u32, signed: fn(i32, i32, i32) -> i32) {
    let (count, all) = name.split_once(' ').expect("a number of operands");
    let operands_text = &"%x, %a, %b, %c"[..2 + 4 * all.parse::<usize>().expect("a number")];
    let widths = &"r-rrr"[..2 + all.parse::<usize>().expect("a number")];
    check(&format!("{count}.u32 {operands_text}"), widths, &words(), |[a, b, c, _]| {
        unsigned(a as u32, b as u32, c as u32).into()
    });
    check(&format!("{count}.s32 {operands_text}"), widths, &words(), |[a, b, c, _]| {
        u64::from(signed(a as i32, b as i32, c as i32) as u32)
    });
}

#[test]
fn words_are_computed_as_on_the_host() {
    check_words("add 2", |a, b, _| a.wrapping_add(b), |a, b, _| a.wrapping_add(b));
    check_words("sub 2", |a, b, _| a.wrapping_sub(b), |a, b, _| a.wrapping_sub(b));
    check_words("mul.lo 2", |a, b, _| a.wrapping_mul(b), |a, b, _| a.wrapping_mul(b));
    check_words(
        "mul.hi 2",
        |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32,
        |a, b, _| ((i64::from(a) * i64::from(b)) >> 32) as i32,
    );
    check_words(
        "mad.lo 3",
        |a, b, c| a.wrapping_mul(b).wrapping_add(c),
        |a, b, c| a.wrapping_mul(b).wrapping_add(c),
    );
    check_words(
        "mad.hi 3",
        |a, b, c| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c),
        |a, b, c| (((i64::from(a) * i64::from(b)) >> 32) as i32).wrapping_add(c),
    );
    check_words(
        "sad 3",
        |a, b, c| c.wrapping_add(a.abs_diff(b)),
        |a, b, c| c.wrapping_add(a.abs_diff(b) as i32),
    );
    check_words(
        "div 2",
        |a, b, _| a.checked_div(b).unwrap_or(u32::MAX),
        |a, b, _| if b == 0 { -1 } else { a.wrapping_div(b) },
    );
    check_words(
        "rem 2",
        |a, b, _| a.checked_rem(b).unwrap_or(a),
        |a, b, _| if b == 0 { a } else { a.wrapping_rem(b) },
    );
    check_words("min 2", |a, b, _| a.min(b), |a, b, _| a.min(b));
    check_words("max 2", |a, b, _| a.max(b), |a, b, _| a.max(b));
    check_words(
        "mul24.lo 2",
        |a, b, _| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff),
        |a, b, _| (a << 8 >> 8).wrapping_mul(b << 8 >> 8),
    );
    check_words(
        "mul24.hi 2",
        |a, b, _| ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 16) as u32,
        |a, b, _| ((i64::from(a << 8 >> 8) * i64::from(b << 8 >> 8)) >> 16) as i32,
    );
}

#[test]
fn saturated_words_are_clamped() {
    let signed = |value: i64| u64::from(value.clamp(i32::MIN.into(), i32::MAX.into()) as u32);
    check("add.sat.s32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| {
        signed(i64::from(a as i32) + i64::from(b as i32))
    });
    check("sub.sat.s32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| {
        signed(i64::from(a as i32) - i64::from(b as i32))
    });
    check("mad.hi.sat.s32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        signed(((i64::from(a as i32) * i64::from(b as i32)) >> 32) + i64::from(c as i32))
    });
}

#[test]
fn longs_and_halves_are_computed_as_on_the_host() {
    let all = longs();
    check("add.u64 %x, %a, %b", "d-dd", &all, |[a, b, ..]| a.wrapping_add(b));
    check("mul.lo.s64 %x, %a, %b", "d-dd", &all, |[a, b, ..]| a.wrapping_mul(b));
    check("mul.hi.u64 %x, %a, %b", "d-dd", &all, |[a, b, ..]| {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    });
    check("mul.hi.s64 %x, %a, %b", "d-dd", &all, |[a, b, ..]| {
        ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
    });
    check("div.s64 %x, %a, %b", "d-dd", &all, |[a, b, ..]| match b {
        0 => u64::MAX,
        b => (a as i64).wrapping_div(b as i64) as u64,
    });
    check("mul.wide.s32 %x, %a, %b", "d-rr", &words(), |[a, b, ..]| {
        (i64::from(a as i32) * i64::from(b as i32)) as u64
    });
    check("mad.wide.u32 %x, %a, %b, %c", "d-rrd", &all, |[a, b, c, _]| {
        (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(c)
    });
    check("mad.wide.s32 %x, %a, %b, -3", "d-rr", &words(), |[a, b, ..]| {
        (i64::from(a as i32) * i64::from(b as i32)).wrapping_sub(3) as u64
    });
    check("mul.wide.u16 %x, %a, %b", "r-hh", &all, |[a, b, ..]| (a & 0xffff) * (b & 0xffff));
    check("sub.s16 %x, %a, %b", "h-hh", &all, |[a, b, ..]| {
        u64::from((a as u16).wrapping_sub(b as u16))
    });
    check("max.s16 %x, %a, %b", "h-hh", &all, |[a, b, ..]| {
        u64::from((a as i16).max(b as i16) as u16)
    });
    check("abs.s64 %x, %a", "d-d", &all, |[a, ..]| (a as i64).wrapping_abs() as u64);
    check("neg.s32 %x, %a", "r-r", &all, |[a, ..]| u64::from((a as u32).wrapping_neg()));
    check("add.u16x2 %x, %a, %b", "r-rr", &all, |[a, b, ..]| {
        let half = |shift: u32| u64::from(((a >> shift) as u16).wrapping_add((b >> shift) as u16));
        half(0) | half(16) << 16
    });
}

#[test]
fn carries_propagate() {
    let all = longs();
    let text = "{ .reg .b32 %al, %ah, %bl, %bh, %xl, %xh; mov.b64 {%al, %ah}, %a; mov.b64 {%bl, %bh}, \
                %b; OP.cc.u32 %xl, %al, %bl; OPc.u32 %xh, %ah, %bh; mov.b64 %x, {%xl, %xh}; }";
    check(&text.replace("OP", "add"), "d-dd", &all, |[a, b, ..]| a.wrapping_add(b));
    check(&text.replace("OP", "sub"), "d-dd", &all, |[a, b, ..]| a.wrapping_sub(b));
    let product = "{ .reg .b32 %al, %ah, %xl, %xh; .reg .b32 %bl, %bh; mov.b64 {%al, %ah}, %a; mov.b64 \
                   {%bl, %bh}, %b; mov.b64 {%xl, %xh}, %c; mad.lo.cc.u32 %xl, %al, %bl, %xl; \
                   madc.hi.u32 %xh, %al, %bl, %xh; mov.b64 %x, {%xl, %xh}; }";
    check(product, "d-ddd", &all, |[a, b, c, _]| {
        u64::from(a as u32).wrapping_mul(u64::from(b as u32)).wrapping_add(c)
    });
}

#[test]
fn shifts_clamp_their_amounts() {
    check("shl.b32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| {
        u64::from((a as u32).checked_shl(b as u32).unwrap_or(0))
    });
    check("shr.u64 %x, %a, %b", "d-dr", &longs(), |[a, b, ..]| {
        a.checked_shr(b as u32).unwrap_or(0)
    });
    check("shr.s32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| {
        u64::from((a as i32 >> (b as u32).min(31)) as u32)
    });
    check("shr.s16 %x, %a, %b", "h-hr", &words(), |[a, b, ..]| {
        u64::from((a as i16 >> (b as u32).min(15)) as u16)
    });
    let both = |a: u64, b: u64| u64::from(b as u32) << 32 | u64::from(a as u32);
    check("shf.l.clamp.b32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        u64::from((both(a, b) << (c as u32).min(32) >> 32) as u32)
    });
    check("shf.r.wrap.b32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        u64::from((both(a, b) >> (c as u32 & 31)) as u32)
    });
}

#[test]
fn bits_are_counted_and_moved() {
    check("popc.b64 %x, %a", "r-d", &longs(), |[a, ..]| a.count_ones().into());
    check("clz.b32 %x, %a", "r-r", &words(), |[a, ..]| (a as u32).leading_zeros().into());
    check("brev.b32 %x, %a", "r-r", &words(), |[a, ..]| (a as u32).reverse_bits().into());
    check("cnot.b32 %x, %a", "r-r", &words(), |[a, ..]| u64::from(a as u32 == 0));
    check("bfind.u32 %x, %a", "r-r", &words(), |[a, ..]| {
        (a as u32).checked_ilog2().unwrap_or(u32::MAX).into()
    });
    check("bfind.s32 %x, %a", "r-r", &words(), |[a, ..]| {
        let a = a as i32;
        let magnitude = if a < 0 { !a } else { a } as u32;
        magnitude.checked_ilog2().unwrap_or(u32::MAX).into()
    });
    check("bfind.shiftamt.u64 %x, %a", "r-d", &longs(), |[a, ..]| {
        if a == 0 { u32::MAX.into() } else { a.leading_zeros().into() }
    });
    // Bit by bit, as the manual defines these operations.
    let field = |a: u64, position: u64, length: u64, bits: u64, is_signed: bool| {
        let (position, length) = (position & 0xff, length & 0xff);
        let sign = is_signed && length > 0 && a >> (position + length - 1).min(bits - 1) & 1 != 0;
        (0..bits).fold(0, |result, bit| {
            let inside = bit < length && position + bit < bits;
            let set = if inside { a >> (position + bit) & 1 != 0 } else { sign };
            result | u64::from(set) << bit
        })
    };
    check("bfe.u32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        field(a & 0xffff_ffff, b, c, 32, false)
    });
    check("bfe.s32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        field(a & 0xffff_ffff, b, c, 32, true)
    });
    check("bfe.s64 %x, %a, %b, %c", "d-drr", &longs(), |[a, b, c, _]| field(a, b, c, 64, true));
    check("bfi.b32 %x, %a, %b, %c, %d", "r-rrrr", &words(), |[a, b, c, d]| {
        let (position, length) = (c & 0xff, d & 0xff);
        (0..32).fold(0, |result, bit| {
            let inside = bit >= position && bit < position + length;
            let source = if inside { a >> (bit - position) } else { b >> bit };
            result | (source & 1) << bit
        })
    });
    check("fns.b32 %x, %a, %b, 2", "r-rr", &words(), |[a, b, ..]| {
        let (a, b) = (a as u32, b as u32);
        let set = (b..32).filter(|bit| a >> bit & 1 != 0).nth(1);
        set.unwrap_or(u32::MAX).into()
    });
    check("bmsk.clamp.b32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| {
        let (start, width) = (u64::from(a as u32), u64::from(b as u32));
        (0..32).fold(0, |mask, bit| mask | u64::from(bit >= start && bit - start < width) << bit)
    });
    check("szext.clamp.s32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| match b as u32 {
        0 => 0,
        b if b >= 32 => a & 0xffff_ffff,
        b => u64::from(((a as i32) << (32 - b) >> (32 - b)) as u32),
    });
}

#[test]
fn bytes_are_selected_and_multiplied() {
    check("prmt.b32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        let [low, high] = [a, b].map(|word| (word as u32).to_le_bytes());
        let bytes: Vec<u8> = low.into_iter().chain(high).collect();
        (0..4).fold(0, |word, position| {
            let selector = (c >> (4 * position) & 0xf) as usize;
            let byte = bytes[selector & 7];
            let byte = if selector & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte };
            word | u64::from(byte) << (8 * position)
        })
    });
    check("prmt.b32.b4e %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        let both = u64::from(b as u32) << 32 | u64::from(a as u32);
        let start = c as u32 & 3;
        (0..4).fold(0, |word, position: u32| {
            let byte = both >> (8 * ((start + 8 - position) & 7)) & 0xff;
            word | byte << (8 * position)
        })
    });
    check("dp4a.s32.u32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        let [a, b] = [a, b].map(|word| (word as u32).to_le_bytes());
        let sum: i32 = a.iter().zip(b).map(|(a, b)| i32::from(*a as i8) * i32::from(b)).sum();
        u64::from((c as i32).wrapping_add(sum) as u32)
    });
    check("dp2a.hi.u32.s32 %x, %a, %b, %c", "r-rrr", &words(), |[a, b, c, _]| {
        let bytes = (b as u32).to_le_bytes();
        let sum = i64::from(a as u16) * i64::from(bytes[2] as i8)
            + i64::from((a >> 16) as u16) * i64::from(bytes[3] as i8);
        u64::from((c as u32).wrapping_add(sum as u32))
    });
    for table in [0x80u8, 0xe8, 0x96, 0x1b] {
        let text = format!("lop3.b32 %x, %a, %b, %c, {table}");
        check(&text, "r-rrr", &words(), |[a, b, c, _]| {
            (0..32).fold(0, |word, bit| {
                let index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1;
                word | u64::from(table >> index & 1) << bit
            })
        });
    }
    check("lop3.or.b32 %y|%x, %a, %b, %c, 0xc0, %d", "prrrrp", &words(), |[a, b, _, d]| {
        u64::from(a as u32 & b as u32 != 0 || d != 0)
    });
}

/// Negative control: a difference is found.
#[test]
#[should_panic(expected = "add.u32")]
fn wrong_results_are_noticed() {
    check("add.u32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| u64::from(a as u32 ^ b as u32));
}

#[test]
fn comparisons_have_two_results() {
    let results = execute("setp.lt.and.s32 %x|%y, %a, %b, %c", "pprrp", &words());
    for ([a, b, c, _], result) in words().into_iter().zip(results) {
        let (less, set) = ((a as i32) < (b as i32), c != 0);
        assert_eq!(result, [u64::from(less && set), u64::from(!less && set)]);
    }
    check("setp.hs.u64 %x, %a, %b", "p-dd", &longs(), |[a, b, ..]| u64::from(a >= b));
    check("set.ge.u32.s32 %x, %a, %b", "r-rr", &words(), |[a, b, ..]| {
        if a as i32 >= b as i32 { 0xffff_ffff } else { 0 }
    });
    check("set.ne.xor.f32.u32 %x, %a, %b, %c", "r-rrp", &words(), |[a, b, c, _]| {
        if (a as u32 != b as u32) ^ (c != 0) { 1.0f32.to_bits().into() } else { 0 }
    });
    check("selp.b64 %x, %a, %b, %c", "d-ddp", &longs(), |[a, b, c, _]| if c != 0 { a } else { b });
    check(
        "slct.u64.s32 %x, %a, %b, %c",
        "d-ddr",
        &longs(),
        |[a, b, c, _]| {
            if c as i32 >= 0 { a } else { b }
        },
    );
}
