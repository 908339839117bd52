//! The CSV file of a report.

use super::aggregates::Aggregates;
use super::page::ReportedCampaign;
use crate::{Outcome, ResultsError, ScopeSummary, Share};
use flipwave_host::output::FormulaEscaper;
use serde::Serialize;
use std::io::Write;

/// A line of `aggregates.csv`.
#[derive(Serialize)]
struct AggregateRecord<'a> {
    campaign: &'a str,
    folder: &'a str,
    scope: &'a str,
    value: &'a str,
    outcome: Outcome,
    cause: &'a str,
    count: u64,
    total: u64,
    rate: String,
    low: String,
    high: String,
    part_of_sdc: String,
    confidence: f64,
}

/// Writes `aggregates.csv`: for each campaign, scope and value one line per outcome, then one per cause.
/// Rates have six decimals, so that the file does not depend on the host.
///
/// # Errors
/// [`ResultsError::Csv`] if writing fails.
pub fn write_aggregates(
    campaigns: &[ReportedCampaign],
    output: impl Write,
) -> Result<(), ResultsError> {
    let mut writer = csv::Writer::from_writer(FormulaEscaper::new(output));
    for ReportedCampaign { campaign, .. } in campaigns {
        for rates in &campaign.rates {
            let (scope, value) = (rates.scope.dimension().name(), campaign.value(rates.scope));
            write(&mut writer, campaign, scope, &value, rates)?;
        }
        for cell in &campaign.grid.cells {
            let value = campaign.grid.position(cell.scope);
            write(&mut writer, campaign, "workgroup", &value, cell)?;
        }
    }
    writer.flush().map_err(csv::Error::from)?;
    Ok(())
}

/// Writes the lines of one scope and value.
fn write<K>(
    writer: &mut csv::Writer<impl Write>,
    campaign: &Aggregates,
    scope: &str,
    value: &str,
    rates: &ScopeSummary<K>,
) -> Result<(), ResultsError> {
    let part_of_sdc = format!("{:.6}", campaign.share_of_sdc(rates));
    for (outcome, cause, Share { count, rate, interval }) in rates.lines() {
        writer.serialize(AggregateRecord {
            campaign: &campaign.info.name,
            folder: &campaign.info.folder,
            scope,
            value,
            outcome,
            cause,
            count,
            total: rates.total,
            rate: format!("{rate:.6}"),
            low: format!("{:.6}", interval.low),
            high: format!("{:.6}", interval.high),
            part_of_sdc: part_of_sdc.clone(),
            confidence: campaign.info.design.confidence.probability(),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::columns;

    #[test]
    fn aggregates_have_fixed_columns() {
        let record = AggregateRecord {
            campaign: "",
            folder: "",
            scope: "",
            value: "",
            outcome: Outcome::Sdc,
            cause: "",
            count: 0,
            total: 0,
            rate: String::new(),
            low: String::new(),
            high: String::new(),
            part_of_sdc: String::new(),
            confidence: 0.95,
        };
        assert_eq!(
            columns(&record),
            "campaign,folder,scope,value,outcome,cause,count,total,rate,low,high,part_of_sdc,\
             confidence"
        );
    }
}
