//! Rates with intervals and summaries of campaign results.
