//! Runs bodies inside a small kernel.

use super::Bench;
use crate::hook::{Assembler, Body, CompiledHooks, IndexedAccess, InputValue, Renaming};
use crate::layout::{InsertedCode, Piece, Reference};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, Device, Dispatch};
use flipwave_isa::{Pc, Register, RegisterRange, Sgpr};
use flipwave_sim::EmbeddedGpu;
use std::fmt::Write;
use std::process::Command;

/// State after a wave: each output register per lane, followed by v6 and s6, which accesses by number refer
/// to; and the hooks' data.
pub struct Outcome {
    pub outputs: Vec<Vec<u32>>,
    pub data: Vec<u8>,
}

/// Size of one register of 64 lanes in memory, in bytes.
const ROW: usize = 256;

/// Number of rows that the data are copied to: a wave copies four bytes per lane at a time.
fn data_rows(compiled: &CompiledHooks, wave_size: u8) -> u64 {
    compiled.data.size().div_ceil(4 * u64::from(wave_size))
}

impl Bench {
    /// Runs a body in one wave whose first `lanes` lanes are active. `inputs` contains the values of its input
    /// registers per word and lane; scalar registers get the first lane's value.
    pub fn run(
        &self,
        compiled: &CompiledHooks,
        names: &Renaming,
        inputs: &[Vec<u32>],
        lanes: u32,
    ) -> Outcome {
        let values: Vec<InputValue> =
            compiled.bodies[0].inputs.iter().map(|range| InputValue::Registers(*range)).collect();
        self.run_at(compiled, names, &values, inputs, lanes)
    }

    /// Runs a body as [`Bench::run`]; inputs that `values` describes as addresses of data are computed and are
    /// not in `inputs`.
    pub fn run_at(
        &self,
        compiled: &CompiledHooks,
        names: &Renaming,
        values: &[InputValue],
        inputs: &[Vec<u32>],
        lanes: u32,
    ) -> Outcome {
        let body = &compiled.bodies[0];
        let mut assembler = Assembler::new(self.isa());
        let expand = |access: IndexedAccess, assembler: &mut Assembler| {
            // In tests, accesses by number refer to one register per file.
            let text = match (access.writes, access.value.first) {
                (false, Register::Sgpr(_)) => format!("s_mov_b32 {}, s6", access.value),
                (true, Register::Sgpr(_)) => format!("s_mov_b32 s6, {}", access.value),
                (false, _) => format!("v_mov_b32 {}, v6", access.value),
                (true, _) => format!("v_mov_b32 v6, {}", access.value),
            };
            Ok(InsertedCode { pieces: vec![Piece::bytes(assembler.assemble(&text)?)] })
        };
        let code = body.instantiate(names, &mut assembler, Pc(0), expand).expect("renamed");
        let text = self.kernel(compiled, body, names, values, &code);
        self.execute(&text, body, compiled, inputs, lanes)
    }

    fn kernel(
        &self,
        compiled: &CompiledHooks,
        body: &Body,
        names: &Renaming,
        values: &[InputValue],
        code: &InsertedCode,
    ) -> String {
        let mut text = "s_load_dwordx2 s[2:3], s[0:1], 0x0\ns_load_dword s4, s[0:1], 0x8\n\
            v_and_b32 v0, 63, v0\nv_lshlrev_b32 v1, 2, v0\nv_mov_b32 v6, 0\ns_mov_b32 s6, 0\n\
            s_waitcnt lgkmcnt(0)\nv_cmp_gt_u32 vcc, s4, v0\ns_and_saveexec_b64 s[98:99], vcc\n"
            .to_owned();
        let mut slot = 0;
        let mut next = |text: &mut String| {
            let at = ROW * slot;
            let _ = write!(text, "s_add_u32 s90, s2, {at:#x}\ns_addc_u32 s91, s3, 0\n");
            slot += 1;
        };
        let words = |ranges: &[RegisterRange]| -> Vec<Register> {
            ranges.iter().flat_map(|range| range.iter()).collect()
        };
        let wait = "s_waitcnt vmcnt(0) lgkmcnt(0)\n";
        for (range, value) in body.inputs.iter().zip(values) {
            if let InputValue::Data { symbol, offset } = value {
                let at = compiled.data.symbols[symbol].offset + offset;
                if let Register::Sgpr(Sgpr(low)) = names.register(range.first) {
                    text.push_str(&address(low, at));
                }
                continue;
            }
            for register in range.iter() {
                next(&mut text);
                let named = body.groups.iter().any(|group| group.range.contains(register));
                let _ = match names.register(register) {
                    _ if !named => Ok(()),
                    to @ Register::Sgpr(_) => {
                        write!(text, "s_load_dword {to}, s[90:91], 0x0\n{wait}")
                    }
                    to => write!(text, "global_load_dword {to}, v1, s[90:91]\n{wait}"),
                };
            }
        }
        text.push_str(&pieces(code));
        text.push_str(wait);
        for register in words(&body.outputs) {
            next(&mut text);
            let from = names.register(register);
            let _ =
                write!(text, "v_mov_b32 v2, {from}\nglobal_store_dword v1, v2, s[90:91]\n{wait}");
        }
        for registers in ["v6", "s6"] {
            next(&mut text);
            let _ = write!(
                text,
                "v_mov_b32 v2, {registers}\nglobal_store_dword v1, v2, s[90:91]\n{wait}"
            );
        }
        text.push_str("s_mov_b64 exec, -1\n");
        for row in 0..data_rows(compiled, self.wave_size) {
            next(&mut text);
            text.push_str(&address(92, row * 4 * u64::from(self.wave_size)));
            let _ = write!(
                text,
                "global_load_dword v2, v1, s[92:93]\n{wait}\
                 global_store_dword v1, v2, s[90:91]\n{wait}"
            );
        }
        text.push_str("s_endpgm\n");
        if self.wave_size == 32 {
            text = text
                .replace("s_and_saveexec_b64 s[98:99], vcc", "s_and_saveexec_b32 s98, vcc_lo")
                .replace("v_cmp_gt_u32 vcc,", "v_cmp_gt_u32 vcc_lo,")
                .replace("s_mov_b64 exec, -1", "s_mov_b32 exec_lo, -1");
        }
        text
    }

    fn execute(
        &self,
        text: &str,
        body: &Body,
        compiled: &CompiledHooks,
        inputs: &[Vec<u32>],
        lanes: u32,
    ) -> Outcome {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, object) = (folder.path().join("kernel.s"), folder.path().join("kernel.co"));
        std::fs::write(&source, self.frame(text, compiled)).expect("written");
        let output = Command::new("clang-22")
            .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-nogpulib"])
            .arg(format!("-mcpu={}", self.target))
            .arg(if self.wave_size == 64 { "-mwavefrontsize64" } else { "-mno-wavefrontsize64" })
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .output()
            .expect("clang-22");
        assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(object).expect("the code object");
        let object = CodeObject::parse(&bytes).expect("a code object");

        let mut gpu = EmbeddedGpu::new(self.target.clone()).expect("an embedded GPU");
        let module = gpu.load(&object).expect("loaded");
        let count = |ranges: &[RegisterRange]| -> usize {
            ranges.iter().map(|range| usize::from(range.words)).sum()
        };
        let (first, outputs) = (inputs.len(), count(&body.outputs) + 2);
        let rows = first + outputs + data_rows(compiled, self.wave_size) as usize;
        let buffer = gpu.allocate((rows * ROW) as u64).expect("memory");
        let memory: Vec<u8> = inputs
            .iter()
            .flat_map(|row| (0..64).map(|lane| row[lane % row.len()]))
            .flat_map(u32::to_le_bytes)
            .collect();
        gpu.write(buffer, &memory).expect("written");
        let kernarg = [buffer.0.to_le_bytes(), u64::from(lanes).to_le_bytes()].concat();
        let end = gpu.dispatch(&Dispatch {
            module,
            kernel: "kernel".into(),
            grid: [self.wave_size.into(), 1, 1],
            workgroup: [self.wave_size.into(), 1, 1],
            kernarg,
            dynamic_lds: 0,
            instruction_limit: 1_000_000,
            queued: None,
            is_cooperative: false,
        });
        assert!(matches!(end, Ok(Completion::Completed(_))), "{end:?}\n{text}");
        let mut memory = vec![0; rows * ROW];
        gpu.read(buffer, &mut memory).expect("read");
        let copied = 4 * usize::from(self.wave_size);
        let data = memory.split_off((first + outputs) * ROW);
        let data = data.chunks(ROW).flat_map(|row| row[..copied].to_vec()).collect();
        let outputs = memory.split_off(first * ROW);
        let words = |row: &[u8]| -> Vec<u32> {
            let words = row.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap()));
            words.take(self.wave_size.into()).collect()
        };
        Outcome { outputs: outputs.chunks_exact(ROW).map(words).collect(), data }
    }

    /// Text of the kernel with its descriptor, metadata and data.
    fn frame(&self, text: &str, compiled: &CompiledHooks) -> String {
        let data: String =
            compiled.data.bytes.iter().map(|byte| format!(".byte {byte}\n")).collect();
        let unified = ["gfx90a", "gfx942"].contains(&self.target.processor());
        let optional = if unified { ".amdhsa_accum_offset 256\n" } else { "" };
        let narrow = if self.target.wave_sizes().len() > 1 {
            format!(".amdhsa_wavefront_size32 {}\n", u8::from(self.wave_size == 32))
        } else {
            String::new()
        };
        let pointers: String = compiled
            .data
            .pointers
            .iter()
            .map(|pointer| {
                format!(".reloc data+{}, R_AMDGPU_ABS64, data+{}\n", pointer.at, pointer.to)
            })
            .collect();
        format!(
            ".text\n.globl kernel\n.p2align 8\n.type kernel,@function\nkernel:\n{text}\n\
             .size kernel, .-kernel\n.data\n.p2align 12\n.hidden data\ndata:\n{data}\n\
             .zero {zeros}\n{pointers}.zero {ROW}\n.rodata\n.p2align 6\n.amdhsa_kernel kernel\n\
             .amdhsa_kernarg_size 16\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n\
             .amdhsa_next_free_vgpr {vgprs}\n.amdhsa_next_free_sgpr 100\n{optional}{narrow}\
             .end_amdhsa_kernel\n.amdgpu_metadata\n---\namdhsa.version: [1, 2]\n\
             amdhsa.kernels:\n  - {{.name: kernel, .symbol: kernel.kd, .kernarg_segment_size: 16, \
             .kernarg_segment_align: 8, .group_segment_fixed_size: 0, \
             .private_segment_fixed_size: 0, .wavefront_size: {}, .sgpr_count: 100, \
             .vgpr_count: {vgprs}, .max_flat_workgroup_size: 256}}\n...\n.end_amdgpu_metadata\n",
            self.wave_size,
            zeros = compiled.data.zeros,
            vgprs = if unified { 512 } else { 256 },
        )
    }
}

/// Instructions that compute an address in the data.
fn address(low: u8, offset: u64) -> String {
    let high = low + 1;
    format!(
        "s_getpc_b64 s[{low}:{high}]\ns_add_u32 s{low}, s{low}, data@rel32@lo+4+{offset}\n\
         s_addc_u32 s{high}, s{high}, data@rel32@hi+12+{offset}\n"
    )
}

/// Inserted code as assembler text.
fn pieces(code: &InsertedCode) -> String {
    let mut text = String::new();
    for (at, piece) in code.pieces.iter().enumerate() {
        let _ = writeln!(text, ".Lpiece{at}:");
        let _ = match piece {
            Piece::Bytes(bytes) => {
                let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                writeln!(text, ".byte {}", bytes.join(","))
            }
            Piece::Branch { word, to } => {
                writeln!(text, ".long {word:#x} | (((.Lpiece{to} - . - 4) / 4) & 0xffff)")
            }
            Piece::Address { destination, to: Reference::Data(at) } => {
                write!(text, "{}", address(destination.0, at.0))
            }
            Piece::Address { to, .. } => panic!("address of {to:?} in a hook"),
        };
    }
    let _ = writeln!(text, ".Lpiece{}:", code.pieces.len());
    text
}
