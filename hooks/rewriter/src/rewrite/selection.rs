//! Selection of instructions.

use crate::flow::{Disassembly, InstIndex};
use flipwave_codeobj::LineTable;
use flipwave_isa::{Class, DataType, Inst, MemoryKind, MemorySpace, Operation, Pc};

/// Conditions on instructions, all of which must hold; `None` selects all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Name of the kernel or device function.
    pub function: Option<String>,
    /// The operation.
    pub operation: Option<Operation>,
    /// The instruction class.
    pub class: Option<Class>,
    /// The accessed memory space.
    pub space: Option<MemorySpace>,
    /// The kind of memory access.
    pub kind: Option<MemoryKind>,
    /// Element type of the result.
    pub data_type: Option<DataType>,
    /// Address in the code object.
    pub pc: Option<Pc>,
    /// The source line: a suffix of the file's path, and the line number.
    pub line: Option<(String, u32)>,
    /// Position in the block or function.
    pub position: Position,
    /// Index among the instructions that satisfy the other conditions, by ascending address.
    pub occurrence: Option<usize>,
    /// Any other condition.
    pub predicate: Option<fn(&Inst) -> bool>,
}

/// Position of an instruction in its block or function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// Any position.
    #[default]
    Anywhere,
    /// First instruction of a basic block.
    BlockEntry,
    /// Last instruction of a basic block.
    BlockExit,
    /// First instruction of a kernel.
    KernelEntry,
    /// Instruction of a kernel that ends the wave.
    KernelExit,
}

impl Selection {
    /// The selected instructions of `program`, by ascending address. Unreachable code is not selected.
    pub fn of(&self, program: &Disassembly, lines: &LineTable) -> Vec<InstIndex> {
        let mut sites = Vec::new();
        let executable = program.executable();
        let blocks = program.blocks.iter();
        for block in blocks.filter(|block| executable.contains(&block.function)) {
            let function = &program.functions[block.function];
            if self.function.as_ref().is_some_and(|name| **name != *function.name) {
                continue;
            }
            for (index, inst) in program.insts_of(block.instructions) {
                let has_position = match self.position {
                    Position::Anywhere => true,
                    Position::BlockEntry => index == block.instructions.start,
                    Position::BlockExit => index == block.last(),
                    Position::KernelEntry => {
                        function.kernel.is_some() && index == function.instructions.start
                    }
                    Position::KernelExit => function.kernel.is_some() && inst.ends_wave(),
                };
                if has_position && self.matches(inst, lines) {
                    sites.push(index);
                }
            }
        }
        sites.sort();
        match self.occurrence {
            Some(number) => sites.get(number).copied().into_iter().collect(),
            None => sites,
        }
    }

    fn matches(&self, inst: &Inst, lines: &LineTable) -> bool {
        fn is<T: PartialEq>(wanted: &Option<T>, has: Option<T>) -> bool {
            wanted.is_none() || *wanted == has
        }
        let memory = inst.memory();
        is(&self.operation, Some(inst.operation))
            && is(&self.class, Some(inst.class()))
            && is(&self.space, memory.map(|access| access.space))
            && is(&self.kind, memory.map(|access| access.kind))
            && is(&self.data_type, Some(inst.data_type()))
            && is(&self.pc, Some(inst.pc))
            && self.predicate.is_none_or(|predicate| predicate(inst))
            && self.line.as_ref().is_none_or(|(file, line)| {
                lines
                    .lookup(inst.pc)
                    .is_some_and(|row| row.line == *line && row.file.ends_with(file.as_str()))
            })
    }
}
