//! What every implementation of a trait of this crate must do.

mod backend;
