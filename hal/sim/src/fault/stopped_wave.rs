//! Stopped waves, and the code that they execute.

use crate::instruction::Op;
use crate::module::Module;
use crate::translate::program::Program;
use crate::wave::Wave;
use std::sync::Arc;

/// A wave that has faulted or waits forever, kept until the fault is explained.
#[derive(Clone, Debug)]
pub struct StoppedWave {
    /// The wave, with the registers before the instruction.
    pub wave: Wave,
    /// LDS of its workgroup.
    pub lds: Vec<u8>,
    /// Device address of the instruction.
    pub pc: u64,
    /// The instruction, if an observer had replaced the one in the code.
    pub replacement: Option<Box<Op>>,
}

/// Loaded code objects: decoded for the stopped wave, and as files.
#[derive(Clone, Copy)]
pub struct LoadedCode<'a> {
    /// Code of each module.
    pub programs: &'a [Arc<Program>],
    /// The modules.
    pub modules: &'a [Arc<Module>],
}

impl StoppedWave {
    /// Keeps a wave that has stopped at a device address, and the LDS of its workgroup.
    #[cold]
    pub fn new(wave: &Wave, lds: &[u8], pc: u64, replacement: Option<Box<Op>>) -> Box<StoppedWave> {
        Box::new(StoppedWave { wave: wave.clone(), lds: lds.to_vec(), pc, replacement })
    }
}

impl<'a> LoadedCode<'a> {
    /// The code and the module at a device address.
    pub fn at(&self, pc: u64) -> Option<(&'a Program, &'a Module)> {
        let index = self.programs.iter().position(|program| program.contains(pc))?;
        Some((self.programs.get(index)?, self.modules.get(index)?))
    }
}
