//! Operations on the bytes of words, and bitwise operations by truth table.

use super::lowering::{Lowering, any, low_half};
use std::fmt::Write;
use std::sync::LazyLock;

/// Byte permutation: each result byte is one of eight source bytes, a byte filled with a sign,
/// zeros, or ones.
fn permuted() -> String {
    let mut code = String::from(
        "%low = zext W %b to D\n%upper = zext W %a to D\n%high = shl D %upper, splat (i64 32)\n\
         %bytes = or D %low, %high\n",
    );
    let mut all = "zeroinitializer".to_owned();
    for byte in 0..4 {
        let _ = write!(
            code,
            "%up{byte} = lshr W %c, #{shift}\n%which{byte} = and W %up{byte}, #255\n\
             %number{byte} = and W %which{byte}, #7\n%by{byte} = shl W %number{byte}, #3\n\
             %far{byte} = zext W %by{byte} to D\n%moved{byte} = lshr D %bytes, %far{byte}\n\
             %own{byte} = trunc D %moved{byte} to W\n%one{byte} = and W %own{byte}, #255\n\
             %pair{byte} = and W %which{byte}, #3\n%twice{byte} = shl W %pair{byte}, #4\n\
             %above{byte} = add W %twice{byte}, #15\n%place{byte} = zext W %above{byte} to D\n\
             %top{byte} = lshr D %bytes, %place{byte}\n%word{byte} = trunc D %top{byte} to W\n\
             %bit{byte} = and W %word{byte}, #1\n%sign{byte} = mul W %bit{byte}, #255\n\
             %is.byte{byte} = icmp ult W %which{byte}, #8\n\
             %is.sign{byte} = icmp ult W %which{byte}, #12\n\
             %is.none{byte} = icmp eq W %which{byte}, #12\n\
             %x{byte} = select M %is.none{byte}, W zeroinitializer, W #255\n\
             %y{byte} = select M %is.sign{byte}, W %sign{byte}, W %x{byte}\n\
             %z{byte} = select M %is.byte{byte}, W %one{byte}, W %y{byte}\n\
             %there{byte} = shl W %z{byte}, #{shift}\n",
            shift = 8 * byte
        );
        let next = if byte == 3 { "%r".to_owned() } else { format!("%all{byte}") };
        let _ = writeln!(code, "{next} = or W {all}, %there{byte}");
        all = next;
    }
    code
}

/// Dot product: the sum of the third word and of the products of the elements of the first two,
/// each signed or not.
fn dot_product(bits: u32, signed: [bool; 2]) -> String {
    let mut code = String::new();
    let mut sum = "%c".to_owned();
    for (index, up) in (0..32).step_by(bits as usize).enumerate() {
        for (name, is_signed) in ["a", "b"].into_iter().zip(signed) {
            let (left, right) = (32 - bits - up, 32 - bits);
            let shift = if is_signed { "ashr" } else { "lshr" };
            let _ = write!(
                code,
                "%{name}.up{index} = shl W %{name}, #{left}\n\
                 %{name}{index} = {shift} W %{name}.up{index}, #{right}\n"
            );
        }
        let next = if up + bits == 32 { "%r".to_owned() } else { format!("%sum{index}") };
        let _ = write!(
            code,
            "%product{index} = mul W %a{index}, %b{index}\n{next} = add W {sum}, %product{index}\n"
        );
        sum = next;
    }
    code
}

/// Sum of absolute differences of the elements of two words, and the third word.
fn differences(bits: u32) -> String {
    let mut code = String::new();
    let mut sum = "%c".to_owned();
    for (index, up) in (0..32).step_by(bits as usize).enumerate() {
        let ones = ((1u64 << bits) - 1) as u32 as i32;
        for name in ["a", "b"] {
            let _ = write!(
                code,
                "%{name}.up{index} = lshr W %{name}, #{up}\n\
                 %{name}{index} = and W %{name}.up{index}, #{ones}\n"
            );
        }
        let next = if up + bits == 32 { "%r".to_owned() } else { format!("%sum{index}") };
        let _ = write!(
            code,
            "%most{index} = call W @llvm.umax.W(W %a{index}, W %b{index})\n\
             %least{index} = call W @llvm.umin.W(W %a{index}, W %b{index})\n\
             %far{index} = sub W %most{index}, %least{index}\n{next} = add W {sum}, %far{index}\n"
        );
        sum = next;
    }
    code
}

/// Truth table of eight entries, indexed by the bits of three words.
fn truth_table(words: [&str; 3], table: &str) -> String {
    let mut code = String::new();
    for (name, word) in ["x", "y", "z"].into_iter().zip(words) {
        let _ = writeln!(code, "%not.{name} = xor W {word}, #-1");
    }
    let mut all = "zeroinitializer".to_owned();
    for number in 0..8 {
        let side = |index: usize| match number >> (2 - index) & 1 {
            0 => format!("%not.{}", ["x", "y", "z"][index]),
            _ => words[index].to_owned(),
        };
        let next = if number == 7 { "%r".to_owned() } else { format!("%all{number}") };
        let _ = write!(
            code,
            "%two{number} = and W {}, {}\n%three{number} = and W %two{number}, {}\n\
             %up{number} = lshr W {table}, #{number}\n%bit{number} = and W %up{number}, #1\n\
             %ones{number} = sub W zeroinitializer, %bit{number}\n\
             %own{number} = and W %three{number}, %ones{number}\n{next} = or W {all}, %own{number}\n",
            side(0),
            side(1),
            side(2),
        );
        all = next;
    }
    code
}

fn table() -> Vec<Lowering> {
    let row = |name, code: String| any(name, code.leak());
    vec![
        row("v_perm_b32", permuted()),
        row("v_bitop3_b32", truth_table(["%a", "%b", "%c"], "%d")),
        low_half(row("v_bitop3_b16", truth_table(["%a", "%b", "%c"], "%d"))),
        row("v_bitop2_b32", truth_table(["%a", "%b", "zeroinitializer"], "%c")),
        row("v_dot4_i32_i8", dot_product(8, [true; 2])),
        row("v_dot4c_i32_i8", dot_product(8, [true; 2])),
        row("v_dot4_u32_u8", dot_product(8, [false; 2])),
        row("v_dot4_i32_iu8 0", dot_product(8, [false; 2])),
        row("v_dot4_i32_iu8 1", dot_product(8, [true, false])),
        row("v_dot4_i32_iu8 2", dot_product(8, [false, true])),
        row("v_dot4_i32_iu8 3", dot_product(8, [true; 2])),
        row("v_dot8_i32_i4", dot_product(4, [true; 2])),
        row("v_dot8c_i32_i4", dot_product(4, [true; 2])),
        row("v_dot8_u32_u4", dot_product(4, [false; 2])),
        row("v_sad_u8", differences(8)),
        row("v_sad_u16", differences(16)),
        row("v_sad_u32", differences(32)),
    ]
}

/// All templates of this file.
pub static TABLE: LazyLock<Vec<Lowering>> = LazyLock::new(table);
