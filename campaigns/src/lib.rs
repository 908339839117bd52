//! Campaigns: YAML in, plan, run, classify, CSV out.
