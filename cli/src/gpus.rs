//! The options `--gpu` and `--gpus`.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args};
use flipwave_agent::processors;
use flipwave_ptx::Ptx;
use std::ffi::OsStr;
use std::str::FromStr;

/// Options that select the GPUs that an application finds.
#[derive(Debug, Args)]
pub struct GpusArgument {
    /// GPUs that the application finds, such as gfx90a,2xgfx1030 for three, or sm_90 for CUDA
    #[arg(long, value_name = "GPU", default_value = "gfx90a", value_parser = GpuListParser)]
    gpu: GpuList,
    /// Repeat the list of GPUs N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    gpus: u32,
}

impl GpusArgument {
    /// The names of the GPUs in order.
    pub fn all(&self) -> Vec<String> {
        vec![&self.gpu.0[..]; self.gpus as usize].concat()
    }

    /// The name of the first GPU if the GPUs execute PTX.
    pub fn ptx(&self) -> Option<&str> {
        self.gpu.0.first().map(String::as_str).filter(|name| is_for_ptx(name))
    }
}

/// A list of GPU names with repetitions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GpuList(Vec<String>);

impl FromStr for GpuList {
    type Err = String;

    /// Parses comma-separated names, each with an optional count and `x` in front.
    fn from_str(text: &str) -> Result<GpuList, String> {
        const MAX_GPUS: usize = 16;
        let mut all = Vec::new();
        for part in text.split(',') {
            let counted =
                part.split_once('x').and_then(|(count, name)| Some((count.parse().ok()?, name)));
            let (count, name) = counted.unwrap_or((1usize, part));
            if !is_gpu(name) {
                let known = processors().collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "unknown GPU `{name}`; expected one of {known}, or sm_90 and others for PTX"
                ));
            }
            if count == 0 || all.len() + count > MAX_GPUS {
                return Err(format!("expected 1 to {MAX_GPUS} GPUs"));
            }
            all.extend(std::iter::repeat_n(name.to_owned(), count));
        }
        if all.iter().any(|name| is_for_ptx(name)) && !all.iter().all(|name| is_for_ptx(name)) {
            return Err(
                "expected GPUs of AMD or GPUs for PTX; an application cannot use both".into()
            );
        }
        Ok(GpuList(all))
    }
}

/// Returns `true` for a GPU that executes PTX.
fn is_for_ptx(name: &str) -> bool {
    Ptx::new(name).is_some()
}

/// Returns `true` for the name of a GPU that applications can find.
fn is_gpu(name: &str) -> bool {
    is_for_ptx(name) || processors().any(|processor| processor == name)
}

/// Parses the name of a GPU.
///
/// # Errors
/// A message that lists the known names.
pub fn parse_gpu(name: &str) -> Result<String, String> {
    let list: GpuList = name.parse()?;
    match &list.0[..] {
        [gpu] => Ok(gpu.clone()),
        gpus => Err(format!("{} GPUs; expected 1", gpus.len())),
    }
}

/// Parser of [`GpuList`] that lists the known names in `--help`.
#[derive(Clone)]
struct GpuListParser;

impl TypedValueParser for GpuListParser {
    type Value = GpuList;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<GpuList, clap::Error> {
        let read = |text: &str| GpuList::from_str(text);
        TypedValueParser::parse_ref(&read, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(processors().chain(["sm_80", "sm_90"]).map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_list_is_expanded_and_invalid_lists_are_rejected() {
        let list = |text: &str| text.parse::<GpuList>().map(|list| list.0.join(" "));
        for (text, all) in [
            ("gfx90a", "gfx90a"),
            ("gfx90a,gfx1030", "gfx90a gfx1030"),
            ("2xgfx90a,gfx1100,1xgfx90a", "gfx90a gfx90a gfx1100 gfx90a"),
            ("2xsm_90a", "sm_90a sm_90a"),
        ] {
            assert_eq!(list(text).as_deref(), Ok(all));
        }
        for (text, part) in [
            ("", "unknown GPU ``"),
            ("gfx90a,", "unknown GPU ``"),
            ("gfx1036", "unknown GPU `gfx1036`; expected one of gfx906, "),
            ("xgfx90a", "unknown GPU `xgfx90a`"),
            ("gfx90a x2", "unknown GPU `gfx90a x2`"),
            ("0xgfx90a", "1 to 16 GPUs"),
            ("sm_90,gfx90a", "cannot use both"),
            ("sm_9", "unknown GPU `sm_9`"),
            ("9xgfx90a,8xgfx90a", "1 to 16 GPUs"),
        ] {
            let error = list(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
