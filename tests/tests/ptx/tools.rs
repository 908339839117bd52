//! Tools on PTX: their tables are those of an observer in the simulated GPU, on programs of the suite.

use super::campaign;
use crate::suite::suite_programs;
use flipwave_arch::{Instruction, Lane, LaneMask, RegisterId};
use flipwave_campaigns::{Campaign, measure, prepare};
use flipwave_depth::cases;
use flipwave_device::{Completion, WaveId};
use flipwave_injector::Workload;
use flipwave_machine::{Executed, Machine, Observer, Progress, Watch, WaveState};
use flipwave_ptx::{Argument, CallGraph, Code, ControlFlow, Inst, Symbol};
use flipwave_ptx_sim::PtxGpu;
use flipwave_tests::{Finished, flipwave};
use flipwave_tools::{Options, ToolFile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An access to memory by the lanes of a wave.
struct Access {
    pc: u64,
    wave: WaveId,
    /// Address by lane.
    addresses: Vec<(Lane, u64)>,
    bytes: u64,
    is_global: bool,
}

/// Counts of a dispatch.
#[derive(Default)]
struct Counts {
    /// Executions of each instruction, by waves and by lanes.
    executions: BTreeMap<u64, (u64, u64)>,
    accesses: Vec<Access>,
    /// Executions of each conditional branch, and those that split the lanes.
    branches: BTreeMap<u64, (u64, u64)>,
    /// Misses the first execution of this instruction: negative control.
    blind: Option<u64>,
}

impl Counts {
    fn misses(&self, pc: u64) -> bool {
        self.blind == Some(pc)
    }
}

/// The lanes of a wave that execute an instruction.
fn executing(inst: &Inst, state: &dyn WaveState) -> LaneMask {
    let active = state.active();
    let Some(guard) = inst.guard else { return active };
    let is_set = |lane: &Lane| state.read(guard.register, *lane) == Some(1);
    let lanes = active.lanes().filter(|lane| is_set(lane) != guard.is_negated);
    LaneMask(lanes.map(|lane| 1 << lane.0).sum())
}

/// Bytes of an access, from the name of the operation: `ld.global.v4.f32`.
fn bytes(name: &str) -> u64 {
    let parts = || name.split('.');
    let mut bits = parts().filter_map(|part| {
        let (kind, digits) = part.split_at_checked(1)?;
        digits.parse::<u64>().ok().filter(|_| "busf".contains(kind))
    });
    let elements = parts().find_map(|part| part.strip_prefix('v')?.parse().ok());
    bits.next_back().expect("a type") / 8 * elements.unwrap_or(1)
}

struct Watcher<'a> {
    code: &'a Code,
    gpu: &'a PtxGpu,
    module: flipwave_device::ModuleId,
    counts: Counts,
}

impl Watcher<'_> {
    fn base(&self, base: &Argument, lane: Lane, state: &dyn WaveState) -> u64 {
        let word = |register: RegisterId| u64::from(state.read(register, lane).expect("a value"));
        match base {
            Argument::Register(register) => {
                let high = (register.words() == 2).then(|| register.first.offset(1)).flatten();
                word(register.first) | high.map_or(0, word) << 32
            }
            Argument::Symbol(Symbol::Variable(number), addend) => {
                let variable = &self.code.variables[*number];
                let start = match self.gpu.variable(self.module, &variable.name) {
                    Some((address, _)) => address.0,
                    None => self.shared(*number),
                };
                start.wrapping_add_signed(*addend)
            }
            other => panic!("no address: {other:?}"),
        }
    }

    /// Address of a variable in shared memory: they follow each other.
    fn shared(&self, number: usize) -> u64 {
        let mut end = 0u64;
        let all = self.code.variables[..=number].iter();
        for variable in all.filter(|found| found.space == flipwave_ptx::Space::Shared) {
            end = end.next_multiple_of(variable.alignment) + variable.bytes;
        }
        end - self.code.variables[number].bytes
    }
}

impl Observer for Watcher<'_> {
    fn watches(&mut self, _: WaveId) -> bool {
        true
    }

    fn before(&mut self, inst: &dyn Instruction, wave: WaveId, state: &mut dyn WaveState) {
        let inst: &Inst = inst.as_any().downcast_ref().expect("PTX");
        let (pc, name) = (inst.pc.0, inst.form.name());
        if self.counts.misses(pc) {
            return;
        }
        let lanes = executing(inst, state);
        let opcode = inst.form.opcode();
        if opcode == "bra" && inst.guard.is_some() {
            let (executions, divergent) = self.counts.branches.entry(pc).or_default();
            *executions += 1;
            *divergent += u64::from(lanes != LaneMask(0) && lanes != state.active());
        }
        if matches!(opcode, "ld" | "st" | "atom" | "red") && !name.contains(".param") {
            let memory = inst.operands.iter().find_map(|operand| match operand {
                Argument::Memory(address) => Some(address),
                _ => None,
            });
            let memory = memory.expect("an address");
            let address =
                |lane| self.base(&memory.base, lane, state).wrapping_add_signed(memory.offset);
            let addresses: Vec<_> = lanes.lanes().map(|lane| (lane, address(lane))).collect();
            let is_global = !name.contains(".shared") && !name.contains(".local");
            if !addresses.is_empty() {
                let access = Access { pc, wave, addresses, bytes: bytes(name), is_global };
                self.counts.accesses.push(access);
            }
        }
    }

    fn after(&mut self, executed: &Executed<'_>, _: &mut dyn WaveState) -> Watch {
        let pc = executed.inst.pc().0;
        if self.counts.misses(pc) {
            self.counts.blind = None;
            return Watch::On;
        }
        let (waves, lanes) = self.counts.executions.entry(pc).or_default();
        *waves += 1;
        *lanes += u64::from(executed.lanes.count());
        Watch::On
    }
}

/// A dispatch that was observed.
struct Observed {
    kernel: String,
    code: Code,
    counts: Counts,
}

/// Runs a workload with the observer. `blind` is an instruction whose first execution it misses.
fn observe(workload: &Workload, blind: Option<u64>) -> Vec<Observed> {
    let mut gpu: PtxGpu = workload.device.downcast::<PtxGpu>().expect("a GPU").clone();
    workload.program.changes.apply(0, &mut gpu).expect("changes");
    let mut all = Vec::new();
    for (index, dispatch) in workload.program.dispatches.iter().enumerate() {
        let copy = gpu.clone();
        let code = (*copy.program(dispatch.module).expect("a module").code).clone();
        let counts = Counts { blind, ..Counts::default() };
        let mut watcher = Watcher { code: &code, gpu: &copy, module: dispatch.module, counts };
        let mut execution = gpu.begin(dispatch).expect("begins");
        let end = gpu.advance(&mut execution, &mut watcher, u64::MAX).expect("runs");
        assert!(matches!(end, Progress::Ended(Completion::Completed(_))));
        let counts = watcher.counts;
        workload.program.changes.apply(index + 1, &mut gpu).expect("changes");
        all.push(Observed { kernel: dispatch.kernel.clone(), code, counts });
    }
    all
}

impl Observed {
    /// Numbers of the instructions that the kernel may reach.
    fn instructions(&self) -> Vec<usize> {
        let functions = &self.code.functions;
        let kernel =
            functions.iter().position(|found| *found.name == *self.kernel).expect("a kernel");
        let reached = CallGraph::of(&self.code).reachable(kernel);
        let all = 0..self.code.instructions.len();
        all.filter(|at| reached.contains(&self.code.instructions[*at].function)).collect()
    }

    fn location(&self, pc: u64) -> String {
        let inst = self.code.at(flipwave_arch::Pc(pc)).expect("an instruction");
        format!("{},{pc:#x},{}", self.code.functions[inst.function].name, inst.text())
    }

    fn executions(&self, pc: u64) -> (u64, u64) {
        self.counts.executions.get(&pc).copied().unwrap_or_default()
    }

    /// The rows of a tool.
    fn table(&self, tool: &str) -> Vec<String> {
        let pcs = || self.instructions().into_iter().map(|at| self.code.instructions[at].pc.0);
        match tool {
            "instruction-count" => {
                pcs().map(|pc| format!("{},{}", self.location(pc), self.executions(pc).0)).collect()
            }
            "opcode-histogram" => {
                let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
                for (pc, (waves, _)) in &self.counts.executions {
                    let inst = self.code.at(flipwave_arch::Pc(*pc)).expect("an instruction");
                    *counts.entry(inst.form.name()).or_default() += waves;
                }
                counts.into_iter().map(|(name, count)| format!("{name},{count}")).collect()
            }
            "thread-count" => self.thread_counts(),
            "memory-trace" => self.trace(),
            "address-divergence" => pcs().filter_map(|pc| self.divergence(pc)).collect(),
            "branch-divergence" => {
                let is_branch = |pc: &u64| {
                    let inst = self.code.at(flipwave_arch::Pc(*pc)).expect("an instruction");
                    inst.form.opcode() == "bra" && inst.guard.is_some()
                };
                let row = |pc: u64| {
                    let (executions, divergent) =
                        self.counts.branches.get(&pc).copied().unwrap_or_default();
                    format!("{},{executions},{divergent}", self.location(pc))
                };
                pcs().filter(is_branch).map(row).collect()
            }
            other => panic!("{other}"),
        }
    }

    fn thread_counts(&self) -> Vec<String> {
        let mut rows: Vec<(String, u64, u64)> = Vec::new();
        for function in &self.code.functions {
            let starts: BTreeSet<usize> = ControlFlow::of(&self.code, function)
                .blocks
                .iter()
                .map(|block| block.instructions.start)
                .collect();
            for at in function.instructions.clone() {
                if !self.instructions().contains(&at) {
                    continue;
                }
                let after_call = at > function.instructions.start
                    && self.code.instructions[at - 1].form.opcode() == "call";
                let inst = &self.code.instructions[at];
                if starts.contains(&at) || after_call {
                    rows.push((format!("{},{}", function.name, inst.pc), 0, 0));
                }
                let (waves, lanes) = self.executions(inst.pc.0);
                let row = rows.last_mut().expect("a block");
                (row.1, row.2) = (row.1 + waves, row.2 + lanes);
            }
        }
        rows.into_iter().map(|(key, waves, lanes)| format!("{key},{waves},{lanes}")).collect()
    }

    fn trace(&self) -> Vec<String> {
        let rows = self.counts.accesses.iter().flat_map(|access| {
            let WaveId { workgroup: [x, y, z], wave } = access.wave;
            access.addresses.iter().map(move |(lane, address)| {
                let (location, bytes) = (self.location(access.pc), access.bytes);
                format!("{location},{x},{y},{z},{wave},{},{address},{bytes}", lane.0)
            })
        });
        rows.collect()
    }

    fn divergence(&self, pc: u64) -> Option<String> {
        let inst = self.code.at(flipwave_arch::Pc(pc)).expect("an instruction");
        let name = inst.form.name();
        let is_access = matches!(inst.form.opcode(), "ld" | "st" | "atom" | "red");
        if !is_access
            || [".param", ".shared", ".local", ".const"].iter().any(|space| name.contains(space))
        {
            return None;
        }
        let mut counts = [0usize; 3];
        for access in
            self.counts.accesses.iter().filter(|access| access.pc == pc && access.is_global)
        {
            let lines = |size: u64| {
                let touched = access.addresses.iter();
                let touched =
                    touched.flat_map(|(_, at)| [at / size, (at + access.bytes - 1) / size]);
                touched.collect::<BTreeSet<u64>>().len()
            };
            counts = [counts[0] + 1, counts[1] + lines(64), counts[2] + lines(128)];
        }
        Some(format!("{},{},{},{}", self.location(pc), counts[0], counts[1], counts[2]))
    }
}

/// The rows of a tool with hooks, by dispatch.
fn hooked(campaign: &Campaign, file: &ToolFile, options: &Options) -> Vec<Vec<String>> {
    let measurement = measure(campaign, file, options).unwrap_or_else(|error| panic!("{error}"));
    let tables = measurement.tables.into_iter().map(|table| {
        assert!(table.not_counted.is_empty() && table.lost == 0);
        let row = |row: Vec<flipwave_tools::Cell>| {
            row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        table.rows.into_iter().map(row).collect()
    });
    tables.collect()
}

const TOOLS: [&str; 6] = [
    "instruction-count",
    "opcode-histogram",
    "thread-count",
    "memory-trace",
    "address-divergence",
    "branch-divergence",
];

/// Sorts rows whose order is not that of the instructions. Traces list waves in the order of their execution, which
/// hooks change.
fn in_order(tool: &str, mut rows: Vec<String>) -> Vec<String> {
    if matches!(tool, "memory-trace" | "opcode-histogram") {
        rows.sort();
    }
    rows
}

fn expected(observed: &[Observed], tool: &str) -> Vec<Vec<String>> {
    observed.iter().map(|dispatch| in_order(tool, dispatch.table(tool))).collect()
}

#[test]
fn tables_of_tools_on_ptx_are_those_of_an_observer() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, name) in cases(suite_programs(), 5) {
        let campaign = campaign(folder.path(), &file, |text| text);
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{name}: {error}"));
        let observed = observe(&prepared.workload, None);
        for tool in TOOLS {
            let shipped = ToolFile::shipped(tool).expect("a tool");
            let found = hooked(&campaign, &shipped, &Options::default());
            let found: Vec<_> = found.into_iter().map(|rows| in_order(tool, rows)).collect();
            assert_eq!(found.len(), observed.len(), "{name} {tool}");
            for (found, expected) in found.iter().zip(expected(&observed, tool)) {
                let different =
                    found.iter().zip(&expected).find(|(found, expected)| found != expected);
                assert!(*found == expected, "{name} {tool}: {different:#?}");
            }
        }
        // With a counter at each instruction, and with a ring that the host empties while the kernel runs.
        let each =
            ToolFile::shipped("instruction-count").expect("a tool").with("per", "instruction");
        let found = hooked(&campaign, &each, &Options::default());
        assert!(found == expected(&observed, "instruction-count"), "{name}");
        let trace = ToolFile::shipped("memory-trace").expect("a tool");
        let small = Options { records: 256, ..Options::default() };
        let found = hooked(&campaign, &trace, &small).into_iter();
        let found: Vec<_> = found.map(|rows| in_order("memory-trace", rows)).collect();
        assert!(found == expected(&observed, "memory-trace"), "{name}");
    }
}

/// Negative control: an observer that misses one execution of one instruction disagrees.
#[test]
fn missing_executions_on_ptx_are_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = suite_programs().into_iter().find(|(_, name)| *name == "bfs").expect("bfs");
    let campaign = campaign(folder.path(), &file, |text| text);
    let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
    let complete = observe(&prepared.workload, None);
    let pc_of = |wanted: &dyn Fn(&Inst) -> bool| {
        let code = &complete[0].code;
        let found = complete[0].instructions().into_iter().map(|at| &code.instructions[at]);
        found.into_iter().find(|inst| wanted(inst)).map(|inst| inst.pc.0).expect("an instruction")
    };
    let load = pc_of(&|inst| inst.form.name().starts_with("ld.global"));
    let branch = pc_of(&|inst| inst.form.opcode() == "bra" && inst.guard.is_some());
    for tool in TOOLS {
        let blind = if tool == "branch-divergence" { branch } else { load };
        let shipped = ToolFile::shipped(tool).expect("a tool");
        let found = hooked(&campaign, &shipped, &Options::default()).into_iter();
        let found: Vec<_> = found.map(|rows| in_order(tool, rows)).collect();
        assert!(found == expected(&complete, tool), "{tool}");
        assert!(found != expected(&observe(&prepared.workload, Some(blind)), tool), "{tool}");
    }
}

/// Changes what stores to global memory store, and then records it.
const STORED: &str = r#"#include <flipwave.h>
FLIPWAVE_PARAMETER(added, 0)
struct value { uint32_t bits; };
FLIPWAVE_STREAM(values, struct value)
uint32_t change(uint32_t value) { return value + added; }
void record(float value)
{
    struct value record;
    __builtin_memcpy(&record.bits, &value, 4);
    flipwave_append(&values, record);
}
void flipwave_instrument(const flipwave_inst *inst)
{
    if (!flipwave_matches(inst->opcode, "st.global.*"))
        return;
    flipwave_insert_call(inst, "change", FLIPWAVE_BEFORE);
    flipwave_arg_operand(1);
    flipwave_result_operand(1);
    flipwave_insert_call(inst, "record", FLIPWAVE_BEFORE);
    flipwave_arg_operand(1);
}
"#;

/// The values that hooks see are those of the outputs, and hooks change values.
#[test]
fn hooks_of_tools_on_ptx_read_and_write_operands() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, _) = suite_programs().into_iter().find(|(_, name)| *name == "mxm").expect("mxm");
    let campaign = campaign(folder.path(), &file, |text| text);
    let golden = prepare(&campaign).expect("a program").workload.golden().expect("runs");
    let bytes = golden.outputs[0].bytes();
    let (words, _) = bytes.as_chunks();
    let outputs: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let tool = folder.path().join("stored.c");
    std::fs::write(&tool, STORED).expect("written");
    let tool = ToolFile::read(&tool).expect("a tool");
    for added in [0, 1] {
        let file = tool.clone().with("added", &added.to_string());
        let mut found = hooked(&campaign, &file, &Options::default()).concat();
        let mut expected: Vec<String> =
            outputs.iter().map(|word| word.wrapping_add(added).to_string()).collect();
        found.sort();
        expected.sort();
        assert!(found == expected, "{added}");
    }
}

/// Runs a tool of a user on a program of the suite for PTX.
fn run(folder: &Path, body: &str, options: &[&str]) -> Finished {
    let text = format!(
        "#include <flipwave.h>\nstruct counts {{ uint64_t executions; }};\n\
         FLIPWAVE_TABLE(counts, struct counts, \"function\")\n{body}\n"
    );
    std::fs::write(folder.join("mine.c"), text).expect("written");
    let (file, _) = suite_programs().into_iter().find(|(_, name)| *name == "mxm").expect("mxm");
    let file = file.to_str().expect("text");
    let line = [&["tool", "mine.c", file, "--target", "sm_80"], options].concat();
    flipwave(folder, &line, &[])
}

#[test]
fn what_ptx_does_not_have_is_refused_with_the_line_of_the_tool() {
    let folder = tempfile::tempdir().expect("a folder");
    let hook = "void hook(uint64_t value) { flipwave_count(&counts.rows[0].executions, value); }";
    let instrument = |parts: &str| {
        format!(
            "{hook}\nvoid flipwave_instrument(const flipwave_inst *inst)\n{{\nflipwave_insert_call(inst, \
             \"hook\", FLIPWAVE_BEFORE);\n{parts}\n}}"
        )
    };
    for (parts, words) in [
        ("flipwave_arg_agpr(0, 1);", ["mine.c:7:", "PTX has no AccVGPRs"]),
        ("flipwave_arg_sgpr(0, 1);", ["mine.c:7:", "PTX has no SGPRs"]),
        ("flipwave_arg_vcc();", ["mine.c:7:", "PTX has no VCC"]),
        ("flipwave_arg_exec(); flipwave_result_exec();", ["mine.c:7:", "PTX has no EXEC"]),
        ("flipwave_arg_exec(); flipwave_all_lanes();", ["mine.c:7:", "flipwave_all_lanes"]),
        ("flipwave_arg_kernel_arguments();", ["mine.c:7:", "kernel's arguments"]),
        ("flipwave_arg_address();", ["mine.c:7:", "accesses no memory"]),
        ("flipwave_arg_operand(9);", ["mine.c:7:", "no operand 9"]),
        ("", ["mine.c:7:", "1 parameters, the call has 0 arguments"]),
    ] {
        run(folder.path(), &instrument(parts), &[]).expect_refused(&words);
    }
    let reads = hook.replace("value);", "flipwave_read_vgpr(0));");
    let text = instrument("flipwave_arg_exec();").replace(hook, &reads);
    run(folder.path(), &text, &[])
        .expect_refused(&["mine.c:4:", "hooks in PTX get values of registers"]);
    let text = instrument("flipwave_arg_exec();");
    let refused = run(folder.path(), &text, &["--placement", "inline"]);
    refused.expect_refused(&["`--placement` is available for AMD GPUs only"]);
}

/// Lanes do not continue after branches and returns.
#[test]
fn instructions_of_ptx_without_hooks_are_not_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = |hook: &str| {
        format!(
            "void hook(struct counts *row) {{ {hook}; }}\n\
             void flipwave_instrument(const flipwave_inst *inst)\n{{\n\
             uint32_t row = flipwave_new_row(&counts);\n\
             flipwave_insert_call(inst, \"hook\", FLIPWAVE_AFTER);\nflipwave_one_lane();\n\
             flipwave_arg_row(&counts, row);\nflipwave_show(&counts, inst, row, inst->opcode);\n}}"
        )
    };
    let finished = run(folder.path(), &body("flipwave_count(&row->executions, 1)"), &[]);
    assert_eq!(finished.code, Some(1), "{finished:#?}");
    assert!(finished.stderr.contains("lanes do not continue after it"), "{}", finished.stderr);
    let uncounted = finished.stdout.lines().filter(|line| line.ends_with(",not counted"));
    let uncounted: Vec<&str> = uncounted.collect();
    let leaving = ["ret", "bra", "bra.uni"].map(|name| format!("0,multiply,{name},not counted"));
    assert_eq!(uncounted, leaving);
    let failed = run(folder.path(), &body("*(volatile int *)8 = 1"), &[]);
    failed.expect_refused(&["a hook of mine.c failed: memory violation: write to 0x8"]);
}
