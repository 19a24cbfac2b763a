//! The engine as an embedder uses it: statements in, rows and errors out, over the memory backend.

mod catalog;
mod database;
mod dml;
mod prepared;
mod psql;
mod queries;
mod restart;
mod settings;
mod sources;
mod transactions;
mod views;
