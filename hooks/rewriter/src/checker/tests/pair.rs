//! Original and new code in one text of assembly: lines with a `+` are only in the new code, and lines
//! with a `-` only in the original.

use crate::checker::{CheckRule, Claims, Finding, Inserted, Proof, check};
use crate::dataflow::Live;
use crate::flow::Disassembly;
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Inst, Isa, Pc, Register, RegisterRange, RegisterSet};
use std::process::Command;

/// A pair of original and new code, and the inputs of its check.
pub struct Pair {
    target: &'static str,
    text: String,
    live: RegisterSet,
    changes: RegisterSet,
    old_directives: String,
    new_directives: String,
    data: &'static str,
    has_64_lanes: bool,
}

/// Parses names of registers.
pub fn set(names: &str) -> RegisterSet {
    let one = |name: &str| -> Vec<Register> {
        let pair = |low: Register| RegisterRange::new(low, 2).iter().collect();
        match name {
            "vcc" => pair(Register::VccLo),
            "exec" => pair(Register::ExecLo),
            _ => vec![name.parse().unwrap()],
        }
    };
    names.split_whitespace().flat_map(one).collect()
}

impl Pair {
    /// A pair for gfx90a. v0, v1, s0 to s3, a0, SCC, VCC, M0, MODE and EXEC are live everywhere.
    pub fn new(text: &str) -> Pair {
        Pair::for_target("gfx90a", text)
    }

    /// A pair for another target.
    pub fn for_target(target: &'static str, text: &str) -> Pair {
        Pair {
            target,
            text: text.to_owned(),
            live: set("v0 v1 a0 s0 s1 s2 s3 scc vcc m0 mode exec"),
            changes: RegisterSet::EMPTY,
            old_directives: String::new(),
            new_directives: String::new(),
            data: "",
            has_64_lanes: false,
        }
    }

    /// Selects waves of 64 lanes on a target whose default is 32.
    pub fn with_64_lanes(mut self) -> Pair {
        self.has_64_lanes = true;
        self.old_directives = ".amdhsa_wavefront_size32 0".to_owned();
        self.new_directives = self.old_directives.clone();
        self
    }

    /// Sets the registers that all inserted code was requested to change.
    pub fn changes(mut self, names: &str) -> Pair {
        self.changes = set(names);
        self
    }

    /// Sets the registers that are live, in all lanes and before all instructions.
    pub fn live(mut self, names: &str) -> Pair {
        self.live = set(names);
        self
    }

    /// Sets directives of the new kernel's descriptor.
    pub fn descriptor(mut self, directives: &str) -> Pair {
        self.new_directives = directives.to_owned();
        self
    }

    /// Sets directives of the original kernel's descriptor.
    pub fn old_descriptor(mut self, directives: &str) -> Pair {
        self.old_directives = directives.to_owned();
        self
    }

    /// Runs the checker.
    pub fn check(&self) -> Result<Proof, Vec<Finding>> {
        let old_text: String = self.lines(|mark| mark != '+');
        let new_text: String = self.lines(|mark| mark != '-');
        let original = self.assemble(&old_text, &self.old_directives);
        let new = self.assemble(&new_text, &self.new_directives);
        let target = self.target.parse().unwrap();
        let isa = if self.has_64_lanes {
            Isa::with_wave_size(&target, 64).unwrap()
        } else {
            Isa::new(&target).unwrap()
        };
        let new_pcs: Vec<(u64, u64)> = instructions(&isa, &new)
            .iter()
            .map(|inst| (inst.pc.0, inst.pc.0 + u64::from(inst.size)))
            .collect();
        let mut claims = Claims::default();
        let mut new_pcs = new_pcs.into_iter();
        for (mark, _) in self.marked().chain([(' ', "s_endpgm")]) {
            let next = claims.instructions.next_index();
            match mark {
                '-' => _ = claims.instructions.push(None),
                '+' => {
                    let (start, end) = new_pcs.next().expect("an instruction for each line");
                    let changes = self.changes;
                    match claims.inserted.last_mut() {
                        Some(last) if last.range.end == start => last.range.end = end,
                        _ => claims.inserted.push(Inserted {
                            range: start..end,
                            at: Some(next),
                            changes,
                        }),
                    }
                }
                _ => {
                    let (start, _) = new_pcs.next().expect("an instruction for each line");
                    claims.instructions.push(Some(Pc(start)));
                }
            }
        }
        let program = Disassembly::read(&original).unwrap();
        assert_eq!(program.instructions.len(), claims.instructions.len());
        let live = Live {
            active: self.live,
            masked: self.live.intersection(RegisterSet::VGPRS.union(RegisterSet::ACC_VGPRS)),
        };
        let rules = program.rules().unwrap();
        check(rules, &original, &program, &|_| live, &new, &claims)
    }

    /// Asserts that the checker proves the pair.
    #[track_caller]
    pub fn assert_proven(&self) -> Proof {
        match self.check() {
            Ok(proof) => proof,
            Err(findings) => {
                let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
                panic!("found:\n{}", lines.join("\n"));
            }
        }
    }

    /// Asserts that the pair violates only `rule`, and that a finding contains `text`.
    #[track_caller]
    pub fn assert_violates(&self, rule: CheckRule, text: &str) {
        let findings = self.check().expect_err("a violation");
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(findings.iter().all(|finding| finding.rule == rule), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains(text)), "no `{text}` in {lines:#?}");
    }

    /// Instructions with the first characters of their lines.
    fn marked(&self) -> impl Iterator<Item = (char, &str)> {
        self.text.lines().filter_map(|line| {
            let line = line.trim();
            let mark = line.chars().next()?;
            let text = line.trim_start_matches(['+', '-']).trim();
            (!text.ends_with(':') && !text.is_empty()).then_some((mark, text))
        })
    }

    fn lines(&self, keep: impl Fn(char) -> bool) -> String {
        let lines = self.text.lines().map(str::trim);
        let kept = lines.filter(|line| line.chars().next().is_some_and(&keep));
        kept.map(|line| format!("{}\n", line.trim_start_matches(['+', '-']))).collect()
    }

    fn assemble(&self, text: &str, directives: &str) -> CodeObject {
        let folder = tempfile::tempdir().unwrap();
        let (source, object) = (folder.path().join("pair.s"), folder.path().join("pair.co"));
        let accum = match self.target {
            "gfx90a" | "gfx942" => ".amdhsa_accum_offset 32\n",
            _ => "",
        };
        let mut lines: Vec<&str> =
            vec![".amdhsa_next_free_vgpr 40", ".amdhsa_next_free_sgpr 40", accum];
        lines.retain(|line| {
            let name = line.split(' ').next().unwrap_or_default();
            name.is_empty() || !directives.contains(name)
        });
        let text = format!(
            "{}\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n{text}\ns_endpgm\n.size k, .-k\n\
             .rodata\n.p2align 6\n.amdhsa_kernel k\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
             {}\n{directives}\n.end_amdhsa_kernel\n",
            self.data,
            lines.join("\n"),
        );
        std::fs::write(&source, &text).unwrap();
        let output = Command::new("clang-22")
            .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-nogpulib"])
            .arg(format!("-mcpu={}", self.target))
            .args(self.has_64_lanes.then_some("-mwavefrontsize64"))
            .arg("-o")
            .args([&object, &source])
            .output()
            .expect("these tests require clang-22");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{messages}\n{text}");
        CodeObject::parse(&std::fs::read(&object).unwrap()).unwrap()
    }
}

/// The kernel's instructions, including the final `s_endpgm`.
fn instructions(isa: &Isa, object: &CodeObject) -> Vec<Inst> {
    let kernel = &object.kernels()[0];
    let end = kernel.entry().0 + kernel.code_size;
    let mut pc = kernel.entry().0;
    let mut instructions = Vec::new();
    while pc < end {
        let bytes = object.bytes_at(Pc(pc), (end - pc) as usize).unwrap();
        let inst = isa.decode(bytes, Pc(pc)).unwrap();
        pc += u64::from(inst.size);
        instructions.push(inst);
    }
    instructions
}
