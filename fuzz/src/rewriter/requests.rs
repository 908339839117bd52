//! Random requests with hooks that do not change the program's behaviour.

use crate::choices::Choices;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::InstIndex;
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::layout::Placement;
use flipwave_hooks::rewrite::{
    HookCall, Instrumentation, Position, Selection, SourceIndex, ValueStorage, When,
};
use flipwave_isa::{
    Class, Inst, MemoryKind, MemorySpace, Register, RegisterRange, RegisterSet, Sgpr, Vgpr,
};
use flipwave_tests::hook_source;
use std::collections::BTreeMap;

/// Source of the hooks. A hook that finds an error makes an invalid memory access.
const HOOKS: &str = r#"
uint64_t counter;
uint32_t seen[64];

#if FLIPWAVE_LANES == 64
#define VCC "vcc"
#else
#define VCC "vcc_lo"
#endif

static inline void wrong(void) { *(volatile uint32_t *)64 = 1; }

/* Lane masks, branches, SCC, VCC, M0. */
void touch(uint32_t seed)
{
    uint32_t value = flipwave_lane() * seed;
    asm volatile("s_mov_b32 m0, %0\n\ts_cmp_lg_u32 %0, 0" : : "s"(flipwave_uniform(seed)) : "scc");
    if (value & 4)
        asm volatile("v_mul_lo_u32 %0, %0, %0" : "+v"(value));
    asm volatile("v_cmp_eq_u32 " VCC ", %0, %0" : : "v"(value) : "vcc");
}

void nothing(void) {}

void count(uint64_t *counter) { flipwave_count(counter, 1); }

void see(uint32_t value) { seen[flipwave_lane()] = value; }

uint32_t same(uint32_t value) { return value; }

uint64_t same_pair(uint64_t value) { return value; }

/* More values at once than there are dead registers. */
void wide(uint32_t seed)
{
    uint32_t values[20];
    for (int i = 0; i < 20; i++)
        asm volatile("v_mov_b32 %0, %1" : "=v"(values[i]) : "v"(seed + i));
    for (int i = 0; i < 20; i++)
        asm volatile("" : : "v"(values[i]));
}

void turns(uint32_t seed)
{
    for (uint32_t i = flipwave_lane() & 3; i < (seed & 7); i++)
        asm volatile("v_xor_b32 %0, %0, %0" : "+v"(seed));
}

void check_pc(uint64_t pc, uint64_t expected) { if (pc != expected) wrong(); }

void check_exec(uint64_t exec) { if (exec != flipwave_exec()) wrong(); }

/* The second argument of the kernel is the size of its buffer. */
void check_kernarg(uint64_t *arguments) { if (arguments[1] != 16384) wrong(); }

void check_places(uint32_t workgroup, uint32_t height, uint32_t wave)
{
    if (workgroup > 1 || height || wave > 3) wrong();
}

void check_loaded(uint32_t *address, uint32_t value) { if (*address != value) wrong(); }
"#;

/// Requests hooks, removals and replacements. Returns a description of each, one line per request.
pub fn add(
    instrumentation: &mut Instrumentation<'_>,
    vgprs: u16,
    acc_vgprs: u16,
    choices: &mut Choices<'_>,
) -> Vec<String> {
    let mut requests = Requests {
        sites: instrumentation.select(&Selection::default()),
        sources: BTreeMap::new(),
        instrumentation,
        vgprs,
        acc_vgprs,
        choices,
        lines: Vec::new(),
    };
    requests.place();
    for _ in 0..1 + requests.choices.below(4) {
        requests.hooks();
    }
    if requests.choices.chance(40) {
        requests.removals();
    }
    requests.lines
}

struct Requests<'r, 'i, 'c, 'b> {
    instrumentation: &'r mut Instrumentation<'i>,
    sites: Vec<InstIndex>,
    /// One source for each calling convention of a function, so that compiled hooks are found in the cache.
    sources: BTreeMap<&'static str, SourceIndex>,
    vgprs: u16,
    acc_vgprs: u16,
    choices: &'c mut Choices<'b>,
    /// Descriptions of the requests.
    lines: Vec<String>,
}

impl Requests<'_, '_, '_, '_> {
    fn place(&mut self) {
        let placement = self.choices.pick(&[Placement::Inline, Placement::Trampoline]);
        match self.choices.below(6) {
            0 | 1 => {
                self.instrumentation.place_all(placement);
                self.lines.push(format!("all {placement:?}"));
            }
            2 => {
                let placed = self.instrumentation.place("k", placement);
                placed.expect("there is a kernel k");
                self.lines.push(format!("k {placement:?}"));
            }
            _ => {}
        }
        if self.choices.chance(30) {
            let mut keeping = ValueStorage::ORDER.to_vec();
            while keeping.len() > 1 && self.choices.chance(60) {
                keeping.remove(self.choices.below(keeping.len()));
            }
            self.instrumentation.set_value_storage(&keeping);
            self.lines.push(format!("keeping {keeping:?}"));
        }
    }

    /// Requests a hook at some instructions.
    fn hooks(&mut self) {
        let sites = self.selected();
        let call = self.call();
        let when = self.choices.pick(&[When::Before, When::After]);
        for at in sites {
            if let Some(placed) = self.at(&call, when, at) {
                let PlacedCall { source, function, arguments, results, mask } = placed;
                let inst = self.inst(at).text.clone();
                self.lines.push(format!(
                    "{when:?} {}: {} `{inst}`: {function}({arguments:?}) -> {results:?} {mask:?}",
                    at.0,
                    self.inst(at).pc
                ));
                let source = self.source(source);
                let function = function.to_owned();
                let call = HookCall { source, function, arguments, results, mask };
                self.instrumentation.call(at, when, call);
            }
        }
    }

    fn source(&mut self, name: &'static str) -> SourceIndex {
        if let Some(index) = self.sources.get(name) {
            return *index;
        }
        let source = hook_source("fuzz.c", HOOKS, self.instrumentation);
        let index = self.instrumentation.add_source(source);
        self.sources.insert(name, index);
        index
    }

    fn inst(&self, at: InstIndex) -> &Inst {
        self.instrumentation.program().inst(at).expect("a selected instruction")
    }

    fn selected(&mut self) -> Vec<InstIndex> {
        let choices = &mut self.choices;
        let mut selection = Selection::default();
        match choices.below(8) {
            0 => {
                selection.class = Some(choices.pick(&[
                    Class::Valu,
                    Class::Salu,
                    Class::Vmem,
                    Class::Smem,
                    Class::Lds,
                    Class::Branch,
                    Class::Wait,
                ]));
            }
            1 => selection.space = Some(choices.pick(&[MemorySpace::Global, MemorySpace::Lds])),
            2 => {
                selection.position = choices.pick(&[
                    Position::BlockEntry,
                    Position::BlockExit,
                    Position::KernelEntry,
                    Position::KernelExit,
                ]);
            }
            3 => selection.predicate = Some(|inst| inst.memory().is_some()),
            4 => {
                let one_in = 1 + choices.below(6);
                let first = choices.below(self.sites.len());
                return self.sites.iter().copied().skip(first).step_by(one_in).collect();
            }
            5 => {}
            _ => {
                let count = 1 + choices.below(6);
                return (0..count).map(|_| choices.pick(&self.sites)).collect();
            }
        }
        if choices.chance(20) {
            selection.occurrence = Some(choices.below(8));
        }
        self.instrumentation.select(&selection)
    }

    /// A random hook, with the parts of its call that are equal at all sites.
    fn call(&mut self) -> Call {
        let mask = self.choices.pick(&[Mask::Guest, Mask::Guest, Mask::Whole, Mask::Single]);
        let seed = u64::from(self.choices.word() & 0xffff);
        match self.choices.below(14) {
            0 => Call::Plain("touch", Some(seed), mask),
            1 => Call::Plain("nothing", None, mask),
            2 => Call::Plain("wide", Some(seed), mask),
            3 => Call::Plain("turns", Some(seed), mask),
            4 => Call::Count,
            5 => Call::See(self.register(), mask),
            6..9 => Call::Same(self.register()),
            9 => Call::Pc,
            10 => Call::Exec,
            11 => Call::Kernarg,
            12 => Call::Places,
            _ => Call::Loaded,
        }
    }

    /// A random register or pair.
    fn register(&mut self) -> RegisterRange {
        let choices = &mut self.choices;
        let vgprs = usize::from(self.vgprs);
        let first = match choices.below(12) {
            0..4 => Register::Vgpr(Vgpr(choices.below(vgprs) as u16)),
            4..7 => Register::Sgpr(Sgpr(choices.below(44) as u8)),
            7 => Register::VccLo,
            8 => Register::M0,
            9 => Register::Scc,
            10 => Register::ExecLo,
            _ => {
                let name = format!("a{}", choices.below(usize::from(self.acc_vgprs.max(1))));
                name.parse().expect("a register")
            }
        };
        let is_pair = match first {
            Register::Vgpr(Vgpr(number)) => number.is_multiple_of(2),
            Register::Sgpr(Sgpr(number)) => number.is_multiple_of(2),
            _ => false,
        };
        RegisterRange::new(first, if is_pair && choices.chance(30) { 2 } else { 1 })
    }

    /// The call at an instruction, if it applies there.
    fn at(&self, call: &Call, when: When, at: InstIndex) -> Option<PlacedCall> {
        let data = |symbol: &str| Argument::Data { symbol: symbol.to_owned(), offset: 0 };
        let inst = self.inst(at);
        let (source, function, arguments, results, mask) = match *call {
            Call::Plain(name, seed, mask) => {
                (name, name, seed.into_iter().map(Argument::Constant).collect(), vec![], mask)
            }
            Call::Count => ("count", "count", vec![data("counter")], vec![], Mask::Single),
            Call::See(register, mask) => {
                let first = RegisterRange::new(register.first, 1);
                let name = if first.first.is_per_lane() { "see" } else { "see of the wave" };
                (name, "see", vec![Argument::Register(first)], vec![], mask)
            }
            Call::Same(register) => {
                let is_per_lane = register.first.is_per_lane();
                let (name, function) = match (register.iter().count(), is_per_lane) {
                    (1, true) => ("same", "same"),
                    (1, false) => ("same of the wave", "same"),
                    (_, true) => ("same pair", "same_pair"),
                    (_, false) => ("same pair of the wave", "same_pair"),
                };
                (name, function, vec![Argument::Register(register)], vec![register], Mask::Guest)
            }
            Call::Pc => {
                let arguments = vec![Argument::Pc, Argument::Constant(inst.pc.0)];
                ("check_pc", "check_pc", arguments, vec![], Mask::Guest)
            }
            Call::Exec => ("check_exec", "check_exec", vec![Argument::Exec], vec![], Mask::Guest),
            Call::Kernarg => {
                let arguments = vec![Argument::Kernarg];
                ("check_kernarg", "check_kernarg", arguments, vec![], Mask::Single)
            }
            Call::Places => {
                let arguments = vec![
                    Argument::WorkgroupId(0),
                    Argument::WorkgroupId(1),
                    Argument::WaveInWorkgroup,
                ];
                ("check_places", "check_places", arguments, vec![], Mask::Guest)
            }
            Call::Loaded => {
                let memory = inst.memory()?;
                let destination = *inst.writes.first()?;
                let is_overwritten = inst.reads.iter().any(|read| {
                    read.iter()
                        .any(|register| destination.iter().any(|written| register == written))
                });
                let is_word = inst.operation.name() == "global_load_dword";
                if memory.kind != MemoryKind::Load || !is_word || is_overwritten {
                    return None;
                }
                if when != When::After {
                    return None;
                }
                let arguments = vec![Argument::MemoryAddress, Argument::Register(destination)];
                ("check_loaded", "check_loaded", arguments, vec![], Mask::Guest)
            }
        };
        Some(PlacedCall { source, function, arguments, results, mask })
    }

    /// Removes instructions whose results are dead, and replaces others with themselves.
    fn removals(&mut self) {
        let program = self.instrumentation.program();
        let liveness = Liveness::new(program);
        // The rewriter refuses replacements where a caller's loads may be pending.
        let is_alone = program.functions.len() == 1;
        // With gpr_idx, vector instructions may access other registers than they name.
        let is_indexed = program.instructions.iter().any(|inst| inst.text.contains("gpr_idx"));
        let mut removed = Vec::new();
        let mut replaced = Vec::new();
        for at in self.sites.iter().copied() {
            let inst = program.inst(at).expect("a selected instruction");
            let is_plain = is_plain(inst) && !(is_indexed && inst.class() == Class::Valu);
            let mut written = RegisterSet::EMPTY;
            inst.writes.iter().for_each(|range| written.insert_range(*range));
            let live = liveness.after(at);
            // If the address of a removed instruction is in a register, lockstep would find the address of
            // the next one there.
            let before = at.0.checked_sub(1).and_then(|before| program.inst(InstIndex(before)));
            let has_address = before.is_none_or(|inst| {
                inst.flags.call || inst.ends_wave() || inst.operation.name() == "s_getpc_b64"
            });
            let is_dead = !has_address && written.intersection(live.any()).is_empty();
            if is_plain && is_dead && self.choices.chance(70) {
                removed.push(at);
            } else if is_plain && is_alone && self.choices.chance(5) {
                replaced.push((at, inst.text.clone()));
            }
        }
        for at in removed {
            self.lines.push(format!("remove {}: `{}`", at.0, self.inst(at).text));
            self.instrumentation.remove(at);
        }
        for (at, text) in replaced {
            self.lines.push(format!("replace {}: `{text}`", at.0));
            self.instrumentation.replace(at, &text);
        }
    }
}

/// A hook call at one instruction.
struct PlacedCall {
    source: &'static str,
    function: &'static str,
    arguments: Vec<Argument>,
    results: Vec<RegisterRange>,
    mask: Mask,
}

/// A hook call without its instruction.
enum Call {
    Plain(&'static str, Option<u64>, Mask),
    Count,
    See(RegisterRange, Mask),
    Same(RegisterRange),
    Pc,
    Exec,
    Kernarg,
    Places,
    Loaded,
}

/// Returns `true` if the only effect of an instruction is to write the registers that it names.
fn is_plain(inst: &Inst) -> bool {
    let name = inst.operation.name();
    matches!(inst.class(), Class::Valu | Class::Salu)
        && !inst.writes.iter().any(|range| range.iter().any(is_special))
        && inst.branch_target.is_none()
        && !inst.flags.branch
        && !["v_movrel", "s_getpc", "s_setreg"].iter().any(|prefix| name.starts_with(prefix))
}

/// Returns `true` if a register affects which lanes or registers other instructions access.
fn is_special(register: Register) -> bool {
    matches!(register, Register::ExecLo | Register::ExecHi | Register::M0)
}
