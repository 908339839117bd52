//! Generator of the book's instruction tables: `docs/instructions.md` and a page per target in
//! `docs/instructions/`.

use super::walk::{SAMPLES, decode, for_each_page, isa, neighbours};
use super::{Treatment, source, treatment};
use crate::execute::lane::Accuracy;
use crate::wave::Machine;
use flipwave_depth::cases;
use flipwave_device::Absence;
use flipwave_isa::{Class, Encoding, Inst, MemoryKind, OutputScale, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

/// Encodings with their headings in the table. An instruction with several encodings is listed
/// under the first.
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

/// Table row of an instruction.
struct Row {
    /// Indices into [`GROUPS`].
    encodings: BTreeSet<usize>,
    /// Treatment of the best-supported form.
    treatment: Treatment,
    /// Unsettled or missing parts of the other forms.
    others: BTreeSet<String>,
    /// `true` if the instruction computes with floating-point numbers.
    is_float: bool,
    /// Source that documents the exact result.
    source: Option<&'static str>,
    modifiers: BTreeSet<String>,
}

impl Row {
    /// Adds a form of the instruction. Forms that no compute wave can execute count only if there
    /// are no other forms.
    fn add(&mut self, treatment: Treatment) {
        let [current, new] = [self.treatment, treatment].map(rank);
        let (best, rest) =
            if new > current { (treatment, self.treatment) } else { (self.treatment, treatment) };
        self.treatment = best;
        if best != rest
            && matches!(
                rest,
                Treatment::Unsettled(_) | Treatment::Unspecified(_) | Treatment::Gap(_)
            )
        {
            self.others.insert(rest.to_string());
        }
    }

    /// Returns the text of the execution column.
    fn execution(&self) -> String {
        let mut text = self.treatment.to_string();
        if !self.others.is_empty() {
            let others: Vec<_> = self.others.iter().cloned().collect();
            let _ = write!(text, " (other forms: {})", others.join("; "));
        }
        text
    }
}

/// Rank of a treatment: the better the support, the higher.
fn rank(treatment: Treatment) -> u8 {
    match treatment {
        Treatment::Exact => 5,
        Treatment::Within(_) => 4,
        Treatment::Unsettled(_) => 3,
        Treatment::Unspecified(_) => 2,
        Treatment::Gap(_) => 1,
        Treatment::NotCompute(_) => 0,
    }
}

/// Returns the names of the modifiers of an instruction.
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

/// Processors with a page. Each page covers all processors with the same instructions.
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

/// Returns the pages to check. gfx90a is always among them.
pub fn pages() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut pages = PAGES;
    pages.rotate_left(2);
    cases(pages, 3)
}

type Rows = BTreeMap<&'static str, Row>;

/// Returns the rows of a processor's page.
fn rows(processor: &str) -> Rows {
    let target: Target = processor.parse().expect("a target");
    let isa = isa(processor);
    let machine = Machine::new(&target, target.default_wave_size());
    let mut rows = Rows::new();
    for words in SAMPLES[processor].values().flatten().copied().flat_map(neighbours) {
        let Some(inst) = decode(&isa, words) else { continue };
        let treatment = treatment(&inst, machine);
        // Each half of a dual instruction has a row of its own.
        if inst.encoding == Encoding::Vopd && !matches!(treatment, Treatment::Gap(_)) {
            continue;
        }
        let group = GROUPS.iter().position(|(encoding, _)| *encoding == inst.encoding);
        let row = rows.entry(inst.operation.name()).or_insert_with(|| Row {
            encodings: BTreeSet::new(),
            treatment,
            others: BTreeSet::new(),
            is_float: computes_with_floats(&inst),
            source: source(&inst, machine),
            modifiers: BTreeSet::new(),
        });
        row.encodings.insert(group.unwrap_or(GROUPS.len() - 1));
        row.modifiers.append(&mut modifiers(&inst));
        row.add(treatment);
    }
    rows
}

/// Rows of each page to check.
static ROWS: LazyLock<BTreeMap<&'static str, Rows>> = LazyLock::new(|| for_each_page(rows));

/// Counts the instructions of each kind, and all instructions.
fn totals(rows: &Rows) -> [(&'static str, usize); 8] {
    let count = |is: fn(&Treatment) -> bool| rows.values().filter(|row| is(&row.treatment)).count();
    [
        ("exact", count(|treatment| matches!(treatment, Treatment::Exact))),
        ("within a stated error", count(|treatment| matches!(treatment, Treatment::Within(_)))),
        ("not settled", count(|treatment| matches!(treatment, Treatment::Unsettled(_)))),
        (
            "not settled, not executed",
            count(|treatment| matches!(treatment, Treatment::Unspecified(_))),
        ),
        (
            "no instruction of the processor",
            count(|treatment| is_absent(treatment, Absence::FromProcessor)),
        ),
        ("no compute instruction", count(|treatment| is_absent(treatment, Absence::FromCompute))),
        ("missing", count(is_missing)),
        ("all", rows.len()),
    ]
}

fn is_absent(treatment: &Treatment, absence: Absence) -> bool {
    matches!(treatment, Treatment::NotCompute(absent) if absent.absence == absence)
}

/// Returns `true` if compute waves of the processor can execute the instruction but the embedded
/// GPU cannot.
fn is_missing(treatment: &Treatment) -> bool {
    matches!(treatment, Treatment::Gap(_)) || is_absent(treatment, Absence::FromTool)
}

/// Returns the text of the index page.
fn index() -> String {
    let mut page = String::from(
        "# Instructions of the embedded GPU\n\n\
         How many of the instructions that LLVM 22 decodes for a processor the embedded GPU \
         executes, and how; each processor has a page with all of them. These pages are generated \
         from the code that executes them.\n\n",
    );
    let headings = totals(&Rows::new()).map(|(what, _)| what).join(" | ");
    let _ =
        writeln!(page, "| processor | {headings} |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (processor, all) in PAGES {
        let numbers = totals(&ROWS[processor]).map(|(_, number)| number.to_string()).join(" | ");
        let _ = writeln!(page, "| [{all}](instructions/{processor}.md) | {numbers} |");
    }
    page.push_str(
        "\nExact means the bits that the ISA defines; for floating-point operations each page names the \
         document or the measurement. Where the ISA leaves bits open, an error of so many units in the last \
         place is kept. Not settled means that neither AMD's documents nor published measurements say what \
         some bits are; the page says what they are here. In all cases they are the same on every host. An \
         instruction that public sources leave open as a whole is not executed: it ends the run with an \
         error that says what is open. \
         Where some forms of an instruction are executed otherwise than the others, the page says how.\n",
    );
    page
}

/// Returns the text of a processor's page.
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
            let execution = row.execution();
            let _ = writeln!(page, "| `{name}` | {execution} | {others} | {modifiers} |");
        }
    }
    page.push_str(
        "\n## Sources\n\nWhat says that exact floating-point results are these.\n\n\
         | source | instructions |\n|---|---|\n",
    );
    for (source, names) in sources(rows) {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {source} | {} |", names.join(", "));
    }
    page
}

/// Collects the sources of exact floating-point results, each with the instructions that cite it.
fn sources(rows: &Rows) -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut sources: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (name, row) in
        rows.iter().filter(|(_, row)| row.treatment == Treatment::Exact && row.is_float)
    {
        if let Some(source) = row.source {
            sources.entry(source).or_default().push(*name);
        }
    }
    sources
}

fn short(encoding: Encoding) -> String {
    format!("{encoding:?}").to_uppercase()
}

/// Returns `true` if an instruction computes with floating-point numbers: its name contains a
/// format, and it does more than move bits.
fn computes_with_floats(inst: &Inst) -> bool {
    const MOVES: [&str; 3] = ["v_pack_b32_f16", "s_pack_", "v_pk_mov_"];
    let name = inst.operation.name();
    let formats =
        ["f16", "bf16", "f32", "f64", "fp8", "bf8", "fp6", "bf6", "fp4", "xf32", "f8f6f4"];
    let has_format =
        name.split('_').any(|part| formats.iter().any(|format| part.ends_with(format)));
    let computes = match inst.class() {
        Class::Valu | Class::Matrix | Class::Salu => true,
        _ => inst.memory().is_some_and(|access| access.kind == MemoryKind::Atomic),
    };
    computes && has_format && !MOVES.iter().any(|prefix| name.starts_with(prefix))
}

/// An instruction is exact only if it names a source.
#[test]
fn exact_floating_point_instructions_name_their_source() {
    let mut without = BTreeSet::new();
    let mut named = 0;
    for rows in ROWS.values() {
        let exact =
            rows.iter().filter(|(_, row)| row.treatment == Treatment::Exact && row.is_float);
        for (name, row) in exact {
            named += usize::from(row.source.is_some());
            if row.source.is_none() {
                without.insert(*name);
            }
        }
    }
    assert!(named > 300, "only {named}");
    assert!(without.is_empty(), "exact without a source: {without:#?}");
}

/// A treatment is unsettled if it depends on unsettled operands.
#[test]
fn unsettled_operands_make_the_instruction_unsettled() {
    for (processor, lanes, text, is_settled) in [
        ("gfx90a", 64, "v_pk_mul_f32 v[0:1], v[2:3], 1.0 op_sel_hi:[1,0]", true),
        ("gfx90a", 64, "v_pk_mul_f32 v[0:1], v[2:3], 1.0", false),
        ("gfx90a", 64, "v_pk_mul_f32 v[0:1], v[2:3], v[4:5]", true),
        ("gfx90a", 64, "v_pk_add_f32 v[0:1], v[2:3], 0", true),
        ("gfx90a", 64, "v_pk_mov_b32 v[0:1], v[2:3], 1 op_sel:[0,1]", false),
        ("gfx90a", 64, "v_pk_mov_b32 v[0:1], v[2:3], 1", true),
        ("gfx1100", 32, "s_mov_b32 exec_hi, s0", false),
        ("gfx1100", 32, "s_mov_b32 s0, exec_hi", false),
        ("gfx1100", 32, "s_mov_b32 exec_lo, s0", true),
        ("gfx1100", 64, "s_mov_b32 exec_hi, s0", true),
        ("gfx90a", 64, "global_atomic_add_f32 v0, v1, s[0:1]", false),
        ("gfx942", 64, "global_atomic_add_f32 v0, v1, s[0:1]", true),
    ] {
        let target: Target = processor.parse().expect("a target");
        let isa = flipwave_isa::Isa::with_wave_size(&target, lanes).expect("LLVM has it");
        let bytes = isa.assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let inst = isa.decode(&bytes, flipwave_isa::Pc(0)).expect("an instruction");
        let treatment = treatment(&inst, Machine::new(&target, lanes));
        assert_eq!(treatment == Treatment::Exact, is_settled, "{processor}: {text}: {treatment}");
    }
}

/// Negative control: an unknown floating-point operation has no source; integer operations need
/// none.
#[test]
fn comparison_detects_instruction_without_source() {
    let isa = isa("gfx90a");
    let inst = |text: &str| {
        let bytes = isa.assemble(text).expect("an instruction");
        isa.decode(&bytes, flipwave_isa::Pc(0)).expect("an instruction")
    };
    let mut unknown = inst("v_add_f32 v0, v1, v2");
    assert!(computes_with_floats(&unknown) && source(&unknown, Machine::default()).is_some());
    unknown.operation = flipwave_isa::Operation::named("v_sideways_f32");
    assert!(computes_with_floats(&unknown) && source(&unknown, Machine::default()).is_none());
    for text in ["v_add_u32 v0, v1, v2", "ds_add_u32 v0, v1", "global_load_dword v0, v[2:3], off"] {
        assert!(!computes_with_floats(&inst(text)), "{text}");
    }
    for text in ["ds_add_f32 v0, v1", "v_cvt_i32_f32 v0, v1", "v_cmp_lt_f64 vcc, v[0:1], v[2:3]"] {
        assert!(computes_with_floats(&inst(text)), "{text}");
    }
}

/// Run with `FLIPWAVE_TESTS=full FLIPWAVE_BLESS=1` to regenerate the pages.
#[test]
fn instruction_tables_of_the_book_match_the_code() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let targets = pages()
        .map(|(processor, all)| (format!("instructions/{processor}.md"), page(processor, all)));
    let index = (ROWS.len() == PAGES.len()).then(|| ("instructions.md".into(), index()));
    for (name, page) in targets.chain(index) {
        let place = docs.join(&name);
        if std::env::var_os("FLIPWAVE_BLESS").is_some() {
            std::fs::write(&place, &page).expect("the page written");
        }
        let written = std::fs::read_to_string(&place).unwrap_or_default();
        let different = page.lines().zip(written.lines()).find(|(new, old)| new != old);
        assert!(
            page == written,
            "docs/{name} differs from the code (first difference: {different:?}); regenerate it with \
             FLIPWAVE_TESTS=full FLIPWAVE_BLESS=1 cargo test -p flipwave-sim instruction_tables"
        );
    }
}

#[test]
fn table_has_instructions_of_every_encoding() {
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
    // Exact and unsettled operations, and the number of missing instructions.
    for (processor, name, is_settled) in [
        ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8", true),
        ("gfx950", "v_mfma_f32_16x16x32_fp8_fp8", false),
        ("gfx942", "v_smfmac_f32_16x16x32_f16", false),
        ("gfx90a", "v_dot2_f32_f16", false),
        ("gfx1100", "v_dot2_f32_f16", true),
        ("gfx1100", "v_interp_p10_f32", true),
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
        ("gfx1030", 0),
        ("gfx1100", 0),
        ("gfx1150", 0),
        ("gfx1201", 0),
        ("gfx1250", 0),
    ] {
        let Some(rows) = ROWS.get(processor) else { continue };
        let is_gap = |row: &&Row| matches!(row.treatment, Treatment::Gap(_));
        assert_eq!(rows.values().filter(is_gap).count(), missing, "{processor}");
    }
    let image = &rows["image_load"].treatment;
    assert!(is_absent(image, Absence::FromProcessor), "{image}");
    assert!(rows["v_pk_mul_f32"].execution().contains("other forms"));
    if let Some(rows) = ROWS.get("gfx1250") {
        let scaled = &rows["v_wmma_scale_f32_16x16x128_f8f6f4"];
        assert!(matches!(scaled.treatment, Treatment::Unsettled(_)), "{}", scaled.treatment);
        assert!(matches!(rows["v_perm_pk16_b4_u4"].treatment, Treatment::Exact));
        let sparse = &rows["v_swmmac_f32_16x16x64_f16"];
        assert!(matches!(sparse.treatment, Treatment::Unspecified(_)), "{}", sparse.treatment);
        let missing = |row: &Row| is_absent(&row.treatment, Absence::FromTool);
        assert!(!rows.values().any(missing));
    }
}
