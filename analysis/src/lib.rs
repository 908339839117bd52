//! Statistics of fault-injection campaigns: outcome rates with intervals, comparisons, reports and plots.

mod agreement;
mod compare;
mod complete_lines;
mod design;
mod estimate;
mod failures;
mod hardening;
mod hexadecimal;
mod interval;
mod looks;
mod monitor;
mod outcome;
mod parquet;
mod parquet_table;
mod plot;
mod propagation;
mod report;
mod row;
mod sample_size;
mod scope;
mod severity;
mod shape;
mod stopping;
mod summary;
mod table;
mod tallies;

pub use agreement::{
    AgreementError, Correlation, MeasuredOutcomes, OutcomeAgreement, PublishedRate, RateAgreement,
    agreement, read_published, spearman, write_agreement,
};
pub use compare::{
    Change, CompareError, ComparedMeans, ComparedOutcome, ComparedProgram, ComparedRate,
    ComparedRates, ComparedScope, Comparison, PairCounts, ProgramsComparison, RateComponents,
    ScopeKind,
};
pub use complete_lines::complete_lines_len;
pub use design::{PrunedSites, SampleDesign};
pub use estimate::IntervalMethod;
pub use failures::{
    DeviceFailures, Estimate, FailureKind, FailureLine, FailureScope, NEW_YORK_FLUX, RawRate,
    Structure, VulnerabilityFactor,
};
pub use hardening::{Coverage, HardenedPoint, curve_svg};
pub use interval::{Confidence, Interval, StatisticsError, clopper_pearson, wilson};
pub use looks::LookSchedule;
pub use monitor::{CampaignMonitor, Pilot, stage_ends};
pub use outcome::{Outcome, UnknownOutcome};
pub use parquet::ParquetWriter;
pub use parquet_table::{TableError, csv_to_parquet};
pub use plot::rates_svg;
pub use propagation::{PropagationRow, propagation_svg};
pub use report::{
    Aggregates, CampaignInfo, ComparedOutput, ReportedCampaign, RowFilter, Sources, report_html,
    write_aggregates,
};
pub use row::{ResultsError, Row, Workgroup, read_rows, rows};
pub use sample_size::sample_size;
pub use scope::Scope;
pub use severity::Severity;
pub use shape::ErrorShape;
pub use stopping::{Look, PrecisionGoal, StoppingRule};
pub use summary::{Cause, CauseShare, ScopeSummary, Share, Summary};
pub use table::overview_table;
pub use tallies::Tallies;
