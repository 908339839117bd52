//! Known hardware bugs: checked bugs, and the table of all bugs in docs/strict.md.

use super::planted::{breaks, run};
use flipwave_isa::{ChipBug, Generation, Isa, Target};
use flipwave_sim::strict::{Finding, Rule};
use flipwave_tests::{MACHINES, Machine, assemble_for};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn machines(processor: &str) -> impl Iterator<Item = Machine> {
    MACHINES.into_iter().filter(move |machine| machine.target().processor() == processor)
}

#[test]
fn each_checked_chip_bug_is_reported() {
    let private = ".set private_bytes, 64\n v_mov_b32 v5, 2\n s_mov_b32 s4, 6\n";
    for (processor, bug, wrong, mended) in [
        (
            "gfx942",
            ChipBug::NegativeScratchOffset,
            "scratch_load_dword v6, off, s4 offset:-4",
            "scratch_load_dword v6, off, s4 offset:4",
        ),
        (
            "gfx942",
            ChipBug::ConvertFloat8,
            "v_cvt_f32_fp8_e32 v6, v0",
            "v_cvt_f32_fp8_sdwa v6, v0 src0_sel:BYTE_0",
        ),
        (
            "gfx1100",
            ChipBug::DotOpSel,
            "v_dot2_f32_f16 v6, v0, v0, v0 op_sel_hi:[0,1,1]",
            "v_dot2_f32_f16 v6, v0, v0, v0",
        ),
        (
            "gfx1100",
            ChipBug::MadIntraForwarding,
            "v_mad_u64_u32 v[0:1], null, v0, v5, 0",
            "v_mad_u64_u32 v[6:7], null, v0, v5, 0",
        ),
        (
            "gfx1100",
            ChipBug::ScratchSwizzle,
            "scratch_load_b32 v6, v5, s4",
            "scratch_load_b32 v6, v5, s4 offset:2",
        ),
        (
            "gfx1201",
            ChipBug::ScalarTranscendentalConstant,
            "v_s_rcp_f16 s5, 2.0",
            "v_s_rcp_f16 s5, s4",
        ),
        (
            "gfx1250",
            ChipBug::ScratchBaseHigh,
            "s_lshl_b64 s[6:7], s[0:1], src_flat_scratch_base_hi",
            "s_lshl_b32 s6, s0, src_flat_scratch_base_hi",
        ),
    ] {
        for machine in machines(processor) {
            let with = |line: &str| format!("{private}wrong: {line}\n");
            let violation = breaks(machine, Rule::ChipBug, 64, &with(wrong), &with(mended));
            assert!(matches!(violation.finding, Finding::ChipBug(found) if found == bug));
        }
    }
    // Other processors of the generation do not have these bugs.
    for machine in machines("gfx1151") {
        let text = format!("{private} v_mad_u64_u32 v[0:1], null, v0, v5, 0\n");
        assert!(run(&assemble_for(machine, &text), 64).1.is_empty());
    }
}

#[test]
fn kernels_that_start_with_few_scalar_registers_are_reported() {
    for machine in machines("gfx1100") {
        let with = |sgprs: u32| format!(".set user_sgprs, {sgprs}\n s_nop 0\n");
        let found = |sgprs: u32| run(&assemble_for(machine, &with(sgprs)), 64).1;
        assert!(found(15).is_empty(), "{machine}");
        if machine.lanes == 32 {
            let found = found(14);
            assert_eq!(found.len(), 1);
            let bug = &found[0].finding;
            assert!(matches!(bug, Finding::ChipBug(ChipBug::UserSgprInit16)), "{}", found[0]);
        }
    }
}

/// A row of a table in `docs/strict.md`.
#[derive(Debug)]
struct Row {
    processors: String,
    strict: String,
    rewriter: String,
}

/// Rows of the tables, by the name that LLVM uses.
fn rows(page: &str) -> BTreeMap<String, Row> {
    let section = page.split("## Known hardware bugs").nth(1).expect("the section");
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let name = cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
        let [_, processors, _, strict, rewriter] = cells[..] else { return None };
        let [processors, strict, rewriter] = [processors, strict, rewriter].map(str::to_owned);
        Some((name.to_owned(), Row { processors, strict, rewriter }))
    });
    rows.collect()
}

/// LLVM's subtarget features for bugs and hazards, including one whose name mentions neither, with the
/// affected processors.
fn llvm() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut all = BTreeMap::new();
    for name in Target::names() {
        let target: Target = name.parse().expect("a target");
        let Ok(isa) = Isa::new(&target) else { continue };
        if target.is_generic() || matches!(name, "gfx940" | "gfx941") {
            continue;
        }
        for feature in isa.features() {
            let is_named = ["bug", "hazard"].iter().any(|word| feature.name.contains(word));
            if is_named || feature.name == "d16-write-vgpr32" {
                let processors: &mut Vec<&str> = all.entry(feature.name).or_default();
                processors.extend(feature.is_enabled.then_some(name));
            }
        }
    }
    all
}

#[test]
fn documentation_lists_all_bugs_of_llvm_with_processors() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/strict.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let rows = rows(&page);
    let llvm = llvm();
    let mut wrong = Vec::new();
    for (name, processors) in &llvm {
        let expected =
            if processors.is_empty() { "none".to_owned() } else { processors.join(", ") };
        if rows.get(*name).is_none_or(|row| row.processors != expected) {
            wrong.push(format!("| `{name}` | {expected} |"));
        }
    }
    // The page may list methods of GCNSubtarget, which are not features, but no removed features.
    let is_listed = |name: &str| name.starts_with("has") || llvm.contains_key(name);
    wrong.extend(rows.keys().filter(|name| !is_listed(name)).cloned());
    assert!(wrong.is_empty(), "these rows are missing or wrong:\n{}", wrong.join("\n"));
    for (name, row) in &rows {
        for cell in [&row.strict, &row.rewriter] {
            let is_decided = cell.starts_with("checked") || cell.starts_with("not checked: ");
            assert!(is_decided, "{name}: {cell}");
        }
    }
    // The bugs listed as checked are exactly the ones that are checked.
    let has_strict = |bug: &ChipBug| {
        let has = |machine: &Machine| machine.has_strict_level() && bug.affects(&machine.target());
        MACHINES.iter().any(has)
    };
    let checked: BTreeSet<&str> =
        ChipBug::ALL.iter().filter(|bug| has_strict(bug)).map(|bug| bug.llvm_name()).collect();
    let listed = rows.iter().filter(|(_, row)| row.strict == "checked: `chip-bug`");
    let listed: BTreeSet<&str> = listed.map(|(name, _)| name.as_str()).collect();
    assert_eq!(checked, listed);
}

/// gfx908's bug with constants in MFMA. The instructions are given as words, because assemblers refuse them.
#[test]
fn constants_in_mfma_are_reported() {
    for machine in machines("gfx908") {
        assert!(machine.target().generation() == Generation::Gfx9);
        let isa = Isa::new(&machine.target()).expect("a target");
        let line = "v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]";
        let bytes = isa.assemble(line).expect(line);
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
        let constant = word(4) & !(0x1ff << 18) | 128 << 18;
        let fill = "v_accvgpr_write_b32 a0, 0\n v_accvgpr_write_b32 a1, 0\n \
                    v_accvgpr_write_b32 a2, 0\n v_accvgpr_write_b32 a3, 0\n s_nop 4\n";
        let wrong = format!("{fill}wrong: .long {:#x}, {constant:#x}\n", word(0));
        breaks(machine, Rule::ChipBug, 64, &wrong, &format!("{fill}{line}\n"));
    }
}
