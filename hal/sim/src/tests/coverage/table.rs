//! The book's tables of instructions: `docs/instructions.md` and a page for each target in
//! `docs/instructions/`.

use super::walk::{SAMPLES, decode, isa, neighbours, of_pages};
use super::{Treatment, treatment};
use crate::execute::lane::Accuracy;
use crate::wave::Machine;
use flipwave_depth::cases;
use flipwave_isa::{Encoding, Inst, OutputScale, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

/// Encodings with the headings under which their instructions stand. An instruction with several
/// stands under the first.
const GROUPS: [(Encoding, &str); 24] = [
    (Encoding::Sop1, "Scalar, one source (SOP1)"),
    (Encoding::Sop2, "Scalar, two sources (SOP2)"),
    (Encoding::Sopc, "Scalar comparisons (SOPC)"),
    (Encoding::Sopk, "Scalar with an immediate (SOPK)"),
    (Encoding::Sopp, "Program control (SOPP)"),
    (Encoding::Smem, "Scalar memory (SMEM)"),
    (Encoding::Vop1, "Vector, one source (VOP1)"),
    (Encoding::Vop2, "Vector, two sources (VOP2)"),
    (Encoding::Vopc, "Vector comparisons (VOPC)"),
    (Encoding::Vop3, "Vector, three sources (VOP3)"),
    (Encoding::Vop3p, "Packed, mixed precision, dot products, matrices (VOP3P)"),
    (Encoding::Sdwa, "Vector with sub-dword selects (SDWA)"),
    (Encoding::Dpp, "Vector with lane movement (DPP)"),
    (Encoding::Ds, "Local data share (DS)"),
    (Encoding::Flat, "Flat memory"),
    (Encoding::Global, "Global memory"),
    (Encoding::Scratch, "Private memory (scratch)"),
    (Encoding::Mubuf, "Buffers (MUBUF)"),
    (Encoding::Mtbuf, "Typed buffers (MTBUF)"),
    (Encoding::Mimg, "Images (MIMG)"),
    (Encoding::Vintrp, "Interpolation (VINTRP)"),
    (Encoding::Vopd, "Dual (VOPD)"),
    (Encoding::Export, "Export"),
    (Encoding::Other, "Others"),
];

/// A row of the table.
struct Row {
    /// Indices into [`GROUPS`].
    encodings: BTreeSet<usize>,
    treatment: Treatment,
    modifiers: BTreeSet<String>,
}

/// Names of the modifiers that an instruction has.
fn modifiers(inst: &Inst) -> BTreeSet<String> {
    let all = &inst.modifiers;
    let any = |flag: fn(&flipwave_isa::Operand) -> bool| inst.operands.iter().any(flag);
    let flags = [
        ("neg", any(|operand| operand.negate) || all.negated_sources != 0),
        ("abs", any(|operand| operand.absolute)),
        ("sext", any(|operand| operand.sign_extend)),
        ("clamp", all.clamp),
        ("omod", all.output_scale != OutputScale::None),
        ("op_sel", all.op_sel.is_some()),
        ("op_sel_hi", all.op_sel_hi.is_some()),
        ("neg_lo", all.neg_lo != 0),
        ("neg_hi", all.neg_hi != 0),
        ("offset", all.offset != 0 || all.swizzle.is_some()),
        ("offset0", all.offset0 != 0),
        ("offset1", all.offset1 != 0),
        ("glc", all.glc),
        ("offen", all.offen),
        ("idxen", all.idxen),
        ("format", all.buffer_format.is_some()),
        ("lds", all.lds),
        ("gds", all.gds),
        ("sub-dword selects", all.sdwa.is_some()),
        ("lane movement", all.dpp.is_some()),
        ("cbsz", all.cbsz != 0),
        ("abid", all.abid != 0),
        ("blgp", all.blgp != 0),
    ];
    let set = flags.iter().filter(|(_, set)| *set).map(|(name, _)| (*name).to_owned());
    set.chain(all.cache_policy.iter().cloned()).collect()
}

/// Processors with a page, each for those that have the same instructions.
pub const PAGES: [(&str, &str); 10] = [
    ("gfx906", "gfx906"),
    ("gfx908", "gfx908"),
    ("gfx90a", "gfx90a"),
    ("gfx942", "gfx942"),
    ("gfx950", "gfx950"),
    ("gfx1030", "gfx1030 to gfx1036"),
    ("gfx1100", "gfx1100 to gfx1103"),
    ("gfx1150", "gfx1150 to gfx1153"),
    ("gfx1201", "gfx1200 and gfx1201"),
    ("gfx1250", "gfx1250"),
];

/// Those that are looked at; gfx90a is always among them.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut pages = PAGES;
    pages.rotate_left(2);
    cases(pages, 3)
}

type Rows = BTreeMap<&'static str, Row>;

/// The rows of a processor's page.
fn rows(processor: &str) -> Rows {
    let target: Target = processor.parse().expect("a target");
    let isa = isa(processor);
    let machine = Machine::new(&target, target.default_wave_size());
    let mut rows = Rows::new();
    for words in SAMPLES[processor].values().flatten().copied().flat_map(neighbours) {
        let Some(inst) = decode(&isa, words) else { continue };
        let treatment = treatment(&inst, machine);
        // The two halves of a dual instruction have rows of their own.
        if inst.encoding == Encoding::Vopd && !matches!(treatment, Treatment::Gap(_)) {
            continue;
        }
        let group = GROUPS.iter().position(|(encoding, _)| *encoding == inst.encoding);
        let row = rows.entry(inst.operation.name()).or_insert_with(|| Row {
            encodings: BTreeSet::new(),
            treatment,
            modifiers: BTreeSet::new(),
        });
        row.encodings.insert(group.unwrap_or(GROUPS.len() - 1));
        row.modifiers.append(&mut modifiers(&inst));
        // Single operands may be refused; gaps show in any case.
        if matches!(row.treatment, Treatment::NotCompute(_))
            || matches!(treatment, Treatment::Gap(_))
        {
            row.treatment = treatment;
        }
    }
    rows
}

/// The rows of each page that is looked at.
static ROWS: LazyLock<BTreeMap<&'static str, Rows>> = LazyLock::new(|| of_pages(rows));

/// How many instructions there are of each kind, and of all.
fn totals(rows: &Rows) -> [(&'static str, usize); 6] {
    let count = |is: fn(&Treatment) -> bool| rows.values().filter(|row| is(&row.treatment)).count();
    [
        ("exact", count(|treatment| matches!(treatment, Treatment::Exact))),
        ("within a stated error", count(|treatment| matches!(treatment, Treatment::Within(_)))),
        ("not settled", count(|treatment| matches!(treatment, Treatment::Unsettled(_)))),
        (
            "typed fault: no compute instruction",
            count(|treatment| matches!(treatment, Treatment::NotCompute(_))),
        ),
        ("missing", count(|treatment| matches!(treatment, Treatment::Gap(_)))),
        ("all", rows.len()),
    ]
}

/// The page that leads to the others.
fn index() -> String {
    let mut page = String::from(
        "# Instructions of the embedded GPU\n\n\
         How many of the instructions that LLVM 22 decodes for a processor the embedded GPU \
         executes, and how; each processor has a page with all of them. These pages are generated \
         from the code that executes them.\n\n",
    );
    let headings = totals(&Rows::new()).map(|(what, _)| what).join(" | ");
    let _ = writeln!(page, "| processor | {headings} |\n|---|---:|---:|---:|---:|---:|---:|");
    for (processor, all) in PAGES {
        let numbers = totals(&ROWS[processor]).map(|(_, number)| number.to_string()).join(" | ");
        let _ = writeln!(page, "| [{all}](instructions/{processor}.md) | {numbers} |");
    }
    page.push_str(
        "\nExact means the bits that the ISA defines. Where it leaves them open, an error of so \
         many units in the last place is kept. Not settled means that neither AMD's documents nor \
         published measurements say what some bits are; the page says what they are here. In all cases they \
         are the same on every host.\n",
    );
    page
}

/// A processor's page.
fn page(processor: &str, all: &str) -> String {
    let rows = &ROWS[processor];
    let mut page = format!(
        "# Instructions of {all}\n\n\
         Every instruction that LLVM 22 decodes for {processor}, and how the embedded GPU executes \
         it. This page is generated from the code that executes them.\n\n\
         | | instructions |\n|---|---:|\n",
    );
    for (what, number) in totals(rows) {
        let _ = writeln!(page, "| {what} | {number} |");
    }
    page.push_str(
        "\nNames are those of gfx9 without the suffix of the encoding, where gfx9 has the \
         operation; an instruction with several encodings stands under its shortest. [What the \
         words mean](../instructions.md).\n",
    );
    for (index, (_, heading)) in GROUPS.iter().enumerate() {
        let here: Vec<_> =
            rows.iter().filter(|(_, row)| row.encodings.first() == Some(&index)).collect();
        if here.is_empty() {
            continue;
        }
        let _ = writeln!(
            page,
            "\n## {heading}\n\n| instruction | execution | other encodings | modifiers |\n\
             |---|---|---|---|"
        );
        for (name, row) in here {
            let others = row.encodings.iter().skip(1).map(|other| short(GROUPS[*other].0));
            let others = others.collect::<Vec<_>>().join(", ");
            let modifiers = row.modifiers.iter().cloned().collect::<Vec<_>>().join(", ");
            let treatment = row.treatment;
            let _ = writeln!(page, "| `{name}` | {treatment} | {others} | {modifiers} |");
        }
    }
    page
}

fn short(encoding: Encoding) -> String {
    format!("{encoding:?}").to_uppercase()
}

/// Run with `FLIPWAVE_TESTS=full FLIPWAVE_BLESS=1` to write the pages anew.
#[test]
fn the_tables_of_instructions_in_the_book_are_what_the_code_does() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let own = pages()
        .map(|(processor, all)| (format!("instructions/{processor}.md"), page(processor, all)));
    let index = (ROWS.len() == PAGES.len()).then(|| ("instructions.md".into(), index()));
    for (name, page) in own.chain(index) {
        let place = docs.join(&name);
        if std::env::var_os("FLIPWAVE_BLESS").is_some() {
            std::fs::write(&place, &page).expect("the page written");
        }
        let written = std::fs::read_to_string(&place).unwrap_or_default();
        let different = page.lines().zip(written.lines()).find(|(new, old)| new != old);
        assert!(
            page == written,
            "docs/{name} does not say what the code does (first difference: {different:?}); write \
             it anew with FLIPWAVE_TESTS=full FLIPWAVE_BLESS=1 cargo test -p flipwave-sim the_tables_of_instructions"
        );
    }
}

#[test]
fn the_table_has_a_row_for_what_every_encoding_brings() {
    let rows = &ROWS["gfx90a"];
    assert!(rows.len() > 1100, "only {}", rows.len());
    for (name, treatment, modifier) in [
        ("v_add_f32", Treatment::Exact, "omod"),
        ("v_rcp_f32", Treatment::Within(Accuracy { ulps: 1, stated: Some(1) }), "clamp"),
        ("s_atomic_add", Treatment::Exact, "glc"),
        ("tbuffer_load_format_x", Treatment::Exact, "format"),
        ("buffer_load_dword", Treatment::Exact, "lds"),
        ("ds_gws_barrier", Treatment::Exact, "gds"),
        ("v_pk_fma_f16", Treatment::Exact, "neg_hi"),
        ("v_mfma_f32_32x32x1f32", Treatment::Exact, "abid"),
    ] {
        let row = rows.get(name).unwrap_or_else(|| panic!("{name} has no row"));
        assert_eq!(row.treatment, treatment, "{name}");
        assert!(row.modifiers.contains(modifier), "{name}: {:?}", row.modifiers);
    }
    // What is measured, what is not, and how many are missing.
    for (processor, name, is_settled) in [
        ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8", true),
        ("gfx950", "v_mfma_f32_16x16x32_fp8_fp8", false),
        ("gfx942", "v_smfmac_f32_16x16x32_f16", false),
        ("gfx942", "v_cvt_pk_fp8_f32", true),
        ("gfx950", "v_cvt_pk_fp8_f32", false),
        ("gfx1100", "v_dot4_i32_iu8", true),
        ("gfx1201", "v_wmma_f32_16x16x16_fp8_fp8", false),
        ("gfx1201", "v_wmma_i32_16x16x16_iu8", true),
        ("gfx1201", "s_add_f16", false),
    ] {
        let Some(rows) = ROWS.get(processor) else { continue };
        let treatment = rows[name].treatment;
        assert_eq!(treatment == Treatment::Exact, is_settled, "{processor} {name}: {treatment}");
    }
    for (processor, missing) in [
        ("gfx90a", 0),
        ("gfx942", 0),
        ("gfx950", 0),
        ("gfx1030", 4),
        ("gfx1100", 0),
        ("gfx1150", 0),
        ("gfx1201", 0),
    ] {
        let Some(rows) = ROWS.get(processor) else { continue };
        let is_missing = |row: &&Row| matches!(row.treatment, Treatment::Gap(_));
        assert_eq!(rows.values().filter(is_missing).count(), missing, "{processor}");
    }
    let image = &rows["image_load"].treatment;
    assert!(matches!(image, Treatment::NotCompute(_)), "{image}");
}
