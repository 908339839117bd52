//! Kernels, hooks and runs that the tests share.

use flipwave_device::{Completion, Dispatch, ModuleId, Statistics};
use flipwave_hooks::hook::Source;
use flipwave_machine::{Machine, Progress, Unobserved};
use flipwave_ptx::{Module, Ptx, parse};
use flipwave_ptx_hooks::{HookCall, HookLibrary, Lanes, LibraryIndex, PtxHookCompiler, Rewritten};
use flipwave_ptx_sim::{Inserted, PtxGpu};
use std::sync::Arc;

/// The kernel of the tests.
pub const KERNEL: &str = include_str!("sources/kernel.ptx");
/// Lanes of a dispatch: not a multiple of a wave.
pub const LANES: u32 = 80;

/// Reads a module.
pub fn module(text: &str) -> Module {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The target of the tests.
pub fn target() -> Ptx {
    Ptx::new("sm_80").expect("a target")
}

/// Compiles hooks.
pub fn library(text: &str) -> Arc<HookLibrary> {
    let source = Source { name: "hooks.c".into(), text: text.into(), ..Source::default() };
    let compiled = PtxHookCompiler::default().compile(&source, &target());
    compiled.unwrap_or_else(|error| panic!("{error}"))
}

/// A call without arguments.
pub fn call(library: LibraryIndex, function: &str) -> HookCall {
    let function = function.to_owned();
    HookCall {
        library,
        function,
        arguments: Vec::new(),
        results: Vec::new(),
        lanes: Lanes::Executing,
    }
}

/// A GPU with the kernel and its buffers.
pub struct Run {
    pub gpu: PtxGpu,
    pub module: ModuleId,
    kernarg: Vec<u8>,
    out: flipwave_device::Address,
}

impl Run {
    /// Loads the kernel, whose inputs are pseudorandom words.
    pub fn new() -> Run {
        let mut gpu = PtxGpu::new(target());
        let module = gpu.load(&module(KERNEL)).expect("loads");
        let bytes = 4 * u64::from(LANES);
        let [input, out] = [(); 2].map(|()| gpu.allocate(bytes).expect("memory"));
        let words = (0..LANES).flat_map(|i| (i.wrapping_mul(0x9e37_79b9) >> 5).to_le_bytes());
        gpu.write(input, &words.collect::<Vec<_>>()).expect("written");
        let kernarg = [input, out].iter().flat_map(|address| address.0.to_le_bytes()).collect();
        Run { gpu, module, kernarg, out }
    }

    /// Loads a rewritten version of the kernel, after it was printed and read again.
    pub fn rewritten(rewritten: &Rewritten) -> Run {
        let mut run = Run::new();
        let text = rewritten.module.to_string();
        let again = module(&text);
        assert_eq!(again.to_string(), text);
        let loaded = run.gpu.load_rewritten(run.module, &again, &rewritten.origins, Inserted::Free);
        run.module = loaded.unwrap_or_else(|error| panic!("{error}\n{text}"));
        run
    }

    /// Runs the kernel, and returns its output and the executed instructions.
    pub fn outputs(&mut self) -> (Vec<u32>, Statistics) {
        let dispatch = Dispatch {
            module: self.module,
            kernel: "mix".into(),
            grid: [LANES, 1, 1],
            workgroup: [LANES, 1, 1],
            kernarg: self.kernarg.clone(),
            dynamic_lds: 0,
            instruction_limit: 1_000_000,
            queued: None,
            is_cooperative: false,
        };
        let mut execution = self.gpu.begin(&dispatch).expect("begins");
        let progress = self.gpu.advance(&mut execution, &mut Unobserved, u64::MAX);
        let statistics = match progress.expect("runs") {
            Progress::Ended(Completion::Completed(statistics)) => statistics,
            Progress::Ended(Completion::Faulted(fault)) => panic!("{fault}"),
            Progress::Paused => panic!("paused"),
        };
        let mut bytes = vec![0; 4 * LANES as usize];
        self.gpu.read(self.out, &mut bytes).expect("the output");
        (words(&bytes), statistics)
    }

    /// Words of a variable of hooks.
    pub fn variable(&self, rewritten: &Rewritten, library: LibraryIndex, name: &str) -> Vec<u32> {
        let name = rewritten.symbol(library, name).expect("a symbol");
        let (address, bytes) = self.gpu.variable(self.module, name).expect("a variable");
        let mut content = vec![0; bytes as usize];
        self.gpu.read(address, &mut content).expect("read");
        words(&content)
    }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
