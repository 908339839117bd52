//! Workaround for a miscompilation in LLVM 22.
//!
//! For `(a & C) | (b & ~C)` with a constant C, followed by a select that keeps `a` or `b` in masked-off
//! lanes, LLVM emits one `vpternlogd` or `vpternlogq` with a merging mask. For some operand orders it uses
//! the truth table of another order. The instruction is correct without a mask and with a zeroing mask.

use std::borrow::Cow;

/// Returns `true` if object code contains the bytes of a `vpternlog` with a merging mask (Intel's manual,
/// volume 2: the EVEX prefix, and VPTERNLOGD).
pub fn may_contain_masked(object: &[u8]) -> bool {
    object.windows(5).any(|bytes| {
        let [first, map, operands, mask, opcode] = bytes else { return false };
        let is_evex = *first == 0x62 && map & 7 == 3 && operands & 7 == 5;
        let merges = mask & 7 != 0 && mask & 0x80 == 0;
        is_evex && merges && *opcode == 0x25
    })
}

/// Replaces selects of 32-bit lanes in IR with inline assembly, which LLVM cannot combine with other
/// instructions. For processors with AVX-512.
pub fn with_blends(ir: &str) -> String {
    let replace = |line| blend(line).map_or(Cow::Borrowed(line), Cow::Owned);
    ir.lines().flat_map(|line| [replace(line), Cow::Borrowed("\n")]).collect()
}

/// Converts a line that selects 32-bit lanes to `vpblendmd`; `None` for other lines.
fn blend(line: &str) -> Option<String> {
    let (name, operands) = line.split_once(" = select <16 x i1> ")?;
    let (mask, values) = operands.split_once(", <16 x i32> ")?;
    let (new, old) = values.split_once(", <16 x i32> ")?;
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
    use crate::{Code, Compiler, Extensions, InProcess};

    /// Copies the bits 0x7fffffff of `x` to `y` in the lanes of the mask.
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
        // SAFETY: the function has this type.
        let function: unsafe extern "C" fn(*const u32, *const u32, u16, *mut u32) =
            unsafe { std::mem::transmute(code.entry()) };
        let (x, y, mut all) = ([0xf0f0_f0f0; 16], [0x0ccc_cccc; 16], [0; 16]);
        // SAFETY: the function reads and writes sixteen words at each pointer.
        unsafe { function(x.as_ptr(), y.as_ptr(), 0x00ff, all.as_mut_ptr()) };
        all
    }

    #[test]
    fn masked_off_lanes_keep_their_value() {
        let extensions = if std::arch::is_x86_feature_detected!("avx512f") {
            Extensions::Avx512
        } else {
            Extensions::Avx2
        };
        let object = InProcess.compile(SIGN, extensions).expect("valid IR");
        let expected = std::array::from_fn(|lane| if lane < 8 { 0x70f0_f0f0 } else { 0x0ccc_cccc });
        assert_eq!(signs(&object), expected);
    }

    #[test]
    fn only_selects_of_32_bit_lanes_are_replaced() {
        let unchanged = "  %r = select <16 x i1> %m, <16 x float> %a, <16 x float> %b\n  \
                         %s = select i1 %m, <16 x i32> %a, <16 x i32> %b\n  ret void\n";
        assert_eq!(with_blends(unchanged), unchanged);
        assert!(!with_blends(SIGN).contains("select"));
    }

    #[test]
    fn only_merging_masks_are_detected() {
        // vpternlogd $228, %zmm2, %zmm1, %zmm0 with {%k1}, with {%k1} {z}, and without a mask.
        let encoded = |mask| [0x90, 0x62, 0xf3, 0x75, mask, 0x25, 0xc2, 0xe4];
        assert!(may_contain_masked(&encoded(0x49)));
        assert!(!may_contain_masked(&encoded(0xc9)) && !may_contain_masked(&encoded(0x48)));
    }
}
