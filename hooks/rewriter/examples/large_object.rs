//! Measures the time to open a large code object, to read one of its kernels, and to survey all of them:
//!
//!     cargo run --release -p flipwave-hooks --example large_object [FILE]
//!
//! Without FILE, a code object with 2,000 kernels and 20 MB is created with clang-22.

use flipwave_codeobj::{CodeObject, MappedFile};
use flipwave_hooks::flow::{Disassembly, ProgramSummary};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Number of kernels of the created file.
const KERNELS: usize = 2000;
/// Number of distinct instructions per kernel, and number of repetitions.
const DIFFERENT: usize = 40;
const TIMES: usize = 30;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let file = match std::env::args_os().nth(1) {
        Some(file) => PathBuf::from(file),
        None => create(folder.path())?,
    };
    let start = Instant::now();
    let object = CodeObject::from_bytes(MappedFile::open(&file)?)?;
    let opened = start.elapsed();
    let (bytes, kernels) = (object.bytes().len(), object.kernels().len());
    println!("{bytes} bytes, {kernels} kernels");
    println!("opened        {opened:?}");
    let start = Instant::now();
    let one = Disassembly::of_kernel(&object, kernels / 2)?;
    println!("one kernel    {:?}, {} instructions", start.elapsed(), one.instructions.len());
    println!("memory        {}", memory()?);
    let start = Instant::now();
    let mut summary = ProgramSummary::new(&object)?;
    let analyzed = start.elapsed();
    let mut instructions = 0;
    for group in summary.groups() {
        instructions += summary.disassembly(&group).instructions.len();
    }
    println!("all functions {analyzed:?}, {:?} with each decoded again", start.elapsed());
    println!("              {instructions} instructions");
    println!("memory        {}", memory()?);
    Ok(())
}

/// Peak memory use of this process.
fn memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.ok_or("no VmHWM in /proc/self/status")?.trim().to_owned())
}

/// Creates a large code object.
fn create(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let mut text = String::from(".text\n");
    for kernel in 0..KERNELS {
        write!(text, ".globl k{kernel}\n.protected k{kernel}\n.p2align 8\n")?;
        write!(text, ".type k{kernel},@function\nk{kernel}:\ns_mov_b32 s6, {kernel}\n")?;
        write!(text, "again{kernel}:\n.rept {TIMES}\n")?;
        for at in 0..DIFFERENT {
            let [a, b, c] = [3, 5, 7].map(|step| (kernel + at * step) % 64);
            writeln!(text, "v_fma_f32 v{a}, v{b}, v{c}, v{at}")?;
        }
        write!(text, ".endr\ns_sub_u32 s6, s6, 1\ns_cmp_lg_u32 s6, 0\n")?;
        write!(text, "s_cbranch_scc1 again{kernel}\ns_endpgm\n.size k{kernel}, .-k{kernel}\n")?;
    }
    text.push_str(".section .rodata\n");
    for kernel in 0..KERNELS {
        write!(text, ".p2align 6\n.amdhsa_kernel k{kernel}\n.amdhsa_next_free_vgpr 64\n")?;
        write!(text, ".amdhsa_accum_offset 64\n.amdhsa_next_free_sgpr 16\n.end_amdhsa_kernel\n")?;
    }
    let [source, object] = ["large.s", "large.co"].map(|name| folder.join(name));
    std::fs::write(&source, text)?;
    let output = Command::new("clang-22")
        .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-nogpulib", "-o"])
        .args([&object, &source])
        .output()?;
    if output.status.success() {
        Ok(object)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned().into())
    }
}
