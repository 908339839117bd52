//! Scalar operations as IR templates. The rows of `execute::scalar` define the same operations in
//! Rust, and the widths of sources.
//!
//! `%d` is SCC before the operation, of type `i1`. `%s` is SCC after it, if the template defines
//! it.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The template of an operation.
pub struct Lowering {
    /// Name of the operation.
    pub name: &'static str,
    /// Number of words of the result.
    pub words: u8,
    /// `true` if the operation writes SCC.
    pub writes_scc: bool,
    /// `true` if the operation returns the old EXEC, which is the second argument, and writes its
    /// result to EXEC.
    pub saves_exec: bool,
    /// Immediate that is the last argument after the sources.
    pub immediate: Option<Immediate>,
    /// See [`super::template`].
    pub code: String,
}

/// Extension of a 16-bit immediate to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immediate {
    /// Sign extension.
    Signed,
    /// Zero extension.
    Unsigned,
}

/// Finds an operation by its canonical name.
pub fn find(name: &str) -> Option<&'static Lowering> {
    static BY_NAME: LazyLock<FxHashMap<&'static str, &'static Lowering>> =
        LazyLock::new(|| TABLE.iter().map(|row| (row.name, row)).collect());
    BY_NAME.get(name).copied()
}

fn plain(name: &'static str, words: u8, code: &str) -> Lowering {
    Lowering {
        name,
        words,
        writes_scc: false,
        saves_exec: false,
        immediate: None,
        code: code.into(),
    }
}

fn with_scc(name: &'static str, words: u8, code: &str) -> Lowering {
    Lowering {
        name,
        words,
        writes_scc: true,
        saves_exec: false,
        immediate: None,
        code: code.into(),
    }
}

fn signed(row: Lowering) -> Lowering {
    Lowering { immediate: Some(Immediate::Signed), ..row }
}

fn unsigned(row: Lowering) -> Lowering {
    Lowering { immediate: Some(Immediate::Unsigned), ..row }
}

/// Both widths of an operation that sets SCC if its result is not zero; `T` stands for the type.
fn bitwise(narrow: &'static str, wide: &'static str, code: &str) -> [Lowering; 2] {
    let code = format!("{code}\n%s = icmp ne T %r, 0");
    [
        Lowering { code: code.replace('T', "i32"), ..with_scc(narrow, 1, "") },
        Lowering { code: code.replace('T', "i64"), ..with_scc(wide, 2, "") },
    ]
}

/// Both widths of an operation that computes a new EXEC and returns the old one.
fn saving(narrow: &'static str, wide: &'static str, code: &str) -> [Lowering; 2] {
    bitwise(narrow, wide, code).map(|row| Lowering { saves_exec: true, ..row })
}

static TABLE: LazyLock<Vec<Lowering>> = LazyLock::new(|| {
    let mut table: Vec<Lowering> = Vec::new();
    table.extend(bitwise("s_and_b32", "s_and_b64", "%r = and T %a, %b"));
    table.extend(bitwise("s_or_b32", "s_or_b64", "%r = or T %a, %b"));
    table.extend(bitwise("s_xor_b32", "s_xor_b64", "%r = xor T %a, %b"));
    table.extend(bitwise("s_andn2_b32", "s_andn2_b64", "%n = xor T %b, -1\n%r = and T %a, %n"));
    table.extend(bitwise("s_orn2_b32", "s_orn2_b64", "%n = xor T %b, -1\n%r = or T %a, %n"));
    table.extend(bitwise("s_nand_b32", "s_nand_b64", "%n = and T %a, %b\n%r = xor T %n, -1"));
    table.extend(bitwise("s_nor_b32", "s_nor_b64", "%n = or T %a, %b\n%r = xor T %n, -1"));
    table.extend(bitwise("s_xnor_b32", "s_xnor_b64", "%n = xor T %a, %b\n%r = xor T %n, -1"));
    table.extend(saving("s_and_saveexec_b32", "s_and_saveexec_b64", "%r = and T %a, %b"));
    table.extend(saving("s_or_saveexec_b32", "s_or_saveexec_b64", "%r = or T %a, %b"));
    table.extend(saving("s_xor_saveexec_b32", "s_xor_saveexec_b64", "%r = xor T %a, %b"));
    table.extend(saving(
        "s_andn2_saveexec_b32",
        "s_andn2_saveexec_b64",
        "%n = xor T %b, -1\n%r = and T %a, %n",
    ));
    table.extend(saving(
        "s_orn2_saveexec_b32",
        "s_orn2_saveexec_b64",
        "%n = xor T %b, -1\n%r = or T %a, %n",
    ));
    table.extend(saving(
        "s_nand_saveexec_b32",
        "s_nand_saveexec_b64",
        "%n = and T %a, %b\n%r = xor T %n, -1",
    ));
    table.extend(saving(
        "s_nor_saveexec_b32",
        "s_nor_saveexec_b64",
        "%n = or T %a, %b\n%r = xor T %n, -1",
    ));
    table.extend(saving(
        "s_xnor_saveexec_b32",
        "s_xnor_saveexec_b64",
        "%n = xor T %a, %b\n%r = xor T %n, -1",
    ));
    table.extend(saving(
        "s_andn1_saveexec_b32",
        "s_andn1_saveexec_b64",
        "%n = xor T %a, -1\n%r = and T %n, %b",
    ));
    table.extend(saving(
        "s_orn1_saveexec_b32",
        "s_orn1_saveexec_b64",
        "%n = xor T %a, -1\n%r = or T %n, %b",
    ));
    table.extend(bitwise("s_not_b32", "s_not_b64", "%r = xor T %a, -1"));
    table.extend([
        plain("s_mov_b32", 1, "%r = or i32 %a, 0"),
        plain("s_mov_b64", 2, "%r = or i64 %a, 0"),
        plain("s_brev_b32", 1, "%r = call i32 @llvm.bitreverse.i32(i32 %a)"),
        plain("s_brev_b64", 2, "%r = call i64 @llvm.bitreverse.i64(i64 %a)"),
        plain("s_cmov_b32", 1, "%r = select i1 %d, i32 %a, i32 %b"),
        plain("s_cmov_b64", 2, "%r = select i1 %d, i64 %a, i64 %b"),
        plain("s_cselect_b32", 1, "%r = select i1 %d, i32 %a, i32 %b"),
        plain("s_cselect_b64", 2, "%r = select i1 %d, i64 %a, i64 %b"),
        with_scc("s_add_u32", 1, "%r = add i32 %a, %b\n%s = icmp ult i32 %r, %a"),
        with_scc("s_sub_u32", 1, "%r = sub i32 %a, %b\n%s = icmp ult i32 %a, %b"),
        with_scc(
            "s_add_i32",
            1,
            "%r = add i32 %a, %b\n%x = xor i32 %a, %r\n%y = xor i32 %b, %r\n%z = and i32 %x, %y\n\
             %s = icmp slt i32 %z, 0",
        ),
        with_scc(
            "s_sub_i32",
            1,
            "%r = sub i32 %a, %b\n%x = xor i32 %a, %b\n%y = xor i32 %a, %r\n%z = and i32 %x, %y\n\
             %s = icmp slt i32 %z, 0",
        ),
        with_scc(
            "s_addc_u32",
            1,
            "%x = zext i32 %a to i64\n%y = zext i32 %b to i64\n%z = zext i1 %d to i64\n\
             %p = add i64 %x, %y\n%q = add i64 %p, %z\n%r = trunc i64 %q to i32\n\
             %s = icmp ugt i64 %q, 4294967295",
        ),
        with_scc(
            "s_subb_u32",
            1,
            "%x = zext i32 %a to i64\n%y = zext i32 %b to i64\n%z = zext i1 %d to i64\n\
             %p = sub i64 %x, %y\n%q = sub i64 %p, %z\n%r = trunc i64 %q to i32\n\
             %s = icmp slt i64 %q, 0",
        ),
        with_scc("s_min_i32", 1, "%s = icmp slt i32 %a, %b\n%r = select i1 %s, i32 %a, i32 %b"),
        with_scc("s_min_u32", 1, "%s = icmp ult i32 %a, %b\n%r = select i1 %s, i32 %a, i32 %b"),
        with_scc("s_max_i32", 1, "%s = icmp sgt i32 %a, %b\n%r = select i1 %s, i32 %a, i32 %b"),
        with_scc("s_max_u32", 1, "%s = icmp ugt i32 %a, %b\n%r = select i1 %s, i32 %a, i32 %b"),
        with_scc(
            "s_lshl_b32",
            1,
            "%n = and i32 %b, 31\n%r = shl i32 %a, %n\n%s = icmp ne i32 %r, 0",
        ),
        with_scc(
            "s_lshr_b32",
            1,
            "%n = and i32 %b, 31\n%r = lshr i32 %a, %n\n%s = icmp ne i32 %r, 0",
        ),
        with_scc(
            "s_ashr_i32",
            1,
            "%n = and i32 %b, 31\n%r = ashr i32 %a, %n\n%s = icmp ne i32 %r, 0",
        ),
        with_scc(
            "s_lshl_b64",
            2,
            "%m = and i32 %b, 63\n%n = zext i32 %m to i64\n%r = shl i64 %a, %n\n\
             %s = icmp ne i64 %r, 0",
        ),
        with_scc(
            "s_lshr_b64",
            2,
            "%m = and i32 %b, 63\n%n = zext i32 %m to i64\n%r = lshr i64 %a, %n\n\
             %s = icmp ne i64 %r, 0",
        ),
        with_scc(
            "s_ashr_i64",
            2,
            "%m = and i32 %b, 63\n%n = zext i32 %m to i64\n%r = ashr i64 %a, %n\n\
             %s = icmp ne i64 %r, 0",
        ),
        plain("s_mul_i32", 1, "%r = mul i32 %a, %b"),
        plain(
            "s_mul_hi_u32",
            1,
            "%x = zext i32 %a to i64\n%y = zext i32 %b to i64\n%p = mul i64 %x, %y\n\
             %h = lshr i64 %p, 32\n%r = trunc i64 %h to i32",
        ),
        plain(
            "s_mul_hi_i32",
            1,
            "%x = sext i32 %a to i64\n%y = sext i32 %b to i64\n%p = mul i64 %x, %y\n\
             %h = lshr i64 %p, 32\n%r = trunc i64 %h to i32",
        ),
        with_scc("s_cmp_eq_i32", 0, "%s = icmp eq i32 %a, %b"),
        with_scc("s_cmp_lg_i32", 0, "%s = icmp ne i32 %a, %b"),
        with_scc("s_cmp_gt_i32", 0, "%s = icmp sgt i32 %a, %b"),
        with_scc("s_cmp_ge_i32", 0, "%s = icmp sge i32 %a, %b"),
        with_scc("s_cmp_lt_i32", 0, "%s = icmp slt i32 %a, %b"),
        with_scc("s_cmp_le_i32", 0, "%s = icmp sle i32 %a, %b"),
        with_scc("s_cmp_eq_u32", 0, "%s = icmp eq i32 %a, %b"),
        with_scc("s_cmp_lg_u32", 0, "%s = icmp ne i32 %a, %b"),
        with_scc("s_cmp_gt_u32", 0, "%s = icmp ugt i32 %a, %b"),
        with_scc("s_cmp_ge_u32", 0, "%s = icmp uge i32 %a, %b"),
        with_scc("s_cmp_lt_u32", 0, "%s = icmp ult i32 %a, %b"),
        with_scc("s_cmp_le_u32", 0, "%s = icmp ule i32 %a, %b"),
        with_scc("s_cmp_eq_u64", 0, "%s = icmp eq i64 %a, %b"),
        with_scc("s_cmp_lg_u64", 0, "%s = icmp ne i64 %a, %b"),
        signed(with_scc("s_cmpk_eq_i32", 0, "%s = icmp eq i32 %a, %b")),
        signed(with_scc("s_cmpk_lg_i32", 0, "%s = icmp ne i32 %a, %b")),
        signed(with_scc("s_cmpk_gt_i32", 0, "%s = icmp sgt i32 %a, %b")),
        signed(with_scc("s_cmpk_ge_i32", 0, "%s = icmp sge i32 %a, %b")),
        signed(with_scc("s_cmpk_lt_i32", 0, "%s = icmp slt i32 %a, %b")),
        signed(with_scc("s_cmpk_le_i32", 0, "%s = icmp sle i32 %a, %b")),
        unsigned(with_scc("s_cmpk_eq_u32", 0, "%s = icmp eq i32 %a, %b")),
        unsigned(with_scc("s_cmpk_lg_u32", 0, "%s = icmp ne i32 %a, %b")),
        unsigned(with_scc("s_cmpk_gt_u32", 0, "%s = icmp ugt i32 %a, %b")),
        unsigned(with_scc("s_cmpk_ge_u32", 0, "%s = icmp uge i32 %a, %b")),
        unsigned(with_scc("s_cmpk_lt_u32", 0, "%s = icmp ult i32 %a, %b")),
        unsigned(with_scc("s_cmpk_le_u32", 0, "%s = icmp ule i32 %a, %b")),
        signed(plain("s_movk_i32", 1, "%r = or i32 %a, 0")),
        signed(plain("s_mulk_i32", 1, "%r = mul i32 %a, %b")),
        signed(with_scc(
            "s_addk_i32",
            1,
            "%r = add i32 %a, %b\n%x = xor i32 %a, %r\n%y = xor i32 %b, %r\n%z = and i32 %x, %y\n\
             %s = icmp slt i32 %z, 0",
        )),
    ]);
    table
});

/// All templates.
#[cfg(test)]
pub fn all() -> &'static [Lowering] {
    &TABLE
}
