//! Kernels written in assembly, for faults with outcomes worked out by hand.

use crate::{MACHINES, Machine};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{AccVgprs, ChipBug, Generation, Pc};
use std::path::Path;
use std::process::Command;

/// A kernel `planted` with a few instructions. `kernels/frame.s` describes their environment.
pub struct Assembly {
    /// The code object.
    pub code_object: Vec<u8>,
    parsed: CodeObject,
}

impl Assembly {
    /// Address of a label in the instructions.
    pub fn label(&self, name: &str) -> Pc {
        let symbols = self.parsed.symbols();
        let symbol = symbols.iter().find(|symbol| *symbol.name == *name);
        Pc(symbol.unwrap_or_else(|| panic!("no label `{name}`")).address)
    }
}

/// Assembles a kernel around `body` for gfx90a.
pub fn assemble(body: &str) -> Assembly {
    assemble_for(MACHINES[0], body)
}

/// Assembles a kernel around `body` for a machine.
pub fn assemble_for(machine: Machine, body: &str) -> Assembly {
    let folder = tempfile::tempdir().expect("a folder");
    let [frame, object] = ["frame.s", "planted.co"].map(|name| folder.path().join(name));
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/frame.s");
    let text = std::fs::read_to_string(text).expect("the kernel's frame");
    let text = text.replace(".wavefront_size: 64", &format!(".wavefront_size: {}", machine.lanes));
    let is_gfx12 = machine.target().generation() >= Generation::Gfx12;
    let wait = if is_gfx12 { "s_wait_kmcnt 0x0" } else { "s_waitcnt lgkmcnt(0)" };
    let text = text.replace("s_waitcnt lgkmcnt(0)", wait);
    let is_unified = machine.target().acc_vgprs() == AccVgprs::Unified;
    // Directives that other targets do not support.
    let lacks = |line: &str| line.contains("accum_offset") || line.contains("kernarg_preload");
    let lines = text.lines().filter(|line| is_unified || !lacks(line));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    // 16 SGPRs including the workgroup ID. Some processors initialise no SGPRs if there are fewer.
    let needs_sixteen = ChipBug::UserSgprInit16.affects(&machine.target());
    let text = if needs_sixteen {
        let pointer = "    .amdhsa_user_sgpr_kernarg_segment_ptr 1\n";
        let count = "    .amdhsa_user_sgpr_count user_sgprs\n";
        let default = "    .ifndef user_sgprs\n    .set user_sgprs, 15\n    .endif\n";
        let text = text.replace(pointer, &format!("{pointer}    {count}"));
        text.replace("    .rodata\n", &format!("{default}    .rodata\n"))
    } else {
        text
    };
    std::fs::write(&frame, text).expect("the frame written");
    std::fs::write(folder.path().join("body.s"), body).expect("the kernel's body written");
    // The latest code object version that every runtime supports.
    let output = Command::new("clang-22")
        .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-mcode-object-version=5"])
        .arg(format!("-mcpu={}", machine.target()))
        .args(machine.options())
        .arg(format!("-Wa,-I{}", folder.path().display()))
        .arg("-o")
        .arg(&object)
        .arg(&frame)
        .output()
        .expect("clang-22 (Debian's packages clang-22 and lld-22) is needed by these tests");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the kernel does not assemble:\n{messages}");
    let code_object = std::fs::read(object).expect("the output of clang");
    let parsed = CodeObject::parse(&code_object).expect("a code object");
    Assembly { code_object, parsed }
}
