//! Test bench for compiling hooks.

use crate::hook::{
    Argument, Body, CompiledHooks, HookCompiler, HookError, HookSource, Renaming, Source,
};
use flipwave_isa::{Inst, Isa, Pc, Register, RegisterRange, Target};

/// A target with a wave size, and a compiler.
pub struct Bench {
    pub target: Target,
    pub wave_size: u8,
    pub compiler: HookCompiler,
}

/// Targets with all encodings and register allocations.
pub const MACHINES: [(&str, u8); 6] = [
    ("gfx906", 64),
    ("gfx90a", 64),
    ("gfx942", 64),
    ("gfx1030", 32),
    ("gfx1100", 32),
    ("gfx1100", 64),
];

pub fn bench((processor, wave_size): (&str, u8)) -> Bench {
    let target: Target = processor.parse().expect("a target");
    Bench { target, wave_size, compiler: HookCompiler::find().expect("clang-22") }
}

impl Bench {
    pub fn isa(&self) -> Isa {
        Isa::with_wave_size(&self.target, self.wave_size).expect("LLVM has the target")
    }

    pub fn inst(&self, text: &str) -> Inst {
        let isa = self.isa();
        let bytes = isa.assemble(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        isa.decode(&bytes, Pc(0x1234)).expect("an instruction")
    }

    pub fn read(&self, text: &str) -> Result<HookSource, HookError> {
        let source = Source { name: "hook.c".into(), text: text.into(), ..Source::default() };
        self.compiler.read(&source, &self.target, self.wave_size)
    }

    /// Compiles a call of the last function of `text` at the instruction `site`.
    pub fn call(
        &self,
        text: &str,
        arguments: &[Argument],
        results: &[RegisterRange],
        site: &str,
    ) -> Result<CompiledHooks, HookError> {
        let source = self.read(text)?;
        let function = source.functions().last().expect("a function").name.clone();
        let site = self.inst(site);
        let call = source.function(&function)?.call(arguments, results, &site, self.wave_size)?;
        let compiled = self.compiler.compile(&source, &[call.entry])?;
        assert_eq!(compiled.bodies[0].inputs.len(), call.inputs.len());
        Ok(compiled)
    }

    pub fn body(
        &self,
        text: &str,
        arguments: &[Argument],
        results: &[RegisterRange],
    ) -> Result<Body, HookError> {
        Ok(self.call(text, arguments, results, "s_nop 0")?.bodies.remove(0))
    }
}

/// A range of registers, by name of the first.
pub fn range(first: &str, words: u8) -> RegisterRange {
    RegisterRange::new(first.parse().expect("a register"), words)
}

/// A register argument.
pub fn register(first: &str, words: u8) -> Argument {
    Argument::Register(range(first, words))
}

/// A deterministic sequence of pseudorandom numbers.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 ^ self.0 >> 29
    }
}

/// Random registers for all groups of a body, except those that the tests use: v0 to v7, s0 to s7, and s90
/// and higher.
pub fn shuffle(body: &Body, numbers: &mut Numbers) -> Renaming {
    loop {
        let firsts: Vec<Register> = body
            .groups
            .iter()
            .map(|group| {
                let (low, high) = match group.range.first {
                    Register::Sgpr(_) => (8, 90 - u64::from(group.range.words)),
                    _ => (8, 256 - u64::from(group.range.words)),
                };
                let alignment = u64::from(group.alignment);
                let number = low + numbers.next() % (high - low + 1);
                let number = (number / alignment * alignment).max(low) as u8;
                let name = match group.range.first {
                    Register::Sgpr(_) => format!("s{number}"),
                    Register::AccVgpr(_) => format!("a{number}"),
                    _ => format!("v{number}"),
                };
                name.parse().expect("a register")
            })
            .collect();
        if let Ok(renaming) = Renaming::new(body, &firsts) {
            return renaming;
        }
    }
}
