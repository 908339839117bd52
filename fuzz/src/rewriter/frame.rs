//! Code objects with space for code: assembled once, filled many times.

use flipwave_codeobj::CodeObject;
use flipwave_isa::{AccVgprs, ChipBug};
use flipwave_tests::{Machine, Once};
use std::process::Command;
use std::sync::Arc;

/// Sizes and settings of a kernel `k` and a function `f` behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// Bytes of the kernel.
    pub kernel: usize,
    /// Bytes of the function; 0 for none.
    pub function: usize,
    /// VGPRs of the kernel.
    pub vgprs: u16,
    /// AccVGPRs of the kernel.
    pub acc_vgprs: u16,
    /// `true` if single-precision denormals are kept, as compilers request; `false` if they are flushed, the
    /// assembler's default.
    pub keeps_denormals: bool,
}

/// LDS bytes of a workgroup.
pub const LDS: u32 = 1024;

/// Scratch bytes of a lane, for kernels that use scratch.
const SCRATCH: u32 = 32;

/// Returns `true` if kernels for a machine use scratch, which must need no setup there.
pub fn has_scratch(machine: Machine) -> bool {
    ["gfx942", "gfx1100"].contains(&machine.target().processor())
}

/// Sizes are rounded up to a multiple of this.
pub const GRANULE: usize = 256;

impl Frame {
    /// The code object for a machine, with `code` of the kernel and of the function. The remaining space is
    /// filled with `filling`.
    pub fn filled(self, machine: Machine, code: [&[u8]; 2], filling: [u8; 4]) -> CodeObject {
        let mut bytes = (*self.assembled(machine)).clone();
        let empty = CodeObject::parse(&bytes).expect("a code object");
        let text = empty.text().next().expect("code").file_offset() as usize;
        for (start, room, code) in
            [(0, self.kernel, code[0]), (self.kernel, self.function, code[1])]
        {
            let place = &mut bytes[text + start..][..room];
            place[..code.len()].copy_from_slice(code);
            place[code.len()..].as_chunks_mut().0.fill(filling);
        }
        CodeObject::parse(&bytes).expect("a code object")
    }

    fn assembled(self, machine: Machine) -> Arc<Vec<u8>> {
        static ASSEMBLED: Once<(String, Frame), Arc<Vec<u8>>> = Once::new();
        ASSEMBLED.get((machine.to_string(), self), || Arc::new(self.assemble(machine)))
    }

    fn assemble(self, machine: Machine) -> Vec<u8> {
        let mut text = String::from(".text\n");
        let functions = [("k", self.kernel), ("f", self.function)];
        for (name, bytes) in functions.into_iter().filter(|(_, bytes)| *bytes > 0) {
            text += &format!(
                ".globl {name}\n.protected {name}\n.p2align 8\n.type {name},@function\n{name}:\n\
                 .fill {}, 4, 0\n.size {name}, .-{name}\n",
                bytes / 4
            );
        }
        // Padding for the instruction prefetch.
        text += ".fill 64, 4, 0xbf800000\n.rodata\n.p2align 6\n.amdhsa_kernel k\n";
        let target = machine.target();
        if target.acc_vgprs() == AccVgprs::Unified {
            let first = self.vgprs.next_multiple_of(4);
            text += &format!(
                ".amdhsa_accum_offset {first}\n.amdhsa_next_free_vgpr {}\n",
                first + self.acc_vgprs
            );
        } else {
            text += &format!(".amdhsa_next_free_vgpr {}\n", self.vgprs);
        }
        if self.keeps_denormals {
            text += ".amdhsa_float_denorm_mode_32 3\n";
        }
        if has_scratch(machine) {
            text += &format!(
                ".amdhsa_private_segment_fixed_size {SCRATCH}\n.amdhsa_enable_private_segment 1\n"
            );
        }
        if ChipBug::UserSgprInit16.affects(&target) {
            // 16 with the workgroup ID, as compilers set it.
            text += ".amdhsa_user_sgpr_count 15\n";
        }
        text += &format!(
            ".amdhsa_next_free_sgpr 44\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
             .amdhsa_kernarg_size 16\n.amdhsa_group_segment_fixed_size {LDS}\n.end_amdhsa_kernel\n"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let [source, object] = ["frame.s", "frame.co"].map(|name| folder.path().join(name));
        std::fs::write(&source, &text).expect("the source written");
        let output = Command::new("clang-22")
            .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-nogpulib"])
            .arg(format!("-mcpu={target}"))
            .args(machine.options())
            .args([&source, std::path::Path::new("-o"), &object])
            .output()
            .expect("clang-22 (Debian's packages clang-22 and lld-22) is needed");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{messages}\n{text}");
        std::fs::read(object).expect("what clang wrote")
    }
}
