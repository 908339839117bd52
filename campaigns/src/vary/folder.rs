//! The results folder of a campaign with variants. It has a folder for each of them, the list of them, and
//! the tables of all:
//!
//! ```text
//! variants.json                what the dimensions are, and the values of each variant
//! target=gfx90a,size=small/    the results of a variant, as of any campaign
//! variants.csv, results.csv    the tables of all variants (table.rs)
//! ```

use super::Variants;
use crate::results::folder::{FolderError, is_passing};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// The file with the list.
const LIST: &str = "variants.json";

/// The variants whose results are in a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VariantList {
    /// The form of the folder, [`VariantList::FORMAT`].
    pub format: u32,
    /// The campaign's name.
    pub name: String,
    /// What varies.
    pub dimensions: Vec<String>,
    /// The variants, in their order.
    pub variants: Vec<ListedVariant>,
}

/// A variant of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListedVariant {
    /// Its name, and that of its folder.
    pub name: String,
    /// The value of each dimension.
    pub values: Vec<String>,
}

impl VariantList {
    /// The format of the list, raised where another version would misread it.
    const FORMAT: u32 = 1;

    /// All variants of a file.
    pub fn of(variants: &Variants) -> VariantList {
        let listed = variants
            .all
            .iter()
            .map(|own| ListedVariant { name: own.name.clone(), values: own.values.clone() });
        VariantList {
            format: VariantList::FORMAT,
            name: variants.name.clone(),
            dimensions: variants.dimensions.clone(),
            variants: listed.collect(),
        }
    }

    /// The list in a folder; nothing where there is none.
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
            other => Err(failed(std::io::Error::other(format!(
                "unsupported format {other}, expected {}; choose a new folder with --out",
                VariantList::FORMAT
            )))),
        }
    }

    /// Puts the list into a folder, which is made if there is none. One that is there may have fewer
    /// variants; with `force`, it may be any.
    ///
    /// # Errors
    /// [`FolderError::Occupied`] where something else is there, [`FolderError::Access`].
    pub fn claim(&self, folder: &Path, force: bool) -> Result<(), FolderError> {
        let there = VariantList::read(folder)?;
        if there.as_ref() == Some(self) {
            return Ok(());
        }
        let access = |reason| FolderError::Access { path: folder.to_owned(), reason };
        std::fs::create_dir_all(folder).map_err(access)?;
        let found = match &there {
            _ if force => None,
            None => {
                let mut is_free = true;
                for entry in std::fs::read_dir(folder).map_err(access)? {
                    is_free &= is_passing(&entry.map_err(access)?.file_name().to_string_lossy());
                }
                (!is_free).then(|| "holds files that are no variants of a campaign".to_owned())
            }
            Some(there) => self.lacks(there),
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

    /// What of another list this one lacks, if so.
    fn lacks(&self, other: &VariantList) -> Option<String> {
        if (&self.name, &self.dimensions) != (&other.name, &other.dimensions) {
            let (name, dimensions) = (&other.name, other.dimensions.join(", "));
            return Some(format!("holds the variants of campaign {name} by {dimensions}"));
        }
        let lacking = other.variants.iter().find(|own| !self.variants.contains(own));
        lacking.map(|own| format!("holds the variant `{}`, which the file does not have", own.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> VariantList {
        let variant = |own: &&str| ListedVariant {
            name: format!("seed={own}"),
            values: vec![own.to_string()],
        };
        VariantList {
            format: VariantList::FORMAT,
            name: "add".to_owned(),
            dimensions: vec!["seed".to_owned()],
            variants: names.iter().map(variant).collect(),
        }
    }

    #[test]
    fn variants_are_added_to_a_folder_and_never_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("new");
        for names in [&["1"][..], &["1"], &["0", "1"], &["2", "0", "1"]] {
            list(names).claim(&folder, false).expect("claimed");
            assert_eq!(VariantList::read(&folder).expect("a list"), Some(list(names)));
        }
        let error = list(&["1", "2"]).claim(&folder, false).expect_err("lost").to_string();
        assert!(error.contains("`seed=0`") && error.contains("--force"), "{error}");
        let mut other = list(&["2", "0", "1"]);
        other.dimensions = vec!["size".to_owned()];
        let error = other.claim(&folder, false).expect_err("another").to_string();
        assert!(error.contains("campaign add by seed"), "{error}");
        other.claim(&folder, true).expect("replaced");
    }

    #[test]
    fn lists_have_a_fixed_text() {
        let text = serde_json::to_string(&list(&["1"])).expect("JSON");
        assert_eq!(
            text,
            "{\"format\":1,\"name\":\"add\",\"dimensions\":[\"seed\"],\
             \"variants\":[{\"name\":\"seed=1\",\"values\":[\"1\"]}]}"
        );
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("thesis.tex"), "").expect("written");
        let error = list(&["1"]).claim(folder.path(), false).expect_err("occupied").to_string();
        assert!(error.contains("no variants"), "{error}");
        std::fs::write(folder.path().join(LIST), "{}").expect("written");
        assert!(VariantList::read(folder.path()).is_err());
    }
}
