//! Digests of the example campaigns. Shards and `--resume` identify campaigns by them.

use super::check;
use crate::file::campaign::Campaign;
use crate::run::injection_path::InjectionPath;
use crate::shards::sites;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Stand-in for the digest of the compiled program, which depends on the compiler.
const PROGRAM: &str = "program";

const EXPLANATION: &str = "\
# Digests of the example campaigns, checked by format_tests/shipped_campaigns.rs:
#
#   content  content of the file (campaigns/src/file/read.rs)
#   draws    sampling settings (campaigns/src/sample/draws.rs)
#   sites    the shard space, with a stand-in for the program (campaigns/src/shards/space.rs)
#
# A digest may change because its campaign file changed. If it changes while the file stays the same, users
# can no longer resume their campaigns (content) or add to their shards (draws, sites): undo the change, or
# raise ShardPlan::FORMAT. Update this file with
#
#   FLIPWAVE_BLESS=1 cargo test --workspace --lib shipped_campaigns
";

/// Folders of example campaigns in `examples/`.
const FOLDERS: [&str; 2] = ["campaigns", "suite"];

#[test]
fn digests_of_shipped_campaigns_are_fixed() {
    let mut text = EXPLANATION.to_owned();
    for name in FOLDERS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
        let entries = std::fs::read_dir(&folder).expect("the folder of campaigns");
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("an entry").path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
        files.sort();
        assert!(!files.is_empty(), "{} has no campaigns", folder.display());
        for file in files {
            let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
            let faults = campaign.faults().unwrap_or_else(|error| panic!("{error}"));
            let draws = faults.sample.draws(faults.stratification);
            let sites = sites(&campaign.content, PROGRAM, InjectionPath::Embedded, &draws);
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n{name}/{stem}\n  content {}\n  draws   {draws}\n  sites   {sites}\n",
                campaign.content
            );
        }
    }
    check("shipped_campaigns.txt", &text);
}
