//! Queries of a [`Disassembly`].

use super::{
    Block, BlockIndex, Call, Disassembly, Function, FunctionIndex, IndexRange, InstIndex, Key,
    NoRules, Unresolved,
};
use flipwave_isa::{Control, Inst, Isa, IsaError, Pc, RegisterSet, Rules};
use std::collections::BTreeSet;

impl Block {
    /// The last instruction.
    pub fn last(&self) -> InstIndex {
        InstIndex(self.instructions.end.0 - 1)
    }
}

impl Disassembly {
    /// A decoder and assembler for code in the same program, with the same names of registers.
    ///
    /// # Errors
    /// Returns an error for unknown targets, which a decoded program does not have.
    pub fn isa(&self) -> Result<Isa, IsaError> {
        let isa = Isa::with_wave_size(&self.target, self.wave_size)?;
        Ok(isa.with_accum_offset(self.accum_offset))
    }

    /// The rules that code in the same program must respect.
    ///
    /// # Errors
    /// Returns [`NoRules`] if they are unknown.
    pub fn rules(&self) -> Result<Rules, NoRules> {
        let Disassembly { target, wave_size, .. } = self;
        let missing = || NoRules { target: target.to_string(), wave_size: *wave_size };
        Rules::of(target, *wave_size).ok_or_else(missing)
    }

    /// The instruction at an index; `None` if the index is out of range.
    pub fn inst(&self, index: InstIndex) -> Option<&Inst> {
        self.instructions.get(index)
    }

    /// The effect of an instruction on control flow.
    pub fn control(&self, inst: &Inst) -> Control {
        inst.control(self.target.generation())
    }

    /// The instruction that begins at an address.
    pub fn at(&self, pc: Pc) -> Option<InstIndex> {
        let index = self.instructions.binary_search_by_key(&pc, |inst| inst.pc).ok()?;
        Some(InstIndex::new(index))
    }

    /// The block that contains an instruction.
    pub fn block_of(&self, index: InstIndex) -> BlockIndex {
        let after = self.blocks.partition_point(|block| block.instructions.start <= index);
        BlockIndex::new(after - 1)
    }

    /// The function that contains an instruction.
    pub fn function_of(&self, index: InstIndex) -> FunctionIndex {
        let after = self.functions.partition_point(|function| function.instructions.start <= index);
        FunctionIndex::new(after - 1)
    }

    /// The function that begins at an address.
    pub fn function_at(&self, pc: Pc) -> Option<FunctionIndex> {
        let index =
            self.functions.binary_search_by_key(&pc, |function| self.entry(function)).ok()?;
        Some(FunctionIndex::new(index))
    }

    /// The function of a kernel, by its index in the code object.
    pub fn kernel(&self, kernel: usize) -> Option<FunctionIndex> {
        let mut functions = self.functions.iter();
        functions.position(|function| function.kernel == Some(kernel)).map(FunctionIndex::new)
    }

    /// The address of a function's first instruction.
    pub fn entry(&self, function: &Function) -> Pc {
        self.instructions[function.instructions.start].pc
    }

    /// All instructions with their indices.
    pub fn insts(&self) -> impl Iterator<Item = (InstIndex, &Inst)> {
        self.instructions.enumerated()
    }

    /// The instructions of a block or function with their indices.
    pub fn insts_of(
        &self,
        range: IndexRange<InstIndex>,
    ) -> impl DoubleEndedIterator<Item = (InstIndex, &Inst)> {
        range.iter().zip(&self.instructions[range])
    }

    /// The functions that a call may reach: its callee or, for an unknown pointer, all functions whose
    /// address is taken.
    pub fn callees(&self, call: &Call) -> Vec<FunctionIndex> {
        match call.callee {
            Some(callee) => vec![callee],
            None => {
                let taken =
                    self.functions.enumerated().filter(|(_, function)| function.address_taken);
                taken.map(|(index, _)| index).collect()
            }
        }
    }

    /// A function and all functions that it may call, directly or indirectly, by ascending index.
    pub fn reachable(&self, from: FunctionIndex) -> Vec<FunctionIndex> {
        let mut seen = BTreeSet::from([from]);
        let mut waiting = vec![from];
        while let Some(index) = waiting.pop() {
            let calls = &self.functions[index].calls;
            for callee in calls.iter().flat_map(|call| self.callees(call)) {
                if seen.insert(callee) {
                    waiting.push(callee);
                }
            }
        }
        seen.into_iter().collect()
    }

    /// All kernels, and all functions that they may call. Code objects may contain other functions: clang 20
    /// and later compile each OpenCL C kernel a second time as a function, which nothing calls.
    pub fn executable(&self) -> BTreeSet<FunctionIndex> {
        let kernels = self.functions.enumerated().filter(|(_, function)| function.kernel.is_some());
        kernels.flat_map(|(index, _)| self.reachable(index)).collect()
    }

    /// The instructions of [`executable`](Disassembly::executable) functions with their indices.
    pub fn executable_insts(&self) -> impl Iterator<Item = (InstIndex, &Inst)> {
        let functions = self.executable();
        self.insts().filter(move |(at, _)| functions.contains(&self.function_of(*at)))
    }

    /// Registers that the functions read or write.
    pub fn registers_named(&self, functions: &[FunctionIndex]) -> RegisterSet {
        let functions = functions.iter().map(|index| &self.functions[*index]);
        let insts = functions.flat_map(|function| &self.instructions[function.instructions]);
        insts.flat_map(|inst| inst.reads.iter().chain(&inst.writes)).copied().collect()
    }

    /// All unresolved instructions, by ascending address.
    pub fn unresolved(&self) -> impl Iterator<Item = &Unresolved> {
        self.functions.iter().flat_map(|function| &function.unresolved)
    }
}
