//! Which instructions a request is for.

use crate::flow::{Disassembly, InstIndex};
use flipwave_codeobj::LineTable;
use flipwave_isa::{Class, DataType, Inst, MemoryKind, MemorySpace, Operation, Pc};

/// Conditions on an instruction; those that are given must all hold.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Name of the kernel or device function that it is in.
    pub function: Option<String>,
    /// The operation's canonical name.
    pub operation: Option<Operation>,
    /// The unit it runs on.
    pub class: Option<Class>,
    /// The memory it accesses.
    pub space: Option<MemorySpace>,
    /// How it accesses memory.
    pub kind: Option<MemoryKind>,
    /// The element type of its result.
    pub data_type: Option<DataType>,
    /// Its address in the code object.
    pub pc: Option<Pc>,
    /// The source line: the end of the file's path, and the line.
    pub line: Option<(String, u32)>,
    /// Where it stands.
    pub position: Position,
    /// Of all that fit so far, by ascending address, only the one of this number, from 0.
    pub occurrence: Option<usize>,
    /// Anything else.
    pub predicate: Option<fn(&Inst) -> bool>,
}

/// Where an instruction stands in its block or function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// Anywhere.
    #[default]
    Anywhere,
    /// First of a basic block.
    BlockEntry,
    /// Last of a basic block.
    BlockExit,
    /// First of a kernel.
    KernelEntry,
    /// One that ends a wave of a kernel.
    KernelExit,
}

impl Selection {
    /// The instructions of `program` that fit, by ascending address; of code that no kernel comes to,
    /// none.
    pub fn of(&self, program: &Disassembly, lines: &LineTable) -> Vec<InstIndex> {
        let mut sites = Vec::new();
        let executable = program.executable();
        for block in program.blocks.iter().filter(|own| executable.contains(&own.function)) {
            let function = &program.functions[block.function];
            if self.function.as_ref().is_some_and(|name| **name != *function.name) {
                continue;
            }
            for (index, inst) in program.insts_of(block.instructions) {
                let stands = match self.position {
                    Position::Anywhere => true,
                    Position::BlockEntry => index == block.instructions.start,
                    Position::BlockExit => index == block.last(),
                    Position::KernelEntry => {
                        function.kernel.is_some() && index == function.instructions.start
                    }
                    Position::KernelExit => function.kernel.is_some() && inst.ends_wave(),
                };
                if stands && self.fits(inst, lines) {
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

    fn fits(&self, inst: &Inst, lines: &LineTable) -> bool {
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
                    .is_some_and(|own| own.line == *line && own.file.ends_with(file.as_str()))
            })
    }
}
