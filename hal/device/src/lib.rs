//! What a GPU is to everything above it.
