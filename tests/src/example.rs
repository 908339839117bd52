//! The campaigns in `examples/campaigns`.

use crate::{Element, Machine, to_values};
use flipwave_analysis::{Row, read_rows};
use flipwave_campaigns::{Campaign, CampaignWorkload, Code, Kernels, prepare};
use flipwave_injector::Workload;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Their folder.
pub fn examples_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns")
}

/// All of them, by name.
pub fn examples() -> Vec<PathBuf> {
    yaml_files(&examples_folder())
}

/// The folder of programs with emulated instructions.
pub fn emulated_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/emulation")
}

/// All of these, by name.
pub fn emulated_examples() -> Vec<PathBuf> {
    yaml_files(&emulated_folder())
}

/// The campaigns of the suite, by name.
pub fn suite() -> Vec<PathBuf> {
    yaml_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/suite"))
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// The kernels of a campaign that has some.
pub fn kernels(campaign: &Campaign) -> &Kernels {
    campaign.kernels().unwrap_or_else(|| panic!("{:?}", campaign.workload))
}

/// What a buffer of a campaign holds before the first launch.
pub fn buffer<T: Element>(campaign: &Campaign, name: &str) -> Vec<T> {
    let found = kernels(campaign).buffers.iter().find(|buffer| buffer.name == name).expect(name);
    to_values(&found.contents(campaign.seed).expect(name))
}

/// The kernels of a campaign, to be changed.
pub fn kernels_mut(campaign: &mut Campaign) -> &mut Kernels {
    match &mut campaign.workload {
        CampaignWorkload::Kernels(kernels) => kernels,
        other => panic!("{other:?}"),
    }
}

/// The program of a campaign, compiled for a machine with these options.
pub fn workload(machine: Machine, file: &Path, options: &[&str]) -> Workload {
    let mut campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    campaign.target = machine.target();
    for launch in &mut kernels_mut(&mut campaign).launches {
        if let Code::Source { options: launch_options, .. } = &mut launch.code {
            let all = options.iter().chain(machine.options());
            *launch_options = all.map(|&option| option.to_owned()).collect();
        }
    }
    prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload
}

/// Writes the example `name`, with other `faults`, into `folder`; the path of the new file.
pub fn example(name: &str, faults: &str, folder: &Path) -> PathBuf {
    let examples = examples_folder().canonicalize().expect("the folder of examples");
    let text = std::fs::read_to_string(examples.join(format!("{name}.yaml"))).expect(name);
    let kernels = format!("source: {}/kernels/", examples.display());
    let text: String = text
        .replace("source: kernels/", &kernels)
        .lines()
        .map(|line| match line.starts_with("faults:") {
            true => format!("faults: {faults}\n"),
            false => format!("{line}\n"),
        })
        .collect();
    let file = folder.join(format!("{name}.yaml"));
    std::fs::write(&file, text).expect("a campaign file written");
    file
}

/// Rows of a results folder without the instruction count and timing, which runs with hooks do not report.
pub fn timeless_rows(folder: &Path) -> Vec<Row> {
    let timeless = |row| Row { instructions: None, timing_changed: None, ..row };
    rows(folder).into_iter().map(timeless).collect()
}

/// The rows of a results folder.
pub fn rows(folder: &Path) -> Vec<Row> {
    let file = File::open(folder.join("results.csv")).expect("results.csv");
    read_rows(file).unwrap_or_else(|error| panic!("{error}"))
}
