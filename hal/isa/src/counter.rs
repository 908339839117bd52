//! Wait counters: which instructions count in which, in what order they come back, and what the
//! instructions that wait for them wait for (the ISA documents, "Data dependency resolution").
//! LLVM's `SIInsertWaitcnts` says what compilers honour of it.

use crate::{Class, Encoding, Family, Generation, Inst, Opcode, Register, Value};
use std::fmt;

/// A counter of operations of a wave that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Vector memory: loads, stores and atomics; from gfx10 on, only what returns data.
    Vmcnt,
    /// LDS, global data share, scalar memory and messages.
    Lgkmcnt,
    /// Exports, the data of global-data-share operations, and from gfx11 on LDS-direct loads.
    Expcnt,
    /// From gfx10 on: vector stores, and atomics that return nothing.
    Vscnt,
}

impl Counter {
    /// Its name in `s_waitcnt`.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Vmcnt => "vmcnt",
            Counter::Lgkmcnt => "lgkmcnt",
            Counter::Expcnt => "expcnt",
            Counter::Vscnt => "vscnt",
        }
    }

    /// All of them.
    const ALL: [Counter; 4] = [Counter::Vmcnt, Counter::Lgkmcnt, Counter::Expcnt, Counter::Vscnt];
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
    /// Vector memory that counts in `vmcnt`.
    VectorMemory,
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
    /// Flat accesses before gfx10, as long as it is not known which way they go.
    Flat,
}

impl Queue {
    /// Whether operations of this queue come back in the order they were issued.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Queue::ScalarMemory | Queue::Flat)
    }
}

/// The counter of vector memory, and of flat accesses before gfx10 that all go to vector memory.
pub const VECTOR_MEMORY: &[(Counter, Queue)] = &[(Counter::Vmcnt, Queue::VectorMemory)];

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

/// The wait counters of a generation: where it has them in `s_waitcnt` (LLVM, `AMDGPUBaseInfo`,
/// "Waitcnt"; the tests ask the assembler), and what counts in them.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    vmcnt: Bits,
    lgkmcnt: Bits,
    expcnt: Bits,
    /// Whether stores have a counter of their own, and `s_waitcnt_vscnt` waits for it.
    counts_stores: bool,
}

impl Counters {
    /// Those of a generation. None from gfx12 on, whose counters are others.
    pub(crate) fn of(generation: Generation) -> Option<Counters> {
        let expcnt = Bits::new(4, 3);
        let vmcnt = Bits { low: (0, 4), high: (14, 2) };
        let counts_stores = generation >= Generation::Gfx10;
        Some(match generation {
            Generation::Gfx6 | Generation::Gfx7 | Generation::Gfx8 => {
                Counters { vmcnt: Bits::new(0, 4), lgkmcnt: Bits::new(8, 4), expcnt, counts_stores }
            }
            Generation::Gfx9 | Generation::Gfx90a | Generation::Gfx940 => {
                Counters { vmcnt, lgkmcnt: Bits::new(8, 4), expcnt, counts_stores }
            }
            Generation::Gfx10 => {
                Counters { vmcnt, lgkmcnt: Bits::new(8, 6), expcnt, counts_stores }
            }
            Generation::Gfx11 => Counters {
                vmcnt: Bits::new(10, 6),
                lgkmcnt: Bits::new(4, 6),
                expcnt: Bits::new(0, 3),
                counts_stores,
            },
            Generation::Gfx12 | Generation::Gfx125 => return None,
        })
    }

    /// The counters that there are.
    pub fn all(&self) -> impl Iterator<Item = Counter> + use<> {
        let own = *self;
        Counter::ALL.into_iter().filter(move |counter| own.most(*counter) > 0)
    }

    /// The most operations that a counter counts; hardware issues no further one before one has come
    /// back. 0 where there is no such counter.
    pub fn most(&self, counter: Counter) -> u8 {
        match counter {
            Counter::Vmcnt => self.vmcnt.most(),
            Counter::Lgkmcnt => self.lgkmcnt.most(),
            Counter::Expcnt => self.expcnt.most(),
            Counter::Vscnt if self.counts_stores => 63,
            Counter::Vscnt => 0,
        }
    }

    /// The counters that an instruction increments, and the queue it comes back through. A flat
    /// access counts in two, since its addresses decide which way it goes; from gfx10 on it comes back
    /// in order with both.
    pub fn counted(&self, inst: &Inst) -> &'static [(Counter, Queue)] {
        match inst.class() {
            Class::Vmem | Class::Image => self.vector_memory(inst),
            Class::Lds if inst.operation.opcode() == Opcode::LdsDirectLoad => {
                &[(Counter::Expcnt, Queue::LdsDirect)]
            }
            Class::Graphics if inst.operation.opcode() == Opcode::LdsParamLoad => {
                &[(Counter::Expcnt, Queue::LdsDirect)]
            }
            Class::Lds if inst.modifiers.gds => &[
                (Counter::Lgkmcnt, Queue::GlobalDataShare),
                (Counter::Expcnt, Queue::GlobalDataShare),
            ],
            Class::Lds => &[(Counter::Lgkmcnt, Queue::Lds)],
            Class::Smem => &[(Counter::Lgkmcnt, Queue::ScalarMemory)],
            Class::Message if inst.operation.is(Family::SendMessage) => {
                &[(Counter::Lgkmcnt, Queue::Message)]
            }
            _ => &[],
        }
    }

    fn vector_memory(&self, inst: &Inst) -> &'static [(Counter, Queue)] {
        // LLVM does not count them: nothing waits for them.
        if inst.operation.opcode() == Opcode::CacheInvalidate {
            return &[];
        }
        let counts_stores = self.counts_stores;
        let returns = inst.destinations().next().is_some() || inst.modifiers.lds;
        let is_store = counts_stores && inst.flags.stores && !returns;
        match inst.encoding {
            Encoding::Flat if is_store => {
                &[(Counter::Vscnt, Queue::Store), (Counter::Lgkmcnt, Queue::Lds)]
            }
            Encoding::Flat if counts_stores => {
                &[(Counter::Vmcnt, Queue::VectorMemory), (Counter::Lgkmcnt, Queue::Lds)]
            }
            Encoding::Flat => &[(Counter::Vmcnt, Queue::Flat), (Counter::Lgkmcnt, Queue::Flat)],
            Encoding::Scratch if is_store => &[(Counter::Vscnt, Queue::PrivateStore)],
            _ if is_store => &[(Counter::Vscnt, Queue::Store)],
            _ => VECTOR_MEMORY,
        }
    }

    /// The counts that an instruction waits for, if it is one that waits for counters. A count
    /// that it takes from a scalar register is not known, and proves nothing.
    pub fn waits(&self, inst: &Inst) -> Option<WaitCounts> {
        let field = inst.immediate? as u16;
        let opcode = inst.operation.opcode();
        if opcode == Opcode::SWaitcnt {
            return Some(WaitCounts {
                vmcnt: Some(self.vmcnt.of(field)),
                lgkmcnt: Some(self.lgkmcnt.of(field)),
                expcnt: Some(self.expcnt.of(field)),
                vscnt: None,
            });
        }
        let null = |value: &Value| matches!(value, Value::Register(range) if range.first == Register::Null);
        let known = inst.operands.first().is_some_and(|operand| null(&operand.value));
        let count = known.then_some(field.min(u8::MAX.into()) as u8);
        let none = WaitCounts::default();
        Some(match opcode {
            Opcode::SWaitcntVmcnt => WaitCounts { vmcnt: count, ..none },
            Opcode::SWaitcntLgkmcnt => WaitCounts { lgkmcnt: count, ..none },
            Opcode::SWaitcntExpcnt => WaitCounts { expcnt: count, ..none },
            Opcode::SWaitcntVscnt => WaitCounts { vscnt: count, ..none },
            _ => return None,
        })
    }

    /// The assembler's text that waits until each of these counters is at most its count: no line, one
    /// or two. Counters that there are not are left out, since what would count in them
    /// counts in others; so are counts that a counter never exceeds. Of a counter named twice the
    /// lower count holds.
    pub fn wait_for(&self, counts: &[(Counter, u8)]) -> String {
        let wanted = |counter: Counter| {
            let own = counts.iter().filter(|(own, _)| *own == counter).map(|(_, count)| *count);
            own.min().filter(|count| *count < self.most(counter))
        };
        let named = [Counter::Vmcnt, Counter::Expcnt, Counter::Lgkmcnt]
            .into_iter()
            .filter_map(|counter| Some(format!(" {counter}({})", wanted(counter)?)));
        let named: String = named.collect();
        let mut lines = Vec::new();
        if !named.is_empty() {
            lines.push(format!("s_waitcnt{named}"));
        }
        if let Some(count) = wanted(Counter::Vscnt) {
            lines.push(format!("s_waitcnt_vscnt null, {count:#x}"));
        }
        lines.join("\n")
    }
}

/// What an instruction waits for: that counters are at most this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts {
    vmcnt: Option<u8>,
    lgkmcnt: Option<u8>,
    expcnt: Option<u8>,
    vscnt: Option<u8>,
}

impl WaitCounts {
    /// The most that `counter` may be afterwards; `None` if the instruction does not say.
    pub fn at_most(self, counter: Counter) -> Option<u8> {
        match counter {
            Counter::Vmcnt => self.vmcnt,
            Counter::Lgkmcnt => self.lgkmcnt,
            Counter::Expcnt => self.expcnt,
            Counter::Vscnt => self.vscnt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    const TARGETS: [&str; 4] = ["gfx90a", "gfx942", "gfx1030", "gfx1100"];

    fn isa(target: &str) -> Isa {
        Isa::new(&target.parse().unwrap()).unwrap()
    }

    fn counters(isa: &Isa) -> Counters {
        Counters::of(isa.target().generation()).unwrap()
    }

    /// What the instructions of a text wait for, taken together.
    fn waited(isa: &Isa, text: &str) -> [Option<u8>; 4] {
        let bytes = isa.assemble(text).unwrap();
        let mut counts = [None; 4];
        let mut at = 0;
        while at < bytes.len() {
            let inst = isa.decode(&bytes[at..], Pc(0)).unwrap();
            at += usize::from(inst.size);
            let own = counters(isa).waits(&inst).unwrap();
            let all = [Counter::Vmcnt, Counter::Lgkmcnt, Counter::Expcnt, Counter::Vscnt];
            for (count, counter) in counts.iter_mut().zip(all) {
                *count = [*count, own.at_most(counter)].into_iter().flatten().min();
            }
        }
        counts
    }

    #[test]
    fn the_fields_of_s_waitcnt_are_where_the_assembler_puts_them() {
        for target in TARGETS {
            let isa = isa(target);
            let most = if isa.target().generation() < Generation::Gfx10 { 15 } else { 63 };
            for (line, counts) in [
                ("s_waitcnt vmcnt(37) expcnt(5) lgkmcnt(9)", [37, 9, 5]),
                ("s_waitcnt vmcnt(0)", [0, most, 7]),
                ("s_waitcnt lgkmcnt(1)", [63, 1, 7]),
                ("s_waitcnt expcnt(3)", [63, most, 3]),
            ] {
                let [vmcnt, lgkmcnt, expcnt] = counts.map(Some);
                let expected = [vmcnt, lgkmcnt, expcnt, None];
                assert_eq!(waited(&isa, line), expected, "{target} {line}");
            }
            let most = |counter: Counter| counters(&isa).most(counter);
            assert_eq!(most(Counter::Vmcnt), 63);
            assert_eq!(most(Counter::Expcnt), 7);
        }
        let nop = isa("gfx90a").decode(&[0, 0, 0x80, 0xbf], Pc(0)).unwrap();
        assert_eq!(counters(&isa("gfx90a")).waits(&nop), None);
    }

    #[test]
    fn counters_have_waits_of_their_own_from_gfx10_on() {
        for target in ["gfx1030", "gfx1100"] {
            let isa = isa(target);
            for (line, expected) in [
                ("s_waitcnt_vmcnt null, 0x3", [Some(3), None, None, None]),
                ("s_waitcnt_lgkmcnt null, 0x3", [None, Some(3), None, None]),
                ("s_waitcnt_expcnt null, 0x3", [None, None, Some(3), None]),
                ("s_waitcnt_vscnt null, 0x3", [None, None, None, Some(3)]),
            ] {
                assert_eq!(waited(&isa, line), expected, "{target} {line}");
            }
        }
        // What a register holds is not known.
        assert_eq!(waited(&isa("gfx1030"), "s_waitcnt_vscnt s4, 0x0"), [None; 4]);
    }

    #[test]
    fn the_text_of_waits_assembles_and_waits_for_what_was_asked() {
        use Counter::{Expcnt, Lgkmcnt, Vmcnt, Vscnt};
        for target in TARGETS {
            let isa = isa(target);
            let has_stores = counters(&isa).most(Vscnt) > 0;
            for counts in [
                vec![(Vmcnt, 0)],
                vec![(Lgkmcnt, 3), (Vmcnt, 40)],
                vec![(Vscnt, 2)],
                vec![(Vmcnt, 0), (Lgkmcnt, 0), (Expcnt, 0), (Vscnt, 0)],
                vec![(Lgkmcnt, 5), (Lgkmcnt, 2)],
            ] {
                let text = counters(&isa).wait_for(&counts);
                let found = waited(&isa, &text);
                for (counter, count) in counts {
                    let all = [Vmcnt, Lgkmcnt, Expcnt, Vscnt];
                    let place = all.iter().position(|own| *own == counter).unwrap();
                    if counter == Vscnt && !has_stores {
                        assert_eq!(found[place], None, "{target} {text}");
                    } else {
                        assert!(found[place].is_some_and(|own| own <= count), "{target} {text}");
                    }
                }
            }
            assert_eq!(counters(&isa).wait_for(&[(Vmcnt, 63), (Expcnt, 7)]), "");
        }
    }

    fn counted(target: &str, line: &str) -> Vec<Counter> {
        let isa = isa(target);
        let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{target} {line}: {error}"));
        let inst = isa.decode(&bytes, Pc(0)).unwrap();
        counters(&isa).counted(&inst).iter().map(|own| own.0).collect()
    }

    #[test]
    fn each_kind_of_memory_counts_in_its_counter() {
        use Counter::{Expcnt, Lgkmcnt, Vmcnt};
        for (line, expected) in [
            ("global_load_dword v0, v1, s[2:3]", &[Vmcnt][..]),
            ("global_store_dword v1, v0, s[2:3]", &[Vmcnt]),
            ("buffer_wbl2", &[Vmcnt]),
            ("buffer_invl2", &[]),
            ("flat_load_dword v0, v[2:3]", &[Vmcnt, Lgkmcnt]),
            ("ds_write_b32 v0, v1", &[Lgkmcnt]),
            ("ds_gws_barrier v0 gds", &[Lgkmcnt, Expcnt]),
            ("s_load_dword s4, s[2:3], 0x0", &[Lgkmcnt]),
            ("s_sendmsg sendmsg(MSG_INTERRUPT)", &[Lgkmcnt]),
            ("v_mov_b32 v0, v1", &[]),
        ] {
            assert_eq!(counted("gfx90a", line), expected, "{line}");
        }
        for (line, expected) in [
            ("global_store_dword v1, v0, s[2:3]", &[Vmcnt][..]),
            ("buffer_wbl2 sc0 sc1", &[Vmcnt]),
            ("buffer_inv sc0 sc1", &[]),
        ] {
            assert_eq!(counted("gfx942", line), expected, "{line}");
        }
    }

    #[test]
    fn stores_count_for_themselves_from_gfx10_on() {
        use Counter::{Expcnt, Lgkmcnt, Vmcnt, Vscnt};
        for (line, expected) in [
            ("global_load_b32 v0, v1, s[2:3]", &[Vmcnt][..]),
            ("global_store_b32 v1, v0, s[2:3]", &[Vscnt]),
            ("scratch_store_b32 off, v0, s0", &[Vscnt]),
            ("global_atomic_add_u32 v1, v0, s[2:3]", &[Vscnt]),
            ("global_atomic_add_u32 v2, v1, v0, s[2:3] glc", &[Vmcnt]),
            ("buffer_atomic_add_u32 v0, off, s[4:7], 0", &[Vscnt]),
            ("buffer_atomic_add_u32 v0, off, s[4:7], 0 glc", &[Vmcnt]),
            ("buffer_store_b32 v0, off, s[4:7], 0", &[Vscnt]),
            ("flat_load_b32 v0, v[2:3]", &[Vmcnt, Lgkmcnt]),
            ("flat_store_b32 v[2:3], v0", &[Vscnt, Lgkmcnt]),
            ("buffer_gl0_inv", &[]),
            ("ds_store_b32 v0, v1", &[Lgkmcnt]),
            ("s_load_b32 s4, s[2:3], 0x0", &[Lgkmcnt]),
            ("s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_TMA)", &[Lgkmcnt]),
            ("lds_direct_load v0", &[Expcnt]),
            ("lds_param_load v0, attr0.x", &[Expcnt]),
            ("image_load v[0:3], v[0:1], s[0:7] dmask:0xf dim:SQ_RSRC_IMG_2D", &[Vmcnt]),
        ] {
            assert_eq!(counted("gfx1100", line), expected, "{line}");
        }
        for (line, expected) in [
            ("buffer_load_dword v0, s[4:7], 0 offen lds", &[Vmcnt][..]),
            ("buffer_gl1_inv", &[]),
            ("global_store_dword v1, v0, s[2:3]", &[Vscnt]),
        ] {
            assert_eq!(counted("gfx1030", line), expected, "{line}");
        }
    }
}
