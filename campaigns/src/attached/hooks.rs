//! Hooks for a program in another process: files with rewritten code, and the plan for the agent.

use super::{AttachError, AttachedProgram};
use flipwave_agent::{HookInjectionSession, HookPlan, PlannedCode, TargetProcess};
use flipwave_injector::Site;
use flipwave_injector_amdgpu::HookedCode;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A fault that hooks inject.
#[derive(Clone)]
pub(super) struct HookFault<'a> {
    /// The target process.
    pub process: &'a TargetProcess,
    /// The site of the fault.
    pub site: &'a Site,
    /// Code with hooks.
    pub codes: &'a [HookedCode],
    /// The file with the function of the site, if it has one.
    pub function: Option<PathBuf>,
}

/// A folder with the files of one run for the agent.
pub(super) struct HookFiles {
    folder: PathBuf,
    /// The session of the agent.
    pub session: HookInjectionSession,
}

impl HookFiles {
    /// Writes the files for a fault. The program writes the addresses of its buffers to the file
    /// `buffers`, if given.
    pub fn write(
        attached: &AttachedProgram<'_>,
        HookFault { process, site, codes, function }: HookFault<'_>,
        buffers: Option<PathBuf>,
        time_limit: Duration,
    ) -> Result<HookFiles, AttachError> {
        let folder = attached.run_file("hooks");
        let plan = folder.join("plan.json");
        let session = HookInjectionSession {
            process: process.clone(),
            site: site.to_string(),
            function,
            plan: plan.clone(),
            buffers,
            time_limit,
            by: attached.tool_path(),
        };
        let files = HookFiles { folder, session };
        files.write_code(codes, &plan).map_err(|reason| attached.file_error(reason))?;
        Ok(files)
    }

    fn write_code(&self, codes: &[HookedCode], plan: &Path) -> std::io::Result<()> {
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
                versions: versions
                    .map(|(name, version)| (name.to_string(), version.clone()))
                    .collect(),
                hooks: code.hooks.clone(),
            });
        }
        std::fs::write(plan, serde_json::to_vec(&planned)?)
    }
}

impl Drop for HookFiles {
    fn drop(&mut self) {
        // Files that cannot be removed are removed with their parent folder later.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
