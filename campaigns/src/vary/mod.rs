//! Campaigns of campaigns: what a file says under `vary` makes a campaign of each combination.
//!
//! A variant is the campaign that its file would be with the settings written in, and without `vary`. All
//! that is done with campaigns is done with it, in a results folder of its own ([`folder`]).

mod dimensions;
mod folder;
mod name;
mod run;
mod table;
mod tree;

pub(crate) use folder::VariantList;
pub use run::{FinishedVariant, VariantsReport, run_variants};

pub(crate) use table::{remove_tables, write_tables};

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::location::{Field, FileError, Wrong};
use crate::file::read;
use crate::file::schema;
use crate::file::yaml;
use dimensions::{Dimension, Setting, dimensions};
use flipwave_injector::CancellationToken;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use tree::Node;

/// What a campaign file describes.
#[derive(Clone, Debug)]
pub enum CampaignFile {
    /// A campaign.
    Plain(Box<Campaign>),
    /// A campaign for each combination of what stands under `vary`.
    Varied(Variants),
}

/// The campaigns of a file with `vary`.
#[derive(Clone, Debug)]
pub struct Variants {
    /// The file.
    pub file: PathBuf,
    /// The name in it.
    pub name: String,
    /// What varies, in the order of the file.
    pub dimensions: Vec<String>,
    /// The campaigns; the last dimension varies fastest.
    pub all: Vec<Variant>,
    /// The seed of all of them that stands above the file's, if there is one.
    pub seed: Option<u64>,
    /// Which of them is asked for, if not all are.
    chosen: Option<usize>,
    /// The dimension that sets the seed.
    seeds: Option<String>,
}

/// One of the campaigns of a file with `vary`.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name, which is that of its results folder in the folder of all.
    pub name: String,
    /// The value of each dimension.
    pub values: Vec<String>,
    /// The campaign.
    pub campaign: Campaign,
}

impl CampaignFile {
    /// Reads a campaign file. Paths in it are relative to the file.
    ///
    /// # Errors
    /// [`FileError`] with the position of the field that is wrong.
    pub fn read(path: &Path) -> Result<CampaignFile, FileError> {
        CampaignFile::parse(&read::text(path)?, path)
    }

    /// Reads a campaign file from its text.
    ///
    /// # Errors
    /// [`FileError`] with the position of the field that is wrong.
    pub fn parse(text: &str, path: &Path) -> Result<CampaignFile, FileError> {
        let text = yaml::without_mark(text);
        let file: schema::File = yaml::parse(text).map_err(|error| FileError {
            path: path.to_owned(),
            position: error.position,
            message: error.message,
        })?;
        let error = |Wrong { field, message }| FileError {
            path: path.to_owned(),
            position: field.locate(text),
            message: format!("{field}: {message}"),
        };
        let digest = read::digest(text);
        match file.vary {
            None => {
                let campaign = read::campaign(file, text, path, digest).map_err(error)?;
                Ok(CampaignFile::Plain(Box::new(campaign)))
            }
            Some(_) => {
                let mut tree = Node::parse(text).map_err(|error| FileError {
                    path: path.to_owned(),
                    position: error.location().map(|own| (own.line(), own.column())),
                    message: format!(
                        "a campaign with `vary` has no tags and no keys but texts: {error}"
                    ),
                })?;
                let vary = tree.take("vary").unwrap_or(Node::Mapping(Vec::new()));
                let dimensions = dimensions(vary).map_err(error)?;
                let base = Base { tree, text, path, digest };
                Ok(CampaignFile::Varied(base.variants(file.name, &dimensions)?))
            }
        }
    }

    /// The campaign of the file, of one with variants the one that is named.
    ///
    /// # Errors
    /// [`FileError`] that says which there are.
    pub fn campaign(self, variant: Option<&str>) -> Result<Campaign, FileError> {
        match (self, variant) {
            (CampaignFile::Plain(campaign), None) => Ok(*campaign),
            (CampaignFile::Plain(campaign), Some(_)) => Err(no_variants(campaign.file)),
            (CampaignFile::Varied(variants), Some(name)) => {
                let index = variants.index(name)?;
                let mut all = variants.all;
                Ok(all.swap_remove(index).campaign)
            }
            (CampaignFile::Varied(variants), None) => {
                let message = format!(
                    "has `vary`, and this takes one of its variants: give --variant NAME; {}",
                    variants.names()
                );
                Err(FileError { path: variants.file, position: None, message })
            }
        }
    }

    /// Takes `seed` in place of the file's, and only the variant that is named.
    ///
    /// # Errors
    /// [`FileError`] where there is no such variant, or where the file varies the seed.
    pub fn choose(&mut self, variant: Option<&str>, seed: Option<u64>) -> Result<(), FileError> {
        match self {
            CampaignFile::Plain(campaign) => {
                if variant.is_some() {
                    return Err(no_variants(campaign.file.clone()));
                }
                campaign.seed = seed.unwrap_or(campaign.seed);
            }
            CampaignFile::Varied(variants) => {
                variants.chosen = variant.map(|name| variants.index(name)).transpose()?;
                if let (Some(_), Some(dimension)) = (seed, &variants.seeds) {
                    let message = format!(
                        "the dimension `{dimension}` of `vary` sets the seed; leave out --seed"
                    );
                    let path = variants.file.clone();
                    return Err(FileError { path, position: None, message });
                }
                variants.seed = seed;
                for own in &mut variants.all {
                    own.campaign.seed = seed.unwrap_or(own.campaign.seed);
                }
            }
        }
        Ok(())
    }

    /// Takes this many faults in place of the file's number: of each variant, where there are some.
    ///
    /// # Errors
    /// [`FileError`] where the file says in another way how many there are, or varies their number.
    pub fn set_count(&mut self, count: NonZeroU64) -> Result<(), FileError> {
        let error = |path: &Path, reason: String| FileError {
            path: path.to_owned(),
            position: None,
            message: format!("{reason}, and so takes no other number of faults; leave out --count"),
        };
        let all: Vec<&mut Campaign> = match self {
            CampaignFile::Plain(campaign) => vec![campaign],
            CampaignFile::Varied(variants) => {
                variants.all.iter_mut().map(|own| &mut own.campaign).collect()
            }
        };
        let sizes = all.iter().filter_map(|own| Some(&own.faults.as_ref()?.sample.size));
        if sizes.clone().zip(sizes.skip(1)).any(|(one, next)| one != next) {
            return Err(error(&all[0].file, "varies how many faults there are".to_owned()));
        }
        for campaign in all {
            if let Some(faults) = &mut campaign.faults {
                let counted = faults.sample.with_count(count);
                faults.sample = counted.map_err(|reason| error(&campaign.file, reason))?;
            }
        }
        Ok(())
    }

    /// The name in it.
    pub fn name(&self) -> &str {
        match self {
            CampaignFile::Plain(campaign) => &campaign.name,
            CampaignFile::Varied(variants) => &variants.name,
        }
    }

    /// Who looks after its runs.
    pub fn cancellation(&self) -> &CancellationToken {
        match self {
            CampaignFile::Plain(campaign) => &campaign.cancellation,
            CampaignFile::Varied(variants) => variants.cancellation(),
        }
    }
}

fn no_variants(path: PathBuf) -> FileError {
    let message = "has no `vary`, and so no variants; leave out --variant".to_owned();
    FileError { path, position: None, message }
}

impl Variants {
    /// Those that are asked for.
    pub fn chosen(&self) -> &[Variant] {
        match self.chosen {
            Some(index) => &self.all[index..=index],
            None => &self.all,
        }
    }

    /// The name of the one that is asked for, if not all are.
    pub fn chosen_name(&self) -> Option<&str> {
        self.chosen.map(|index| self.all[index].name.as_str())
    }

    /// Who looks after the runs of all of them.
    pub fn cancellation(&self) -> &CancellationToken {
        // There is one at least.
        &self.all[0].campaign.cancellation
    }

    fn index(&self, name: &str) -> Result<usize, FileError> {
        self.all.iter().position(|own| own.name == name).ok_or_else(|| {
            let message = format!("has no variant `{name}`; {}", self.names());
            FileError { path: self.file.clone(), position: None, message }
        })
    }

    /// The names of all, for people.
    fn names(&self) -> String {
        const SHOWN: usize = 20;
        let names: Vec<&str> = self.all.iter().take(SHOWN).map(|own| own.name.as_str()).collect();
        let more = self.all.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("its variants are:\n  {}{more}", names.join("\n  "))
    }
}

impl Variant {
    /// What went wrong with it, with its name and what it sets.
    pub(crate) fn failed(&self, dimensions: &[String], reason: CampaignError) -> CampaignError {
        let settings = dimensions.iter().zip(&self.values);
        let settings: Vec<String> =
            settings.map(|(own, value)| format!("{own}: {value}")).collect();
        CampaignError::Variant {
            name: self.name.clone(),
            settings: settings.join("; "),
            reason: Box::new(reason),
        }
    }
}

/// A file without what stands under `vary`.
struct Base<'a> {
    tree: Node,
    text: &'a str,
    path: &'a Path,
    digest: String,
}

impl Base<'_> {
    /// The campaigns of all combinations.
    fn variants(&self, name: String, dimensions: &[Dimension]) -> Result<Variants, FileError> {
        let mut all: Vec<Variant> = Vec::new();
        let mut by_content: HashMap<String, Vec<usize>> = HashMap::new();
        let cancellation = CancellationToken::default();
        let count = dimensions.iter().map(|own| own.choices.len()).product();
        for index in 0..count {
            let mut left = index;
            let mut choices: Vec<_> = dimensions
                .iter()
                .rev()
                .map(|own| {
                    let choice = &own.choices[left % own.choices.len()];
                    left /= own.choices.len();
                    (own, choice)
                })
                .collect();
            choices.reverse();
            let parts =
                choices.iter().map(|(own, choice)| (own.label.as_str(), choice.label.as_str()));
            let name = name::name(parts);
            let settings: Vec<&Setting> = choices.iter().flat_map(|own| &own.1.settings).collect();
            let mut campaign = self.campaign(&settings).map_err(|(field, message)| FileError {
                path: self.path.to_owned(),
                position: field.locate(self.text),
                message: format!("variant `{name}`: {message}"),
            })?;
            campaign.cancellation = cancellation.clone();
            let alike = by_content.entry(campaign.content.clone()).or_default();
            if let Some(other) = alike.iter().find(|own| all[**own].campaign == campaign) {
                let other = &all[*other].name;
                let message = format!("the variants `{other}` and `{name}` are the same campaign");
                let position = Field::root().key("vary").locate(self.text);
                return Err(FileError { path: self.path.to_owned(), position, message });
            }
            alike.push(index);
            let values = choices.iter().map(|(_, choice)| choice.value.clone()).collect();
            all.push(Variant { name, values, campaign });
        }
        let is_seed = |own: &&Dimension| {
            let mut settings = own.choices.iter().flat_map(|own| &own.settings);
            settings.any(|own| own.field == Field::root().key("seed"))
        };
        Ok(Variants {
            file: self.path.to_owned(),
            name,
            seeds: dimensions.iter().find(is_seed).map(|own| own.name.clone()),
            dimensions: dimensions.iter().map(|own| own.name.clone()).collect(),
            all,
            seed: None,
            chosen: None,
        })
    }

    /// The campaign with some settings.
    ///
    /// # Errors
    /// What is wrong, and the field of this file that says so.
    fn campaign(&self, settings: &[&Setting]) -> Result<Campaign, (Field, String)> {
        let mut tree = self.tree.clone();
        for own in settings {
            let set = tree.set(&own.field, own.value.clone());
            set.map_err(|message| (own.source.clone(), format!("{}: {message}", own.field)))?;
        }
        let origin = |field: &Field| {
            let moved = settings.iter().find_map(|own| field.moved(&own.field, &own.source));
            moved.unwrap_or_else(|| field.clone())
        };
        let (text, places) = tree.line();
        let file = yaml::parse(&text).map_err(|error| {
            let column = error.position.map_or(1, |own| own.1);
            let place = places.iter().rev().find(|(start, _)| *start <= column);
            (place.map_or_else(Field::root, |(_, field)| origin(field)), error.message)
        })?;
        let campaign = read::campaign(file, &text, self.path, self.digest.clone());
        campaign.map_err(|Wrong { field, message }| (origin(&field), format!("{field}: {message}")))
    }
}

#[cfg(test)]
mod tests;
