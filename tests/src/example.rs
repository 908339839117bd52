//! Campaigns and programs in `examples`.

use crate::{Element, Machine, to_values};
use flipwave_analysis::{Row, read_rows};
use flipwave_campaigns::{Campaign, CampaignTarget, CampaignWorkload, Code, Kernels, prepare};
use flipwave_injector::Workload;
use flipwave_isa::Target;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Folder of example campaigns.
pub fn examples_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns")
}

/// All example campaigns, sorted by name.
pub fn examples() -> Vec<PathBuf> {
    yaml_files(&examples_folder())
}

/// Folder of example programs with emulated instructions.
pub fn emulated_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/emulation")
}

/// All example programs with emulated instructions, sorted by name.
pub fn emulated_examples() -> Vec<PathBuf> {
    yaml_files(&emulated_folder())
}

/// The campaigns of the suite, sorted by name.
pub fn suite() -> Vec<PathBuf> {
    yaml_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/suite"))
}

/// The campaign files in a folder, sorted by name.
pub fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// The kernels of a campaign. Panics for other workloads.
pub fn kernels(campaign: &Campaign) -> &Kernels {
    campaign.kernels().unwrap_or_else(|| panic!("{:?}", campaign.workload))
}

/// Initial content of a campaign's buffer.
pub fn buffer<T: Element>(campaign: &Campaign, name: &str) -> Vec<T> {
    let found = kernels(campaign).buffers.iter().find(|buffer| buffer.name == name).expect(name);
    to_values(&found.contents(campaign.seed).expect(name))
}

/// Mutable kernels of a campaign. Panics for other workloads.
pub fn kernels_mut(campaign: &mut Campaign) -> &mut Kernels {
    match &mut campaign.workload {
        CampaignWorkload::Kernels(kernels) => kernels,
        workload => panic!("{workload:?}"),
    }
}

/// A target of a campaign.
pub fn campaign_target(target: &Target) -> CampaignTarget {
    CampaignTarget::named(&target.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

/// The program of a campaign, compiled for a machine with `options`.
pub fn workload(machine: Machine, file: &Path, options: &[&str]) -> Workload {
    let mut campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    campaign.target = campaign_target(&machine.target());
    for launch in &mut kernels_mut(&mut campaign).launches {
        if let Code::Source { options: launch_options, .. } = &mut launch.code {
            let all = options.iter().chain(machine.options());
            *launch_options = all.map(|&option| option.to_owned()).collect();
        }
    }
    prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload
}

/// Writes the example `name` with changed `faults` into `folder`. Returns the path of the new file.
pub fn example(name: &str, faults: &str, folder: &Path) -> PathBuf {
    let examples = examples_folder().canonicalize().expect("the folder of examples");
    let text = std::fs::read_to_string(examples.join(format!("{name}.yaml"))).expect(name);
    let kernels = format!("source: {}/kernels/", examples.display());
    let text: String = text
        .replace("source: kernels/", &kernels)
        .lines()
        .map(|line| {
            if line.starts_with("faults:") {
                format!("faults: {faults}\n")
            } else {
                format!("{line}\n")
            }
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
