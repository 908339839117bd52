//! `flipwave trace`.

use crate::arguments::TraceArguments;
use crate::failure::Failure;
use crate::output;
use crate::site::campaign_and_site;
use crate::table::{row, table};
use flipwave_analysis::PropagationRow;
use flipwave_campaigns::Traced;
use flipwave_host::output::printable;
use flipwave_injector::{Gone, Step, TraceEnding, TraceEvent, What, Wrong, WrongOutput};
use std::fmt::Write as _;
use std::io::Write as _;

/// The number of waves whose first difference is printed; trace.csv has all of them.
const WAVES: usize = 8;

/// The number of intervals between the printed rows of the propagation table.
const ROWS: usize = 12;

pub fn trace(arguments: &TraceArguments) -> Result<(), Failure> {
    let TraceArguments { file, site, out, seed, variant } = arguments;
    let (campaign, site) = campaign_and_site(file, variant, *seed, site)?;
    let traced = flipwave_campaigns::trace(&campaign, site)?;
    if let Some(folder) = out {
        traced.write(folder)?;
    }
    let text = [struck(&traced), events(&traced), propagation(&traced.rows()), ending(&traced)];
    output::stdout().write_all(text.join("\n").as_bytes())?;
    Ok(())
}

fn struck(traced: &Traced) -> String {
    let struck = &traced.trace.struck;
    format!(
        "site:           {}\nstruck:         {:#010x}, now {:#010x}; words: {}\n",
        traced.site, struck.before, struck.after, struck.words
    )
}

/// Formats the events, each followed by the instruction after which it happened.
fn events(traced: &Traced) -> String {
    let mut text = String::new();
    let (mut waves, mut not_shown) = (0, 0);
    for event in &traced.trace.events {
        if matches!(event.what, What::Wave) {
            waves += 1;
            if waves > WAVES {
                not_shown += 1;
                continue;
            }
        }
        let what = description(traced, &event.step, &event.what);
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{:>8}  {what}\n{:>10}{}", event.step.time, "", location(traced, event));
    }
    let not_shown = not_shown + traced.trace.left_out.events;
    if not_shown > 0 {
        let _ = writeln!(text, "{:>10}and first differences in {not_shown} more waves", "");
    }
    text
}

/// Describes the dispatch, wave, PC, source line and instruction of an event.
fn location(traced: &Traced, event: &TraceEvent) -> String {
    let Step { dispatch, wave, pc, text, line, .. } = &event.step;
    let kernel = traced.kernels.get(*dispatch as usize).map_or("", String::as_str);
    let line = line.as_ref().map(|line| format!(" ({})", file_name(&line.to_string())));
    let (kernel, line) = (printable(kernel), line.unwrap_or_default());
    let line = printable(&line);
    format!("dispatch {dispatch} {kernel}, {wave}, {pc}{line}: {text}")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn description(traced: &Traced, step: &Step, what: &What) -> String {
    let difference = |wrong: &Wrong| difference(traced, step, wrong);
    match what {
        What::Fault(Some(wrong)) => format!("fault: {}", difference(wrong)),
        What::Fault(None) => "fault".to_owned(),
        What::Value(wrong) => format!("first wrong result: {}", difference(wrong)),
        What::Masked => "first wrong operand without a wrong result".to_owned(),
        What::Wave => "first difference in this wave".to_owned(),
        What::Lds(wrong) => format!("first wrong byte of LDS: {}", difference(wrong)),
        What::Path { golden, faulty } => format!("diverged: to {faulty}, golden {golden}"),
        What::Escape { wrong, bytes } => {
            format!("first wrong store ({}): {}", byte_count(*bytes), difference(wrong))
        }
        What::Missing(wrong) => format!("first missing store: {}", difference(wrong)),
        What::Output { output, offset } => {
            format!(
                "first wrong byte of an output: {} at {offset:#x}",
                output_name(traced, *output)
            )
        }
        What::Gone(Gone::Overwritten) => "no difference left: overwritten".to_owned(),
        What::Gone(Gone::Masked) => "no difference left: masked".to_owned(),
        What::Gone(Gone::Ended) => "no difference left: the wave ended".to_owned(),
        What::Gone(Gone::Changed) => "no difference left: memory was changed".to_owned(),
    }
}

fn output_name(traced: &Traced, output: usize) -> String {
    format!("`{}`", traced.outputs.get(output).map_or("", String::as_str))
}

fn byte_count(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

/// Describes the location of a difference and both values.
fn difference(traced: &Traced, step: &Step, wrong: &Wrong) -> String {
    match wrong {
        Wrong::Register { register, lane, golden, faulty } => {
            let lane = lane.map(|lane| format!(" lane {lane}")).unwrap_or_default();
            let register = traced.register_name(step, *register);
            format!("{register}{lane} {faulty:#010x}, golden {golden:#010x}")
        }
        Wrong::Lds { offset, golden, faulty } => {
            format!("at {offset:#x} {faulty:#04x}, golden {golden:#04x}")
        }
        Wrong::Memory { address, golden, faulty } => {
            format!("at {address} {faulty:#04x}, golden {golden:#04x}")
        }
    }
}

/// Formats the propagation table: the last row and an even selection of the rows that differ from their
/// predecessor.
fn propagation(rows: &[PropagationRow]) -> String {
    let mut cells = vec![row(&[
        "time",
        "words",
        "registers",
        "lanes",
        "waves",
        "diverged",
        "workgroups",
        "LDS",
        "scratch",
        "memory",
    ])];
    let numbers = |row: &PropagationRow| {
        [
            row.wrong_words,
            row.wrong_registers,
            row.wrong_lanes,
            row.wrong_waves,
            row.waves_on_other_path,
            row.wrong_workgroups,
            row.wrong_lds_bytes,
            row.wrong_scratch_bytes,
            row.wrong_memory_bytes,
        ]
    };
    let mut changes: Vec<&PropagationRow> = rows.iter().collect();
    changes.dedup_by_key(|row| numbers(row));
    changes.extend(rows.last());
    changes.dedup_by_key(|row| row.time);
    let last = changes.len().saturating_sub(1);
    let mut shown: Vec<usize> = (0..=ROWS).map(|row| last * row / ROWS).collect();
    shown.dedup();
    for row in shown.into_iter().filter_map(|index| changes.get(index)) {
        let numbers = [row.time].into_iter().chain(numbers(row));
        cells.push(numbers.map(|number| number.to_string()).collect());
    }
    table(&cells)
        + "(words: wrong register words; diverged: waves on a different path; LDS, scratch and memory: \
           wrong bytes)\n"
}

fn ending(traced: &Traced) -> String {
    let trace = &traced.trace;
    let mut text = match &trace.ending {
        TraceEnding::Died => "ending:         died: no difference left\n".to_owned(),
        TraceEnding::Contained { memory_bytes } => format!(
            "ending:         contained: outputs correct, {} of other memory wrong\n",
            byte_count(*memory_bytes)
        ),
        TraceEnding::Escaped(outputs) => outputs.iter().fold(String::new(), |mut text, wrong| {
            let WrongOutput { output, bytes, first, golden, faulty } = *wrong;
            let _ = writeln!(
                text,
                "ending:         escaped: {} of {} wrong, the first at {first:#x}: {faulty:#04x}, \
                 golden {golden:#04x}",
                byte_count(bytes),
                output_name(traced, output)
            );
            text
        }),
        TraceEnding::Faulted { dispatch, fault } => format!(
            "ending:         stopped by the device in dispatch {dispatch}: {}\n",
            fault.report(None)
        ),
    };
    let _ = writeln!(
        text,
        "masked:         {} instructions read a wrong register and wrote only correct values",
        trace.masked
    );
    if trace.left_out.waves > 0 {
        let waves = trace.left_out.waves;
        let _ =
            writeln!(text, "left out:       {waves} waves whose registers were no longer compared");
    }
    text
}
