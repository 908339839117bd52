//! Which GPUs an application finds.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args};
use flipwave_agent::processors;
use std::ffi::OsStr;
use std::str::FromStr;

/// The GPUs that an application finds.
#[derive(Debug, Args)]
pub struct GpusArgument {
    /// The GPU, or several: gfx90a,2xgfx1030 are three
    #[arg(long, value_name = "GPU", default_value = "gfx90a", value_parser = GpuListParser)]
    gpu: GpuList,
    /// How many times as many GPUs there are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    gpus: u32,
}

impl GpusArgument {
    /// Their names, one after another.
    pub fn all(&self) -> Vec<String> {
        vec![&self.gpu.0[..]; self.gpus as usize].concat()
    }
}

/// Names of GPUs, each as often as there are such.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GpuList(Vec<String>);

impl FromStr for GpuList {
    type Err = String;

    /// Names with commas in between; before each may be how many there are, and an `x`.
    fn from_str(text: &str) -> Result<GpuList, String> {
        const MOST: usize = 16;
        let mut all = Vec::new();
        for part in text.split(',') {
            let counted =
                part.split_once('x').and_then(|(count, name)| Some((count.parse().ok()?, name)));
            let (count, name) = counted.unwrap_or((1usize, part));
            if !processors().any(|own| own == name) {
                let known = processors().collect::<Vec<_>>().join(", ");
                return Err(format!("there is no GPU `{name}`; expected are {known}"));
            }
            if count == 0 || all.len() + count > MOST {
                return Err(format!("expected are 1 to {MOST} GPUs"));
            }
            all.extend(std::iter::repeat_n(name.to_owned(), count));
        }
        Ok(GpuList(all))
    }
}

/// Reads a list, and says which names there are.
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
        Some(Box::new(processors().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_each_gpu_as_often_as_it_says() {
        let list = |text: &str| text.parse::<GpuList>().map(|list| list.0.join(" "));
        for (text, all) in [
            ("gfx90a", "gfx90a"),
            ("gfx90a,gfx1030", "gfx90a gfx1030"),
            ("2xgfx90a,gfx1100,1xgfx90a", "gfx90a gfx90a gfx1100 gfx90a"),
        ] {
            assert_eq!(list(text).as_deref(), Ok(all));
        }
        for (text, part) in [
            ("", "no GPU ``"),
            ("gfx90a,", "no GPU ``"),
            ("gfx1250", "no GPU `gfx1250`; expected are gfx906, "),
            ("xgfx90a", "no GPU `xgfx90a`"),
            ("gfx90a x2", "no GPU `gfx90a x2`"),
            ("0xgfx90a", "1 to 16 GPUs"),
            ("9xgfx90a,8xgfx90a", "1 to 16 GPUs"),
        ] {
            let error = list(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
