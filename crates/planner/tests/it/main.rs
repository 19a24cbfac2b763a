//! Statements to plans: what EXPLAIN prints, over a catalog made of statements.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test that cannot go on fails")]

mod batch;
mod database;
mod refused;
mod relations;
mod views;
