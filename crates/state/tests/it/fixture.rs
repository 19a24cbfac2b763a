//! Databases with content that follows from the number of commits alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use state::{
    CheckpointWrites, EncodedKeys, Epoch, KeyGroupRange, Result, Run, Snapshot, Storage, StorageOptions,
    TableChanges, TableId, TableSchema, decode_keys, decode_rows, encode_keys,
};

pub(crate) const STATE: TableId = TableId(7);
pub(crate) const VIEW: TableId = TableId(8);

/// `id BIGINT` (the key), `text TEXT`.
pub(crate) fn schema() -> Arc<TableSchema> {
    let fields = vec![Field::new("id", DataType::Int64, true), Field::new("text", DataType::Utf8View, true)];
    Arc::new(TableSchema { columns: Arc::new(Schema::new(fields)), key_len: 1 })
}

pub(crate) fn rows(entries: &[(i64, &str)]) -> RecordBatch {
    let ids: Int64Array = entries.iter().map(|(id, _)| Some(*id)).collect();
    let texts: StringViewArray = entries.iter().map(|(_, text)| Some(*text)).collect();
    RecordBatch::try_new(Arc::clone(&schema().columns), vec![Arc::new(ids), Arc::new(texts)]).unwrap()
}

pub(crate) fn ids(ids: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(ids.to_vec()))
}

pub(crate) fn keys(of: &[i64]) -> EncodedKeys {
    encode_keys(&[ids(of)], of.len()).unwrap()
}

/// A run that puts these entries; ids ascend.
pub(crate) fn run(entries: &[(i64, &str)]) -> Arc<Run> {
    let rows = rows(entries);
    let keys = encode_keys(&rows.columns()[..1], rows.num_rows()).unwrap();
    Arc::new(Run { schema: schema(), keys, rows, deleted: None })
}

pub(crate) fn changes() -> TableChanges {
    TableChanges { schema: schema(), puts: Vec::new(), deletes: Vec::new(), delete_up_to: None }
}

pub(crate) fn puts(entries: &[(i64, &str)]) -> TableChanges {
    TableChanges { puts: vec![rows(entries)], ..changes() }
}

/// Entries as ids and texts.
pub(crate) fn decoded(entries: impl Iterator<Item = Result<state::Entry>>) -> Vec<(i64, String)> {
    let entries: Vec<_> = entries.map(Result::unwrap).collect();
    let schema = schema();
    let keys = decode_keys(schema.key_fields(), entries.iter().map(|(key, _)| &**key)).unwrap();
    let values = decode_rows(schema.value_fields(), entries.iter().map(|(_, value)| &**value)).unwrap();
    let ids = keys[0].as_primitive::<Int64Type>().values().iter().copied();
    ids.zip(values[0].as_string_view().iter().map(|text| text.unwrap().to_owned())).collect()
}

pub(crate) fn view(snapshot: &dyn Snapshot) -> Vec<(i64, String)> {
    decoded(snapshot.scan_view(VIEW, None, None))
}

/// State in the order of ids, whatever the key groups.
pub(crate) fn state_rows(storage: &Storage, table: TableId) -> Vec<(i64, String)> {
    let mut rows = decoded(storage.backend.scan_state(table, KeyGroupRange::ALL, None));
    rows.sort();
    rows
}

/// How much a commit of a [`Database`] writes to the view.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// A few short rows.
    Small,
    /// More than a write buffer: the family is flushed.
    Large,
}

/// A database on disk whose content follows from the number of commits.
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    pub(crate) storage: Storage,
    size: Size,
    commits: u64,
}

impl Database {
    pub(crate) fn create(path: &Path, size: Size) -> Self {
        Self { path: path.to_path_buf(), storage: open(path).unwrap(), size, commits: 0 }
    }

    pub(crate) fn commit(&mut self) {
        self.commits += 1;
        let number = self.commits;
        let view = content(number, self.size).into_iter().filter(|(id, _)| *id as u64 / 10_000 == number);
        let view: Vec<_> = view.collect();
        let view: Vec<_> = view.iter().map(|(id, text)| (*id, text.as_str())).collect();
        let text = format!("state {number}");
        let writes = CheckpointWrites {
            epoch: epoch_of(number),
            state: vec![(STATE, KeyGroupRange::ALL, puts(&[(number as i64, &text), (0, &text)]))],
            views: vec![(VIEW, run(&view))],
            meta: vec![(b"commits".to_vec(), Some(number.to_be_bytes().to_vec()))],
            dropped_tables: Vec::new(),
            inbox_sequence: 0,
        };
        let snapshot = self.storage.backend.commit(writes).unwrap();
        assert_eq!(snapshot.epoch(), epoch_of(number));
    }

    /// Ends the database and opens it again.
    pub(crate) fn reopen(self) -> Self {
        let Self { path, storage, size, commits } = self;
        drop(storage);
        Self { storage: open(&path).unwrap(), path, size, commits }
    }

    /// A copy of the folder as a crash at this moment would leave it: nothing is closed first.
    pub(crate) fn crash_image(&self, to: &Path) {
        // Flushes and compactions go on: only a copy during which no file came, grew or went is
        // what the disk held at one moment.
        loop {
            let before = sizes(&self.path);
            if try_copy_folder(&self.path, to).is_ok() && sizes(&self.path) == before {
                return;
            }
            fs::remove_dir_all(to).unwrap();
        }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }
}

/// Epochs of commits are not consecutive, as in life.
pub(crate) fn epoch_of(commits: u64) -> Epoch {
    Epoch(commits * 3)
}

fn content(commits: u64, size: Size) -> Vec<(i64, String)> {
    let (rows, width) = match size {
        Size::Small => (5, 10),
        Size::Large => (1_400, 1_600),
    };
    let rows = move |number: u64| (0..rows).map(move |row| (number * 10_000 + row, row));
    let text = |id: u64, row: u64| format!("{id:0width$}/{row}");
    (1..=commits).flat_map(rows).map(|(id, row)| (id as i64, text(id, row))).collect()
}

/// What is wrong with a database that should hold these commits and nothing else.
pub(crate) fn fault_of_content(storage: &Storage, commits: u64, size: Size) -> Option<String> {
    let snapshot = storage.backend.snapshot();
    if snapshot.epoch() != epoch_of(commits) {
        return Some(format!("epoch {} instead of {}", snapshot.epoch(), epoch_of(commits)));
    }
    let meta = snapshot
        .meta(b"commits")
        .map(|value| value.map(|value| u64::from_be_bytes(value.try_into().unwrap())));
    if !matches!(meta, Ok(Some(found)) if found == commits) {
        return Some(format!("meta is {meta:?}"));
    }
    let view: Vec<_> = match snapshot.scan_view(VIEW, None, None).collect::<Result<_>>() {
        Ok(entries) => entries,
        Err(error) => return Some(error.to_string()),
    };
    if decoded(view.into_iter().map(Ok)) != content(commits, size) {
        return Some("the view has other rows".to_owned());
    }
    let state: Vec<_> =
        match storage.backend.scan_state(STATE, KeyGroupRange::ALL, None).collect::<Result<_>>() {
            Ok(entries) => entries,
            Err(error) => return Some(error.to_string()),
        };
    let mut found = decoded(state.into_iter().map(Ok));
    found.sort();
    let mut expected: Vec<_> =
        (1..=commits).map(|number| (number as i64, format!("state {number}"))).collect();
    expected.insert(0, (0, format!("state {commits}")));
    (found != expected).then(|| "the state has other rows".to_owned())
}

pub(crate) fn open(path: &Path) -> Result<Storage> {
    Storage::open(&StorageOptions { path: Some(path.to_path_buf()), memory: 32 << 20 })
}

pub(crate) fn in_memory() -> Storage {
    Storage::open(&StorageOptions { path: None, memory: 32 << 20 }).unwrap()
}

/// Runs a test over both backends.
pub(crate) fn on_both_backends(test: impl Fn(&Storage)) {
    test(&in_memory());
    let folder = tempfile::tempdir().unwrap();
    test(&open(folder.path()).unwrap());
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    try_copy_folder(from, to).unwrap();
}

fn try_copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            try_copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Names and sizes of the files of a data folder.
fn sizes(folder: &Path) -> Vec<(PathBuf, u64)> {
    let database = files(&folder.join("rocksdb"), "");
    let sizes = database.into_iter().map(|path| {
        let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        (path, size)
    });
    sizes.collect()
}

/// Files of a folder with this ending, in the order of their names.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    paths.sort();
    paths
}
