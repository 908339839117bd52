//! Metadata of a kernel compiled by Triton, from the JSON file next to the code object.

use crate::platform::other_platform::OtherPlatformError;
use flipwave_arch::Architecture;
use flipwave_isa::Generation;
use flipwave_ptx::Ptx;
use flipwave_sim::Amdgpu;
use serde::Deserialize;
use std::path::Path;

/// Facts that are needed to launch a Triton kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TritonMetadata {
    /// The kernel's name.
    pub name: String,
    /// Work-items per workgroup (one Triton program): `num_warps` times `warp_size`.
    pub workgroup: u32,
    /// Bytes of dynamic LDS, `shared`.
    pub local_memory: u32,
    global: Scratch,
    /// `None` for versions before 3.5, whose kernels have no such argument.
    profile: Option<Scratch>,
}

/// Memory that the launcher allocates for each workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scratch {
    bytes_per_workgroup: u64,
}

impl Scratch {
    /// Returns the number of bytes for all workgroups, or `None` if it overflows.
    pub fn bytes_of(self, workgroups: u64) -> Option<u64> {
        self.bytes_per_workgroup.checked_mul(workgroups)
    }
}

/// The parts of the file that are read.
#[derive(Deserialize)]
struct Written {
    name: String,
    num_warps: u32,
    warp_size: Option<u32>,
    target: Option<WrittenTarget>,
    shared: u32,
    #[serde(default)]
    num_ctas: Option<u64>,
    #[serde(default)]
    global_scratch_size: u64,
    profile_scratch_size: Option<u64>,
}

/// Target of the kernel.
#[derive(Deserialize)]
struct WrittenTarget {
    backend: String,
    #[serde(default)]
    arch: Option<WrittenArch>,
    warp_size: u32,
}

/// A processor: `gfx90a`, or 90 for CUDA's compute capability 9.0.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenArch {
    Name(String),
    ComputeCapability(u32),
}

/// Triton's description of a target.
struct TritonTarget<'a> {
    backend: &'static str,
    /// The target's name in campaign files.
    processor: &'a str,
    /// Lanes of a warp.
    warp_sizes: &'static [u32],
}

impl TritonTarget<'_> {
    /// # Errors
    /// Returns a message for an instruction set that Triton does not compile for.
    fn of(architecture: &dyn Architecture) -> Result<TritonTarget<'_>, String> {
        let any = architecture.as_any();
        if let Some(amdgpu) = any.downcast_ref::<Amdgpu>() {
            let target = amdgpu.target();
            let gcn = target.generation() < Generation::Gfx10;
            let warp_sizes: &[u32] = if gcn { &[64] } else { &[32, 64] };
            Ok(TritonTarget { backend: "hip", processor: target.processor(), warp_sizes })
        } else if let Some(ptx) = any.downcast_ref::<Ptx>() {
            Ok(TritonTarget { backend: "cuda", processor: ptx.target(), warp_sizes: &[32] })
        } else {
            Err(OtherPlatformError { target: architecture.target().to_owned() }.to_string())
        }
    }

    /// Returns an error if a kernel is compiled for another target.
    fn check(&self, written: &WrittenTarget) -> Result<(), String> {
        let backend = self.backend;
        if written.backend != backend {
            let found = &written.backend;
            let target = self.processor;
            return Err(format!("the backend is `{found}`; expected `{backend}` for {target}"));
        }
        let compiled_for = match &written.arch {
            None => return Ok(()),
            Some(WrittenArch::Name(name)) => name.split(':').next().unwrap_or_default().to_owned(),
            Some(WrittenArch::ComputeCapability(number)) => format!("sm_{number}"),
        };
        // Triton compiles for `sm_90a` if it is asked for 90.
        let wanted = match self.backend {
            "cuda" => self.processor.trim_end_matches(['a', 'f']),
            _ => self.processor,
        };
        if compiled_for.is_empty() || compiled_for == wanted {
            return Ok(());
        }
        let target = self.processor;
        Err(format!(
            "the kernel is compiled for {compiled_for}, but the campaign's target is {target}"
        ))
    }
}

impl TritonMetadata {
    /// Reads the metadata file at `path`, for a kernel compiled for the target of `architecture`.
    ///
    /// # Errors
    /// Returns what is wrong with the file, and what is expected.
    pub fn read(path: &Path, architecture: &dyn Architecture) -> Result<TritonMetadata, String> {
        let target = TritonTarget::of(architecture)?;
        let failed = |reason: String| format!("{}: {reason}", path.display());
        let unread = |error: std::io::Error| failed(format!("cannot read the file: {error}"));
        let bytes = flipwave_host::input::read(path, flipwave_host::input::TEXT).map_err(unread)?;
        TritonMetadata::parse(&bytes, &target).map_err(failed)
    }

    fn parse(bytes: &[u8], target: &TritonTarget<'_>) -> Result<TritonMetadata, String> {
        let written: Written = serde_json::from_slice(bytes).map_err(|error| {
            format!(
                "{error}; expected the JSON file that Triton writes next to a code object, with `name`, \
                 `num_warps`, `shared` and other keys"
            )
        })?;
        if let Some(written) = &written.target {
            target.check(written)?;
        }
        let sizes = [written.warp_size, written.target.map(|target| target.warp_size)];
        let mut sizes = sizes.into_iter().flatten();
        let Some(warp_size) = sizes.next() else {
            return Err("has neither `warp_size` nor `target.warp_size`".to_owned());
        };
        let possible = target.warp_sizes;
        if !possible.contains(&warp_size) || sizes.any(|size| size != warp_size) {
            let target = target.processor;
            return Err(format!(
                "warps have {warp_size} lanes or several sizes; {target} has waves of {possible:?} lanes"
            ));
        }
        let workgroup = written.num_warps.saturating_mul(warp_size);
        if workgroup == 0 {
            let warps = written.num_warps;
            return Err(format!(
                "{warps} warps of {warp_size} lanes; expected at least one of each"
            ));
        }
        let blocks = written.num_ctas.unwrap_or(1).max(1);
        let scratch = |bytes: u64| Scratch { bytes_per_workgroup: bytes.saturating_mul(blocks) };
        Ok(TritonMetadata {
            name: written.name,
            workgroup,
            local_memory: written.shared,
            global: scratch(written.global_scratch_size),
            profile: written.profile_scratch_size.map(scratch),
        })
    }

    /// Returns name and size of each scratch memory whose address is passed after the kernel's own
    /// arguments.
    pub fn scratch(&self) -> impl Iterator<Item = (&'static str, Scratch)> {
        let profile = self.profile.map(|scratch| ("profile scratch", scratch));
        std::iter::once(("global scratch", self.global)).chain(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::CampaignTarget;

    const GOOD: &str = r#"{"name": "softmax", "num_warps": 4, "warp_size": 32, "shared": 512,
        "target": {"backend": "hip", "arch": "gfx1100", "warp_size": 32}, "num_ctas": 1,
        "global_scratch_size": 128, "profile_scratch_size": 0, "hash": "0", "cluster_dims": [1, 1]}"#;

    fn parse_for(target: &str, text: &str) -> Result<TritonMetadata, String> {
        let target = CampaignTarget::named(target).expect("a target");
        let target = TritonTarget::of(target.architecture()).expect("of Triton");
        TritonMetadata::parse(text.as_bytes(), &target)
    }

    fn parse(text: &str) -> Result<TritonMetadata, String> {
        parse_for("gfx1100", text)
    }

    #[test]
    fn kernels_for_cuda_are_read() {
        let cuda = GOOD.replace("hip", "cuda").replace("\"gfx1100\"", "90");
        for target in ["sm_90", "sm_90a"] {
            assert_eq!(parse_for(target, &cuda), parse(GOOD), "{target}");
        }
        for (target, text, word) in
            [("sm_80", &*cuda, "for sm_90"), ("sm_90", GOOD, "`hip`"), ("gfx1100", &cuda, "`cuda`")]
        {
            let error = parse_for(target, text).expect_err(word);
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn launch_is_read_from_metadata() {
        let metadata = parse(GOOD).expect("good");
        let found = (metadata.name.as_str(), metadata.workgroup, metadata.local_memory);
        assert_eq!(found, ("softmax", 128, 512));
        let bytes = |metadata: &TritonMetadata| -> Vec<Option<u64>> {
            metadata.scratch().map(|(_, scratch)| scratch.bytes_of(10)).collect()
        };
        assert_eq!(bytes(&metadata), [Some(1280), Some(0)]);
        let older = parse(&GOOD.replace("\"profile_scratch_size\": 0, ", "")).expect("good");
        assert_eq!(bytes(&older), [Some(1280)]);
        let without = parse(&GOOD.replace("\"warp_size\": 32, \"shared\"", "\"shared\""));
        assert_eq!(without, Ok(metadata));
    }

    #[test]
    fn invalid_metadata_is_rejected() {
        for (from, to, word) in [
            ("num_warps", "warps", "num_warps"),
            ("\"hip\"", "\"cuda\"", "cuda"),
            ("gfx1100", "gfx90a", "for gfx90a"),
            ("\"warp_size\": 32", "\"warp_size\": 64", "several sizes"),
            ("\"warp_size\": 32", "\"warp_size\": 16", "16 lanes"),
            ("\"num_warps\": 4", "\"num_warps\": 0", "0 warps"),
            ("512", "-1", "-1"),
            ("{\"name\"", "[\"name\"", "expected"),
        ] {
            let error = parse(&GOOD.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn overflowing_scratch_size_is_none() {
        let metadata = parse(&GOOD.replace("128", &u64::MAX.to_string())).expect("good");
        assert_eq!(metadata.scratch().next().map(|(_, scratch)| scratch.bytes_of(2)), Some(None));
    }
}
