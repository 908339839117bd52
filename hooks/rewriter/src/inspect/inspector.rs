//! Incremental inspection of a code object. Facts about instructions are discarded after use.

use super::code::{self, Analyses, Detail};
use super::registers::Allocations;
use super::{FunctionFacts, InspectError, InspectOptions, KernelFacts};
use crate::dataflow::Liveness;
use crate::flow::{Disassembly, FunctionIndex, ProgramSummary};
use crate::registers::Allocation;
use flipwave_codeobj::{CodeObject, LineTable};
use flipwave_device::matching_kernels;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Inspects a code object incrementally. Only functions that are connected by calls are in memory at the
/// same time, and only if they are requested.
pub struct Inspector<'a> {
    object: &'a CodeObject,
    options: &'a InspectOptions,
    lines: LineTable,
    summary: RefCell<ProgramSummary<'a>>,
    /// Groups of functions that are connected by calls.
    groups: Vec<Vec<usize>>,
    /// The group of each function.
    group_of: Vec<usize>,
    /// Functions to show, by ascending address.
    functions: Vec<usize>,
    /// Kernels to show, in the code object's order.
    kernels: Vec<ShownKernel>,
    /// Facts that have been computed, without code.
    known: RefCell<KnownFacts>,
    /// Facts including code of the groups used last, by group.
    recent: RefCell<VecDeque<(usize, Rc<GroupFacts>)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ShownKernel {
    /// Index of the kernel in the code object.
    kernel: usize,
    /// Its function.
    function: usize,
}

/// Number of groups whose code is cached. The functions of different groups may alternate.
const CACHED_GROUPS: usize = 4;

/// Facts by function, without code.
#[derive(Default)]
struct KnownFacts {
    functions: BTreeMap<usize, FunctionFacts>,
    kernels: BTreeMap<usize, KernelFacts>,
}

/// Facts about the functions of a group.
type GroupFacts = Vec<(usize, FunctionFacts)>;

impl<'a> Inspector<'a> {
    /// Analyzes the control flow of the requested functions.
    ///
    /// # Errors
    /// Returns an error if the code or its line tables cannot be read, or if the requested kernel does not
    /// exist.
    pub fn new(
        object: &'a CodeObject,
        options: &'a InspectOptions,
    ) -> Result<Inspector<'a>, InspectError> {
        let only = options.kernel.as_ref().map(|name| find_kernels(object, name)).transpose()?;
        let mut summary = match only.as_deref() {
            Some([kernel]) => ProgramSummary::for_kernel(object, *kernel)?,
            _ => ProgramSummary::new(object)?,
        };
        // The free registers of a function depend on all kernels that call it.
        if options.registers && only.is_some() && summary.count() > 1 {
            summary = ProgramSummary::new(object)?;
        }
        let lines = if options.lines { object.lines()? } else { LineTable::default() };
        let function_of =
            |kernel| (0..summary.count()).find(|at| summary.kernel(*at) == Some(kernel));
        let functions: Vec<usize> = match &only {
            Some(kernels) => {
                let starts = kernels.iter().filter_map(|kernel| function_of(*kernel));
                let callable: BTreeSet<usize> =
                    starts.flat_map(|start| summary.callable(start)).collect();
                callable.into_iter().collect()
            }
            None => (0..summary.count()).collect(),
        };
        let mut kernels: Vec<ShownKernel> = (0..summary.count())
            .filter_map(|function| {
                Some(ShownKernel { kernel: summary.kernel(function)?, function })
            })
            .filter(|shown| only.as_ref().is_none_or(|kernels| kernels.contains(&shown.kernel)))
            .collect();
        kernels.sort_unstable();
        let groups = summary.groups();
        let mut group_of = vec![0; summary.count()];
        for (index, group) in groups.iter().enumerate() {
            group.iter().for_each(|function| group_of[*function] = index);
        }
        Ok(Inspector {
            object,
            options,
            lines,
            summary: RefCell::new(summary),
            groups,
            group_of,
            functions,
            kernels,
            known: RefCell::default(),
            recent: RefCell::default(),
        })
    }

    /// The code object.
    pub fn object(&self) -> &CodeObject {
        self.object
    }

    /// Number of lanes of a wave.
    pub fn wave_size(&self) -> u8 {
        self.summary.borrow().wave_size()
    }

    /// Facts about the kernels, in the code object's order.
    pub fn kernels(&self) -> impl Iterator<Item = KernelFacts> {
        self.kernels.iter().filter_map(|shown| {
            self.compute_facts(shown.function);
            self.known.borrow().kernels.get(&shown.function).cloned()
        })
    }

    /// Facts about the functions, by ascending address. They include code if `with_code` is set and the
    /// options request code.
    pub fn functions(&self, with_code: bool) -> impl Iterator<Item = FunctionFacts> {
        let with_code = with_code && self.options.lists_code();
        self.functions.iter().filter_map(move |function| {
            if with_code {
                let group = self.facts_with_code(self.group_of[*function]);
                let mut members = group.iter();
                return members
                    .find(|(index, _)| index == function)
                    .map(|(_, facts)| facts.clone());
            }
            self.compute_facts(*function);
            self.known.borrow().functions.get(function).cloned()
        })
    }

    /// Computes the facts about the group of a function, unless they are known.
    fn compute_facts(&self, function: usize) {
        if self.known.borrow().functions.contains_key(&function) {
            return;
        }
        let group = &self.groups[self.group_of[function]];
        self.with_analyses(group, Detail::Summary, |analyses| {
            let mut known = self.known.borrow_mut();
            known.functions.extend(self.group_facts(analyses, group));
            let functions = analyses.program.functions.enumerated();
            for (number, (index, function)) in group.iter().zip(functions) {
                if let Some(kernel) = function.kernel {
                    let facts = super::kernel_facts(analyses, self.object, kernel, index);
                    known.kernels.insert(*number, facts);
                }
            }
        });
    }

    /// Facts about a group, including code.
    fn facts_with_code(&self, index: usize) -> Rc<GroupFacts> {
        if let Some((_, facts)) = self.recent.borrow().iter().find(|(group, _)| *group == index) {
            return Rc::clone(facts);
        }
        let group = &self.groups[index];
        let facts =
            self.with_analyses(group, Detail::Code, |analyses| self.group_facts(analyses, group));
        let facts = Rc::new(facts);
        let mut recent = self.recent.borrow_mut();
        recent.push_front((index, Rc::clone(&facts)));
        recent.truncate(CACHED_GROUPS);
        facts
    }

    /// Calls `collect` with the analyses of a group.
    fn with_analyses<R>(
        &self,
        group: &[usize],
        detail: Detail,
        collect: impl FnOnce(&Analyses<'_>) -> R,
    ) -> R {
        let program = self.summary.borrow_mut().disassembly(group);
        let liveness = self.options.registers.then(|| Liveness::new(&program));
        collect(&Analyses {
            program: &program,
            liveness: liveness.as_ref(),
            lines: &self.lines,
            detail,
        })
    }

    fn group_facts(&self, analyses: &Analyses<'_>, group: &[usize]) -> GroupFacts {
        let functions = group.iter().zip(analyses.program.functions.enumerated());
        let facts = functions.map(|(number, (index, function))| {
            let allocations = Allocations {
                default: self.common_allocation(analyses.program, index),
                maximal: Allocation::maximal(self.object.target()),
            };
            (*number, code::function_facts(analyses, function, allocations))
        });
        facts.collect()
    }

    /// The registers that are allocated by all kernels that may execute a function.
    fn common_allocation(&self, program: &Disassembly, function: FunctionIndex) -> Allocation {
        let target = self.object.target();
        let maximal = Allocation::maximal(target);
        if !self.options.registers {
            return maximal;
        }
        let kernels = program.functions.enumerated().filter_map(|(index, caller)| {
            let kernel = &self.object.kernels()[caller.kernel?];
            program.reachable(index).contains(&function).then(|| Allocation::of(kernel, target))
        });
        kernels.fold(maximal, Allocation::least)
    }
}

/// The indices of the kernels with the given name or symbol, or that match a pattern.
fn find_kernels(object: &CodeObject, name: &str) -> Result<Vec<usize>, InspectError> {
    let mut kernels = object.kernels().iter();
    if let Some(index) = kernels.position(|kernel| &*kernel.symbol == name) {
        return Ok(vec![index]);
    }
    match matching_kernels(object.kernels().iter().map(|kernel| &*kernel.name), name) {
        found if found.is_empty() => Err(InspectError::UnknownKernel {
            wanted: name.to_owned(),
            present: object.kernels().iter().map(|kernel| kernel.name.to_string()).collect(),
        }),
        found => Ok(found),
    }
}
