//! Old code that stays: rules 1 and 2.

use crate::checker::{CheckRule, Claims, Finding, Inserted, check};
use crate::dataflow::Liveness;
use crate::flow::{Disassembly, FunctionIndex, InstIndex, Key};
use crate::layout::tests::sample::Sample;
use crate::layout::{CodeLayout, Edits, InsertedCode, Piece, Placement, relayout};
use flipwave_codeobj::{CodeObject, Editor};
use flipwave_isa::{Pc, RegisterSet};

/// A loop, with a literal in it.
const LOOP: &str = "s_mov_b32 s4, 3\nloop: s_nop 1\ns_mov_b32 s5, 0x12345\ns_nop 2\n\
                    s_sub_u32 s4, s4, 1\ns_cbranch_scc0 loop\ns_endpgm\n";

/// A kernel whose code stays, with `s_nop 7` before some instructions.
struct Stay {
    sample: Sample,
    program: Disassembly,
    layout: CodeLayout,
    new: CodeObject,
    claims: Claims,
}

impl Stay {
    fn new(body: &str, edited: &[u32]) -> Stay {
        let sample = Sample::new("gfx90a", &[("k", body.to_owned())], "", "");
        let program = Disassembly::read(&sample.object).expect("a program");
        let nop = InsertedCode {
            pieces: vec![Piece::bytes(&sample.isa.assemble("s_nop 7").expect("a nop"))],
        };
        let edits = Edits {
            before: edited.iter().map(|index| (InstIndex(*index), nop.clone())).collect(),
            placements: [(FunctionIndex(0), Placement::Trampoline)].into(),
            ..Edits::default()
        };
        let mut editor = Editor::new(&sample.object);
        let address = Pc(editor.free_address());
        let layout = relayout(&sample.object, &program, &edits, address).expect("a layout");
        for patch in &layout.patches {
            editor.patch(patch.address, patch.bytes.clone()).expect("a patch");
        }
        let text = layout.bytes.clone();
        editor.add_text(layout.address, text, layout.moved()).expect("more code");
        let new = editor.finish().expect("a code object").object;
        let inserted = layout.inserted.iter().map(|(range, _)| Inserted {
            range: range.clone(),
            at: None,
            changes: RegisterSet::EMPTY,
        });
        let claims = Claims {
            instructions: layout.places.iter().map(|place| place.inst).collect(),
            inserted: inserted.collect(),
        };
        Stay { sample, program, layout, new, claims }
    }

    fn pc(&self, index: usize) -> u64 {
        self.program.instructions[InstIndex::new(index)].pc.0
    }

    /// Puts other words into the new code object.
    fn put(&mut self, address: u64, text: &str) {
        let words = self.sample.isa.assemble(text).expect(text);
        let segment = self.new.segment_at(Pc(address)).expect("code");
        let offset = (segment.file_offset() + address - segment.address) as usize;
        let mut bytes = self.new.bytes().to_vec();
        bytes[offset..offset + words.len()].copy_from_slice(&words);
        self.new = CodeObject::parse(&bytes).expect("a code object");
    }

    /// Claims that words of old text are inserted.
    fn claim(&mut self, address: u64, size: u64) {
        let (range, changes) = (address..address + size, RegisterSet::EMPTY);
        self.claims.inserted.push(Inserted { range, at: None, changes });
        self.claims.inserted.sort_by_key(|own| own.range.start);
    }

    fn check(&self) -> Vec<Finding> {
        let liveness = Liveness::new(&self.program);
        let wanted = |at| liveness.before(at);
        let object = &self.sample.object;
        let rules = self.program.rules().expect("rules");
        let checked = check(rules, object, &self.program, &wanted, &self.new, &self.claims);
        checked.err().unwrap_or_default()
    }

    #[track_caller]
    fn breaks_control(&self, what: &str) {
        let lines: Vec<String> = self.check().iter().map(ToString::to_string).collect();
        assert!(
            self.check().iter().any(|finding| finding.rule == CheckRule::Control),
            "{lines:#?}"
        );
        assert!(lines.iter().any(|line| line.contains(what)), "no `{what}` in {lines:#?}");
    }
}

#[test]
fn code_that_stays_with_trampolines_is_proven() {
    for edited in [&[0][..], &[1], &[2], &[1, 2], &[2, 3], &[4], &[0, 1, 2, 3, 4, 5, 6]] {
        let stay = Stay::new(LOOP, edited);
        assert_eq!(stay.check(), [], "{edited:?}");
        assert!(!stay.layout.patches.is_empty());
    }
}

#[test]
fn a_way_to_a_trampoline_that_is_missing_or_leads_elsewhere_is_found() {
    let mut stay = Stay::new(LOOP, &[1]);
    stay.put(stay.pc(1), "s_nop 1");
    stay.breaks_control("instead");
    let mut stay = Stay::new(LOOP, &[1]);
    stay.put(stay.pc(1), "s_branch 0");
    stay.breaks_control("instead");
}

#[test]
fn a_way_back_that_skips_an_instruction_is_found() {
    let mut stay = Stay::new(LOOP, &[3]);
    let back = stay.layout.places[InstIndex(3)].end.0;
    let distance = (stay.pc(5) as i64 - back as i64 - 4) / 4;
    stay.put(back, &format!("s_branch {}", distance as u16));
    stay.breaks_control("instead");
}

#[test]
fn an_instruction_that_a_branch_leads_to_must_not_be_overwritten() {
    // As if what leads to the first instruction's trampoline took the loop's first with it: where
    // that stays, and where it has moved.
    let mut stay = Stay::new(LOOP, &[0]);
    stay.put(stay.pc(1), "s_nop 5");
    stay.claim(stay.pc(1), 4);
    stay.breaks_control("two claims overlap");
    let mut stay = Stay::new(LOOP, &[0, 1]);
    stay.put(stay.pc(1), "s_nop 5");
    stay.breaks_control("instead");
}

#[test]
fn what_nobody_leads_to_may_be_overwritten_if_it_is_claimed() {
    let mut stay = Stay::new(LOOP, &[2, 3]);
    assert!(!stay.layout.patches.iter().any(|patch| patch.address == stay.pc(3)));
    stay.put(stay.pc(3), "s_nop 5");
    stay.breaks_control("nobody claims");
    stay.claim(stay.pc(3), 4);
    assert_eq!(stay.check(), []);
}

#[test]
fn a_branch_into_an_instruction_finds_there_what_it_found() {
    // The literal is an instruction, too; nobody understands this.
    let body = "s_mov_b32 s4, 3\ns_cbranch_scc0 1\ns_mov_b32 s5, 0xbf800001\ns_nop 2\ns_endpgm\n";
    let mut stay = Stay::new(body, &[2]);
    assert!(!stay.program.functions[FunctionIndex(0)].unresolved.is_empty());
    assert_eq!(stay.check(), []);
    stay.claim(stay.pc(2) + 4, 4);
    stay.breaks_control("where no instruction begins");
}

#[test]
fn every_old_address_of_a_function_that_is_not_understood_leads_to_its_instruction() {
    let body = LOOP.replace("s_endpgm", "s_setpc_b64 s[10:11]");
    let mut stay = Stay::new(&body, &[2, 3]);
    assert!(!stay.program.functions[FunctionIndex(0)].unresolved.is_empty());
    assert_eq!(stay.check(), []);
    // Of one that is understood, nothing leads to the second of two neighbours.
    stay.put(stay.pc(3), "s_nop 5");
    stay.breaks_control("");
}
