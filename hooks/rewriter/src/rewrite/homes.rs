//! Homes for values that hooks ask for all through a kernel.

use super::prologue;
use super::slide::{Ground, Moves, Slide};
use crate::dataflow::{Liveness, OutstandingLoads};
use crate::flow::{Disassembly, FunctionIndex, IndexVec, InstIndex};
use crate::hook::{Body, BodyInst, EntryValue, InputValue};
use crate::layout::Placement;
use crate::point::ProgramPoint;
use crate::registers::Component;
use crate::site::{Home, HomeWord, Homes};
use flipwave_codeobj::{CodeObject, Descriptor, Kernel};
use flipwave_isa::{Pc, Register, RegisterRange, RegisterSet, Sgpr, Target, Vgpr};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A way to keep a value all through a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keeping {
    /// In SGPRs that no instruction names, of those that are allocated anyhow.
    FreeSgprs,
    /// In SGPRs that no instruction names and that a larger allocation brings.
    MoreSgprs,
    /// In lanes of a VGPR that no instruction names, of those that are allocated anyhow.
    FreeLanes,
    /// In SGPRs that are dead: others at each point, with moves between them.
    DeadSgprs,
    /// In lanes of a VGPR that a larger allocation brings.
    MoreLanes,
}

impl Keeping {
    /// All ways, in the order in which they are tried. What no code names costs nothing; SGPRs
    /// that growing brings cost hardly any waves. Moves cost a scalar instruction here and there,
    /// VGPRs that growing brings cost waves.
    pub const ORDER: [Keeping; 5] = [
        Keeping::FreeSgprs,
        Keeping::MoreSgprs,
        Keeping::FreeLanes,
        Keeping::DeadSgprs,
        Keeping::MoreLanes,
    ];
}

/// What the hooks of a component ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeNeeds {
    /// Values that are only known when a kernel starts.
    pub entry: BTreeSet<EntryValue>,
    /// Addresses of hook data.
    pub data: bool,
}

impl HomeNeeds {
    /// Adds what a call asks for.
    pub fn add(&mut self, inputs: &[InputValue], body: &Body) {
        for input in inputs {
            match input {
                InputValue::Entry(value) => _ = self.entry.insert(*value),
                InputValue::Data { .. } => self.data = true,
                _ => {}
            }
        }
        let addresses = |inst: &BodyInst| matches!(inst, BodyInst::Address { .. });
        self.data |= body.instructions.iter().any(addresses);
    }
}

/// What homes are looked for in.
#[derive(Clone, Copy)]
pub struct HomeSearch<'a> {
    /// The code object.
    pub object: &'a CodeObject,
    /// Its code.
    pub program: &'a Disassembly,
    /// The functions that share homes.
    pub component: &'a Component,
    /// Its liveness.
    pub liveness: &'a Liveness<'a>,
    /// Its outstanding loads.
    pub loads: &'a OutstandingLoads,
    /// Where the code of each function goes.
    pub placements: &'a IndexVec<FunctionIndex, Placement>,
    /// Registers that hooks ask for where the program is done with them: they are left alone.
    pub asked: &'a dyn Fn() -> RegisterSet,
    /// The ways that may be tried, in this order.
    pub order: &'a [Keeping],
    /// The address of the hooks' data.
    pub data: Pc,
}

/// Where a component keeps what its hooks ask for.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// What is at one place all the time.
    fixed: Homes,
    /// Values that slide, a word after the other.
    sliding: Vec<EntryValue>,
    slide: Slide,
    /// How each value is kept.
    pub ways: BTreeMap<EntryValue, Keeping>,
    /// Registers that hooks ask for where the program is done with them.
    pub asked: RegisterSet,
}

impl Kept {
    /// Where everything is for a hook at an instruction.
    pub fn at(&self, program: &Disassembly, point: ProgramPoint) -> Cow<'_, Homes> {
        if self.sliding.is_empty() {
            return Cow::Borrowed(&self.fixed);
        }
        let mut homes = self.fixed.clone();
        let places = self.slide.places(program, point).unwrap_or_default();
        let mut words = places.into_iter().map(HomeWord::Sgpr);
        for value in &self.sliding {
            let Some(low) = words.next() else { break };
            let high = if words_of(*value) > 1 { words.next() } else { None };
            homes.entry.insert(*value, Home { low, high });
        }
        Cow::Owned(homes)
    }

    /// Registers that hold the same from the beginning to the end.
    pub fn registers(&self) -> RegisterSet {
        self.fixed.registers()
    }

    /// How what slides moves before instructions.
    pub fn moves(&self) -> impl Iterator<Item = (InstIndex, &Moves)> {
        self.slide.moves()
    }
}

/// Words of a value.
fn words_of(value: EntryValue) -> u8 {
    if value == EntryValue::Kernarg { 2 } else { 1 }
}

impl HomeSearch<'_> {
    /// Gives every needed value a home. The address of the data does without: it can be computed
    /// anywhere. What is missing in the end are values that no home was found for.
    pub fn homes(&self, needs: &HomeNeeds) -> Kept {
        let target = &self.program.target;
        let kernels = || self.component.kernels.iter().map(|at| &self.object.kernels()[*at]);
        // Inputs that hardware sets at the start are overwritten by none of the homes.
        let inputs = kernels().map(|kernel| with_inputs(&kernel.descriptor, target, needs)).max();
        let inputs: RegisterSet = (0..inputs.unwrap_or(0))
            .map(|number| Register::Sgpr(Sgpr(number)))
            .chain((0..3).map(|number| Register::Vgpr(Vgpr(number))))
            .collect();
        let asked = (self.asked)();
        let mut free = Free {
            registers: self.component.free().difference(inputs).difference(asked),
            component: self.component,
            lanes: None,
        };
        let enables =
            |own: &Kernel| prologue::enabled(&own.descriptor, target, &needs.entry, None).is_ok();
        // A kernel that has no room for more inputs goes without, and so do its calls.
        let mut missing: Vec<EntryValue> = match kernels().all(enables) {
            true => needs.entry.iter().copied().collect(),
            false => Vec::new(),
        };
        let mut kept = Kept { asked, ..Kept::default() };
        for keeping in self.order {
            if *keeping == Keeping::DeadSgprs {
                let words = missing.iter().map(|value| usize::from(words_of(*value))).sum();
                if let Some(slide) = self.slide(words, asked) {
                    kept.ways.extend(missing.iter().map(|value| (*value, *keeping)));
                    kept.sliding = std::mem::take(&mut missing);
                    kept.slide = slide;
                }
            }
            missing.retain(|value| {
                let Some(home) = free.home(*keeping, words_of(*value)) else { return true };
                kept.fixed.entry.insert(*value, home);
                kept.ways.insert(*value, *keeping);
                false
            });
        }
        if needs.data {
            let pair = self.order.iter().find_map(|keeping| free.sgprs(*keeping, 2));
            kept.fixed.data = pair.map(|pair| (pair, self.data));
        }
        kept
    }

    /// A way for words among the SGPRs that the component's code names.
    fn slide(&self, words: usize, asked: RegisterSet) -> Option<Slide> {
        let kernels = || self.component.kernels.iter().copied();
        // Moves have to go in.
        let moves = |own: &FunctionIndex| self.placements[*own] == Placement::Inline;
        let is_movable = self.component.functions.iter().all(moves);
        if words == 0 || !is_movable {
            return None;
        }
        let reachable = kernels().filter_map(|at| self.program.kernel(at));
        let reachable: BTreeSet<FunctionIndex> =
            reachable.flat_map(|kernel| self.program.reachable(kernel)).collect();
        let functions: Vec<FunctionIndex> = reachable.into_iter().collect();
        let named = self.component.named.intersection(self.component.allocated);
        let ground = Ground {
            program: self.program,
            functions: &functions,
            liveness: self.liveness,
            loads: self.loads,
            registers: named.intersection(RegisterSet::SGPRS).difference(asked),
        };
        Slide::find(&ground, words)
    }
}

/// Scalar registers set at the start once what is wanted is enabled.
fn with_inputs(descriptor: &Descriptor, target: &Target, needs: &HomeNeeds) -> u8 {
    // Whether hooks will need scratch is not known yet.
    match prologue::enabled(descriptor, target, &needs.entry, Some(0)) {
        Ok(enabled) => prologue::initial_sgprs(&enabled, target),
        Err(_) => prologue::initial_sgprs(descriptor, target),
    }
}

/// What no function of a component touches.
struct Free<'a> {
    registers: RegisterSet,
    component: &'a Component,
    /// A VGPR for words, and its next lane.
    lanes: Option<(Vgpr, u8)>,
}

/// Two SGPRs among `registers`, of those that a component has anyhow if there are such.
pub fn pair(registers: RegisterSet, component: &Component) -> Option<RegisterRange> {
    let mut free = Free { registers, component, lanes: None };
    free.sgprs(Keeping::FreeSgprs, 2).or_else(|| free.sgprs(Keeping::MoreSgprs, 2))
}

/// One more than the highest number of an SGPR on any target.
const SGPRS: u8 = 106;

/// Lanes of the smallest wave.
const LANES: u8 = 32;

impl Free<'_> {
    /// A home for a value.
    fn home(&mut self, keeping: Keeping, words: u8) -> Option<Home> {
        match keeping {
            Keeping::FreeSgprs | Keeping::MoreSgprs => {
                let mut sgprs = self.sgprs(keeping, words)?.iter().filter_map(|own| match own {
                    Register::Sgpr(sgpr) => Some(HomeWord::Sgpr(sgpr)),
                    _ => None,
                });
                Some(Home { low: sgprs.next()?, high: sgprs.next() })
            }
            Keeping::FreeLanes | Keeping::MoreLanes => {
                if self.lanes.is_none_or(|(_, next)| next + words > LANES) {
                    let mut vgprs = self.of(keeping).intersection(RegisterSet::VGPRS).iter();
                    let Register::Vgpr(vgpr) = vgprs.next()? else { return None };
                    self.registers.remove(Register::Vgpr(vgpr));
                    self.lanes = Some((vgpr, 0));
                }
                let (vgpr, next) = self.lanes.as_mut()?;
                let lane = *next;
                *next += words;
                let high = (words > 1).then_some(HomeWord::Lane(*vgpr, lane + 1));
                Some(Home { low: HomeWord::Lane(*vgpr, lane), high })
            }
            Keeping::DeadSgprs => None,
        }
    }

    /// Free SGPRs in a row, the first a multiple of their number.
    fn sgprs(&mut self, keeping: Keeping, words: u8) -> Option<RegisterRange> {
        let free = match keeping {
            Keeping::FreeSgprs | Keeping::MoreSgprs => self.of(keeping),
            _ => return None,
        };
        let ranges = (0..SGPRS).step_by(words.into());
        let range = ranges
            .map(|first| RegisterRange::new(Register::Sgpr(Sgpr(first)), words))
            .find(|range| range.iter().all(|own| free.contains(own)))?;
        range.iter().for_each(|own| self.registers.remove(own));
        Some(range)
    }

    /// The registers that a way takes.
    fn of(&self, keeping: Keeping) -> RegisterSet {
        match keeping {
            Keeping::FreeSgprs | Keeping::FreeLanes => {
                self.registers.intersection(self.component.allocated)
            }
            _ => self.registers,
        }
    }
}
