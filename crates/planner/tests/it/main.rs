//! Statements to plans: what EXPLAIN prints, over a catalog made of statements.

mod batch;
mod database;
mod refused;
mod relations;
mod views;
