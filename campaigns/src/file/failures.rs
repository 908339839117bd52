//! The YAML file with the raw fault rates of a device's structures.

use crate::file::location::{Field, FieldError, FileError, reject};
use crate::file::read;
use crate::file::yaml::{self, unique_keys};
use flipwave_analysis::{Aggregates, DeviceFailures, NEW_YORK_FLUX, RawRate, RowFilter, Structure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Upper bound of a raw rate per bit: one fault per hour.
const MAX_FIT_PER_BIT: f64 = 1e9;
/// Upper bound of a cross-section per bit, in cm^2.
const MAX_CROSS_SECTION: f64 = 1.0;
/// Upper bound of a flux, in particles per cm^2 and hour.
const MAX_FLUX: f64 = 1e18;
/// Upper bound of a relative standard deviation.
const MAX_UNCERTAINTY: f64 = 10.0;

/// YAML form of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "raw rates: a mapping with `structures`, `devices` and `flux`")]
struct Written {
    #[serde(default = "one")]
    devices: u64,
    #[serde(default = "new_york")]
    flux: f64,
    #[serde(deserialize_with = "unique_keys")]
    structures: BTreeMap<String, WrittenStructure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with `fit_per_bit` or `cross_section`, `bits` and others")]
struct WrittenStructure {
    fit_per_bit: Option<f64>,
    cross_section: Option<f64>,
    #[serde(default)]
    uncertainty: f64,
    bits: u64,
    #[serde(default)]
    rows: WrittenRows,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with one of `class`, `group`, `opcode` and `kernel`")]
struct WrittenRows {
    class: Option<String>,
    group: Option<String>,
    opcode: Option<String>,
    kernel: Option<String>,
}

fn one() -> u64 {
    1
}

fn new_york() -> f64 {
    NEW_YORK_FLUX
}

/// Reads the raw rates of a device's structures from the YAML file `path`, and takes the outcomes of
/// faults in each structure from the rows of a campaign.
///
/// # Errors
/// [`FileError`] with the position of a field that is invalid, or that selects rows missing in the
/// campaign.
pub fn failures(path: &Path, campaign: &Aggregates) -> Result<DeviceFailures, FileError> {
    parse(&read::text(path)?, path, campaign)
}

fn parse(text: &str, path: &Path, campaign: &Aggregates) -> Result<DeviceFailures, FileError> {
    let text = yaml::strip_byte_order_mark(text);
    let written: Written = yaml::parse(text).map_err(|error| FileError {
        path: path.to_owned(),
        position: error.position,
        message: error.message,
    })?;
    written.check(campaign).map_err(|FieldError { field, message }| FileError {
        path: path.to_owned(),
        position: field.locate(text),
        message: format!("{field}: {message}"),
    })
}

impl Written {
    fn check(self, campaign: &Aggregates) -> Result<DeviceFailures, FieldError> {
        let root = Field::root();
        let Written { devices, flux, structures } = self;
        if devices == 0 {
            return reject(&root.key("devices"), "is 0; expected 1 or more");
        }
        let flux = above_zero(&root.key("flux"), flux, MAX_FLUX, "particles per cm^2 and hour")?;
        let all = root.key("structures");
        if structures.is_empty() {
            return reject(&all, "is empty; expected a name and a rate for each structure");
        }
        let structures = structures.into_iter().map(|(name, structure)| {
            let field = all.key(&name);
            structure.check(name, flux, &field, campaign)
        });
        Ok(DeviceFailures {
            structures: structures.collect::<Result<_, _>>()?,
            devices,
            confidence: campaign.info().design.confidence,
        })
    }
}

impl WrittenStructure {
    fn check(
        self,
        name: String,
        flux: f64,
        field: &Field,
        campaign: &Aggregates,
    ) -> Result<Structure, FieldError> {
        let WrittenStructure { fit_per_bit, cross_section, uncertainty, bits, rows } = self;
        if bits == 0 {
            return reject(&field.key("bits"), "is 0; expected 1 or more");
        }
        if !(0.0..=MAX_UNCERTAINTY).contains(&uncertainty) {
            let message = format!(
                "invalid relative standard deviation {uncertainty}; expected 0 to {MAX_UNCERTAINTY}, for \
                 example 0.2 for 20 %"
            );
            return reject(&field.key("uncertainty"), message);
        }
        let bits = bits as f64;
        let raw = match (fit_per_bit, cross_section) {
            (Some(fit), None) => {
                let field = field.key("fit_per_bit");
                let fit = above_zero(&field, fit, MAX_FIT_PER_BIT, "faults per bit in 10^9 hours")?;
                RawRate::from_fit_per_bit(fit, bits, uncertainty)
            }
            (None, Some(area)) => {
                let field = field.key("cross_section");
                let area = above_zero(&field, area, MAX_CROSS_SECTION, "cm^2 per bit")?;
                RawRate::from_cross_section(area, flux, bits, uncertainty)
            }
            _ => return reject(field, "expected exactly one of `fit_per_bit` and `cross_section`"),
        };
        let (rows, rows_field) = rows.check(&field.key("rows"))?;
        let Some((injections, shares)) = campaign.outcomes_of(&rows) else {
            let folder = &campaign.info().folder;
            let values = campaign.filter_values(&rows).join(", ");
            let message = if values.is_empty() {
                format!("no injections with any {} in {folder}", rows.scope())
            } else {
                format!("no injections of {rows} in {folder}; expected one of: {values}")
            };
            return reject(&rows_field, message);
        };
        Ok(Structure { name, raw, rows, injections, shares })
    }
}

impl WrittenRows {
    /// Returns the row filter, and the field that defines it.
    fn check(self, field: &Field) -> Result<(RowFilter, Field), FieldError> {
        let WrittenRows { class, group, opcode, kernel } = self;
        let given = [
            class.map(RowFilter::Class),
            group.map(RowFilter::Group),
            opcode.map(RowFilter::Opcode),
            kernel.map(RowFilter::Kernel),
        ];
        let mut given = given.into_iter().flatten();
        match (given.next(), given.next()) {
            (None, _) => Ok((RowFilter::All, field.clone())),
            (Some(rows), None) => {
                let field = field.key(rows.scope());
                Ok((rows, field))
            }
            _ => reject(
                field,
                "expected one of `class`, `group`, `opcode` and `kernel`, not several",
            ),
        }
    }
}

/// Checks that a number is above 0 and at most `max`.
fn above_zero(field: &Field, number: f64, max: f64, what: &str) -> Result<f64, FieldError> {
    if number > 0.0 && number <= max {
        return Ok(number);
    }
    reject(field, format!("{number}; expected {what}, above 0 and up to {max:e}"))
}
