//! Wait counters: the counters that each instruction increments, the order in which operations complete,
//! and the counts that wait instructions wait for (the ISA documents, "Data dependency resolution";
//! RDNA4's, "Dependency resolution: required independent instructions"). LLVM's `SIInsertWaitcnts`
//! defines what compilers rely on.

mod counted;
pub mod expert;

pub use counted::VECTOR_MEMORY;

use crate::{Class, Generation, Inst, Opcode, Register, Value};
use std::fmt;

/// A counter of outstanding operations of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Vector memory up to gfx11: loads, stores and atomics; from gfx10 on, only operations that return
    /// data.
    Vmcnt,
    /// LDS, global data share, scalar memory and messages, up to gfx11.
    Lgkmcnt,
    /// Exports, reads of the data of global-data-share operations, and from gfx11 on LDS-direct loads.
    Expcnt,
    /// gfx10 and gfx11: vector stores and atomics without return value.
    Vscnt,
    /// gfx12: vector memory that returns data, except image sampling and ray intersection, and
    /// `global_inv`.
    Loadcnt,
    /// gfx12: image sampling.
    Samplecnt,
    /// gfx12: ray intersection.
    Bvhcnt,
    /// gfx12: vector stores, atomics without return value, `global_wb` and `global_wbinv`.
    Storecnt,
    /// gfx12: LDS.
    Dscnt,
    /// gfx12: scalar memory, messages, and results of barrier instructions.
    Kmcnt,
    /// gfx1250: address translations of vector and scalar memory. Until an operation has translated its
    /// addresses, it may read its registers again.
    Xcnt,
    /// gfx1250: moves between memory and LDS that use no registers for the data.
    Asynccnt,
    /// gfx1250: moves of tensors.
    Tensorcnt,
}

impl Counter {
    /// The name of the counter in wait instructions.
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
            Counter::Xcnt => "xcnt",
            Counter::Asynccnt => "asynccnt",
            Counter::Tensorcnt => "tensorcnt",
        }
    }

    /// All counters in declaration order.
    const ALL: [Counter; 13] = [
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
        Counter::Xcnt,
        Counter::Asynccnt,
        Counter::Tensorcnt,
    ];

    /// Returns `true` if operations that it counts access registers until they complete. Moves between memory
    /// and LDS read theirs when they are issued.
    pub fn guards_registers(self) -> bool {
        !matches!(self, Counter::Asynccnt | Counter::Tensorcnt)
    }

    /// Returns `true` if the counter guards the sources of operations, and not their results.
    pub fn guards_sources(self) -> bool {
        matches!(self, Counter::Expcnt | Counter::Xcnt)
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A completion queue: operations of one queue complete in issue order, operations of different queues in
/// any order. [`Queue::is_ordered`] has the exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Vector memory that returns data; also stores on generations without a store counter.
    VectorMemory,
    /// Image sampling, on generations with a separate counter for it.
    Sample,
    /// Ray intersection, on generations with a separate counter for it.
    Bvh,
    /// Stores to memory, on generations with a store counter.
    Store,
    /// Stores to private memory, on generations with a store counter.
    PrivateStore,
    /// The local data share.
    Lds,
    /// The global data share.
    GlobalDataShare,
    /// LDS-direct loads.
    LdsDirect,
    /// Scalar memory, whose operations complete in any order.
    ScalarMemory,
    /// Messages.
    Message,
    /// The SCC result of signalling or leaving a barrier.
    BarrierResult,
    /// Flat accesses before gfx10 that may go to vector memory or LDS.
    Flat,
    /// Address translations of vector memory (gfx1250).
    VectorTranslation,
    /// Address translations of scalar memory (gfx1250).
    ScalarTranslation,
    /// Moves from memory to LDS (gfx1250).
    AsyncLoad,
    /// Moves from LDS to memory (gfx1250).
    AsyncStore,
    /// Moves of tensors (gfx1250).
    Tensor,
}

impl Queue {
    /// Returns `true` if operations of this queue complete in issue order.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Queue::ScalarMemory | Queue::Flat)
    }
}

/// A bit field of an immediate.
#[derive(Clone, Copy, Debug)]
struct Field {
    position: u32,
    width: u32,
}

impl Field {
    fn extract(self, immediate: u16) -> u8 {
        (immediate >> self.position) as u8 & mask(self.width)
    }
}

/// The bits of a counter in the immediate of `s_waitcnt`, in one or two parts.
#[derive(Clone, Copy, Debug)]
struct CounterBits {
    low: Field,
    high: Field,
}

impl CounterBits {
    const fn new(position: u32, width: u32) -> CounterBits {
        CounterBits { low: Field { position, width }, high: Field { position: 0, width: 0 } }
    }

    /// The maximum value.
    fn max(self) -> u8 {
        mask(self.low.width + self.high.width)
    }

    fn extract(self, immediate: u16) -> u8 {
        self.low.extract(immediate) | self.high.extract(immediate) << self.low.width
    }
}

/// The lowest `width` bits.
fn mask(width: u32) -> u8 {
    ((1u16 << width) - 1) as u8
}

/// The wait counters of a generation: the instructions that increment them, and the encoding of the
/// instructions that wait for them (LLVM, `AMDGPUBaseInfo`, "Waitcnt"; tests compare with the assembler).
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    waits: Waits,
    /// VALU instructions that name half of a vector register access all of it (LLVM,
    /// `FeatureD16Writes32BitVgpr`). Without it, no waits for register halves are needed.
    valu_merges_halves: bool,
}

/// The wait instructions of a generation.
#[derive(Clone, Copy, Debug)]
enum Waits {
    /// Up to gfx11: `s_waitcnt` waits for all counters but vscnt, `s_waitcnt_vscnt` for that.
    Combined { vmcnt: CounterBits, lgkmcnt: CounterBits, expcnt: CounterBits, stores: StoreCounter },
    /// gfx12: one instruction for each counter, and combined ones for two pairs of counters.
    Separate {
        /// The counters with the widths of their fields.
        widths: &'static [(Counter, u32)],
    },
}

/// The counter of vector stores up to gfx11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreCounter {
    /// The counter of loads (up to gfx9).
    Vmcnt,
    /// A counter for stores only (gfx10 and gfx11).
    Vscnt,
}

/// The counters of gfx12 with the widths of their fields.
const GFX12: &[(Counter, u32)] = &[
    (Counter::Loadcnt, 6),
    (Counter::Samplecnt, 6),
    (Counter::Bvhcnt, 3),
    (Counter::Expcnt, 3),
    (Counter::Storecnt, 6),
    (Counter::Dscnt, 6),
    (Counter::Kmcnt, 5),
];

/// The counters of gfx1250 with the widths of their fields.
const GFX125: &[(Counter, u32)] = &[
    (Counter::Loadcnt, 6),
    (Counter::Expcnt, 3),
    (Counter::Storecnt, 6),
    (Counter::Dscnt, 6),
    (Counter::Kmcnt, 5),
    (Counter::Xcnt, 6),
    (Counter::Asynccnt, 6),
    (Counter::Tensorcnt, 6),
];

impl Counters {
    /// The wait counters of a generation.
    pub(crate) fn of(generation: Generation) -> Counters {
        let expcnt = CounterBits::new(4, 3);
        let vmcnt = CounterBits {
            low: Field { position: 0, width: 4 },
            high: Field { position: 14, width: 2 },
        };
        let stores =
            if generation >= Generation::Gfx10 { StoreCounter::Vscnt } else { StoreCounter::Vmcnt };
        let combined = |vmcnt, lgkmcnt, expcnt| Waits::Combined { vmcnt, lgkmcnt, expcnt, stores };
        let waits = match generation {
            Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 => {
                combined(CounterBits::new(0, 4), CounterBits::new(8, 4), expcnt)
            }
            Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
                combined(vmcnt, CounterBits::new(8, 4), expcnt)
            }
            Generation::Gfx10 => combined(vmcnt, CounterBits::new(8, 6), expcnt),
            Generation::Gfx11 => {
                combined(CounterBits::new(10, 6), CounterBits::new(4, 6), CounterBits::new(0, 3))
            }
            Generation::Gfx12 => Waits::Separate { widths: GFX12 },
            Generation::Gfx125 => Waits::Separate { widths: GFX125 },
        };
        Counters { waits, valu_merges_halves: generation >= Generation::Gfx11 }
    }

    /// Returns `true` if an instruction that names half of a vector register must also wait for pending
    /// loads of the other half: VALU reads and writes the whole register and would overwrite a load that
    /// arrives in between. Memory instructions access only the half.
    pub fn waits_for_whole_registers(&self, inst: &Inst) -> bool {
        self.valu_merges_halves && matches!(inst.class(), Class::Valu | Class::Matrix)
    }

    /// The counters that exist on the generation.
    pub fn all(&self) -> impl Iterator<Item = Counter> + use<> {
        let counters = *self;
        Counter::ALL.into_iter().filter(move |counter| counters.max_count(*counter) > 0)
    }

    /// The maximum value of a counter, at which hardware issues no further operation before one has
    /// completed. 0 if the counter does not exist.
    pub fn max_count(&self, counter: Counter) -> u8 {
        match (self.waits, counter) {
            (Waits::Combined { vmcnt, .. }, Counter::Vmcnt) => vmcnt.max(),
            (Waits::Combined { lgkmcnt, .. }, Counter::Lgkmcnt) => lgkmcnt.max(),
            (Waits::Combined { expcnt, .. }, Counter::Expcnt) => expcnt.max(),
            (Waits::Combined { stores: StoreCounter::Vscnt, .. }, Counter::Vscnt) => mask(6),
            (Waits::Combined { .. }, _) => 0,
            (Waits::Separate { widths }, counter) => {
                let width = widths.iter().find(|(separate, _)| *separate == counter);
                width.map_or(0, |(_, width)| mask(*width))
            }
        }
    }

    /// The counter of loads from vector memory.
    pub fn load_counter(&self) -> Counter {
        match self.waits {
            Waits::Combined { .. } => Counter::Vmcnt,
            Waits::Separate { .. } => Counter::Loadcnt,
        }
    }

    /// The counts that an instruction waits for; `None` if it does not wait for counters. A count in a
    /// scalar register is unknown, so that the instruction guarantees nothing.
    pub fn wait_counts(&self, inst: &Inst) -> Option<WaitCounts> {
        let opcode = inst.operation.opcode();
        if opcode == Opcode::SWaitIdle {
            return Some(WaitCounts::new(self.all().map(|counter| (counter, 0))));
        }
        let immediate = inst.immediate? as u16;
        match self.waits {
            Waits::Combined { vmcnt, lgkmcnt, expcnt, .. } if opcode == Opcode::SWaitcnt => {
                Some(WaitCounts::new([
                    (Counter::Vmcnt, vmcnt.extract(immediate)),
                    (Counter::Lgkmcnt, lgkmcnt.extract(immediate)),
                    (Counter::Expcnt, expcnt.extract(immediate)),
                ]))
            }
            Waits::Combined { .. } => {
                let counter = match opcode {
                    Opcode::SWaitcntVmcnt => Counter::Vmcnt,
                    Opcode::SWaitcntLgkmcnt => Counter::Lgkmcnt,
                    Opcode::SWaitcntExpcnt => Counter::Expcnt,
                    Opcode::SWaitcntVscnt => Counter::Vscnt,
                    _ => return None,
                };
                let is_null = |value: &Value| matches!(value, Value::Register(range) if range.first == Register::Null);
                let is_known = inst.operands.first().is_some_and(|operand| is_null(&operand.value));
                let count = (counter, immediate.min(u8::MAX.into()) as u8);
                Some(WaitCounts::new(is_known.then_some(count)))
            }
            Waits::Separate { .. } => self.separate_wait_counts(opcode, immediate),
        }
    }

    /// The counts that a wait instruction of gfx12 waits for.
    fn separate_wait_counts(&self, opcode: Opcode, immediate: u16) -> Option<WaitCounts> {
        let high = Field { position: 8, width: 6 }.extract(immediate);
        let low = Field { position: 0, width: 6 }.extract(immediate);
        let counter = match opcode {
            Opcode::SWaitLoadcntDscnt => {
                return Some(WaitCounts::new([(Counter::Loadcnt, high), (Counter::Dscnt, low)]));
            }
            Opcode::SWaitStorecntDscnt => {
                return Some(WaitCounts::new([(Counter::Storecnt, high), (Counter::Dscnt, low)]));
            }
            Opcode::SWaitLoadcnt => Counter::Loadcnt,
            Opcode::SWaitSamplecnt => Counter::Samplecnt,
            Opcode::SWaitBvhcnt => Counter::Bvhcnt,
            Opcode::SWaitExpcnt => Counter::Expcnt,
            Opcode::SWaitStorecnt => Counter::Storecnt,
            Opcode::SWaitDscnt => Counter::Dscnt,
            Opcode::SWaitKmcnt => Counter::Kmcnt,
            Opcode::SWaitXcnt => Counter::Xcnt,
            Opcode::SWaitAsynccnt => Counter::Asynccnt,
            Opcode::SWaitTensorcnt => Counter::Tensorcnt,
            _ => return None,
        };
        Some(WaitCounts::new([(counter, immediate as u8 & self.max_count(counter))]))
    }

    /// The queues whose operations have completed once an instruction has executed, without a wait for
    /// their counter: a wave that has passed a barrier has received the result of its signal (LLVM,
    /// `tryClearSCCWriteEvent`). On gfx1250, scalar memory is not issued before vector memory has translated its
    /// addresses, and the reverse; scalar memory that has completed has translated its own; and functions do not
    /// wait for translations of their callers and callees (LLVM, `SIInsertWaitcnts`, X_CNT).
    pub fn completed_queues(&self, inst: &Inst) -> &'static [Queue] {
        if inst.operation.opcode() == Opcode::SBarrierWait {
            return &[Queue::BarrierResult];
        }
        if self.max_count(Counter::Xcnt) == 0 {
            return &[];
        }
        if inst.leaves_function() {
            return &[Queue::ScalarTranslation, Queue::VectorTranslation];
        }
        let has_waited = |counts: WaitCounts| counts.at_most(Counter::Kmcnt) == Some(0);
        match inst.class() {
            Class::Vmem => &[Queue::ScalarTranslation],
            Class::Smem => &[Queue::VectorTranslation],
            _ if self.wait_counts(inst).is_some_and(has_waited) => &[Queue::ScalarTranslation],
            _ => &[],
        }
    }

    /// The assembler text of the shortest sequence that waits until each counter is at most its count.
    /// Counters that do not exist on the generation are skipped, since their operations use other counters;
    /// so are counts that a counter never exceeds. If a counter occurs twice, the lower count applies.
    pub fn wait_instructions(&self, counts: &[(Counter, u8)]) -> String {
        let required = |counter: Counter| {
            let given =
                counts.iter().filter(|(given, _)| *given == counter).map(|(_, count)| *count);
            given.min().filter(|count| *count < self.max_count(counter))
        };
        let mut lines = Vec::new();
        match self.waits {
            Waits::Combined { .. } => {
                let fields: String = [Counter::Vmcnt, Counter::Expcnt, Counter::Lgkmcnt]
                    .into_iter()
                    .filter_map(|counter| Some(format!(" {counter}({})", required(counter)?)))
                    .collect();
                if !fields.is_empty() {
                    lines.push(format!("s_waitcnt{fields}"));
                }
                if let Some(count) = required(Counter::Vscnt) {
                    lines.push(format!("s_waitcnt_vscnt null, {count:#x}"));
                }
            }
            Waits::Separate { widths } => {
                let mut remaining: Vec<(Counter, Option<u8>)> =
                    widths.iter().map(|(counter, _)| (*counter, required(*counter))).collect();
                for paired in [Counter::Loadcnt, Counter::Storecnt] {
                    let [first, second] = [paired, Counter::Dscnt].map(|wanted| {
                        let position = remaining.iter().position(|(counter, _)| *counter == wanted);
                        position.unwrap_or_default()
                    });
                    if let (Some(high), Some(low)) = (remaining[first].1, remaining[second].1) {
                        let immediate = u16::from(high) << 8 | u16::from(low);
                        lines.push(format!("s_wait_{paired}_dscnt {immediate:#x}"));
                        (remaining[first].1, remaining[second].1) = (None, None);
                    }
                }
                for (counter, count) in remaining {
                    lines.extend(count.map(|count| format!("s_wait_{counter} {count:#x}")));
                }
            }
        }
        lines.join("\n")
    }
}

/// The counts that a wait instruction waits for: upper bounds of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    /// Upper bounds, indexed by [`Counter`].
    bounds: [Option<u8>; Counter::ALL.len()],
}

impl WaitCounts {
    fn new(counts: impl IntoIterator<Item = (Counter, u8)>) -> WaitCounts {
        let mut waited = WaitCounts::default();
        for (counter, count) in counts {
            waited.bounds[counter as usize] = Some(count);
        }
        waited
    }

    /// The maximum value of `counter` after the wait; `None` if the instruction does not wait for it.
    pub fn at_most(self, counter: Counter) -> Option<u8> {
        self.bounds[counter as usize]
    }
}

#[cfg(test)]
mod tests;
