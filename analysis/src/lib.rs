//! Rates with intervals and summaries of campaign results, and plots of them; how one fault spread.

mod agreement;
mod compare;
mod course;
mod design;
mod estimate;
mod failures;
mod hardening;
mod hexadecimal;
mod interval;
mod looks;
mod outcome;
mod parquet;
mod plot;
mod propagation;
mod report;
mod row;
mod sample_size;
mod severity;
mod shape;
mod stopping;
mod summary;
mod table;
mod whole_lines;

pub use agreement::{
    AgreementError, Compared, Correlation, Measured, OutcomeAgreement, Published, agreement,
    read_published, spearman, write_agreement,
};
pub use compare::{
    By, Change, CompareError, ComparedRate, ComparedRates, ComparedScope, Comparison, Fourfold,
};
pub use course::{Course, Pilot, stage_ends};
pub use design::{Known, SampleDesign};
pub use estimate::IntervalMethod;
pub use failures::{
    DeviceFailures, Estimate, FailureKind, FailureLine, FailurePart, NEW_YORK_FLUX, RawRate,
    Structure, Vulnerability,
};
pub use hardening::{Coverage, HardenedPoint, curve_svg};
pub use interval::{Confidence, Interval, StatisticsError, clopper_pearson, wilson};
pub use looks::Looks;
pub use outcome::{Outcome, UnknownOutcome};
pub use parquet::ParquetWriter;
pub use plot::rates_svg;
pub use propagation::{PropagationRow, propagation_svg};
pub use report::{
    About, Aggregates, ComparedOutput, Reported, RowsOf, Sources, report_html, write_aggregates,
};
pub use row::{ResultsError, Row, Workgroup, read_rows, rows};
pub use sample_size::sample_size;
pub use severity::Severity;
pub use shape::ErrorShape;
pub use stopping::{Goal, Look, Until};
pub use summary::{Scope, ScopeSummary, Share, Summary, Tallies};
pub use table::overview;
pub use whole_lines::whole_lines;
