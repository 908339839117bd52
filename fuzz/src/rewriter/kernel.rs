//! Random kernels: valid, terminating programs with branches, loops, lane masks, memory accesses and a
//! call.

use super::frame::{Frame, GRANULE};
use super::operations::{self, Delivery, Pattern};
use super::waits::Waits;
use crate::choices::Choices;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Dispatch, ModuleId};
use flipwave_isa::{AccVgprs, Generation, Isa, Pc};
use flipwave_tests::Machine;
use std::sync::Arc;

/// A kernel `k` and the function `f` that it may call.
pub struct Kernel {
    /// The machine that the kernel is for.
    pub machine: Machine,
    /// Code object of the kernel.
    pub object: CodeObject,
    /// Assembly text of the kernel, followed by that of the function.
    pub text: String,
    /// Number of VGPRs.
    pub vgprs: u16,
    /// Number of AccVGPRs.
    pub acc_vgprs: u16,
    /// `true` if the code activates lanes that partial waves do not have.
    pub needs_full_waves: bool,
}

/// Size of a kernel's buffer in bytes. The kernel's argument is the address of its middle.
pub const BUFFER: u64 = 16 << 10;

/// VGPRs that count the iterations of divergent loops, one per nesting depth: the highest ones.
const COUNTERS: u16 = 4;

impl Kernel {
    /// Generates a kernel of at most about `size` instructions for a machine.
    pub fn new(machine: Machine, size: usize, choices: &mut Choices<'_>) -> Kernel {
        let target = machine.target();
        let isa = Isa::with_wave_size(&target, machine.lanes as u8).expect("an ISA");
        let acc_vgprs = match target.acc_vgprs() {
            AccVgprs::Unified => choices.pick(&[8, 4, 8]),
            _ => 0,
        };
        let vgprs = choices.pick(&[32, 24, 16, 16, 40, 64]);
        let has_function = choices.chance(30);
        let keeps_denormals = choices.chance(80);
        let mut writer = Writer {
            patterns: operations::of(machine, &isa),
            is_wide: machine.lanes == 64,
            pool: vgprs - COUNTERS,
            vgprs,
            acc_vgprs,
            // Raw buffers of words (ISA documents, "Buffer Resource Descriptor").
            buffer_format: match target.generation() {
                Generation::Gfx10 => 0x3101_4000,
                Generation::Gfx11 => 0x3100_4000,
                _ => 0x0002_7000,
            },
            has_plain_cmpx: matches!(target.generation(), Generation::Gfx10 | Generation::Gfx11),
            has_function,
            needs_full_waves: false,
            depth: 0,
            budget: size,
            labels: 0,
            text: String::new(),
            waits: Waits::default(),
            choices,
        };
        writer.kernel();
        let text = std::mem::take(&mut writer.text);
        writer.budget = size / 4;
        let function = if has_function { writer.function() } else { String::new() };
        let needs_full_waves = writer.needs_full_waves;
        let assemble = |text: &str| {
            isa.assemble(text).unwrap_or_else(|error| panic!("{machine}: {error}\n{text}"))
        };
        let mut code = assemble(&text);
        let function_code = if has_function { assemble(&function) } else { Vec::new() };
        let frame = Frame {
            kernel: code.len().next_multiple_of(GRANULE),
            function: function_code.len().next_multiple_of(GRANULE),
            vgprs,
            acc_vgprs,
            keeps_denormals,
        };
        link(&isa, &mut code, frame.kernel);
        let filling = assemble("s_endpgm").try_into().expect("a word");
        let object = frame.filled(machine, [&code, &function_code], filling);
        let text = format!("{text}f:\n{function}");
        Kernel { machine, object, text, vgprs, acc_vgprs, needs_full_waves }
    }

    /// A dispatch of the kernel with two workgroups, the buffer of [`device`](super::device) and an
    /// instruction limit.
    pub fn dispatch(&self, module: ModuleId, buffer: Address, limit: u64) -> Dispatch {
        let workgroup = if self.needs_full_waves { 128 } else { 90 };
        Dispatch {
            module,
            kernel: "k".into(),
            grid: [2 * workgroup, 1, 1],
            workgroup: [workgroup, 1, 1],
            kernarg: [buffer.0 + BUFFER / 2, BUFFER].map(u64::to_le_bytes).concat(),
            dynamic_lds: 0,
            instruction_limit: limit,
            queued: None,
            is_cooperative: false,
        }
    }
}

/// Placeholder literal for the distance to the function.
const DISTANCE: u32 = 0x7fff_0000;

/// Replaces [`DISTANCE`] with the distance to the function, which is at the offset `function`.
fn link(isa: &Isa, code: &mut [u8], function: usize) {
    let mut at = 0;
    while at < code.len() {
        let inst = isa.decode(&code[at..], Pc(at as u64)).expect("assembled code");
        let size = usize::from(inst.size);
        let literal = at + 4..at + 8;
        if size == 8 && code[literal.clone()] == DISTANCE.to_le_bytes() {
            // Relative to the end of s_getpc_b64, which immediately precedes this instruction.
            code[literal].copy_from_slice(&((function - at) as u32).to_le_bytes());
        }
        at += size;
    }
}

struct Writer<'c, 'b> {
    choices: &'c mut Choices<'b>,
    patterns: Arc<Vec<Pattern>>,
    /// `true` if lane masks take two SGPRs.
    is_wide: bool,
    /// VGPRs that instructions may name.
    pool: u16,
    vgprs: u16,
    acc_vgprs: u16,
    /// The last word of a buffer resource.
    buffer_format: u32,
    /// `true` if `v_cmpx` writes only EXEC.
    has_plain_cmpx: bool,
    has_function: bool,
    needs_full_waves: bool,
    /// Nesting depth.
    depth: usize,
    /// Remaining number of statements.
    budget: usize,
    labels: usize,
    text: String,
    waits: Waits,
}

/// SGPRs that instructions may name.
const SGPRS: std::ops::Range<usize> = 8..26;

/// Maximum nesting depth in the kernel, and in the function.
const DEPTH: usize = 2;

impl Writer<'_, '_> {
    fn line(&mut self, line: &str) {
        for wait in self.waits.before(line, self.choices) {
            self.text += &wait;
            self.text.push('\n');
        }
        self.text += line;
        self.text.push('\n');
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn kernel(&mut self) {
        self.line("s_load_dwordx2 s[4:5], s[0:1], 0x0");
        self.waits.add(Delivery::Scalar, &["s[4:5]".to_owned()]);
        // Initialize registers that no kernel finds set but some instructions read.
        self.line("s_cmp_eq_u32 s0, s1");
        self.line("s_mov_b32 m0, 0x400");
        self.line("s_mov_b64 vcc, s[0:1]");
        let format = self.buffer_format;
        self.line("s_mov_b32 s40, s4");
        self.line("s_mov_b32 s41, s5");
        self.line("s_mov_b32 s42, 0x2000");
        self.line(&format!("s_mov_b32 s43, {format:#x}"));
        for register in SGPRS.start..40 {
            let value = self.choices.word();
            self.line(&format!("s_mov_b32 s{register}, {value:#x}"));
        }
        for register in 1..self.vgprs {
            let from = SGPRS.start + self.choices.below(SGPRS.len());
            self.line(&format!("v_xor_b32 v{register}, s{from}, v0"));
        }
        for register in 0..self.acc_vgprs {
            self.line(&format!("v_accvgpr_write_b32 a{register}, v{register}"));
        }
        self.statements(usize::MAX);
        if self.choices.chance(60) {
            self.epilogue();
        }
        self.line("s_endpgm");
    }

    /// Makes the result depend on the values of most registers.
    fn epilogue(&mut self) {
        let offset = self.pool - 1;
        for register in 1..offset {
            if self.choices.chance(90) {
                self.line(&format!("v_xor_b32 v0, v0, v{register}"));
            }
        }
        for register in SGPRS {
            if self.choices.chance(90) {
                self.line(&format!("v_xor_b32 v0, s{register}, v0"));
            }
        }
        self.line(&format!("v_and_b32 v{offset}, 0xffc, v{offset}"));
        self.line(&format!("global_store_dword v{offset}, v0, s[4:5]"));
    }

    fn function(&mut self) -> String {
        self.waits = Waits::default();
        self.has_function = false;
        self.depth = DEPTH;
        self.statements(usize::MAX);
        self.flush();
        self.line("s_setpc_b64 s[30:31]");
        std::mem::take(&mut self.text)
    }

    /// Writes up to `most` statements.
    fn statements(&mut self, most: usize) {
        for _ in 0..most {
            if self.budget == 0 || self.choices.is_over() {
                break;
            }
            self.budget -= 1;
            self.statement();
        }
    }

    fn statement(&mut self) {
        let is_outermost = self.depth.is_multiple_of(DEPTH) && self.labels < 1000;
        let may_nest = is_outermost || self.depth % DEPTH == 1;
        match self.choices.below(40) {
            // At the maximum depth, nested constructs become operations.
            39 | 38 if may_nest => self.uniform_if(),
            37 | 36 if may_nest => self.divergent_if(),
            35 if may_nest => self.uniform_loop(),
            34 if may_nest => self.divergent_loop(),
            33 | 32 if may_nest => self.masked(),
            31 if self.depth == 0 => self.line("s_barrier"),
            30 if self.has_function => self.call(),
            29 if self.depth < DEPTH => self.early_end(),
            28 => self.flush(),
            _ => self.operation(),
        }
    }

    fn nested(&mut self) {
        self.depth += 1;
        let most = 1 + self.choices.below(8);
        // Depths of the function follow those of the kernel.
        let is_deepest = self.depth.is_multiple_of(DEPTH);
        for _ in 0..most {
            if self.budget == 0 || self.choices.is_over() {
                break;
            }
            self.budget -= 1;
            if is_deepest { self.operation() } else { self.statement() }
        }
        self.depth -= 1;
    }

    fn flush(&mut self) {
        for wait in self.waits.all() {
            self.text += &wait;
            self.text.push('\n');
        }
    }

    fn condition(&mut self) -> &'static str {
        if self.choices.chance(70) {
            let (one, two) = (self.sgpr(), self.choices.below(64));
            let compare = self.choices.pick(&["s_cmp_lt_u32", "s_cmp_gt_i32", "s_bitcmp1_b32"]);
            self.line(&format!("{compare} s{one}, {two}"));
        }
        self.choices.pick(&["scc1", "scc0", "vccz", "vccnz", "execz", "execnz"])
    }

    fn uniform_if(&mut self) {
        let (condition, behind) = (self.condition(), self.label());
        self.line(&format!("s_cbranch_{condition} {behind}"));
        let before = self.waits.clone();
        self.nested();
        if self.choices.chance(40) {
            let end = self.label();
            self.line(&format!("s_branch {end}"));
            self.line(&format!("{behind}:"));
            let one = std::mem::replace(&mut self.waits, before);
            self.nested();
            self.waits.join(one);
            self.line(&format!("{end}:"));
        } else {
            self.waits.join(before);
            self.line(&format!("{behind}:"));
        }
    }

    fn early_end(&mut self) {
        let (condition, behind) = (self.condition(), self.label());
        self.line(&format!("s_cbranch_{condition} {behind}"));
        self.line("s_endpgm");
        self.line(&format!("{behind}:"));
    }

    fn uniform_loop(&mut self) {
        let (counter, head) = (26 + self.depth, self.label());
        let turns = 1 + self.choices.below(3);
        self.line(&format!("s_mov_b32 s{counter}, {turns}"));
        self.line(&format!("{head}:"));
        self.waits.blur();
        self.nested();
        self.flush();
        self.line(&format!("s_sub_u32 s{counter}, s{counter}, 1"));
        self.line(&format!("s_cmp_lg_u32 s{counter}, 0"));
        self.line(&format!("s_cbranch_scc1 {head}"));
    }

    /// A loop with a different number of iterations in each lane.
    fn divergent_loop(&mut self) {
        let (save, head) = (self.save(), self.label());
        let counter = self.vgprs - 1 - self.depth as u16;
        let from = self.vgpr();
        let (exec, mov, and) = self.mask_names("exec", "s_mov", "s_and");
        let condition = self.mask_names("vcc", "", "").0;
        self.line(&format!("v_and_b32 v{counter}, 3, v{from}"));
        self.line(&format!("{mov} {save}, {exec}"));
        self.line(&format!("{head}:"));
        self.waits.blur();
        self.nested();
        self.flush();
        self.line(&format!("v_lshrrev_b32 v{counter}, 1, v{counter}"));
        self.line(&format!("v_cmp_lt_i32 {condition}, 0, v{counter}"));
        self.line(&format!("{and} {exec}, {exec}, {condition}"));
        self.line(&format!("s_cbranch_execnz {head}"));
        self.line(&format!("{mov} {exec}, {save}"));
    }

    fn divergent_if(&mut self) {
        let (save, end) = (self.save(), self.label());
        let (one, two) = (self.vgpr(), self.vgpr());
        let (exec, saveexec, xor) = self.mask_names("exec", "s_and_saveexec", "s_xor");
        let (condition, _, or) = self.mask_names("vcc", "", "s_or");
        let compare = self.choices.pick(&["v_cmp_gt_u32", "v_cmp_lt_i32", "v_cmp_lg_f32"]);
        self.line(&format!("{compare} {condition}, v{one}, v{two}"));
        self.line(&format!("{saveexec} {save}, {condition}"));
        let is_jumped_over = self.choices.chance(60);
        let before = self.waits.clone();
        if is_jumped_over {
            self.line(&format!("s_cbranch_execz {end}"));
        }
        self.nested();
        if is_jumped_over {
            self.waits.join(before);
            self.line(&format!("{end}:"));
        }
        if self.choices.chance(30) {
            self.line(&format!("{xor} {exec}, {exec}, {save}"));
            self.nested();
        }
        self.line(&format!("{or} {exec}, {exec}, {save}"));
    }

    /// Statements with a changed EXEC.
    fn masked(&mut self) {
        let save = self.save();
        let (exec, mov, not) = self.mask_names("exec", "s_mov", "s_not");
        let wqm = self.mask_names("", "s_wqm", "").1;
        self.line(&format!("{mov} {save}, {exec}"));
        let (word, sgpr, vgpr) = (self.choices.word(), self.sgpr(), self.vgpr());
        let way = self.choices.below(7);
        self.needs_full_waves |= way < 5;
        match way {
            0 => self.line(&format!("{mov} {exec}, -1")),
            1 => self.line(&format!("{mov} {exec}, 0")),
            2 => self.line(&format!("{not} {exec}, {exec}")),
            3 => self.line(&format!("{wqm} {exec}, {exec}")),
            4 => self.line(&format!("s_mov_b32 exec_lo, {word:#x}")),
            5 if self.has_plain_cmpx => self.line(&format!("v_cmpx_gt_u32 s{sgpr}, v{vgpr}")),
            5 => self.line(&format!("v_cmpx_gt_u32 vcc, s{sgpr}, v{vgpr}")),
            _ => self.line(&format!("s_and_b32 exec_lo, exec_lo, s{sgpr}")),
        }
        self.nested();
        self.line(&format!("{mov} {exec}, {save}"));
    }

    fn call(&mut self) {
        self.flush();
        self.line("s_getpc_b64 s[6:7]");
        self.line(&format!("s_add_u32 s6, s6, {DISTANCE:#x}"));
        self.line("s_addc_u32 s7, s7, 0");
        // Clear SCC: the carry depends on the address of the code.
        self.line("s_cmp_eq_u32 s0, s1");
        self.line("s_swappc_b64 s[30:31], s[6:7]");
    }

    /// Names of a lane mask register and of two operations on lane masks, for the wave size.
    fn mask_names(&self, register: &str, one: &str, two: &str) -> (String, String, String) {
        if self.is_wide {
            (register.to_owned(), format!("{one}_b64"), format!("{two}_b64"))
        } else {
            (format!("{register}_lo"), format!("{one}_b32"), format!("{two}_b32"))
        }
    }

    /// Name of the register that saves EXEC at this depth.
    fn save(&self) -> String {
        let first = 32 + 2 * self.depth;
        if self.is_wide { format!("s[{first}:{}]", first + 1) } else { format!("s{first}") }
    }

    fn vgpr(&mut self) -> u16 {
        self.choices.below(usize::from(self.pool)) as u16
    }

    fn sgpr(&mut self) -> usize {
        SGPRS.start + self.choices.below(SGPRS.len())
    }

    fn operation(&mut self) {
        let patterns = Arc::clone(&self.patterns);
        let pattern = patterns[self.choices.below(patterns.len())];
        let is_group = pattern.text.contains('\n') && pattern.delivery == Delivery::Vector;
        let mut used: Vec<u16> = Vec::new();
        let mut delivered: Vec<String> = Vec::new();
        let mut text = String::new();
        let mut rest = pattern.text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (placeholder, behind) = behind.split_once('}').expect("a placeholder");
            text += before;
            let mut filled = self.filled(placeholder);
            // Registers with pending loads must not be used within the group.
            while is_group && ["d", "dd", "dq", "o"].contains(&placeholder) {
                let names = super::waits::named(&filled);
                if names.iter().all(|(_, name)| !used.contains(name)) {
                    used.extend(names.iter().map(|(_, name)| *name));
                    break;
                }
                filled = self.next(&filled);
            }
            match placeholder {
                "o" => self.line(&format!("v_and_b32 {filled}, 0xffc, {filled}")),
                "l" => self.line(&format!("v_and_b32 {filled}, 0x1fc, {filled}")),
                "d" | "dd" | "dq" | "s" | "ss" | "sq" => delivered.push(filled.clone()),
                _ => {}
            }
            text += &filled;
            rest = behind;
        }
        text += rest;
        self.line(&text);
        self.waits.add(pattern.delivery, &delivered);
    }

    /// The registers after those in `text`, wrapping around at the end of the pool.
    fn next(&self, text: &str) -> String {
        let names = super::waits::named(text);
        let count = names.len() as u16;
        let first = names[0].1 + count;
        let first = if first + count > self.pool { 0 } else { first };
        if count == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + count - 1) }
    }

    /// Random operand for a placeholder of a [`Pattern`].
    fn filled(&mut self, placeholder: &str) -> String {
        let range = |file: &str, first: usize, count: usize| match count {
            1 => format!("{file}{first}"),
            _ => format!("{file}[{first}:{}]", first + count - 1),
        };
        let sgprs = |writer: &mut Self, count: usize| {
            let first = SGPRS.start + writer.choices.below(SGPRS.len() / count) * count;
            range("s", first, count)
        };
        let vgprs = |writer: &mut Self, count: usize| {
            let first = writer.choices.below(usize::from(writer.pool) / count) * count;
            range("v", first, count)
        };
        let small = |writer: &mut Self| writer.choices.below(32).to_string();
        match placeholder {
            "d" | "v" | "o" | "l" => vgprs(self, 1),
            "dd" | "vv" => vgprs(self, 2),
            "dq" | "vq" => vgprs(self, 4),
            "x" => match self.choices.below(4) {
                0 | 1 => vgprs(self, 1),
                2 => sgprs(self, 1),
                _ => small(self),
            },
            "s" => sgprs(self, 1),
            "ss" => sgprs(self, 2),
            "sq" => sgprs(self, 4),
            "t" if self.choices.chance(80) => sgprs(self, 1),
            "tt" if self.choices.chance(80) => sgprs(self, 2),
            "t" | "tt" | "e" => small(self),
            "a" => format!("a{}", self.choices.below(self.acc_vgprs.max(1).into())),
            "aq" => "a[0:3]".to_owned(),
            "m" | "n" => sgprs(self, if self.is_wide { 2 } else { 1 }),
            "c" => if self.is_wide { "vcc" } else { "vcc_lo" }.to_owned(),
            "b" => "s[4:5]".to_owned(),
            "r" => "s[40:43]".to_owned(),
            "i" => format!("{:#x}", 4 * self.choices.below(32)),
            "k" => format!("{:#x}", self.choices.word()),
            _ => panic!("a pattern has the unknown placeholder `{placeholder}`"),
        }
    }
}
