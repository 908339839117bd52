//! Writes an inspection as JSON, incrementally.

use flipwave_hooks::inspect::Inspector;
use serde::{Serialize, Serializer};
use std::io::Write;

/// Serializes like [`flipwave_hooks::inspect::Inspection`], but computes its parts while they are written.
#[derive(Serialize)]
struct Inspection<'a, 'o> {
    target: String,
    version: u8,
    wave_size: u8,
    #[serde(serialize_with = "kernels")]
    kernels: &'a Inspector<'o>,
    #[serde(serialize_with = "functions")]
    functions: &'a Inspector<'o>,
}

fn kernels<S: Serializer>(inspector: &&Inspector<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(inspector.kernels())
}

fn functions<S: Serializer>(inspector: &&Inspector<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(inspector.functions(true))
}

pub fn write(out: &mut impl Write, inspector: &Inspector<'_>) -> std::io::Result<()> {
    let inspection = Inspection {
        target: inspector.object().target().to_string(),
        version: inspector.object().version(),
        wave_size: inspector.wave_size(),
        kernels: inspector,
        functions: inspector,
    };
    serde_json::to_writer_pretty(&mut *out, &inspection).map_err(std::io::Error::from)?;
    writeln!(out)
}
