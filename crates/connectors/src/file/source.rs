//! A `file` source: which files there are, and opening them.

use std::fmt;
use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use dataflow::{DataflowError, Decoder, OptionError, ReadOutcome, Result, Source, Split, SplitReader};

use crate::file::reader::FileReader;
use crate::format::RecordFormat;
use crate::path::AllowedFolders;

/// Where the files are.
#[derive(Debug, Clone)]
pub(super) enum Location {
    /// One file, or all files directly in a folder.
    Path(PathBuf),
    /// Every file whose path matches.
    Pattern(String),
}

impl Location {
    pub(super) fn new(path: &str, allowed: &AllowedFolders) -> Result<Self, OptionError> {
        let is_pattern = |text: &str| text.contains(['*', '?', '[']);
        let resolved = allowed.resolve(path);
        if !is_pattern(path) || resolved.as_ref().is_ok_and(|path| path.exists()) {
            return resolved.map(Self::Path);
        }
        // The folder in front of the first wildcard decides whether the pattern is allowed at all;
        // what it finds is checked one by one.
        let components: Vec<Component<'_>> = Path::new(path).components().collect();
        let first =
            components.iter().position(|component| is_pattern(&component.as_os_str().to_string_lossy()));
        let (base, rest) = components.split_at(first.unwrap_or(0));
        let folder = allowed.resolve(&PathBuf::from_iter(base).to_string_lossy())?;
        let rest = PathBuf::from_iter(rest);
        let pattern =
            format!("{}/{}", glob::Pattern::escape(&folder.to_string_lossy()), rest.to_string_lossy());
        match glob::Pattern::new(&pattern) {
            Ok(_) => Ok(Self::Pattern(pattern)),
            Err(error) => Err(OptionError::Value {
                name: "path".to_owned(),
                value: path.to_owned(),
                reason: error.msg.to_owned(),
            }),
        }
    }

    /// The files there are now, sorted.
    fn list(&self) -> Result<Vec<PathBuf>> {
        let mut found = match self {
            Self::Path(path) if path.is_dir() => files_in(path)?,
            Self::Path(path) => vec![path.clone()],
            Self::Pattern(pattern) => {
                let paths = glob::glob(pattern).map_err(|error| failed(pattern, error.msg))?;
                paths
                    .collect::<std::result::Result<Vec<_>, _>>()
                    .map_err(|error| failed(pattern, &error.to_string()))?
            }
        };
        found.retain(|path| path.is_file());
        found.sort_unstable();
        Ok(found)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Pattern(pattern) => f.write_str(pattern),
        }
    }
}

/// Everything directly in a folder, except for hidden files.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let name = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(&name, &error.to_string()))? {
        let entry = entry.map_err(|error| failed(&name, &error.to_string()))?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The error of a file.
pub(super) fn failed(path: &str, reason: &str) -> DataflowError {
    DataflowError::Connector { connector: "file", message: format!("{path}: {reason}") }
}

#[derive(Debug)]
pub(super) struct FileSource {
    pub(super) location: Location,
    pub(super) follow: bool,
    pub(super) format: RecordFormat,
    pub(super) schema: SchemaRef,
    pub(super) allowed: AllowedFolders,
}

impl FileSource {
    /// Refuses a file that cannot be one of this format and schema.
    fn check_beginning(&self, split: &Split) -> Result<()> {
        let beginning = self.beginning(split)?;
        self.format.check_beginning(&self.schema, &beginning).map_err(|reason| failed(&split.name, &reason))
    }

    /// The first records of a split.
    fn beginning(&self, split: &Split) -> Result<Bytes> {
        const BEGINNING_BYTES: usize = 4 << 10;
        match self.open(split, split.start)?.read(BEGINNING_BYTES)? {
            ReadOutcome::Chunk(chunk) => Ok(chunk.bytes),
            ReadOutcome::Pending | ReadOutcome::End => Ok(Bytes::new()),
        }
    }

    fn refuse_outside(&self, path: &Path) -> Result<()> {
        if self.allowed.allow(path) {
            return Ok(());
        }
        Err(failed(&path.display().to_string(), "outside of the allowed folders"))
    }
}

impl Source for FileSource {
    fn is_bounded(&self) -> bool {
        !self.follow
    }

    fn splits(&self) -> Result<Vec<Split>> {
        let mut splits = Vec::new();
        for path in self.location.list()? {
            self.refuse_outside(&path)?;
            let name =
                path.to_str().ok_or_else(|| failed(&path.display().to_string(), "the name is not UTF-8"))?;
            // Of a followed file this is how far it reaches now, which FLUSH wants to know.
            let metadata = fs::metadata(&path).map_err(|error| failed(name, &error.to_string()))?;
            let end = Some(i64::try_from(metadata.len()).map_err(|_| failed(name, "too long"))?);
            splits.push(Split { name: name.to_owned(), start: 0, end });
        }
        // A bounded source lists its files once, when it starts: the time to say what is wrong. A
        // followed one may still get its files.
        if !self.follow {
            if splits.is_empty() {
                return Err(failed(&self.location.to_string(), "no such file"));
            }
            splits.iter().try_for_each(|split| self.check_beginning(split))?;
        }
        Ok(splits)
    }

    fn open(&self, split: &Split, position: i64) -> Result<Box<dyn SplitReader>> {
        let path = Path::new(&split.name);
        let failed = |error: &dyn fmt::Display| failed(&split.name, &error.to_string());
        let metadata = fs::metadata(path).map_err(|error| failed(&error))?;
        // Opening a pipe would wait for its writer.
        if !metadata.is_file() {
            return Err(failed(&"not a file"));
        }
        self.refuse_outside(path)?;
        let file = File::open(path).map_err(|error| failed(&error))?;
        Ok(Box::new(FileReader::new(file, split, position, self.format.csv_framing())))
    }

    fn decoder(&self, columns: &[usize]) -> Result<Arc<dyn Decoder>> {
        self.format.decoder(&self.schema, columns)
    }
}
