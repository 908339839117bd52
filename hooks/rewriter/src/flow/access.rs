//! Questions to a program.

use super::{
    Block, BlockIndex, Call, Disassembly, Function, FunctionIndex, IndexRange, InstIndex, Key,
    NoRules, Unresolved,
};
use flipwave_isa::{Control, Inst, Isa, IsaError, Pc, RegisterSet, Rules};
use std::collections::BTreeSet;

impl Block {
    /// Its last instruction.
    pub fn last(&self) -> InstIndex {
        InstIndex(self.instructions.end.0 - 1)
    }
}

impl Disassembly {
    /// Decodes and assembles code beside the program's: registers have the names that they have
    /// there.
    ///
    /// # Errors
    /// None for a program that was read.
    pub fn isa(&self) -> Result<Isa, IsaError> {
        let isa = Isa::with_wave_size(&self.target, self.wave_size)?;
        Ok(isa.with_accum_offset(self.accum_offset))
    }

    /// The rules that code beside the program's must keep.
    ///
    /// # Errors
    /// [`NoRules`] if they are not known.
    pub fn rules(&self) -> Result<Rules, NoRules> {
        let Disassembly { target, wave_size, .. } = self;
        let missing = || NoRules { target: target.to_string(), wave_size: *wave_size };
        Rules::of(target, *wave_size).ok_or_else(missing)
    }

    /// The instruction of an index that may be none of this program's.
    pub fn inst(&self, index: InstIndex) -> Option<&Inst> {
        self.instructions.get(index)
    }

    /// Where control goes after an instruction of the program.
    pub fn control(&self, inst: &Inst) -> Control {
        inst.control(self.target.generation())
    }

    /// The instruction that begins at an address.
    pub fn at(&self, pc: Pc) -> Option<InstIndex> {
        let index = self.instructions.binary_search_by_key(&pc, |inst| inst.pc).ok()?;
        Some(InstIndex::new(index))
    }

    /// The block that an instruction of the program belongs to.
    pub fn block_of(&self, index: InstIndex) -> BlockIndex {
        let after = self.blocks.partition_point(|block| block.instructions.start <= index);
        BlockIndex::new(after - 1)
    }

    /// The function that an instruction of the program belongs to.
    pub fn function_of(&self, index: InstIndex) -> FunctionIndex {
        let after = self.functions.partition_point(|own| own.instructions.start <= index);
        FunctionIndex::new(after - 1)
    }

    /// The function that begins at an address.
    pub fn function_at(&self, pc: Pc) -> Option<FunctionIndex> {
        let index = self.functions.binary_search_by_key(&pc, |own| self.entry(own)).ok()?;
        Some(FunctionIndex::new(index))
    }

    /// The function of a kernel, by its index in the code object.
    pub fn kernel(&self, kernel: usize) -> Option<FunctionIndex> {
        self.functions.iter().position(|own| own.kernel == Some(kernel)).map(FunctionIndex::new)
    }

    /// Where a function begins.
    pub fn entry(&self, function: &Function) -> Pc {
        self.instructions[function.instructions.start].pc
    }

    /// All instructions with their indices.
    pub fn insts(&self) -> impl Iterator<Item = (InstIndex, &Inst)> {
        self.instructions.enumerated()
    }

    /// A range of instructions with their indices: that of a block or of a function.
    pub fn insts_of(
        &self,
        range: IndexRange<InstIndex>,
    ) -> impl DoubleEndedIterator<Item = (InstIndex, &Inst)> {
        range.iter().zip(&self.instructions[range])
    }

    /// The functions that a call may reach: the callee, or, of an unknown pointer, all whose
    /// address is taken.
    pub fn callees(&self, call: &Call) -> Vec<FunctionIndex> {
        match call.callee {
            Some(callee) => vec![callee],
            None => {
                let taken = self.functions.enumerated().filter(|(_, own)| own.address_taken);
                taken.map(|(index, _)| index).collect()
            }
        }
    }

    /// A function and all that run when it does: what it may call, and what those may call, by
    /// ascending index.
    pub fn reachable(&self, from: FunctionIndex) -> Vec<FunctionIndex> {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(index) = open.pop() {
            let calls = &self.functions[index].calls;
            for callee in calls.iter().flat_map(|call| self.callees(call)) {
                if seen.insert(callee) {
                    open.push(callee);
                }
            }
        }
        seen.into_iter().collect()
    }

    /// The functions that run when some kernel does. Compilers leave others in code objects: clang 20
    /// and later each kernel of OpenCL C once more, as a function that nothing calls.
    pub fn executable(&self) -> BTreeSet<FunctionIndex> {
        let kernels = self.functions.enumerated().filter(|(_, own)| own.kernel.is_some());
        kernels.flat_map(|(index, _)| self.reachable(index)).collect()
    }

    /// The instructions of those functions with their indices.
    pub fn executable_insts(&self) -> impl Iterator<Item = (InstIndex, &Inst)> {
        let functions = self.executable();
        self.insts().filter(move |(at, _)| functions.contains(&self.function_of(*at)))
    }

    /// Registers that instructions of these functions name.
    pub fn registers_named(&self, functions: &[FunctionIndex]) -> RegisterSet {
        let functions = functions.iter().map(|own| &self.functions[*own]);
        let insts = functions.flat_map(|own| &self.instructions[own.instructions]);
        insts.flat_map(|inst| inst.reads.iter().chain(&inst.writes)).copied().collect()
    }

    /// Everything that could not be understood, by ascending address.
    pub fn unresolved(&self) -> impl Iterator<Item = &Unresolved> {
        self.functions.iter().flat_map(|function| &function.unresolved)
    }
}
