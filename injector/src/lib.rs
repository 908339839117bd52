//! Profile, fault models, fault sites, one injection.
