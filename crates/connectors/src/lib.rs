//! Every source, sink and format that Highwater knows.
//!
//! | connector | source | sink | what it is |
//! |---|---|---|---|
//! | `file` | yes | no | JSON lines or CSV in one file, a folder or everything a glob matches |
//! | `nexmark` | yes | no | the auction benchmark's three streams, made up on the fly |
//! | `datagen` | yes | no | random rows of any schema |
//! | `blackhole` | no | yes | takes everything, keeps a count |
//!
//! The traits they implement belong to `dataflow`; nothing else of this crate is visible outside.

mod options;
mod path;

mod format;

mod blackhole;
mod datagen;
mod file;
mod nexmark;

mod generate;
mod random;

use std::sync::Arc;

use dataflow::ConnectorRegistry;

/// Every connector: the one list to add a line to.
#[must_use]
pub fn registry() -> ConnectorRegistry {
    let mut registry = ConnectorRegistry::default();
    registry.register(Arc::new(file::FileConnector));
    registry.register(Arc::new(nexmark::NexmarkConnector));
    registry.register(Arc::new(datagen::DatagenConnector));
    registry.register(Arc::new(blackhole::BlackholeConnector));
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connector_is_found_under_its_name() {
        let registry = registry();
        let names: Vec<&str> = registry.names().collect();
        assert_eq!(names, ["blackhole", "datagen", "file", "nexmark"]);
        for name in names {
            assert_eq!(registry.get(name).unwrap().name(), name);
        }
    }
}
