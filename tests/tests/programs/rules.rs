//! Negative control: with one wrong rule of the ISA, the comparisons fail.
//!
//! The tests simulate a wrong rule by rewriting the assembly: an instruction is replaced with another one
//! that computes the result of the wrong rule.

use super::case::Case;
use super::{LEVELS, float, in_parallel, integer};
use flipwave_tests::{GFX90A, Machine, cases, machines};
use regex_lite::Regex;
use std::ops::Range;
use std::sync::Arc;

/// A wrong rule: description, pattern of instructions, and replacement.
type Rule = (&'static str, &'static str, &'static str);

const RULES: [Rule; 45] = [
    // Integers.
    ("vector minimum is maximum", r"\tv_min_([iu]\d+)", "\tv_max_$1"),
    (
        "vector sum drops the carry",
        r"\tv_addc_co_u32_(\w+) ([^,]+, [^,]+, [^,]+, [^,]+), \S+",
        "\tv_add_co_u32_$1 $2",
    ),
    (
        "vector difference drops the borrow",
        r"\tv_subb_co_u32_(\w+) ([^,]+, [^,]+, [^,]+, [^,]+), \S+",
        "\tv_sub_co_u32_$1 $2",
    ),
    ("scalar sum drops the carry", r"\ts_addc_u32 ", "\ts_add_u32 "),
    ("signed field is not extended", r"\tv_bfe_i32 ", "\tv_bfe_u32 "),
    ("arithmetic shift is logical", r"\tv_ashrrev_i32_", "\tv_lshrrev_b32_"),
    ("logical shift is arithmetic", r"\tv_lshrrev_b32_", "\tv_ashrrev_i32_"),
    ("shift counts modulo nothing", r"\tv_lshlrev_b64 (\S+), (\S+),", "\tv_lshrrev_b64 $1, $2,"),
    ("upper half of a product is the lower", r"\tv_mul_hi_u32 ", "\tv_mul_lo_u32 "),
    ("product keeps 24 bits", r"\tv_mul_lo_u32 ", "\tv_mul_u32_u24_e64 "),
    ("wide product is signed", r"\tv_mad_u64_u32 ", "\tv_mad_i64_i32 "),
    ("less is less or equal", r"\tv_cmp_lt_([iu]\d+)", "\tv_cmp_le_$1"),
    ("greater is greater or equal", r"\tv_cmp_gt_([iu]\d+)", "\tv_cmp_ge_$1"),
    ("signed order is unsigned", r"\tv_cmp_(\w\w)_i(16|32|64)", "\tv_cmp_${1}_u$2"),
    ("scalar equal is always", r"\ts_cmp_eq_u32 .*", "\ts_cmp_eq_u32 0, 0"),
    (
        "vector select takes the other",
        r"\tv_cndmask_b32_e32 (v\d+), (v\d+), (v\d+), vcc",
        "\tv_cndmask_b32_e32 $1, $3, $2, vcc",
    ),
    (
        "scalar select takes the other",
        r"\ts_cselect_b(32|64) (\S+), (\S+), (\S+)",
        "\ts_cselect_b$1 $2, $4, $3",
    ),
    ("branches keep all lanes", r"\ts_and_saveexec_b64 ", "\ts_or_saveexec_b64 "),
    ("loops keep no lane", r"\ts_andn2_b64 exec, exec, ", "\ts_and_b64 exec, exec, "),
    ("lanes do not come back", r"\ts_or_b64 exec, exec, ", "\ts_and_b64 exec, exec, "),
    ("exclusive or is or", r"\tv_xor_b32_", "\tv_or_b32_"),
    ("or of three is exclusive", r"\tv_or3_b32 ", "\tv_xad_u32 "),
    ("and-or is or of three", r"\tv_and_or_b32 ", "\tv_or3_b32 "),
    ("shift-add adds first", r"\tv_lshl_add_u32 ", "\tv_add_lshl_u32 "),
    ("leading zeros are trailing zeros", r"\tv_ffbh_u32_", "\tv_ffbl_b32_"),
    ("bytes are signed", r"\t(flat|global|buffer)_load_ubyte ", "\t${1}_load_sbyte "),
    ("bytes are unsigned", r"\t(flat|global|buffer)_load_sbyte ", "\t${1}_load_ubyte "),
    ("halves of words are signed", r"\t(flat|global|buffer)_load_ushort ", "\t${1}_load_sshort "),
    ("private memory has no offsets", r"(\tbuffer_load_.*) offset:\d+", "$1"),
    ("global memory has no offsets", r"(\t(?:flat|global)_load_.*) offset:\d+", "$1"),
    ("selected byte is the lowest", r"src0_sel:(BYTE|WORD)_[123]", "src0_sel:${1}_0"),
    // Floating point.
    (
        "fused product of single precision rounds twice",
        r"\tv_fma_f32 (\S+), (\S+), (\S+), (\S+)$",
        "\tv_mul_f32_e64 v255, $2, $3\n\tv_add_f32_e64 $1, v255, $4",
    ),
    (
        "fused product of double precision rounds twice",
        r"\tv_fma_f64 (\S+), (\S+), (\S+), (\S+)$",
        "\tv_mul_f64 v[254:255], $2, $3\n\tv_add_f64 $1, v[254:255], $4",
    ),
    ("minimum of numbers is maximum", r"\tv_min_f(\d+)", "\tv_max_f$1"),
    ("ties go to zero", r"\tv_rndne_f(\d+)", "\tv_trunc_f$1"),
    ("floor is truncation", r"\tv_floor_f(\d+)", "\tv_trunc_f$1"),
    (
        "special quotients are not mended",
        r"\tv_div_fixup_f32 (\S+), (\S+), .*",
        "\tv_mov_b32 $1, $2",
    ),
    ("quotients are not scaled back", r"\tv_div_fmas_f(\d+) ", "\tv_fma_f$1 "),
    ("unordered is ordered", r"\tv_cmp_nlt_f(\d+)", "\tv_cmp_ge_f$1"),
    ("negation is forgotten", r"(\tv_add_f\d+(?:_e64)? .*), -([vs])", "$1, $2"),
    ("magnitude is forgotten", r"(\tv_\w+ .*)\|([vs]\d+|[vs]\[\d+:\d+\])\|", "$1$2"),
    ("sums round upwards", r"\.amdhsa_float_round_mode_(\w+) 0", ".amdhsa_float_round_mode_$1 1"),
    (
        "half precision is cut off",
        r"\tv_cvt_f16_f32_e32 (\S+), (\S+)",
        "\tv_cvt_pkrtz_f16_f32 $1, $2, 0",
    ),
    ("denormals of single precision vanish", r"(denorm_mode_32) 3", "$1 0"),
    ("denormals of half and double precision vanish", r"(denorm_mode_16_64) 3", "$1 0"),
];

/// A program with its assembly, and its instruction limit with a wrong rule.
struct Subject {
    case: Arc<Case>,
    assembly: String,
    limit: u64,
    machine: Machine,
}

impl Subject {
    fn new(machine: Machine, case: Arc<Case>, level: &str) -> Subject {
        let assembly = case.assembly(machine, level);
        let assembly =
            if machine == GFX90A { with_registers_to_spare(&assembly) } else { assembly };
        let executed = case
            .check_assembly(machine, &assembly, u64::MAX)
            .unwrap_or_else(|error| panic!("{} {level} on {machine}: {error}", case.name));
        Subject { machine, case, assembly, limit: 2 * executed }
    }

    /// Returns `true` if the comparison detects the wrong rule, and `None` if the program has none of its
    /// instructions.
    fn notices(&self, rule: &Rule) -> Option<bool> {
        let (_, pattern, replacement) = rule;
        let pattern = Regex::new(&format!("(?m){pattern}")).expect("a regular expression");
        let rewritten = pattern.replace_all(&self.assembly, *replacement);
        (rewritten != self.assembly)
            .then(|| self.case.check_assembly(self.machine, &rewritten, self.limit).is_err())
    }
}

/// Lets the kernel use all registers, so that replacements have registers that the program does not use.
fn with_registers_to_spare(assembly: &str) -> String {
    let all = |text: &str, pattern: &str, value: &str| {
        Regex::new(pattern).expect("a regular expression").replace_all(text, value).into_owned()
    };
    let text = all(assembly, r"\.amdhsa_next_free_vgpr .*", ".amdhsa_next_free_vgpr 512");
    all(&text, r"\.amdhsa_accum_offset .*", ".amdhsa_accum_offset 256")
}

/// Result of testing a wrong rule on a family of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// No program has the rule's instructions.
    Unused,
    /// All results are unchanged.
    Unnoticed,
    /// Some results are wrong.
    Noticed,
}

fn verdict(family: &[Subject], rule: &Rule) -> Verdict {
    let mut verdict = Verdict::Unused;
    for subject in family {
        verdict = match subject.notices(rule) {
            None => verdict,
            Some(false) => Verdict::Unnoticed,
            Some(true) => return Verdict::Noticed,
        };
    }
    verdict
}

/// Optimisation level of a seed's program: each level for two of eight seeds.
fn level(seed: u32) -> &'static str {
    LEVELS[(seed as usize + seed as usize / 4) % 4]
}

/// The subjects of a family of programs.
fn subjects(
    machine: Machine,
    case: impl Fn(u32) -> Option<Arc<Case>> + Sync,
    seeds: Range<u32>,
) -> Vec<Subject> {
    let seeds: Vec<u32> = seeds.collect();
    let subject = |seed: u32| Some(Subject::new(machine, case(seed)?, level(seed)));
    in_parallel(&seeds, |&seed| subject(seed)).into_iter().flatten().collect()
}

/// Tests each rule on both families of programs. With `table`, all verdicts are determined; without it,
/// rules that integer programs detect are not tested on floating-point programs.
fn play(integer_seeds: Range<u32>, float_seeds: Range<u32>, table: bool) {
    let integers = subjects(GFX90A, integer::case, integer_seeds);
    let floats = subjects(GFX90A, |seed| Some(float::case(seed)), float_seeds);
    let rules: Vec<Rule> = cases(RULES, 4).collect();
    let verdicts = in_parallel(&rules, |rule| {
        let by_integers = verdict(&integers, rule);
        let known = by_integers == Verdict::Noticed && !table;
        (by_integers, (!known).then(|| verdict(&floats, rule)))
    });
    let mut missed = 0;
    println!("wrong rule: integer programs, floating-point programs");
    for ((name, ..), (integers, floats)) in rules.iter().zip(&verdicts) {
        let noticed = [Some(*integers), *floats].contains(&Some(Verdict::Noticed));
        missed += u32::from(!noticed);
        let floats = floats.map_or("-".into(), |verdict| format!("{verdict:?}"));
        println!("{name}: {integers:?}, {floats}");
    }
    assert_eq!(missed, 0, "undetected rules; see the table above");
}

/// Wrong rules about instructions that have the same name in all generations.
const OF_ALL: [Rule; 4] = [
    ("exclusive or is or", r"\tv_xor_b32_", "\tv_or_b32_"),
    ("arithmetic shift is logical", r"\tv_ashrrev_i32_", "\tv_lshrrev_b32_"),
    ("less is less or equal", r"\tv_cmp_lt_([iu]\d+)", "\tv_cmp_le_$1"),
    ("greater is greater or equal", r"\tv_cmp_gt_([iu]\d+)", "\tv_cmp_ge_$1"),
];

#[test]
fn wrong_rules_are_detected_on_other_machines() {
    for machine in cases(machines().skip(1), 3) {
        let mut unnoticed = OF_ALL.to_vec();
        for (seed, case) in (0..8).filter_map(|seed| Some((seed, integer::case(seed)?))) {
            if unnoticed.is_empty() {
                break;
            }
            let subject = Subject::new(machine, case, level(seed));
            unnoticed.retain(|rule| subject.notices(rule) != Some(true));
        }
        let names: Vec<&str> = unnoticed.iter().map(|(name, ..)| *name).collect();
        assert!(names.is_empty(), "on {machine} nothing notices: {names:?}");
    }
}

#[test]
fn every_wrong_rule_is_detected_by_random_programs() {
    play(0..12, 0..4, false);
}

#[test]
#[ignore = "long: every wrong rule on every family"]
fn both_families_detect_wrong_rules() {
    play(0..32, 0..8, true);
}
