//! Access to registers of the kernel by number: a binary search over the registers that the kernel's code
//! names, with a move at each leaf. It needs no temporary register, clobbers only SCC, and works for all
//! register files and generations.

use super::dialect::{self, number};
use crate::hook::{Assembler, HookError, IndexedAccess, IndexedFile};
use crate::layout::{InsertedCode, Piece};
use flipwave_isa::{Register, RegisterSet};

/// The registers of a file among those that the kernel's code names.
pub fn reachable(file: IndexedFile, named: RegisterSet) -> RegisterSet {
    let is_of_file = |register: &Register| {
        matches!(
            (file, register),
            (IndexedFile::Vgpr, Register::Vgpr(_))
                | (IndexedFile::AccVgpr, Register::AccVgpr(_))
                | (IndexedFile::Sgpr, Register::Sgpr(_))
        )
    };
    named.iter().filter(is_of_file).collect()
}

/// Emits an access. Numbers outside the `reachable` registers read as zero, and writes to them are
/// ignored.
///
/// # Errors
/// [`HookError::Assemble`].
pub fn access(
    access: IndexedAccess,
    reachable: RegisterSet,
    assembler: &mut Assembler,
) -> Result<InsertedCode, HookError> {
    let registers: Vec<Register> = reachable.iter().collect();
    let mut tree = Tree { access, assembler, code: InsertedCode::default(), to_end: Vec::new() };
    if !access.writes {
        let value = access.value.first;
        tree.text(&match value {
            Register::Vgpr(_) => format!("v_mov_b32_e32 {value}, 0"),
            _ => dialect::scalar_move(value, "0"),
        })?;
    }
    tree.search(&registers)?;
    let end = tree.code.pieces.len();
    for at in tree.to_end {
        tree.code.link(at, end);
    }
    Ok(tree.code)
}

/// Emits a search tree.
struct Tree<'a> {
    access: IndexedAccess,
    assembler: &'a mut Assembler,
    code: InsertedCode,
    /// Branches to the end.
    to_end: Vec<usize>,
}

impl Tree<'_> {
    fn text(&mut self, text: &str) -> Result<(), HookError> {
        let bytes = self.assembler.assemble(text)?;
        self.code.pieces.push(Piece::bytes(bytes));
        Ok(())
    }

    /// Appends a branch whose target is set later, and returns its piece.
    fn branch(&mut self, text: &str) -> Result<usize, HookError> {
        let bytes = self.assembler.assemble(text)?;
        let word = bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        self.code.pieces.push(Piece::Branch { word, to: 0 });
        Ok(self.code.pieces.len() - 1)
    }

    /// Appends the search among `registers`.
    fn search(&mut self, registers: &[Register]) -> Result<(), HookError> {
        let index = self.access.index.first;
        match registers {
            [] => {}
            [register] => {
                self.text(&format!(
                    "s_cmp_lg_u32 {index}, {}",
                    number(register_number(*register))
                ))?;
                let miss = self.branch("s_cbranch_scc1 0")?;
                self.to_end.push(miss);
                let value = self.access.value.first;
                let (to, from) =
                    if self.access.writes { (*register, value) } else { (value, *register) };
                if let Some(text) = dialect::word_move(to, from) {
                    self.text(&text)?;
                }
                let done = self.branch("s_branch 0")?;
                self.to_end.push(done);
            }
            _ => {
                let (low, high) = registers.split_at(registers.len() / 2);
                let first = register_number(high[0]);
                self.text(&format!("s_cmp_ge_u32 {index}, {}", number(first)))?;
                let right = self.branch("s_cbranch_scc1 0")?;
                self.search(low)?;
                let target = self.code.pieces.len();
                self.code.link(right, target);
                self.search(high)?;
            }
        }
        Ok(())
    }
}

/// The number of a register in its file.
fn register_number(register: Register) -> u32 {
    match register {
        Register::Vgpr(vgpr) => vgpr.0.into(),
        Register::AccVgpr(acc_vgpr) => acc_vgpr.0.into(),
        Register::Sgpr(sgpr) => sgpr.0.into(),
        _ => u32::MAX,
    }
}
