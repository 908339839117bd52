//! The results folder of a campaign with variants. It contains a folder for each variant, the list of
//! variants, and the combined tables:
//!
//! ```text
//! variants.json                names of the dimensions, and their values in each variant
//! target=gfx90a,size=small/    results of a variant, like those of any campaign
//! variants.csv, results.csv    combined tables of all variants (table.rs)
//! ```

use super::Variants;
use crate::results::folder::{FolderError, is_temporary};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// The file with the list of variants.
const LIST: &str = "variants.json";

/// Variants whose results are in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VariantList {
    /// Format number, [`VariantList::FORMAT`].
    pub format: u32,
    /// Name of the campaign.
    pub name: String,
    /// Names of the dimensions.
    pub dimensions: Vec<String>,
    /// The variants, in order.
    pub variants: Vec<ListedVariant>,
}

/// A variant in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedVariant {
    /// Name of the variant and of its folder.
    pub name: String,
    /// Value of each dimension.
    pub values: Vec<String>,
}

impl VariantList {
    /// Format number of the list. Raise it if other versions would misread the list.
    const FORMAT: u32 = 1;

    /// Returns the list of all variants of a file.
    pub fn new(variants: &Variants) -> VariantList {
        let listed = variants.all.iter().map(|variant| ListedVariant {
            name: variant.name.clone(),
            values: variant.values.clone(),
        });
        VariantList {
            format: VariantList::FORMAT,
            name: variants.name.clone(),
            dimensions: variants.dimensions.clone(),
            variants: listed.collect(),
        }
    }

    /// Reads the list in a folder; returns `None` if there is none.
    ///
    /// # Errors
    /// [`FolderError::Unread`].
    pub fn read(folder: &Path) -> Result<Option<VariantList>, FolderError> {
        let path = folder.join(LIST);
        let failed = |reason| FolderError::Unread { path: path.clone(), reason };
        let text = match flipwave_host::input::read(&path, flipwave_host::input::RECORD) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failed)?,
        };
        let list: VariantList =
            serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
        match list.format {
            VariantList::FORMAT => Ok(Some(list)),
            format => Err(failed(std::io::Error::other(format!(
                "unsupported format {format}, expected {}; choose a new folder with --out",
                VariantList::FORMAT
            )))),
        }
    }

    /// Writes the list to a folder, which is created if it does not exist. An existing list may have fewer
    /// variants; with `force`, it may be any list.
    ///
    /// # Errors
    /// [`FolderError::Occupied`] if the folder contains something else; [`FolderError::Access`].
    pub fn claim(&self, folder: &Path, force: bool) -> Result<(), FolderError> {
        let existing = VariantList::read(folder)?;
        if existing.as_ref() == Some(self) {
            return Ok(());
        }
        let access = |reason| FolderError::Access { path: folder.to_owned(), reason };
        std::fs::create_dir_all(folder).map_err(access)?;
        let found = match &existing {
            _ if force => None,
            None => {
                let mut is_free = true;
                for entry in std::fs::read_dir(folder).map_err(access)? {
                    is_free &= is_temporary(&entry.map_err(access)?.file_name().to_string_lossy());
                }
                (!is_free).then(|| "contains files that are not variants of a campaign".to_owned())
            }
            Some(existing) => self.conflict(existing),
        };
        if let Some(found) = found {
            return Err(FolderError::Occupied { path: folder.to_owned(), found });
        }
        let path = folder.join(LIST);
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        flipwave_host::output::publish(&path, text.as_slice()).map_err(failed)?;
        Ok(())
    }

    /// Describes the part of an existing list that this list does not contain, if any.
    fn conflict(&self, existing: &VariantList) -> Option<String> {
        if (&self.name, &self.dimensions) != (&existing.name, &existing.dimensions) {
            let (name, dimensions) = (&existing.name, existing.dimensions.join(", "));
            return Some(format!("contains the variants of campaign {name} by {dimensions}"));
        }
        let missing = existing.variants.iter().find(|variant| !self.variants.contains(variant));
        missing.map(|variant| {
            format!("contains the variant `{}`, which the file does not have", variant.name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> VariantList {
        let variant = |seed: &&str| ListedVariant {
            name: format!("seed={seed}"),
            values: vec![seed.to_string()],
        };
        VariantList {
            format: VariantList::FORMAT,
            name: "add".to_owned(),
            dimensions: vec!["seed".to_owned()],
            variants: names.iter().map(variant).collect(),
        }
    }

    #[test]
    fn variants_can_be_added_to_a_folder_but_not_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("new");
        for names in [&["1"][..], &["1"], &["0", "1"], &["2", "0", "1"]] {
            list(names).claim(&folder, false).expect("claimed");
            assert_eq!(VariantList::read(&folder).expect("a list"), Some(list(names)));
        }
        let error = list(&["1", "2"]).claim(&folder, false).expect_err("lost").to_string();
        assert!(error.contains("`seed=0`") && error.contains("--force"), "{error}");
        let mut changed = list(&["2", "0", "1"]);
        changed.dimensions = vec!["size".to_owned()];
        let error = changed.claim(&folder, false).expect_err("another").to_string();
        assert!(error.contains("campaign add by seed"), "{error}");
        changed.claim(&folder, true).expect("replaced");
    }

    #[test]
    fn list_text_is_fixed() {
        let text = serde_json::to_string(&list(&["1"])).expect("JSON");
        assert_eq!(
            text,
            "{\"format\":1,\"name\":\"add\",\"dimensions\":[\"seed\"],\
             \"variants\":[{\"name\":\"seed=1\",\"values\":[\"1\"]}]}"
        );
    }

    #[test]
    fn unrelated_folder_is_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("thesis.tex"), "").expect("written");
        let error = list(&["1"]).claim(folder.path(), false).expect_err("occupied").to_string();
        assert!(error.contains("not variants"), "{error}");
        std::fs::write(folder.path().join(LIST), "{}").expect("written");
        assert!(VariantList::read(folder.path()).is_err());
    }
}
