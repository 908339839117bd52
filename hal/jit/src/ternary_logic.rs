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

/// Replaces selects of 16 lanes with 32 bits, and of 32 lanes with 32 or 64 bits, in IR with inline assembly,
/// which LLVM cannot combine with other instructions. For processors with AVX-512.
pub fn with_blends(ir: &str) -> String {
    let replace = |line| match Select::parse(line) {
        Some(select) => Cow::Owned(select.blends()),
        None => Cow::Borrowed(line),
    };
    ir.lines().flat_map(|line| [replace(line), Cow::Borrowed("\n")]).collect()
}

/// A select of lanes: `%name = select <16 x i1> %mask, <16 x i32> %new, <16 x i32> %old`.
struct Select<'a> {
    name: &'a str,
    mask: &'a str,
    new: &'a str,
    old: &'a str,
    lanes: usize,
    /// Bits per lane.
    bits: usize,
}

impl Select<'_> {
    fn parse(line: &str) -> Option<Select<'_>> {
        [(16, 32), (32, 32), (32, 64)].into_iter().find_map(|(lanes, bits)| {
            let (name, operands) = line.split_once(&format!(" = select <{lanes} x i1> "))?;
            let kind = format!(", <{lanes} x i{bits}> ");
            let (mask, values) = operands.split_once(&kind)?;
            let (new, old) = values.split_once(&kind)?;
            Some(Select { name: name.trim_start(), mask, new, old, lanes, bits })
        })
    }

    /// The select as blends of vectors with 512 bits.
    fn blends(&self) -> String {
        let Select { name, mask, new, old, lanes, bits } = self;
        let part = 512 / bits;
        let count = lanes / part;
        let suffix = if *bits == 32 { "d" } else { "q" };
        let mut text = String::new();
        let list = |lanes: std::ops::Range<usize>| {
            lanes.map(|lane| format!("i32 {lane}")).collect::<Vec<_>>().join(", ")
        };
        for number in 0..count {
            let chosen = list(number * part..(number + 1) * part);
            let mut element = |kind: &str, value: &str, of: &str| {
                let result = format!("{name}.{of}{number}");
                text += &format!(
                    "{result} = shufflevector <{lanes} x {kind}> {value}, <{lanes} x {kind}> poison, \
                     <{part} x i32> <{chosen}>\n"
                );
                result
            };
            let kind = format!("i{bits}");
            let [mask, new, old] = [
                element("i1", mask, "mask"),
                element(&kind, new, "new"),
                element(&kind, old, "old"),
            ];
            let result = if count == 1 { (*name).to_owned() } else { format!("{name}.0.{number}") };
            text += &format!(
                "{name}.bits{number} = bitcast <{part} x i1> {mask} to i{part}\n\
                 {result} = call <{part} x i{bits}> asm \"vpblendm{suffix} $1, $2, $0 {{$3}}\", \
                 \"=v,v,v,^Yk\"(<{part} x i{bits}> {new}, <{part} x i{bits}> {old}, i{part} \
                 {name}.bits{number})\n"
            );
        }
        // Joins parts, two by two.
        let (mut size, mut left, mut level) = (part, count, 0);
        while left > 1 {
            for number in 0..left / 2 {
                let result = if left == 2 {
                    (*name).to_owned()
                } else {
                    format!("{name}.{}.{number}", level + 1)
                };
                text += &format!(
                    "{result} = shufflevector <{size} x i{bits}> {name}.{level}.{}, <{size} x i{bits}> \
                     {name}.{level}.{}, <{} x i32> <{}>\n",
                    2 * number,
                    2 * number + 1,
                    2 * size,
                    list(0..2 * size)
                );
            }
            (size, left, level) = (2 * size, left / 2, level + 1);
        }
        text.pop();
        text
    }
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
    fn selects_of_whole_waves_are_replaced() {
        if !std::arch::is_x86_feature_detected!("avx512f") {
            return;
        }
        let select = |bits: usize| {
            format!(
                "define void @f(ptr %px, ptr %py, i32 %k, ptr %o) {{\n%m = bitcast i32 %k to <32 x i1>\n\
                 %x = load <32 x i{bits}>, ptr %px, align 4\n%y = load <32 x i{bits}>, ptr %py, align 4\n\
                 %r = select <32 x i1> %m, <32 x i{bits}> %x, <32 x i{bits}> %y\n\
                 store <32 x i{bits}> %r, ptr %o, align 4\nret void\n}}\n"
            )
        };
        for bits in [32, 64] {
            let text = with_blends(&select(bits));
            assert!(!text.contains("select"));
            let object = InProcess.compile(&text, Extensions::Avx512).expect("valid IR");
            let code = Code::load(&object, "f").expect("code");
            // SAFETY: the function has this type.
            let function: unsafe extern "C" fn(*const u32, *const u32, u32, *mut u32) =
                unsafe { std::mem::transmute(code.entry()) };
            let (x, y, mut all) = ([7; 64], [9; 64], [0; 64]);
            // SAFETY: the function reads and writes at most 64 words at each pointer.
            unsafe { function(x.as_ptr(), y.as_ptr(), 0x8001_0ff0, all.as_mut_ptr()) };
            for lane in 0..32 {
                let expected = if 0x8001_0ff0u32 >> lane & 1 != 0 { 7 } else { 9 };
                assert_eq!(all[lane * bits / 32], expected, "{lane}");
            }
        }
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
