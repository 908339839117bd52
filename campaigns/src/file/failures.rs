//! The file that says how often faults happen in the structures of a device.

use crate::file::location::{Field, FileError, Wrong, wrong};
use crate::file::read;
use crate::file::yaml::{self, unique_keys};
use flipwave_analysis::{Aggregates, DeviceFailures, NEW_YORK_FLUX, RawRate, RowFilter, Structure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// More than any raw rate of a bit: a fault in an hour.
const MOST_FIT_PER_BIT: f64 = 1e9;
/// More than any cross-section of a bit, in cm^2.
const LARGEST_CROSS_SECTION: f64 = 1.0;
/// More than any flux, in particles per cm^2 and hour.
const MOST_FLUX: f64 = 1e18;
/// A standard deviation of ten times the rate: nothing is known of it any more.
const MOST_UNCERTAINTY: f64 = 10.0;

/// The file as it is written.
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

/// Reads the raw rates of a device's structures from the YAML file `path`, and takes what comes of a fault
/// in each from the rows of a campaign.
///
/// # Errors
/// [`FileError`] with the position of the field that is wrong, or names rows that the campaign lacks.
pub fn failures(path: &Path, campaign: &Aggregates) -> Result<DeviceFailures, FileError> {
    parse(&read::text(path)?, path, campaign)
}

fn parse(text: &str, path: &Path, campaign: &Aggregates) -> Result<DeviceFailures, FileError> {
    let text = yaml::without_mark(text);
    let written: Written = yaml::parse(text).map_err(|error| FileError {
        path: path.to_owned(),
        position: error.position,
        message: error.message,
    })?;
    written.check(campaign).map_err(|Wrong { field, message }| FileError {
        path: path.to_owned(),
        position: field.locate(text),
        message: format!("{field}: {message}"),
    })
}

impl Written {
    fn check(self, campaign: &Aggregates) -> Result<DeviceFailures, Wrong> {
        let root = Field::root();
        let Written { devices, flux, structures } = self;
        if devices == 0 {
            return wrong(&root.key("devices"), "there are 0; expected 1 or more");
        }
        let flux = above_zero(&root.key("flux"), flux, MOST_FLUX, "particles per cm^2 and hour")?;
        let all = root.key("structures");
        if structures.is_empty() {
            return wrong(&all, "it is empty; expected a name and its rate for each structure");
        }
        let structures = structures.into_iter().map(|(name, own)| {
            let field = all.key(&name);
            own.check(name, flux, &field, campaign)
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
    ) -> Result<Structure, Wrong> {
        let WrittenStructure { fit_per_bit, cross_section, uncertainty, bits, rows } = self;
        if bits == 0 {
            return wrong(&field.key("bits"), "there are 0; expected 1 or more");
        }
        if !(0.0..=MOST_UNCERTAINTY).contains(&uncertainty) {
            let message = format!(
                "{uncertainty} is no relative standard deviation; expected 0 to {MOST_UNCERTAINTY}, like \
                 0.2 for 20 %"
            );
            return wrong(&field.key("uncertainty"), message);
        }
        let bits = bits as f64;
        let raw = match (fit_per_bit, cross_section) {
            (Some(fit), None) => {
                let own = field.key("fit_per_bit");
                let fit = above_zero(&own, fit, MOST_FIT_PER_BIT, "faults of a bit in 10^9 hours")?;
                RawRate::from_fit_per_bit(fit, bits, uncertainty)
            }
            (None, Some(area)) => {
                let own = field.key("cross_section");
                let area = above_zero(&own, area, LARGEST_CROSS_SECTION, "cm^2 of a bit")?;
                RawRate::from_cross_section(area, flux, bits, uncertainty)
            }
            _ => return wrong(field, "expected exactly one of `fit_per_bit` and `cross_section`"),
        };
        let (rows, own) = rows.check(&field.key("rows"))?;
        let Some((injections, shares)) = campaign.outcomes_of(&rows) else {
            let folder = &campaign.info().folder;
            let values = campaign.filter_values(&rows).join(", ");
            return wrong(
                &own,
                match values.as_str() {
                    "" => {
                        format!("{folder} has no injections of which there is any {}", rows.scope())
                    }
                    _ => format!("{folder} has no injections of {rows}; expected one of: {values}"),
                },
            );
        };
        Ok(Structure { name, raw, rows, injections, shares })
    }
}

impl WrittenRows {
    /// Which rows they are, and the field that says so.
    fn check(self, field: &Field) -> Result<(RowFilter, Field), Wrong> {
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
            _ => {
                wrong(field, "expected one of `class`, `group`, `opcode` and `kernel`, not several")
            }
        }
    }
}

/// The number, if it is above 0 and up to `most`.
fn above_zero(field: &Field, number: f64, most: f64, what: &str) -> Result<f64, Wrong> {
    match number > 0.0 && number <= most {
        true => Ok(number),
        false => wrong(field, format!("{number}; expected {what}, above 0 and up to {most:e}")),
    }
}
