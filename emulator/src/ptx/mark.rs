//! Reads the marks that `FLIPWAVE_PROXY` leaves in a module: pragmas before instructions.

use flipwave_ptx::{Block, Module, StatementKind};
use std::collections::BTreeMap;

/// Begin of the text of pragmas that mark the next instruction. The name of an emulated instruction follows.
pub const PRAGMA: &str = "flipwave.proxy ";

/// Names of emulated instructions by the number of the marked instruction in the module. A mark without an instruction
/// after it has the number of the next function's first instruction.
pub fn marks(module: &Module) -> BTreeMap<usize, String> {
    let mut reader = Reader { next: 0, marks: BTreeMap::new() };
    for body in module.functions().filter_map(|function| function.body.as_ref()) {
        reader.block(body);
    }
    reader.marks
}

struct Reader {
    /// Number of the next instruction.
    next: usize,
    marks: BTreeMap<usize, String>,
}

impl Reader {
    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::Instruction(_) => self.next += 1,
                StatementKind::Block(inner) => self.block(inner),
                StatementKind::Pragma(texts) => {
                    for name in texts.iter().filter_map(|text| text.strip_prefix(PRAGMA)) {
                        self.marks.insert(self.next, name.trim().to_owned());
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_belong_to_the_next_instruction() {
        let module = flipwave_ptx::parse(
            ".version 7.8 .target sm_80 .address_size 64
             .visible .entry k() {
                 .reg .b32 %r<3>;
                 .pragma \"nounroll\";
                 mov.b32 %r1, 0;
                 { .pragma \"flipwave.proxy one\"; // comment
                   mov.b32 %r2, 1; }
                 ret;
             }
             .visible .entry l() { .pragma \"flipwave.proxy two\"; ret; }",
        );
        let found = marks(&module.expect("a module"));
        assert_eq!(found, [(1, "one".to_owned()), (3, "two".to_owned())].into());
    }
}
