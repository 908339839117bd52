//! Wait counters: which instructions count in which, in what order they come back, and what the
//! instructions that wait for them wait for (the ISA documents, "Data dependency resolution"; of
//! RDNA4's, "Dependency resolution: required independent instructions"). LLVM's `SIInsertWaitcnts`
//! says what compilers honour of it.

mod counted;
pub mod expert;

pub use counted::VECTOR_MEMORY;

use crate::{Class, Generation, Inst, Opcode, Register, Value};
use std::fmt;

/// A counter of operations of a wave that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Vector memory up to gfx11: loads, stores and atomics; from gfx10 on, only what returns data.
    Vmcnt,
    /// LDS, global data share, scalar memory and messages, up to gfx11.
    Lgkmcnt,
    /// Exports, the data of global-data-share operations, and from gfx11 on LDS-direct loads.
    Expcnt,
    /// gfx10 and gfx11: vector stores, and atomics that return nothing.
    Vscnt,
    /// gfx12: vector memory that returns data, but for images that are sampled and rays, and
    /// `global_inv`.
    Loadcnt,
    /// gfx12: images that are sampled.
    Samplecnt,
    /// gfx12: intersections of rays.
    Bvhcnt,
    /// gfx12: vector stores, atomics that return nothing, `global_wb` and `global_wbinv`.
    Storecnt,
    /// gfx12: LDS.
    Dscnt,
    /// gfx12: scalar memory, messages, and what barriers answer.
    Kmcnt,
}

impl Counter {
    /// Its name in the instructions that wait for it.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Vmcnt => "vmcnt",
            Counter::Lgkmcnt => "lgkmcnt",
            Counter::Expcnt => "expcnt",
            Counter::Vscnt => "vscnt",
            Counter::Loadcnt => "loadcnt",
            Counter::Samplecnt => "samplecnt",
            Counter::Bvhcnt => "bvhcnt",
            Counter::Storecnt => "storecnt",
            Counter::Dscnt => "dscnt",
            Counter::Kmcnt => "kmcnt",
        }
    }

    /// All of them, in the order of their declaration.
    const ALL: [Counter; 10] = [
        Counter::Vmcnt,
        Counter::Lgkmcnt,
        Counter::Expcnt,
        Counter::Vscnt,
        Counter::Loadcnt,
        Counter::Samplecnt,
        Counter::Bvhcnt,
        Counter::Storecnt,
        Counter::Dscnt,
        Counter::Kmcnt,
    ];
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Operations of one queue come back in the order they were issued, those of different queues in
/// any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Vector memory that returns data, and stores where they do not count for themselves.
    VectorMemory,
    /// Images that are sampled, where they count for themselves.
    Sample,
    /// Intersections of rays, where they count for themselves.
    Bvh,
    /// Stores to memory where they count for themselves.
    Store,
    /// Stores to private memory where stores count for themselves.
    PrivateStore,
    /// The local data share.
    Lds,
    /// The global data share.
    GlobalDataShare,
    /// LDS-direct loads.
    LdsDirect,
    /// Scalar memory; it has no order even within itself.
    ScalarMemory,
    /// Messages.
    Message,
    /// What the signal to a barrier, or leaving it, answers in SCC.
    Barrier,
    /// Flat accesses before gfx10, as long as it is not known which way they go.
    Flat,
}

impl Queue {
    /// Whether operations of this queue come back in the order they were issued.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Queue::ScalarMemory | Queue::Flat)
    }
}

/// Bits of a counter in the immediate field of `s_waitcnt`: a low part and a high one, each by its
/// position and its width.
#[derive(Clone, Copy, Debug)]
struct Bits {
    low: (u32, u32),
    high: (u32, u32),
}

impl Bits {
    const fn new(position: u32, width: u32) -> Bits {
        Bits { low: (position, width), high: (0, 0) }
    }

    fn most(self) -> u8 {
        mask(self.low.1 + self.high.1)
    }

    fn of(self, field: u16) -> u8 {
        let part = |(position, width): (u32, u32)| (field >> position) as u8 & mask(width);
        part(self.low) | part(self.high) << self.low.1
    }
}

fn mask(width: u32) -> u8 {
    ((1u16 << width) - 1) as u8
}

/// The wait counters of a generation: where instructions that wait have them (LLVM,
/// `AMDGPUBaseInfo`, "Waitcnt"; the tests ask the assembler), and what counts in them.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    waits: Waits,
    /// Whether VALU that names half of a vector register touches all of it (LLVM,
    /// `FeatureD16Writes32BitVgpr`): only then are there waits for halves at all.
    valu_merges_halves: bool,
}

/// How a generation waits.
#[derive(Clone, Copy, Debug)]
enum Waits {
    /// Up to gfx11: `s_waitcnt` waits for all, but that stores may count for themselves, and
    /// `s_waitcnt_vscnt` waits for those.
    Together { vmcnt: Bits, lgkmcnt: Bits, expcnt: Bits, counts_stores: bool },
    /// gfx12: each counter has an instruction, two pairs have one too.
    Apart,
}

/// The counters of gfx12 with the widths of their fields.
const APART: [(Counter, u32); 7] = [
    (Counter::Loadcnt, 6),
    (Counter::Samplecnt, 6),
    (Counter::Bvhcnt, 3),
    (Counter::Expcnt, 3),
    (Counter::Storecnt, 6),
    (Counter::Dscnt, 6),
    (Counter::Kmcnt, 5),
];

impl Counters {
    /// Those of a generation. None for gfx12.5, whose counters are others.
    pub(crate) fn of(generation: Generation) -> Option<Counters> {
        let expcnt = Bits::new(4, 3);
        let vmcnt = Bits { low: (0, 4), high: (14, 2) };
        let counts_stores = generation >= Generation::Gfx10;
        let together =
            |vmcnt, lgkmcnt, expcnt| Waits::Together { vmcnt, lgkmcnt, expcnt, counts_stores };
        let waits = match generation {
            Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 => {
                together(Bits::new(0, 4), Bits::new(8, 4), expcnt)
            }
            Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
                together(vmcnt, Bits::new(8, 4), expcnt)
            }
            Generation::Gfx10 => together(vmcnt, Bits::new(8, 6), expcnt),
            Generation::Gfx11 => together(Bits::new(10, 6), Bits::new(4, 6), Bits::new(0, 3)),
            Generation::Gfx12 => Waits::Apart,
            Generation::Gfx125 => return None,
        };
        Some(Counters { waits, valu_merges_halves: generation >= Generation::Gfx11 })
    }

    /// Returns `true` if an instruction that names half of a vector register must also wait for what
    /// is on its way to the other half: VALU reads and writes the whole register, so a load that
    /// arrives in between would be lost. Memory instructions access the half alone.
    pub fn waits_for_whole_registers(&self, inst: &Inst) -> bool {
        self.valu_merges_halves && matches!(inst.class(), Class::Valu | Class::Matrix)
    }

    /// The counters that there are.
    pub fn all(&self) -> impl Iterator<Item = Counter> + use<> {
        let own = *self;
        Counter::ALL.into_iter().filter(move |counter| own.most(*counter) > 0)
    }

    /// The most operations that a counter counts; hardware issues no further one before one has come
    /// back. 0 where there is no such counter.
    pub fn most(&self, counter: Counter) -> u8 {
        match (self.waits, counter) {
            (Waits::Together { vmcnt, .. }, Counter::Vmcnt) => vmcnt.most(),
            (Waits::Together { lgkmcnt, .. }, Counter::Lgkmcnt) => lgkmcnt.most(),
            (Waits::Together { expcnt, .. }, Counter::Expcnt) => expcnt.most(),
            (Waits::Together { counts_stores: true, .. }, Counter::Vscnt) => mask(6),
            (Waits::Together { .. }, _) => 0,
            (Waits::Apart, counter) => {
                let width = APART.iter().find(|(own, _)| *own == counter);
                width.map_or(0, |(_, width)| mask(*width))
            }
        }
    }

    /// The counter of loads from vector memory.
    pub fn of_loads(&self) -> Counter {
        match self.waits {
            Waits::Together { .. } => Counter::Vmcnt,
            Waits::Apart => Counter::Loadcnt,
        }
    }

    /// The counts that an instruction waits for, if it is one that waits for counters. A count
    /// that it takes from a scalar register is not known, and proves nothing.
    pub fn waits(&self, inst: &Inst) -> Option<WaitCounts> {
        let opcode = inst.operation.opcode();
        if opcode == Opcode::SWaitIdle {
            return Some(WaitCounts::of(self.all().map(|counter| (counter, 0))));
        }
        let field = inst.immediate? as u16;
        match self.waits {
            Waits::Together { vmcnt, lgkmcnt, expcnt, .. } if opcode == Opcode::SWaitcnt => {
                Some(WaitCounts::of([
                    (Counter::Vmcnt, vmcnt.of(field)),
                    (Counter::Lgkmcnt, lgkmcnt.of(field)),
                    (Counter::Expcnt, expcnt.of(field)),
                ]))
            }
            Waits::Together { .. } => {
                let counter = match opcode {
                    Opcode::SWaitcntVmcnt => Counter::Vmcnt,
                    Opcode::SWaitcntLgkmcnt => Counter::Lgkmcnt,
                    Opcode::SWaitcntExpcnt => Counter::Expcnt,
                    Opcode::SWaitcntVscnt => Counter::Vscnt,
                    _ => return None,
                };
                let null = |value: &Value| matches!(value, Value::Register(range) if range.first == Register::Null);
                let is_known = inst.operands.first().is_some_and(|operand| null(&operand.value));
                let count = (counter, field.min(u8::MAX.into()) as u8);
                Some(WaitCounts::of(is_known.then_some(count)))
            }
            Waits::Apart => {
                let (high, low) = (Bits::new(8, 6).of(field), Bits::new(0, 6).of(field));
                Some(match opcode {
                    Opcode::SWaitLoadcntDscnt => {
                        WaitCounts::of([(Counter::Loadcnt, high), (Counter::Dscnt, low)])
                    }
                    Opcode::SWaitStorecntDscnt => {
                        WaitCounts::of([(Counter::Storecnt, high), (Counter::Dscnt, low)])
                    }
                    _ => {
                        let counter = match opcode {
                            Opcode::SWaitLoadcnt => Counter::Loadcnt,
                            Opcode::SWaitSamplecnt => Counter::Samplecnt,
                            Opcode::SWaitBvhcnt => Counter::Bvhcnt,
                            Opcode::SWaitExpcnt => Counter::Expcnt,
                            Opcode::SWaitStorecnt => Counter::Storecnt,
                            Opcode::SWaitDscnt => Counter::Dscnt,
                            Opcode::SWaitKmcnt => Counter::Kmcnt,
                            _ => return None,
                        };
                        WaitCounts::of([(counter, field as u8 & self.most(counter))])
                    }
                })
            }
        }
    }

    /// Operations that an instruction proves to have come back without waiting for their counter:
    /// who has passed a barrier has got the answer to its signal (LLVM, `tryClearSCCWriteEvent`).
    pub fn settles(&self, inst: &Inst) -> Option<Queue> {
        (inst.operation.opcode() == Opcode::SBarrierWait).then_some(Queue::Barrier)
    }

    /// The assembler's text that waits until each of these counters is at most its count, in as few
    /// lines as it takes. Counters that there are not are left out, since what would count in them
    /// counts in others; so are counts that a counter never exceeds. Of a counter named twice the
    /// lower count holds.
    pub fn wait_for(&self, counts: &[(Counter, u8)]) -> String {
        let wanted = |counter: Counter| {
            let own = counts.iter().filter(|(own, _)| *own == counter).map(|(_, count)| *count);
            own.min().filter(|count| *count < self.most(counter))
        };
        let mut lines = Vec::new();
        match self.waits {
            Waits::Together { .. } => {
                let named = [Counter::Vmcnt, Counter::Expcnt, Counter::Lgkmcnt]
                    .into_iter()
                    .filter_map(|counter| Some(format!(" {counter}({})", wanted(counter)?)));
                let named: String = named.collect();
                if !named.is_empty() {
                    lines.push(format!("s_waitcnt{named}"));
                }
                if let Some(count) = wanted(Counter::Vscnt) {
                    lines.push(format!("s_waitcnt_vscnt null, {count:#x}"));
                }
            }
            Waits::Apart => {
                let mut single = APART.map(|(counter, _)| (counter, wanted(counter)));
                for own in [Counter::Loadcnt, Counter::Storecnt] {
                    let [first, second] = [own, Counter::Dscnt].map(|own| {
                        single.iter().position(|(counter, _)| *counter == own).unwrap_or_default()
                    });
                    if let (Some(high), Some(low)) = (single[first].1, single[second].1) {
                        let field = u16::from(high) << 8 | u16::from(low);
                        lines.push(format!("s_wait_{own}_dscnt {field:#x}"));
                        (single[first].1, single[second].1) = (None, None);
                    }
                }
                for (counter, count) in single {
                    lines.extend(count.map(|count| format!("s_wait_{counter} {count:#x}")));
                }
            }
        }
        lines.join("\n")
    }
}

/// What an instruction waits for: that counters are at most this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// By the number of the counter.
    most: [Option<u8>; Counter::ALL.len()],
}

impl WaitCounts {
    fn of(counts: impl IntoIterator<Item = (Counter, u8)>) -> WaitCounts {
        let mut own = WaitCounts::default();
        for (counter, count) in counts {
            own.most[counter as usize] = Some(count);
        }
        own
    }

    /// The most that `counter` may be afterwards; `None` if the instruction does not say.
    pub fn at_most(self, counter: Counter) -> Option<u8> {
        self.most[counter as usize]
    }
}

#[cfg(test)]
mod tests;
