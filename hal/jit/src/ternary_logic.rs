//! A mistake of LLVM 22's, and code without it.
//!
//! Where both `(a & C) | (b & ~C)` with a constant C is computed and lanes that a mask leaves out keep `a` or
//! `b`, LLVM makes one instruction of it, `vpternlogd` or `vpternlogq` with a mask, and in some orders of
//! the operands its table of bits is that of another order. With no mask, and where the other lanes are
//! zero, the tables are right.

use std::borrow::Cow;

/// Whether object code may have such an instruction: its bytes are in it (Intel's manual, volume 2: the
/// EVEX prefix, and VPTERNLOGD).
pub fn may_be_in(object: &[u8]) -> bool {
    object.windows(5).any(|bytes| {
        let [first, map, operands, mask, opcode] = bytes else { return false };
        let is_evex = *first == 0x62 && map & 7 == 3 && operands & 7 == 5;
        let merges = mask & 7 != 0 && mask & 0x80 == 0;
        is_evex && merges && *opcode == 0x25
    })
}

/// The same IR, in which words are selected by an instruction that LLVM cannot make another one of. For
/// processors with AVX-512.
pub fn without(ir: &str) -> String {
    let line = |line| blended(line).map_or(Cow::Borrowed(line), Cow::Owned);
    ir.lines().flat_map(|own| [line(own), Cow::Borrowed("\n")]).collect()
}

/// A line that selects words of lanes from one of two vectors.
fn blended(line: &str) -> Option<String> {
    let (name, rest) = line.split_once(" = select <16 x i1> ")?;
    let (mask, rest) = rest.split_once(", <16 x i32> ")?;
    let (new, old) = rest.split_once(", <16 x i32> ")?;
    Some(format!(
        "{name}.bits = bitcast <16 x i1> {mask} to i16\n\
         {name} = call <16 x i32> asm \"vpblendmd $1, $2, $0 {{$3}}\", \"=v,v,v,^Yk\"\
         (<16 x i32> {new}, <16 x i32> {old}, i16 {name}.bits)",
        name = name.trim_start()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Code, Compiler, Extensions, Here};

    /// Where a bit of 0x7fffffff is set it is `x`'s, else `y`'s, and `y` stays in lanes that are left out.
    const SIGN: &str = "define void @f(ptr %px, ptr %py, i16 %k, ptr %o) {
  %m = bitcast i16 %k to <16 x i1>
  %x = load <16 x i32>, ptr %px, align 4
  %y = load <16 x i32>, ptr %py, align 4
  %t = xor <16 x i32> %x, %y
  %u = and <16 x i32> %t, splat (i32 2147483647)
  %v = xor <16 x i32> %u, %y
  %r = select <16 x i1> %m, <16 x i32> %v, <16 x i32> %y
  store <16 x i32> %r, ptr %o, align 4
  ret void
}
";

    fn signs(object: &[u8]) -> [u32; 16] {
        let code = Code::load(object, "f").expect("code");
        // SAFETY: the function is of this type.
        let function: unsafe extern "C" fn(*const u32, *const u32, u16, *mut u32) =
            unsafe { std::mem::transmute(code.entry()) };
        let (x, y, mut all) = ([0xf0f0_f0f0; 16], [0x0ccc_cccc; 16], [0; 16]);
        // SAFETY: it reads and writes sixteen words at each place.
        unsafe { function(x.as_ptr(), y.as_ptr(), 0x00ff, all.as_mut_ptr()) };
        all
    }

    #[test]
    fn lanes_keep_what_logic_was_computed_from() {
        let extensions = match std::arch::is_x86_feature_detected!("avx512f") {
            true => Extensions::Avx512,
            false => Extensions::Avx2,
        };
        let object = Here.compile(SIGN, extensions).expect("IR that is right");
        let right = std::array::from_fn(|lane| if lane < 8 { 0x70f0_f0f0 } else { 0x0ccc_cccc });
        assert_eq!(signs(&object), right);
    }

    #[test]
    fn only_words_are_selected_otherwise() {
        let others = "  %r = select <16 x i1> %m, <16 x float> %a, <16 x float> %b\n  \
                      %s = select i1 %m, <16 x i32> %a, <16 x i32> %b\n  ret void\n";
        assert_eq!(without(others), others);
        assert!(!without(SIGN).contains("select"));
    }

    #[test]
    fn only_logic_that_merges_is_found() {
        // vpternlogd $228, %zmm2, %zmm1, %zmm0 with {%k1}, with {%k1} {z}, and without a mask.
        let with = |mask| [0x90, 0x62, 0xf3, 0x75, mask, 0x25, 0xc2, 0xe4];
        assert!(may_be_in(&with(0x49)));
        assert!(!may_be_in(&with(0xc9)) && !may_be_in(&with(0x48)));
    }
}
