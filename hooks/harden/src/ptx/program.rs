//! The code of a module with the results of its instructions.

use super::chains::Liveness;
use super::results::{ResultRegister, results};
use crate::{HardenError, Reason};
use flipwave_arch::Pc;
use flipwave_ptx::{
    Argument, CallGraph, Class, Code, ControlFlow, FunctionCode, FunctionKind, Inst, Instruction,
    Module, Symbol,
};
use flipwave_ptx_hooks::Instrumentation;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The code of a module. Numbers of instructions are those of [`Code::instructions`].
pub struct Program {
    pub code: Code,
    /// The instructions in the module's tree.
    pub trees: Vec<Instruction>,
    /// The results of instructions that can be duplicated.
    pub results: BTreeMap<usize, Vec<ResultRegister>>,
    /// The instructions that cannot be duplicated.
    pub others: BTreeMap<usize, Reason>,
    /// The functions.
    pub functions: Vec<Function>,
}

/// A function.
pub struct Function {
    pub flow: ControlFlow,
    pub liveness: Liveness,
    /// `true` if kernels can reach it.
    pub is_reachable: bool,
    /// `true` if lanes may end in the function or in one that it calls.
    may_end_lanes: bool,
}

impl Program {
    /// Prepares a module and reads its code.
    ///
    /// # Errors
    /// [`HardenError::Ptx`] if the module cannot be rewritten.
    pub fn of(module: &Module) -> Result<(Instrumentation, Program), HardenError> {
        let instrumentation = Instrumentation::new(module)?;
        let code = instrumentation.code().clone();
        let trees: Vec<Instruction> = instrumentation.instructions().into_iter().cloned().collect();
        let (mut known, mut others) = (BTreeMap::new(), BTreeMap::new());
        for (number, (inst, tree)) in code.instructions.iter().zip(&trees).enumerate() {
            match results(inst, tree, &code.functions[inst.function]) {
                Ok(results) => _ = known.insert(number, results),
                Err(reason) => _ = others.insert(number, reason),
            }
        }
        let functions = functions(&code);
        Ok((instrumentation, Program { code, trees, results: known, others, functions }))
    }

    /// Address of an instruction.
    pub fn pc(&self, number: usize) -> Pc {
        self.code.instructions[number].pc
    }

    /// The basic blocks of all functions: the number of the function, that of the block in it, and the
    /// instructions.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, usize, Range<usize>)> {
        self.functions.iter().enumerate().flat_map(|(function, found)| {
            let blocks = found.flow.blocks.iter().enumerate();
            blocks.map(move |(number, block)| (function, number, block.instructions.clone()))
        })
    }

    /// The calls in a function after which some lanes may not continue.
    pub fn ending_calls(&self, function: &FunctionCode) -> Vec<usize> {
        let may_end = |call: &Inst| {
            let callee = call.operands.iter().find_map(|operand| match operand {
                Argument::Symbol(Symbol::Function(number), _) => Some(*number),
                _ => None,
            });
            // The function of an indirect call is not known.
            callee.is_none_or(|callee| self.functions[callee].may_end_lanes)
        };
        let is_ending = |number: &usize| {
            let inst = &self.code.instructions[*number];
            inst.form.class() == Some(Class::Call) && may_end(inst)
        };
        function.instructions.clone().filter(is_ending).collect()
    }
}

fn functions(code: &Code) -> Vec<Function> {
    let graph = CallGraph::of(code);
    let reachable: BTreeSet<usize> = code
        .functions
        .iter()
        .enumerate()
        .filter(|(_, function)| function.kind == FunctionKind::Entry)
        .flat_map(|(number, _)| graph.reachable(number))
        .collect();
    let ends = |number: usize| {
        let mut all = code.functions[number].instructions.clone();
        all.any(|inst| code.instructions[inst].form.opcode() == "exit")
    };
    let all = code.functions.iter().enumerate().map(|(number, function)| {
        let flow = ControlFlow::of(code, function);
        Function {
            liveness: Liveness::of(code, function, &flow),
            flow,
            is_reachable: reachable.contains(&number),
            may_end_lanes: graph.reachable(number).into_iter().any(ends),
        }
    });
    all.collect()
}
