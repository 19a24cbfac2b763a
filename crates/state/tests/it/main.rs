//! Durable state through its public face: the same suite over both backends, what survives a
//! restart, and what a start must notice.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod backend;
mod crash;
mod damage;
mod fixture;
mod history;
mod inbox;
mod model;
mod restart;
