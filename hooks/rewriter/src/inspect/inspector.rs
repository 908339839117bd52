//! A code object looked at part by part: what has been printed is forgotten.

use super::code::{self, Context};
use super::{FunctionFacts, InspectError, InspectOptions, KernelFacts};
use crate::dataflow::Liveness;
use crate::flow::{Disassembly, FunctionIndex, Survey};
use crate::registers::Allocation;
use flipwave_codeobj::{CodeObject, LineTable};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Looks at a code object. Of its code only what calls connect is in memory at a time, and not at all
/// what is not asked for.
pub struct Inspector<'a> {
    object: &'a CodeObject,
    wanted: &'a InspectOptions,
    lines: LineTable,
    survey: RefCell<Survey<'a>>,
    groups: Vec<Vec<usize>>,
    /// The group of each function.
    group_of: Vec<usize>,
    /// Functions to show, by ascending address.
    functions: Vec<usize>,
    /// Kernels to show with their functions, in the code object's order.
    kernels: Vec<(usize, usize)>,
    /// What is known by now, without code.
    known: RefCell<Known>,
    /// The code that was looked at last, by group.
    latest: RefCell<VecDeque<(usize, Rc<CodeFacts>)>>,
}

/// Groups whose code is kept, for functions of one that lie between those of another.
const LATEST: usize = 4;

/// What is said by function, instructions left out.
#[derive(Default)]
struct Known {
    functions: BTreeMap<usize, FunctionFacts>,
    kernels: BTreeMap<usize, KernelFacts>,
}

/// What is said of the functions of a group, instructions included.
type CodeFacts = Vec<(usize, FunctionFacts)>;

impl<'a> Inspector<'a> {
    /// Finds out what functions there are.
    ///
    /// # Errors
    /// [`InspectError`].
    pub fn new(
        object: &'a CodeObject,
        wanted: &'a InspectOptions,
    ) -> Result<Inspector<'a>, InspectError> {
        let only = wanted.kernel.as_ref().map(|name| selected(object, name)).transpose()?;
        let mut survey = match only {
            Some(kernel) => Survey::of_kernel(object, kernel)?,
            None => Survey::of(object)?,
        };
        // Which registers are free in a function that several kernels call depends on all of them.
        if wanted.registers && only.is_some() && survey.count() > 1 {
            survey = Survey::of(object)?;
        }
        let lines = if wanted.lines { object.lines()? } else { LineTable::default() };
        let of_kernel = |kernel| (0..survey.count()).find(|at| survey.kernel(*at) == Some(kernel));
        let functions: Vec<usize> = match only {
            Some(kernel) => of_kernel(kernel).map(|at| survey.callable(at)).unwrap_or_default(),
            None => (0..survey.count()).collect(),
        };
        let is_shown = |kernel: &(usize, usize)| only.is_none_or(|own| own == kernel.0);
        let kernels = (0..survey.count()).filter_map(|at| Some((survey.kernel(at)?, at)));
        let mut kernels: Vec<(usize, usize)> = kernels.filter(is_shown).collect();
        kernels.sort_unstable();
        let groups = survey.groups();
        let mut group_of = vec![0; survey.count()];
        for (index, group) in groups.iter().enumerate() {
            group.iter().for_each(|function| group_of[*function] = index);
        }
        Ok(Inspector {
            object,
            wanted,
            lines,
            survey: RefCell::new(survey),
            groups,
            group_of,
            functions,
            kernels,
            known: RefCell::default(),
            latest: RefCell::default(),
        })
    }

    /// The code object.
    pub fn object(&self) -> &CodeObject {
        self.object
    }

    /// Lanes of the waves.
    pub fn wave_size(&self) -> u8 {
        self.survey.borrow().wave_size()
    }

    /// The kernels, in the code object's order.
    pub fn kernels(&self) -> impl Iterator<Item = KernelFacts> {
        self.kernels.iter().filter_map(|(_, function)| {
            self.know(*function);
            self.known.borrow().kernels.get(function).cloned()
        })
    }

    /// The functions by ascending address, with their code if that is wanted and `with_code` is set.
    pub fn functions(&self, with_code: bool) -> impl Iterator<Item = FunctionFacts> {
        let with_code = with_code && self.wanted.lists_code();
        self.functions.iter().filter_map(move |function| {
            if with_code {
                let facts = self.code(self.group_of[*function]);
                return facts.iter().find(|(own, _)| own == function).map(|(_, own)| own.clone());
            }
            self.know(*function);
            self.known.borrow().functions.get(function).cloned()
        })
    }

    /// Looks at the group of a function, if that was not done.
    fn know(&self, function: usize) {
        if self.known.borrow().functions.contains_key(&function) {
            return;
        }
        let group = &self.groups[self.group_of[function]];
        self.look(group, false, |context| {
            let mut known = self.known.borrow_mut();
            known.functions.extend(self.function_facts(context, group));
            for (at, (index, own)) in group.iter().zip(context.program.functions.enumerated()) {
                if let Some(kernel) = own.kernel {
                    let facts = super::kernel(context, self.object, kernel, index);
                    known.kernels.insert(*at, facts);
                }
            }
        });
    }

    /// What is said of a group, instructions included.
    fn code(&self, index: usize) -> Rc<CodeFacts> {
        if let Some((_, facts)) = self.latest.borrow().iter().find(|(own, _)| *own == index) {
            return Rc::clone(facts);
        }
        let group = &self.groups[index];
        let facts = self.look(group, true, |context| self.function_facts(context, group));
        let facts = Rc::new(facts);
        let mut latest = self.latest.borrow_mut();
        latest.push_front((index, Rc::clone(&facts)));
        latest.truncate(LATEST);
        facts
    }

    /// Gives `what` the code of a group.
    fn look<R>(&self, group: &[usize], with_code: bool, what: impl FnOnce(&Context<'_>) -> R) -> R {
        let program = self.survey.borrow_mut().disassembly(group);
        let liveness = self.wanted.registers.then(|| Liveness::new(&program));
        what(&Context {
            program: &program,
            liveness: liveness.as_ref(),
            lines: &self.lines,
            with_code,
        })
    }

    fn function_facts(&self, context: &Context<'_>, group: &[usize]) -> CodeFacts {
        let functions = group.iter().zip(context.program.functions.enumerated());
        let facts = functions.map(|(at, (index, own))| {
            let default = self.common_allocation(context.program, index);
            let maximal = Allocation::maximal(self.object.target());
            (*at, code::function(context, own, [default, maximal]))
        });
        facts.collect()
    }

    /// The registers that all kernels have that run a function.
    fn common_allocation(&self, program: &Disassembly, function: FunctionIndex) -> Allocation {
        let target = self.object.target();
        let most = Allocation::maximal(target);
        if !self.wanted.registers {
            return most;
        }
        let kernels = program.functions.enumerated().filter_map(|(own, facts)| {
            let kernel = &self.object.kernels()[facts.kernel?];
            program.reachable(own).contains(&function).then(|| Allocation::of(kernel, target))
        });
        kernels.fold(most, Allocation::least)
    }
}

/// A kernel by its name.
fn selected(object: &CodeObject, name: &str) -> Result<usize, InspectError> {
    let mut kernels = object.kernels().iter();
    kernels.position(|kernel| &*kernel.name == name || &*kernel.symbol == name).ok_or_else(|| {
        InspectError::UnknownKernel {
            wanted: name.to_owned(),
            present: object.kernels().iter().map(|kernel| kernel.name.to_string()).collect(),
        }
    })
}
