//! `flipwave emulate`: executes a program with emulated instructions.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::golden::golden;
use crate::outputs::compare::{Difference, OutputRole, Tolerance, compare};
use crate::platform::{EmulatedDispatch, EmulatedRun};
use crate::program::prepare::{Prepared, prepare, prepare_with_software};
use flipwave_device::Dispatch;
use flipwave_injector::Workload;
use serde::Serialize;

/// Result of an emulated program.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// Each proxy instruction in each dispatch.
    pub instructions: Vec<EmulatedInstruction>,
    /// Instruction counts of each dispatch; those of the emulated version first.
    pub executed: Vec<Executed>,
    /// Contents of the outputs, in the order of the campaign.
    pub outputs: Vec<Vec<u8>>,
    /// Differences from the outputs of the software version, by name.
    pub differences: Vec<(String, Difference)>,
}

/// Execution count of an emulated instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EmulatedInstruction {
    /// Name of the emulated instruction.
    pub instruction: String,
    /// Index of the dispatch.
    pub dispatch: usize,
    /// Kernel of the dispatch.
    pub kernel: String,
    /// Kernel or device function that contains the proxy instruction.
    pub function: String,
    /// Address of the proxy instruction in the code object.
    pub pc: String,
    /// Source line, as `file:line`; empty if unknown.
    pub line: String,
    /// Number of executions by waves.
    pub executions: u64,
}

/// Instruction count of a dispatch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Executed {
    /// `emulated` or `software`.
    pub version: &'static str,
    /// Index of the dispatch.
    pub dispatch: usize,
    /// Kernel of the dispatch.
    pub kernel: String,
    /// Number of waves.
    pub waves: u64,
    /// Number of executed wave instructions. An emulated instruction counts once.
    pub instructions: u64,
    /// Average number of instructions per wave.
    pub per_wave: f64,
}

impl Executed {
    fn new(
        version: &'static str,
        dispatch: usize,
        kernel: &str,
        waves: u64,
        instructions: u64,
    ) -> Executed {
        let per_wave = instructions as f64 / waves.max(1) as f64;
        Executed { version, dispatch, kernel: kernel.to_owned(), waves, instructions, per_wave }
    }
}

/// Executes a program with emulated instructions, and its software version, if given.
///
/// # Errors
/// [`CampaignError`] if the program cannot be assembled, an instruction cannot be emulated, a
/// dispatch does not complete, or the campaign was cancelled.
pub fn emulate(campaign: &Campaign) -> Result<Emulation, CampaignError> {
    let instructions = campaign.instructions();
    if instructions.is_empty() {
        return Err(CampaignError::NoInstructions);
    }
    let method = campaign.target.emulation()?;
    let mut emulated = prepare(campaign)?;
    method.install(instructions, &mut emulated.workload)?;
    golden(campaign, &emulated.workload, &emulated.formats)?;
    let (prepared, software) = prepare_with_software(campaign)?;
    let run = method.run(instructions, &prepared.workload).map_err(CampaignError::from);
    let EmulatedRun { dispatches, outputs } = campaign.unless_cancelled(run)?;
    let mut emulation = Emulation {
        instructions: Vec::new(),
        executed: Vec::new(),
        outputs,
        differences: Vec::new(),
    };
    for EmulatedDispatch { dispatch, kernel, waves, instructions, proxies } in dispatches {
        let executed = Executed::new("emulated", dispatch, &kernel, waves, instructions);
        emulation.executed.push(executed);
        emulation.instructions.extend(proxies.into_iter().map(|proxy| EmulatedInstruction {
            instruction: proxy.instruction,
            dispatch,
            kernel: kernel.clone(),
            function: proxy.function,
            pc: proxy.pc,
            line: proxy.line,
            executions: proxy.executions,
        }));
    }
    compare_software(campaign, &prepared, software, &mut emulation)?;
    campaign.unless_cancelled(Ok(emulation))
}

/// Executes the software version, if given, and compares its outputs.
fn compare_software(
    campaign: &Campaign,
    prepared: &Prepared,
    software: Vec<Dispatch>,
    emulation: &mut Emulation,
) -> Result<(), CampaignError> {
    if software.is_empty() {
        return Ok(());
    }
    let Workload { program, .. } = prepared.workload.clone();
    let program = flipwave_injector::Program { dispatches: software, ..program };
    let software = Workload { program, ..prepared.workload.clone() };
    let golden = golden(campaign, &software, &prepared.formats)?;
    let dispatches = software.program.dispatches.iter().zip(&golden.statistics);
    for (index, (dispatch, statistics)) in dispatches.enumerate() {
        let (waves, instructions) = (statistics.waves, statistics.wave_instructions);
        let executed = Executed::new("software", index, &dispatch.kernel, waves, instructions);
        emulation.executed.push(executed);
    }
    let outputs = software.program.outputs.iter().zip(&prepared.formats);
    let contents = golden.outputs.iter().zip(&emulation.outputs);
    for ((output, format), (software, emulated)) in outputs.zip(contents) {
        let tolerance = match &format.role {
            OutputRole::Result(tolerance) => *tolerance,
            OutputRole::Detector(_) => Tolerance::default(),
        };
        let difference = compare(format.element, &tolerance, &software.bytes(), emulated);
        emulation.differences.push((output.name.clone(), difference));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_tests::csv_text;

    #[test]
    fn serialized_tables_are_fixed() {
        let instruction = EmulatedInstruction {
            instruction: "v_new".to_owned(),
            dispatch: 1,
            kernel: "add".to_owned(),
            function: "helper".to_owned(),
            pc: "0x100".to_owned(),
            line: "add.cl:3".to_owned(),
            executions: 4,
        };
        assert_eq!(
            csv_text(&instruction),
            "instruction,dispatch,kernel,function,pc,line,executions\n\
             v_new,1,add,helper,0x100,add.cl:3,4\n"
        );
        assert_eq!(
            csv_text(&Executed::new("software", 1, "add", 2, 5)),
            "version,dispatch,kernel,waves,instructions,per_wave\nsoftware,1,add,2,5,2.5\n"
        );
    }
}
