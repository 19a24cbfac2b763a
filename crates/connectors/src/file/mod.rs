//! Connector `file`: records in files below the allowed folders.
//!
//! One file is one split and a position is a byte of it, so reading goes on exactly where it
//! stopped. Without `follow` the source is bounded: the files and their lengths are those of the
//! moment it started, and what is appended later is not seen. With `follow` files are read on as
//! they grow, and files that appear later are new splits.

mod reader;
mod source;

use std::sync::Arc;

use dataflow::{Connector, ConnectorContext, OptionError, OptionSpec, Options, Source, SourceDefinition};

use crate::file::source::{FileSource, Location};
use crate::format::{DELIMITER, FORMAT, HEADER, NULL, QUOTE, RecordFormat, TIMESTAMP_UNIT};
use crate::options::{CheckedOptions, optional, required};
use crate::path::AllowedFolders;

const PATH: OptionSpec = required(
    "path",
    &["file.path"],
    "a file, a folder, or a pattern with * ? [ ]; relative to the first allowed folder",
);
const FOLLOW: OptionSpec =
    optional("follow", &["tail"], "whether to go on reading as files grow and appear, default false");
const ORDER: OptionSpec =
    optional("order", &[], "order of the files; only 'none', each file being a split of its own");

const OPTIONS: &[OptionSpec] = &[PATH, FOLLOW, ORDER, FORMAT, TIMESTAMP_UNIT, HEADER, DELIMITER, QUOTE, NULL];

/// The connector.
pub(crate) struct FileConnector;

impl Connector for FileConnector {
    fn name(&self) -> &'static str {
        "file"
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn source(
        &self,
        definition: &SourceDefinition,
        ctx: &ConnectorContext,
    ) -> Result<Arc<dyn Source>, OptionError> {
        let options = CheckedOptions::check(self.name(), OPTIONS, &all_options(definition)?)?;
        let format = RecordFormat::new(&definition.format, &options, &definition.schema)?;
        let follow = options.boolean(FOLLOW.name)?.unwrap_or(false);
        if options.text(ORDER.name).is_some_and(|order| order != "none") {
            let reason = "reading files as one sequence is not supported; without this option each file is a split of its own";
            return Err(options.refuse(ORDER.name, reason));
        }
        let allowed = AllowedFolders::new(ctx);
        let location = Location::new(options.required_text(PATH.name)?, &allowed)?;
        let source = FileSource { location, follow, format, schema: Arc::clone(&definition.schema), allowed };
        Ok(Arc::new(source))
    }
}

/// Format options may stand in `WITH` or behind `ENCODE`, but only once.
fn all_options(definition: &SourceDefinition) -> Result<Options, OptionError> {
    let mut options = definition.options.clone();
    for (name, value) in &definition.format.options {
        if options.insert(name.clone(), value.clone()).is_some() {
            return Err(OptionError::Other(format!("option \"{name}\" is given twice")));
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests;
