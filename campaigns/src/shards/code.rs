//! Compiled kernels, kept for all shards: the others need no compiler, and do not start one.

use super::layout::SharedFolder;
use crate::error::CampaignError;
use crate::file::campaign::{Campaign, CampaignWorkload, Code};
use crate::program::compile::{CompileError, Compiler};
use crate::program::prepare::PrepareError;
use crate::results::folder::FolderError;
use flipwave_isa::Target;
use std::fs;
use std::path::{Path, PathBuf};

/// A campaign whose kernels are compiled.
pub(super) struct Compiled {
    /// The campaign, with code objects in the place of sources.
    pub campaign: Campaign,
    /// The compiler's version, if one was needed for any of them, here or by somebody else.
    pub compiler: Option<String>,
}

/// A campaign with the code objects that are kept in a folder in the place of its sources, compiled and
/// put there where they are not. One is kept under what its source and its options are; files that a
/// source includes are those that the first shard found.
///
/// # Errors
/// [`CampaignError::Prepare`] for sources that cannot be compiled, [`FolderError::Access`].
pub(super) fn compiled(
    folder: &SharedFolder,
    campaign: &Campaign,
) -> Result<Compiled, CampaignError> {
    let mut compiled = Compiled { campaign: campaign.clone(), compiler: None };
    // A launch on hardware reads the campaign's file.
    if campaign.device().is_hardware() {
        return Ok(compiled);
    }
    let CampaignWorkload::Kernels(kernels) = &mut compiled.campaign.workload else {
        return Ok(compiled);
    };
    for launch in kernels.launches.iter_mut().chain(&mut kernels.software) {
        if let Code::Source { path, options } = &launch.code {
            let kept = kept(folder, path, options, &campaign.target)?;
            let version = kept.with_extension("compiler");
            let text = flipwave_host::input::read_text(&version, flipwave_host::input::TEXT);
            let text = text.map_err(|reason| FolderError::Unread { path: version, reason })?;
            compiled.compiler = Some(text);
            launch.code = Code::Object { path: kept };
        }
    }
    Ok(compiled)
}

/// The file with the code object of a source.
fn kept(
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
