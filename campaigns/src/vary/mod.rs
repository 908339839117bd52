//! Parameter sweeps: the key `vary` describes one campaign for each combination of values.
//!
//! A variant is the campaign that results from writing its settings into the file and removing `vary`. It
//! can be used like any other campaign, and has its own results folder ([`folder`]).

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
use crate::file::location::{Field, FieldError, FileError};
use crate::file::read;
use crate::file::schema;
use crate::file::yaml;
use crate::platform::CampaignTarget;
use dimensions::{Dimension, Setting, dimensions};
use flipwave_injector::CancellationToken;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use tree::Node;

/// A validated campaign file.
#[derive(Clone, Debug)]
pub enum CampaignFile {
    /// One campaign.
    Plain(Box<Campaign>),
    /// A campaign for each combination of values in `vary`.
    Varied(Variants),
}

/// Variants of a file with `vary`.
#[derive(Clone, Debug)]
pub struct Variants {
    /// The file.
    pub file: PathBuf,
    /// The campaign name in the file.
    pub name: String,
    /// Names of the dimensions, in the order of the file.
    pub dimensions: Vec<String>,
    /// All variants; the last dimension varies fastest.
    pub all: Vec<Variant>,
    /// Seed that overrides the seed of the file, if any.
    pub seed: Option<u64>,
    /// Target that overrides the target of the file, if any.
    pub target: Option<String>,
    /// Index of the selected variant, if not all are selected.
    chosen: Option<usize>,
    /// Dimension that sets the seed, if any.
    seed_dimension: Option<String>,
}

/// One variant of a file with `vary`.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name of the variant, and of its results folder.
    pub name: String,
    /// Value of each dimension.
    pub values: Vec<String>,
    /// The campaign.
    pub campaign: Campaign,
}

impl CampaignFile {
    /// Reads a campaign file. Paths in it are relative to the file. `target` overrides the file's target.
    ///
    /// # Errors
    /// [`FileError`] with the position of the invalid field.
    pub fn read(path: &Path, target: Option<&str>) -> Result<CampaignFile, FileError> {
        CampaignFile::parse(&read::text(path)?, path, target)
    }

    /// Reads a campaign file from its text. `target` overrides the file's target.
    ///
    /// # Errors
    /// [`FileError`] with the position of the invalid field.
    pub fn parse(text: &str, path: &Path, target: Option<&str>) -> Result<CampaignFile, FileError> {
        let text = yaml::strip_byte_order_mark(text);
        let mut file: schema::File = yaml::parse(text).map_err(|error| FileError {
            path: path.to_owned(),
            position: error.position,
            message: error.message,
        })?;
        let error = |FieldError { field, message }| FileError {
            path: path.to_owned(),
            position: field.locate(text),
            message: format!("{field}: {message}"),
        };
        let digest = read::digest(text);
        let target = target.filter(|target| *target != file.target);
        if let Some(target) = target {
            CampaignTarget::named(target).map_err(|message| FileError {
                path: path.to_owned(),
                position: None,
                message: format!("--target: {message}"),
            })?;
            target.clone_into(&mut file.target);
        }
        match file.vary {
            None => {
                let campaign = read::campaign(file, text, path, digest).map_err(error)?;
                Ok(CampaignFile::Plain(Box::new(campaign)))
            }
            Some(_) => {
                let mut tree = Node::parse(text).map_err(|error| FileError {
                    path: path.to_owned(),
                    position: error.location().map(|at| (at.line(), at.column())),
                    message: format!(
                        "a campaign with `vary` must not contain tags or keys that are not text: {error}"
                    ),
                })?;
                let vary = tree.take("vary").unwrap_or(Node::Mapping(Vec::new()));
                let dimensions = dimensions(vary).map_err(error)?;
                if let Some(target) = target {
                    set_target(&mut tree, target, &dimensions, path)?;
                }
                let base = Base { tree, text, path, digest };
                let mut variants = base.variants(file.name, &dimensions)?;
                variants.target = target.map(str::to_owned);
                Ok(CampaignFile::Varied(variants))
            }
        }
    }

    /// Returns the campaign of the file, or the campaign of a variant.
    ///
    /// # Errors
    /// [`FileError`] if `variant` does not name an existing variant. The error lists the variants.
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
                    "has `vary`, but this command uses one variant; select it with --variant NAME; {}",
                    variants.names()
                );
                Err(FileError { path: variants.file, position: None, message })
            }
        }
    }

    /// Overrides the seed, and selects a variant.
    ///
    /// # Errors
    /// [`FileError`] if the variant does not exist, or if the file varies the seed.
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
                if let (Some(_), Some(dimension)) = (seed, &variants.seed_dimension) {
                    let message = format!(
                        "the dimension `{dimension}` of `vary` sets the seed; remove --seed"
                    );
                    let path = variants.file.clone();
                    return Err(FileError { path, position: None, message });
                }
                variants.seed = seed;
                for variant in &mut variants.all {
                    variant.campaign.seed = seed.unwrap_or(variant.campaign.seed);
                }
            }
        }
        Ok(())
    }

    /// Overrides the number of faults of each campaign.
    ///
    /// # Errors
    /// [`FileError`] if the file determines the number in another way, or varies it.
    pub fn set_count(&mut self, count: NonZeroU64) -> Result<(), FileError> {
        let error = |path: &Path, reason: String| FileError {
            path: path.to_owned(),
            position: None,
            message: format!("{reason}, which conflicts with --count; remove --count"),
        };
        let all: Vec<&mut Campaign> = match self {
            CampaignFile::Plain(campaign) => vec![campaign],
            CampaignFile::Varied(variants) => {
                variants.all.iter_mut().map(|variant| &mut variant.campaign).collect()
            }
        };
        let sizes = all.iter().filter_map(|campaign| Some(&campaign.faults.as_ref()?.sample.size));
        if sizes.clone().zip(sizes.skip(1)).any(|(size, next)| size != next) {
            return Err(error(&all[0].file, "varies the number of faults".to_owned()));
        }
        for campaign in all {
            if let Some(faults) = &mut campaign.faults {
                let counted = faults.sample.with_count(count);
                faults.sample = counted.map_err(|reason| error(&campaign.file, reason))?;
            }
        }
        Ok(())
    }

    /// Returns the campaign name in the file.
    pub fn name(&self) -> &str {
        match self {
            CampaignFile::Plain(campaign) => &campaign.name,
            CampaignFile::Varied(variants) => &variants.name,
        }
    }

    /// Returns the token that cancels the runs of the file.
    pub fn cancellation(&self) -> &CancellationToken {
        match self {
            CampaignFile::Plain(campaign) => &campaign.cancellation,
            CampaignFile::Varied(variants) => variants.cancellation(),
        }
    }
}

/// Overrides the target of a file with `vary`.
fn set_target(
    tree: &mut Node,
    target: &str,
    dimensions: &[Dimension],
    path: &Path,
) -> Result<(), FileError> {
    let field = Field::root().key("target");
    let failed = |message: String| FileError { path: path.to_owned(), position: None, message };
    if let Some(dimension) = dimensions.iter().find(|dimension| dimension.sets(&field)) {
        let name = &dimension.name;
        let message = format!("the dimension `{name}` of `vary` sets the target; remove --target");
        return Err(failed(message));
    }
    tree.set(&field, Node::Text(target.to_owned())).map_err(failed)
}

fn no_variants(path: PathBuf) -> FileError {
    let message = "has no `vary`, and therefore no variants; remove --variant".to_owned();
    FileError { path, position: None, message }
}

impl Variants {
    /// Returns the selected variants.
    pub fn chosen(&self) -> &[Variant] {
        match self.chosen {
            Some(index) => &self.all[index..=index],
            None => &self.all,
        }
    }

    /// Returns the name of the selected variant, if not all are selected.
    pub fn chosen_name(&self) -> Option<&str> {
        self.chosen.map(|index| self.all[index].name.as_str())
    }

    /// Returns the token that cancels the runs of all variants.
    pub fn cancellation(&self) -> &CancellationToken {
        // There is at least one variant.
        &self.all[0].campaign.cancellation
    }

    fn index(&self, name: &str) -> Result<usize, FileError> {
        self.all.iter().position(|variant| variant.name == name).ok_or_else(|| {
            let message = format!("has no variant `{name}`; {}", self.names());
            FileError { path: self.file.clone(), position: None, message }
        })
    }

    /// Lists the names of the variants for error messages.
    fn names(&self) -> String {
        const SHOWN: usize = 20;
        let names: Vec<&str> =
            self.all.iter().take(SHOWN).map(|variant| variant.name.as_str()).collect();
        let more = self.all.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("its variants are:\n  {}{more}", names.join("\n  "))
    }
}

impl Variant {
    /// Adds the variant's name and settings to an error.
    pub(crate) fn failed(&self, dimensions: &[String], reason: CampaignError) -> CampaignError {
        let settings = dimensions.iter().zip(&self.values);
        let settings: Vec<String> =
            settings.map(|(dimension, value)| format!("{dimension}: {value}")).collect();
        CampaignError::Variant {
            name: self.name.clone(),
            settings: settings.join("; "),
            reason: Box::new(reason),
        }
    }
}

/// A file without the content of `vary`.
struct Base<'a> {
    tree: Node,
    text: &'a str,
    path: &'a Path,
    digest: String,
}

impl Base<'_> {
    /// Creates the variants of all combinations.
    fn variants(&self, name: String, dimensions: &[Dimension]) -> Result<Variants, FileError> {
        let mut all: Vec<Variant> = Vec::new();
        let mut by_content: HashMap<String, Vec<usize>> = HashMap::new();
        let cancellation = CancellationToken::default();
        let count = dimensions.iter().map(|dimension| dimension.choices.len()).product();
        for index in 0..count {
            let mut left = index;
            let mut choices: Vec<_> = dimensions
                .iter()
                .rev()
                .map(|dimension| {
                    let choice = &dimension.choices[left % dimension.choices.len()];
                    left /= dimension.choices.len();
                    (dimension, choice)
                })
                .collect();
            choices.reverse();
            let parts = choices
                .iter()
                .map(|(dimension, choice)| (dimension.label.as_str(), choice.label.as_str()));
            let name = name::variant_name(parts);
            let settings: Vec<&Setting> =
                choices.iter().flat_map(|(_, choice)| &choice.settings).collect();
            let mut campaign = self.campaign(&settings).map_err(|(field, message)| FileError {
                path: self.path.to_owned(),
                position: field.locate(self.text),
                message: format!("variant `{name}`: {message}"),
            })?;
            campaign.cancellation = cancellation.clone();
            let same_content = by_content.entry(campaign.content.clone()).or_default();
            if let Some(equal) = same_content.iter().find(|index| all[**index].campaign == campaign)
            {
                let equal = &all[*equal].name;
                let message = format!("the variants `{equal}` and `{name}` are the same campaign");
                let position = Field::root().key("vary").locate(self.text);
                return Err(FileError { path: self.path.to_owned(), position, message });
            }
            same_content.push(index);
            let values = choices.iter().map(|(_, choice)| choice.value.clone()).collect();
            all.push(Variant { name, values, campaign });
        }
        let seed = Field::root().key("seed");
        let seed_dimension = dimensions.iter().find(|dimension| dimension.sets(&seed));
        Ok(Variants {
            file: self.path.to_owned(),
            name,
            seed_dimension: seed_dimension.map(|dimension| dimension.name.clone()),
            dimensions: dimensions.iter().map(|dimension| dimension.name.clone()).collect(),
            all,
            seed: None,
            target: None,
            chosen: None,
        })
    }

    /// Creates the campaign with some settings.
    ///
    /// # Errors
    /// Returns the invalid field of the file, and the message.
    fn campaign(&self, settings: &[&Setting]) -> Result<Campaign, (Field, String)> {
        let mut tree = self.tree.clone();
        for setting in settings {
            let set = tree.set(&setting.field, setting.value.clone());
            set.map_err(|message| {
                (setting.source.clone(), format!("{}: {message}", setting.field))
            })?;
        }
        let origin = |field: &Field| {
            let moved = settings
                .iter()
                .find_map(|setting| field.replace_prefix(&setting.field, &setting.source));
            moved.unwrap_or_else(|| field.clone())
        };
        let (text, columns) = tree.line();
        let file = yaml::parse(&text).map_err(|error| {
            let column = error.position.map_or(1, |(_, column)| column);
            let value = columns.iter().rev().find(|(start, _)| *start <= column);
            (value.map_or_else(Field::root, |(_, field)| origin(field)), error.message)
        })?;
        let campaign = read::campaign(file, &text, self.path, self.digest.clone());
        campaign.map_err(|FieldError { field, message }| {
            (origin(&field), format!("{field}: {message}"))
        })
    }
}

#[cfg(test)]
mod tests;
