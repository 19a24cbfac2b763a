//! testkit: development only. Harnesses and tidy checks.
