//! Wait counters of gfx9 (MI200 ISA, "Data dependency resolution"): which instructions count in
//! which, in what order they come back, and what `s_waitcnt` waits for. LLVM's
//! `SIInsertWaitcnts` says what compilers honour of it.

use crate::{Class, Encoding, Inst};
use std::fmt;

/// A counter of operations of a wave that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Vector memory: loads, stores and atomics.
    Vmcnt,
    /// LDS, global data share, scalar memory and messages.
    Lgkmcnt,
    /// Exports, and the data of global-data-share operations.
    Expcnt,
}

impl Counter {
    /// The most operations it counts; hardware issues no further one before one has come back.
    pub fn most(self) -> usize {
        match self {
            Counter::Vmcnt => 63,
            Counter::Lgkmcnt => 15,
            Counter::Expcnt => 7,
        }
    }

    /// Its name in `s_waitcnt`.
    pub fn name(self) -> &'static str {
        match self {
            Counter::Vmcnt => "vmcnt",
            Counter::Lgkmcnt => "lgkmcnt",
            Counter::Expcnt => "expcnt",
        }
    }
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
    /// Vector memory.
    VectorMemory,
    /// The local data share.
    Lds,
    /// The global data share.
    GlobalDataShare,
    /// Scalar memory; it has no order even within itself.
    ScalarMemory,
    /// Messages.
    Message,
    /// Flat accesses, as long as it is not known which way they go.
    Flat,
}

impl Queue {
    /// Whether operations of this queue come back in the order they were issued.
    pub fn is_ordered(self) -> bool {
        !matches!(self, Queue::ScalarMemory | Queue::Flat)
    }
}

/// The counter of vector memory, and of flat accesses that all go to vector memory.
pub const VECTOR_MEMORY: &[(Counter, Queue)] = &[(Counter::Vmcnt, Queue::VectorMemory)];

/// The counters that an instruction increments, and the queue it comes back through. A flat
/// access counts in both, since its addresses decide which way it goes.
pub fn counted(inst: &Inst) -> &'static [(Counter, Queue)] {
    // LLVM does not count cache invalidations: nothing waits for them.
    const UNCOUNTED: [&str; 3] = ["buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_invl2"];
    match (inst.class(), inst.encoding) {
        (Class::Vmem, _) if UNCOUNTED.contains(&inst.operation.name()) => &[],
        (Class::Vmem, Encoding::Flat) => {
            &[(Counter::Vmcnt, Queue::Flat), (Counter::Lgkmcnt, Queue::Flat)]
        }
        (Class::Vmem, _) => VECTOR_MEMORY,
        (Class::Lds, _) if inst.modifiers.gds => {
            &[(Counter::Lgkmcnt, Queue::GlobalDataShare), (Counter::Expcnt, Queue::GlobalDataShare)]
        }
        (Class::Lds, _) => &[(Counter::Lgkmcnt, Queue::Lds)],
        (Class::Smem, _) => &[(Counter::Lgkmcnt, Queue::ScalarMemory)],
        (Class::Message, _) if inst.operation.name().starts_with("s_sendmsg") => {
            &[(Counter::Lgkmcnt, Queue::Message)]
        }
        _ => &[],
    }
}

/// What an `s_waitcnt` waits for: that each counter is at most this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitCounts {
    vmcnt: u8,
    lgkmcnt: u8,
    expcnt: u8,
}

impl WaitCounts {
    /// The counts that an instruction waits for, if it is an `s_waitcnt` of gfx9: bits 3:0 and
    /// 15:14 `vmcnt`, 6:4 `expcnt`, 11:8 `lgkmcnt`.
    pub fn of(inst: &Inst) -> Option<WaitCounts> {
        if inst.operation.name() != "s_waitcnt" {
            return None;
        }
        let field = inst.immediate? as u16;
        Some(WaitCounts {
            vmcnt: (field & 0xf | field >> 10 & 0x30) as u8,
            lgkmcnt: (field >> 8 & 0xf) as u8,
            expcnt: (field >> 4 & 0x7) as u8,
        })
    }

    /// The most that `counter` may be afterwards.
    pub fn at_most(self, counter: Counter) -> u8 {
        match counter {
            Counter::Vmcnt => self.vmcnt,
            Counter::Lgkmcnt => self.lgkmcnt,
            Counter::Expcnt => self.expcnt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Pc};

    fn inst(line: &str) -> Inst {
        let isa = Isa::new(&"gfx90a".parse().unwrap()).unwrap();
        isa.decode(&isa.assemble(line).unwrap(), Pc(0)).unwrap()
    }

    #[test]
    fn the_fields_of_s_waitcnt_are_where_the_assembler_puts_them() {
        let counters = [Counter::Vmcnt, Counter::Lgkmcnt, Counter::Expcnt];
        for (line, counts) in [
            ("s_waitcnt vmcnt(37) expcnt(5) lgkmcnt(9)", [37, 9, 5]),
            ("s_waitcnt vmcnt(0)", [0, 15, 7]),
            ("s_waitcnt lgkmcnt(1)", [63, 1, 7]),
        ] {
            let waits = WaitCounts::of(&inst(line)).unwrap();
            assert_eq!(counters.map(|counter| waits.at_most(counter)), counts, "{line}");
        }
        assert_eq!(WaitCounts::of(&inst("s_nop 0")), None);
    }

    #[test]
    fn each_kind_of_memory_counts_in_its_counter() {
        for (line, counters) in [
            ("global_load_dword v0, v1, s[2:3]", &[Counter::Vmcnt][..]),
            ("global_store_dword v1, v0, s[2:3]", &[Counter::Vmcnt]),
            ("buffer_wbl2", &[Counter::Vmcnt]),
            ("buffer_invl2", &[]),
            ("flat_load_dword v0, v[2:3]", &[Counter::Vmcnt, Counter::Lgkmcnt]),
            ("ds_write_b32 v0, v1", &[Counter::Lgkmcnt]),
            ("ds_gws_barrier v0 gds", &[Counter::Lgkmcnt, Counter::Expcnt]),
            ("s_load_dword s4, s[2:3], 0x0", &[Counter::Lgkmcnt]),
            ("s_sendmsg sendmsg(MSG_INTERRUPT)", &[Counter::Lgkmcnt]),
            ("v_mov_b32 v0, v1", &[]),
        ] {
            let counted: Vec<Counter> = counted(&inst(line)).iter().map(|own| own.0).collect();
            assert_eq!(counted, counters, "{line}");
        }
    }
}
