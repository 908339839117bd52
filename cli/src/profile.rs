//! `flipwave profile`.

use crate::arguments::ProfileArguments;
use crate::failure::Failure;
use crate::long_runs::LongRuns;
use crate::output::say;
use crate::table::{row, table};
use crate::{campaign, output, strict};
use flipwave_device::demangled_kernel;
use flipwave_host::output::FormulaEscaper;
use flipwave_host::output::printable;
use flipwave_injector::{FaultSpace, InstructionFaultSpace, MaskedSites, Profile};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

pub fn profile(arguments: &ProfileArguments) -> Result<(), Failure> {
    let campaign = campaign::read(&arguments.file, &arguments.variant, arguments.seed)?;
    let long_runs = LongRuns::start(&campaign.cancellation, say);
    strict::check(&arguments.strict, &campaign)?;
    let profile = flipwave_campaigns::profile(&campaign)?;

    drop(long_runs);
    let mut output = output::stdout();
    if arguments.json {
        serde_json::to_writer_pretty(&mut output, &ProfileRecord::from(&profile))
            .map_err(std::io::Error::from)?;
        writeln!(output)?;
    } else {
        write!(output, "{}", text(&profile))?;
    }
    if let Some(path) = &arguments.csv {
        write_csv(&profile, path)
            .map_err(|reason| Failure::Table { file: path.clone(), reason })?;
        if !arguments.json {
            writeln!(output, "\ntable: {}", path.display())?;
        }
    }
    Ok(())
}

/// The JSON form of a profile.
#[derive(Serialize)]
struct ProfileRecord<'a> {
    fault: String,
    selection: String,
    counted: String,
    fault_space: &'a FaultSpace,
    instructions: &'a [InstructionFaultSpace],
}

impl<'a> From<&'a Profile> for ProfileRecord<'a> {
    fn from(profile: &'a Profile) -> ProfileRecord<'a> {
        ProfileRecord {
            fault: profile.fault().to_string(),
            selection: profile.selection().to_string(),
            counted: profile.counted(),
            fault_space: &profile.fault_space,
            instructions: &profile.instructions,
        }
    }
}

/// Formats the totals, then the sums by kernel and by group, then each instruction.
fn text(profile: &Profile) -> String {
    let (fault, selection) = (profile.fault(), profile.selection());
    let mut text = format!("{fault}, {selection}: {}\n\n", profile.counted());
    let mut kernels: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for instruction in &profile.instructions {
        let sums = kernels.entry(&instruction.kernel).or_default();
        let InstructionFaultSpace { executions, eligible, sites, .. } = *instruction;
        let addends = [1, executions, eligible, sites];
        sums.iter_mut().zip(addends).for_each(|(sum, addend)| *sum += addend);
    }
    let mut lines = vec![row(&["kernel", "instructions", "executed", "eligible", "sites"])];
    for (kernel, sums) in kernels {
        let numbers = sums.map(|sum| sum.to_string());
        let kernel = demangled_kernel(kernel).into_owned();
        lines.push(std::iter::once(kernel).chain(numbers).collect());
    }
    text += &format!("{}\n{}\n", table(&lines), profile.fault_space);
    let mut kernel = "";
    for instruction in &profile.instructions {
        if instruction.kernel != kernel {
            kernel = &instruction.kernel;
            text += &format!(
                "\n{}\n{:>8} {:>14} {:>16} {:<8} instruction\n",
                printable(&demangled_kernel(kernel)),
                "pc",
                "executed",
                "sites",
                "group"
            );
        }
        let (pc, group) = (instruction.pc.to_string(), instruction.group.to_string());
        let InstructionFaultSpace { executions, sites, text: assembly, .. } = instruction;
        text += &format!("{pc:>8} {executions:>14} {sites:>16} {group:<8} {}\n", assembly.trim());
    }
    text
}

/// Writes a CSV table with one row per instruction.
fn write_csv(profile: &Profile, path: &Path) -> csv::Result<()> {
    let mut table = csv::Writer::from_writer(FormulaEscaper::new(Vec::new()));
    table.write_record([
        "kernel",
        "pc",
        "instruction",
        "opcode",
        "group",
        "line",
        "executed",
        "eligible",
        "sites",
        "overwritten",
        "dead",
    ])?;
    for instruction in &profile.instructions {
        let InstructionFaultSpace { kernel, pc, text, line, .. } = instruction;
        let InstructionFaultSpace { executions, eligible, sites, .. } = *instruction;
        let masked = instruction.known;
        let masked = masked.map(|MaskedSites { overwritten, dead }| (overwritten, dead)).unzip();
        table.serialize((
            (kernel, pc.to_string(), text.trim()),
            (instruction.opcode, instruction.group.name(), line),
            (executions, eligible, sites),
            masked,
        ))?;
    }
    let bytes = table.into_inner().map_err(|error| error.into_error())?.into_inner();
    Ok(flipwave_host::output::replace(path, &bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flipwave_injector::{FaultSpace, Group, GroupFaultSpace};
    use flipwave_isa::Pc;

    #[test]
    fn json_form_of_profiles_is_fixed() {
        let group = GroupFaultSpace { group: Group::Valu, sites: 5, eligible: 6, executed: 7 };
        let fault_space =
            FaultSpace { sites: 1, left_out: 2, eligible: 3, executed: 4, groups: vec![group] };
        let instructions = [InstructionFaultSpace {
            kernel: "add".to_owned(),
            pc: Pc(0x100),
            text: "v_add_f32 v0, v1, v2".to_owned(),
            opcode: "v_add_f32",
            group: Group::Valu,
            line: Some("add.cl:3".to_owned()),
            executions: 8,
            eligible: 9,
            sites: 10,
            left_out: 11,
            known: Some(MaskedSites { overwritten: 12, dead: 13 }),
        }];
        let record = ProfileRecord {
            fault: "f".to_owned(),
            selection: "s".to_owned(),
            counted: "c".to_owned(),
            fault_space: &fault_space,
            instructions: &instructions,
        };
        assert_eq!(
            serde_json::to_string(&record).expect("JSON"),
            "{\"fault\":\"f\",\"selection\":\"s\",\"counted\":\"c\",\
             \"fault_space\":{\"sites\":1,\"left_out\":2,\"eligible\":3,\"executed\":4,\
             \"groups\":[{\"group\":\"valu\",\"sites\":5,\"eligible\":6,\"executed\":7}]},\
             \"instructions\":[{\"kernel\":\"add\",\"pc\":\"0x100\",\
             \"text\":\"v_add_f32 v0, v1, v2\",\"opcode\":\"v_add_f32\",\"group\":\"valu\",\
             \"line\":\"add.cl:3\",\"executions\":8,\"eligible\":9,\"sites\":10,\
             \"left_out\":11,\"known\":{\"overwritten\":12,\"dead\":13}}]}"
        );
    }
}
