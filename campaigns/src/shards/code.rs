//! Compiled kernels in the shared folder: only the first shard needs a compiler.

use super::layout::SharedFolder;
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload};
use crate::file::kernels::Code;
use crate::program::compile::{CompileError, Compiler};
use crate::program::error::PrepareError;
use crate::results::folder::FolderError;
use flipwave_isa::Target;
use std::fs;
use std::path::{Path, PathBuf};

/// A campaign with compiled kernels.
pub(super) struct Compiled {
    /// The campaign, with code objects instead of sources.
    pub campaign: Campaign,
    /// Version of the compiler, if the campaign has sources.
    pub compiler: Option<String>,
}

/// Replaces the sources of a campaign with code objects in the folder. Compiles the ones that are
/// missing. The source and its options identify a code object; included files are those of the
/// first shard.
///
/// # Errors
/// [`CampaignError::Prepare`] for sources that cannot be compiled, [`FolderError::Access`].
pub(super) fn compile(
    folder: &SharedFolder,
    campaign: &Campaign,
) -> Result<Compiled, CampaignError> {
    let mut compiled = Compiled { campaign: campaign.clone(), compiler: None };
    // `flipwave launch` on hardware reads the campaign file and compiles the sources itself.
    if campaign.device().is_hardware() {
        return Ok(compiled);
    }
    // Other platforms compile in each shard.
    let Ok(target) = campaign.target.amdgpu() else { return Ok(compiled) };
    let CampaignWorkload::Kernels(kernels) = &mut compiled.campaign.workload else {
        return Ok(compiled);
    };
    for launch in kernels.launches.iter_mut().chain(&mut kernels.software) {
        if let Code::Source { path, options } = &launch.code {
            let object = code_object(folder, path, options, target)?;
            let version = object.with_extension("compiler");
            let text = flipwave_host::input::read_text(&version, flipwave_host::input::TEXT);
            let text = text.map_err(|reason| FolderError::Unread { path: version, reason })?;
            compiled.compiler = Some(text);
            launch.code = Code::Object { path: object };
        }
    }
    Ok(compiled)
}

/// Returns the file with the code object of a source. Compiles the source if the file is missing.
fn code_object(
    folder: &SharedFolder,
    source: &Path,
    options: &[String],
    target: &Target,
) -> Result<PathBuf, CampaignError> {
    let failed = |error: CompileError| CampaignError::from(PrepareError::Compile(error));
    let text =
        flipwave_host::input::read(source, flipwave_host::input::TEXT).map_err(|reason| {
            failed(CompileError::Source { source_file: source.to_owned(), reason })
        })?;
    let target_name = target.to_string();
    let name = source.file_name().unwrap_or_default().as_encoded_bytes();
    let mut words: Vec<&[u8]> = vec![b"code", target_name.as_bytes(), name, &text];
    words.extend(options.iter().map(String::as_bytes));
    let path = folder.golden(&super::space::digest(&words)).with_extension("co");
    if fs::exists(&path).unwrap_or(false)
        && fs::exists(path.with_extension("compiler")).unwrap_or(false)
    {
        return Ok(path);
    }
    let compiler = Compiler::find().map_err(failed)?;
    let code = compiler.compile(source, options, target).map_err(failed)?;
    let version = path.with_extension("compiler");
    for (path, content) in [(&version, compiler.version().as_bytes()), (&path, &code)] {
        flipwave_host::output::publish(path, content)
            .map_err(|reason| FolderError::Access { path: path.clone(), reason })?;
    }
    Ok(path)
}
