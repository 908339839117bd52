//! Launches of the kernels.

use super::inputs::{Inputs, Values};
use super::variants::{Kind, PAIRS, Variant, WAVES, WORKGROUPS};
use flipwave_tests::{TestProgram, compile_at, examples_folder, scalar};
use std::path::PathBuf;

/// Path of the kernel's source, which is an example.
pub fn source() -> PathBuf {
    examples_folder().join("matrix/gemm.cl")
}

/// A buffer argument of the kernel.
pub struct Argument {
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

impl Variant {
    /// Grid and workgroup size in work-items.
    pub fn grid(&self) -> [[u32; 3]; 2] {
        let workgroup = (WAVES * self.machine.lanes) as u32;
        [[workgroup * WORKGROUPS as u32, WORKGROUPS as u32, 1], [workgroup, 1, 1]]
    }

    /// Columns of D, and iterations of the loop.
    pub fn scalars(&self) -> [u32; 2] {
        [self.columns() as u32, PAIRS as u32]
    }

    /// Input buffers of the kernel, in order.
    pub fn arguments(&self, inputs: &Inputs) -> Vec<Argument> {
        let argument = |name, bytes| Argument { name, bytes };
        let mut arguments = vec![
            argument(
                "c",
                inputs.c.iter().flatten().flat_map(|value| self.sum_bytes(*value)).collect(),
            ),
            argument("a", packed(&inputs.a, self.a.bits())),
            argument("b", packed(&inputs.b, self.b.bits())),
        ];
        match self.kind {
            Kind::Dense => {}
            Kind::Sparse => arguments.push(argument("indices", packed(&inputs.indices, 2))),
            Kind::Scaled => {
                arguments.push(argument("a_scales", packed(&inputs.a_scales, 8)));
                arguments.push(argument("b_scales", packed(&inputs.b_scales, 8)));
            }
        }
        arguments
    }

    fn sum_bytes(&self, value: f64) -> Vec<u8> {
        use super::format::Sum;
        match self.sum {
            Sum::F64 => value.to_le_bytes().to_vec(),
            Sum::F32 => (value as f32).to_le_bytes().to_vec(),
            Sum::I32 => (value as i32).to_le_bytes().to_vec(),
            Sum::F16 => half::f16::from_f64(value).to_le_bytes().to_vec(),
            Sum::Bf16 => half::bf16::from_f64(value).to_le_bytes().to_vec(),
        }
    }

    pub fn code_object(&self, level: &str) -> Vec<u8> {
        let options = self.options();
        let all: Vec<&str> =
            [level].into_iter().chain(options.iter().map(String::as_str)).collect();
        compile_at(self.machine, &source(), &all)
    }

    /// Adds the launch to a program of the kernel's code object, with D as output.
    pub fn launch(&self, program: &mut TestProgram, inputs: &Inputs) {
        let d = vec![0u8; self.rows() * self.columns() * self.sum.bytes()];
        let mut arguments = vec![program.output(&d)];
        for argument in self.arguments(inputs) {
            arguments.push(program.input(&argument.bytes));
        }
        arguments.extend(self.scalars().map(scalar));
        let [grid, workgroup] = self.grid();
        program.launch("gemm", grid, workgroup, &arguments);
    }

    /// Adds a launch on numbers near one.
    pub fn launch_near(&self, program: &mut TestProgram) {
        self.launch(program, &Inputs::new(self, Values::Near));
    }
}

/// Packs codes contiguously, the first in the lowest bits.
fn packed(lines: &[Vec<u64>], bits: u32) -> Vec<u8> {
    let bits = bits as usize;
    let codes: Vec<u64> = lines.iter().flatten().copied().collect();
    let mut bytes = vec![0u8; (codes.len() * bits).div_ceil(8)];
    for (at, code) in codes.iter().enumerate() {
        for bit in 0..bits {
            let place = at * bits + bit;
            bytes[place / 8] |= ((code >> bit & 1) as u8) << (place % 8);
        }
    }
    bytes
}

/// Unpacks lines of contiguous codes.
pub fn unpacked(bytes: &[u8], bits: u32, lines: usize) -> Vec<Vec<u64>> {
    let bits = bits as usize;
    let bit = |place: usize| u64::from(bytes[place / 8] >> (place % 8) & 1);
    let code = |at: usize| {
        (0..bits).fold(0, |code, bit_index| code | bit(at * bits + bit_index) << bit_index)
    };
    let each = bytes.len() * 8 / bits / lines;
    (0..lines).map(|line| (line * each..(line + 1) * each).map(code).collect()).collect()
}
