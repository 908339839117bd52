//! `flipwave trace`.

use crate::arguments::TraceArguments;
use crate::site::campaign_and_site;
use crate::table::{row, table};
use crate::{Failure, output};
use flipwave_analysis::PropagationRow;
use flipwave_campaigns::Traced;
use flipwave_host::output::printable;
use flipwave_injector::{Gone, Step, TraceEnding, TraceEvent, What, Wrong, WrongOutput};
use std::fmt::Write as _;
use std::io::Write as _;

/// Waves whose events are printed; the others are in trace.csv.
const WAVES: usize = 8;

/// Rows of the table of what differed, less one.
const ROWS: usize = 12;

pub fn trace(arguments: &TraceArguments) -> Result<(), Failure> {
    let TraceArguments { file, site, out, seed, variant } = arguments;
    let (campaign, site) = campaign_and_site(file, variant, *seed, site)?;
    let traced = flipwave_campaigns::trace(&campaign, site)?;
    if let Some(folder) = out {
        traced.write(folder)?;
    }
    let text = [struck(&traced), events(&traced), spread(&traced.rows()), ending(&traced)];
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

/// What happened, and below each event the instruction after which it did.
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
        let what = described(traced, &event.what);
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{:>8}  {what}\n{:>10}{}", event.step.time, "", place(traced, event));
    }
    let not_shown = not_shown + traced.trace.left_out.events;
    if not_shown > 0 {
        let _ = writeln!(text, "{:>10}and the first difference in {not_shown} more waves", "");
    }
    text
}

fn place(traced: &Traced, event: &TraceEvent) -> String {
    let Step { dispatch, wave, pc, text, line, .. } = &event.step;
    let kernel = traced.kernels.get(*dispatch as usize).map_or("", String::as_str);
    let line = line.as_ref().map(|line| format!(" ({}:{})", file_name(&line.file), line.line));
    let (kernel, line) = (printable(kernel), line.unwrap_or_default());
    let line = printable(&line);
    format!("dispatch {dispatch} {kernel}, {wave}, {pc}{line}: {text}")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn described(traced: &Traced, what: &What) -> String {
    match what {
        What::Fault(Some(wrong)) => format!("fault: {}", difference(wrong)),
        What::Fault(None) => "fault".to_owned(),
        What::Value(wrong) => format!("first wrong result: {}", difference(wrong)),
        What::Masked => "first wrong operand without a wrong result".to_owned(),
        What::Wave => "first difference in this wave".to_owned(),
        What::Lds(wrong) => format!("first wrong byte of LDS: {}", difference(wrong)),
        What::Path { golden, faulty } => format!("another path: to {faulty}, golden {golden}"),
        What::Escape { wrong, bytes } => {
            format!("first wrong store ({}): {}", counted(*bytes), difference(wrong))
        }
        What::Missing(wrong) => format!("first missing store: {}", difference(wrong)),
        What::Output { output, offset } => {
            format!("first wrong byte of an output: {} at {offset:#x}", name(traced, *output))
        }
        What::Gone(Gone::Overwritten) => "no difference left: overwritten".to_owned(),
        What::Gone(Gone::Masked) => "no difference left: masked".to_owned(),
        What::Gone(Gone::Ended) => "no difference left: the wave ended".to_owned(),
        What::Gone(Gone::Changed) => "no difference left: memory was changed".to_owned(),
    }
}

fn name(traced: &Traced, output: usize) -> String {
    format!("`{}`", traced.outputs.get(output).map_or("", String::as_str))
}

fn counted(bytes: u64) -> String {
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

/// Where something is wrong, and both values.
fn difference(wrong: &Wrong) -> String {
    match wrong {
        Wrong::Register { register, lane, golden, faulty } => {
            let lane = lane.map(|lane| format!(" lane {lane}")).unwrap_or_default();
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

/// What differed: evenly chosen of the times at which it changed, and at the end.
fn spread(rows: &[PropagationRow]) -> String {
    let mut cells = vec![row(&[
        "time",
        "words",
        "registers",
        "lanes",
        "waves",
        "parted",
        "workgroups",
        "LDS",
        "scratch",
        "memory",
    ])];
    let numbers = |own: &PropagationRow| {
        [
            own.wrong_words,
            own.wrong_registers,
            own.wrong_lanes,
            own.wrong_waves,
            own.waves_on_other_path,
            own.wrong_workgroups,
            own.wrong_lds_bytes,
            own.wrong_scratch_bytes,
            own.wrong_memory_bytes,
        ]
    };
    let mut changes: Vec<&PropagationRow> = rows.iter().collect();
    changes.dedup_by_key(|own| numbers(own));
    changes.extend(rows.last());
    changes.dedup_by_key(|own| own.time);
    let last = changes.len().saturating_sub(1);
    let mut shown: Vec<usize> = (0..=ROWS).map(|row| last * row / ROWS).collect();
    shown.dedup();
    for own in shown.into_iter().filter_map(|index| changes.get(index)) {
        let numbers = [own.time].into_iter().chain(numbers(own));
        cells.push(numbers.map(|number| number.to_string()).collect());
    }
    table(&cells)
        + "(wrong register words; parted: waves on another path; LDS and memory in bytes)\n"
}

fn ending(traced: &Traced) -> String {
    let trace = &traced.trace;
    let mut text = match &trace.ending {
        TraceEnding::Died => "ending:         died: nothing differs\n".to_owned(),
        TraceEnding::Contained { memory_bytes } => format!(
            "ending:         contained: the outputs are right, {} of other memory are not\n",
            counted(*memory_bytes)
        ),
        TraceEnding::Escaped(wrong) => wrong.iter().fold(String::new(), |mut text, own| {
            let WrongOutput { output, bytes, first, golden, faulty } = *own;
            let _ = writeln!(
                text,
                "ending:         escaped: {} of {} wrong, the first at {first:#x}: {faulty:#04x}, \
                 golden {golden:#04x}",
                counted(bytes),
                name(traced, output)
            );
            text
        }),
        TraceEnding::Faulted { dispatch, fault } => {
            format!("ending:         stopped by the device in dispatch {dispatch}: {fault}\n")
        }
    };
    let _ = writeln!(
        text,
        "masked:         instructions that read a wrong register and wrote nothing wrong: {}",
        trace.masked
    );
    if trace.left_out.waves > 0 {
        let waves = trace.left_out.waves;
        let _ =
            writeln!(text, "left out:       waves whose registers were not compared on: {waves}");
    }
    text
}
