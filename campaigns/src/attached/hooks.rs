//! Hooks for a program in another process: files with its code rewritten, and how it is used.

use super::{AttachError, Attached};
use flipwave_agent::{HookInjectionSession, HookPlan, PlannedCode, TargetProcess};
use flipwave_injector::{HookedCode, Site};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder with what the library in one run is to be given.
pub(super) struct HookFiles {
    folder: PathBuf,
    /// What the library is given.
    pub session: HookInjectionSession,
}

impl HookFiles {
    /// Writes the code for a fault. `buffers` is where the program leaves the addresses of its
    /// data.
    pub fn write(
        attached: &Attached<'_>,
        (process, site): (&TargetProcess, &Site),
        codes: &[HookedCode],
        (buffers, time_limit): (Option<PathBuf>, Duration),
    ) -> Result<HookFiles, AttachError> {
        let folder = attached.run_file("hooks");
        let plan = folder.join("plan.json");
        let session = HookInjectionSession {
            process: process.clone(),
            site: site.to_string(),
            plan: plan.clone(),
            buffers,
            time_limit,
            by: attached.tool_path(),
        };
        let files = HookFiles { folder, session };
        files.fill(codes, &plan).map_err(|reason| attached.files(reason))?;
        Ok(files)
    }

    fn fill(&self, codes: &[HookedCode], plan: &Path) -> std::io::Result<()> {
        std::fs::create_dir(&self.folder)?;
        let mut planned = HookPlan::default();
        for (number, code) in codes.iter().enumerate() {
            let original = self.folder.join(format!("{number}.original"));
            let replacement = self.folder.join(format!("{number}.hooked"));
            std::fs::write(&original, code.original.bytes())?;
            std::fs::write(&replacement, code.object.bytes())?;
            let versions = code.versions.iter();
            planned.0.push(PlannedCode {
                original,
                replacement,
                kernel: code.kernel.as_deref().map(str::to_owned),
                versions: versions.map(|(name, own)| (name.to_string(), own.clone())).collect(),
                hooks: code.hooks.clone(),
            });
        }
        std::fs::write(plan, serde_json::to_vec(&planned)?)
    }
}

impl Drop for HookFiles {
    fn drop(&mut self) {
        // They are in a folder that is removed later, if they cannot be now.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
