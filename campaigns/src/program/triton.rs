//! What Triton's compiler says of a kernel that it has made, in the JSON file beside the code object.

use flipwave_isa::{Generation, Target};
use serde::Deserialize;
use std::path::Path;

/// What a launch has to know of a kernel of Triton's beside its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TritonMetadata {
    /// The kernel's name.
    pub name: String,
    /// Work-items of a workgroup, which is one program: `num_warps` times `warp_size`.
    pub workgroup: u32,
    /// Bytes of dynamic LDS, `shared`.
    pub local_memory: u32,
    global: Scratch,
    /// Nothing of versions below 3.5, whose kernels have no such argument.
    profile: Option<Scratch>,
}

/// Memory that the launcher gives each workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scratch {
    bytes_of_workgroup: u64,
}

impl Scratch {
    /// Bytes for so many workgroups.
    pub fn bytes_of(self, workgroups: u64) -> Option<u64> {
        self.bytes_of_workgroup.checked_mul(workgroups)
    }
}

/// The file, as far as it is read.
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

/// What the kernel is for.
#[derive(Deserialize)]
struct WrittenTarget {
    backend: String,
    #[serde(default)]
    arch: String,
    warp_size: u32,
}

impl TritonMetadata {
    /// Reads the file at `path`, of a kernel for `target`.
    ///
    /// # Errors
    /// Says what is wrong with it, and what is expected.
    pub fn read(path: &Path, target: &Target) -> Result<TritonMetadata, String> {
        let failed = |reason: String| format!("{}: {reason}", path.display());
        let cannot = |error: std::io::Error| failed(format!("cannot read it: {error}"));
        let bytes = flipwave_host::input::read(path, flipwave_host::input::TEXT).map_err(cannot)?;
        TritonMetadata::parse(&bytes, target).map_err(failed)
    }

    fn parse(bytes: &[u8], target: &Target) -> Result<TritonMetadata, String> {
        let own: Written = serde_json::from_slice(bytes).map_err(|error| {
            format!(
                "{error}; expected the JSON that Triton writes beside a code object, with `name`, \
                 `num_warps`, `shared` and others"
            )
        })?;
        if let Some(WrittenTarget { backend, arch, .. }) = &own.target {
            if backend != "hip" {
                return Err(format!("is of the backend `{backend}`; expected `hip`"));
            }
            let processor = arch.split(':').next().unwrap_or_default();
            if !processor.is_empty() && processor != target.processor() {
                let wanted = target.processor();
                return Err(format!(
                    "is of a kernel for {processor}; the campaign's target is {wanted}"
                ));
            }
        }
        let sizes = [own.warp_size, own.target.map(|target| target.warp_size)];
        let mut sizes = sizes.into_iter().flatten();
        let Some(warp_size) = sizes.next() else {
            return Err("has neither `warp_size` nor `target.warp_size`".to_owned());
        };
        let possible: &[u32] =
            if target.generation() < Generation::Gfx10 { &[64] } else { &[32, 64] };
        if !possible.contains(&warp_size) || sizes.any(|other| other != warp_size) {
            let target = target.processor();
            return Err(format!(
                "has warps of {warp_size} lanes, or of several sizes; {target} has waves of {possible:?}"
            ));
        }
        let workgroup = own.num_warps.saturating_mul(warp_size);
        if workgroup == 0 {
            let warps = own.num_warps;
            return Err(format!(
                "{warps} warps of {warp_size} lanes; expected at least one of each"
            ));
        }
        let blocks = own.num_ctas.unwrap_or(1).max(1);
        let scratch = |bytes: u64| Scratch { bytes_of_workgroup: bytes.saturating_mul(blocks) };
        Ok(TritonMetadata {
            name: own.name,
            workgroup,
            local_memory: own.shared,
            global: scratch(own.global_scratch_size),
            profile: own.profile_scratch_size.map(scratch),
        })
    }

    /// The memory to which the arguments after the kernel's own point, in their order, with its name.
    pub fn scratch(&self) -> impl Iterator<Item = (&'static str, Scratch)> {
        let profile = self.profile.map(|own| ("profile scratch", own));
        std::iter::once(("global scratch", self.global)).chain(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"name": "softmax", "num_warps": 4, "warp_size": 32, "shared": 512,
        "target": {"backend": "hip", "arch": "gfx1100", "warp_size": 32}, "num_ctas": 1,
        "global_scratch_size": 128, "profile_scratch_size": 0, "hash": "0", "cluster_dims": [1, 1]}"#;

    fn parse(text: &str) -> Result<TritonMetadata, String> {
        TritonMetadata::parse(text.as_bytes(), &"gfx1100".parse().expect("a target"))
    }

    #[test]
    fn a_launch_is_as_the_compiler_says() {
        let own = parse(GOOD).expect("good");
        assert_eq!((own.name.as_str(), own.workgroup, own.local_memory), ("softmax", 128, 512));
        let bytes = |own: &TritonMetadata| -> Vec<Option<u64>> {
            own.scratch().map(|(_, scratch)| scratch.bytes_of(10)).collect()
        };
        assert_eq!(bytes(&own), [Some(1280), Some(0)]);
        let older = parse(&GOOD.replace("\"profile_scratch_size\": 0, ", "")).expect("good");
        assert_eq!(bytes(&older), [Some(1280)]);
        let without = parse(&GOOD.replace("\"warp_size\": 32, \"shared\"", "\"shared\""));
        assert_eq!(without, Ok(own));
    }

    #[test]
    fn what_is_not_of_this_compiler_is_refused_in_its_words() {
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
    fn scratch_that_cannot_be_counted_is_none() {
        let own = parse(&GOOD.replace("128", &u64::MAX.to_string())).expect("good");
        assert_eq!(own.scratch().next().map(|(_, own)| own.bytes_of(2)), Some(None));
    }
}
