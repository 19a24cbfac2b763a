//! Scans: the checkpoint and the overlay of a view table, merged in key order.
//!
//! Works a stretch at a time: where the overlay has no key, rows are what the checkpoint's entries
//! decode to and are not looked at one by one.

use std::iter::Fuse;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::backend::Entries;
use crate::merge::MergeCursor;
use crate::published::decode_entries;
use crate::run::gather;
use crate::{EncodedKeys, Result, Run, TableSchema};

/// Rows of a view table in key order. Ends after the first error.
pub(crate) struct ViewScan {
    schema: Arc<TableSchema>,
    base: Fuse<Box<dyn Iterator<Item = Result<Entries>> + Send>>,
    runs: Vec<Arc<Run>>,
    overlay: MergeCursor<Arc<Run>>,
    batch_rows: usize,
    /// Entries of the checkpoint that were read ahead, decoded; `next` is the first not yet passed.
    chunk: Chunk,
    has_failed: bool,
}

struct Chunk {
    keys: EncodedKeys,
    rows: RecordBatch,
    next: usize,
}

impl Chunk {
    fn next_key(&self) -> Option<&[u8]> {
        (self.next < self.keys.len()).then(|| self.keys.get(self.next))
    }

    /// The last key, unless all are passed.
    fn last_key(&self) -> Option<&[u8]> {
        self.next_key().map(|_| self.keys.get(self.keys.len() - 1))
    }
}

impl ViewScan {
    pub(crate) fn new(
        schema: Arc<TableSchema>,
        base: Box<dyn Iterator<Item = Result<Entries>> + Send>,
        runs: Vec<Arc<Run>>,
        overlay: MergeCursor<Arc<Run>>,
        batch_rows: usize,
    ) -> Self {
        let rows = RecordBatch::new_empty(Arc::clone(&schema.columns));
        let chunk = Chunk { keys: EncodedKeys::default(), rows, next: 0 };
        Self { schema, base: base.fuse(), runs, overlay, batch_rows, chunk, has_failed: false }
    }

    /// Reads ahead if nothing is. Afterwards the chunk is empty only at the end of the checkpoint.
    fn fill_chunk(&mut self) -> Result<()> {
        if self.chunk.next < self.chunk.keys.len() {
            return Ok(());
        }
        if let Some(entries) = self.base.next() {
            let Entries { keys, values } = entries?;
            let rows = decode_entries(&self.schema, keys.iter(), values.iter(), keys.len())?;
            self.chunk = Chunk { keys, rows, next: 0 };
        }
        Ok(())
    }

    /// The next rows; possibly none although there are more, `None` at the end.
    fn next_stretch(&mut self) -> Result<Option<RecordBatch>> {
        self.fill_chunk()?;
        let (overlaid, last) = (self.overlay.peek(), self.chunk.last_key());
        match (overlaid, last) {
            (None, None) => Ok(None),
            (Some(overlaid), Some(last)) if overlaid <= last => self.merge_stretch().map(Some),
            (Some(_), None) => self.overlay_stretch().map(Some),
            (_, Some(_)) => {
                let chunk = &mut self.chunk;
                let rows = chunk.rows.slice(chunk.next, chunk.keys.len() - chunk.next);
                chunk.next = chunk.keys.len();
                Ok(Some(rows))
            }
        }
    }

    /// Merges the chunk with the overlay up to the chunk's last key.
    fn merge_stretch(&mut self) -> Result<RecordBatch> {
        let mut order = Vec::with_capacity(self.batch_rows);
        while order.len() < self.batch_rows
            && let Some(base) = self.chunk.next_key()
        {
            match self.overlay.peek() {
                Some(overlaid) if overlaid <= base => {
                    self.chunk.next += usize::from(overlaid == base);
                    self.take_overlaid(&mut order);
                }
                Some(_) | None => {
                    order.push((0, self.chunk.next));
                    self.chunk.next += 1;
                }
            }
        }
        self.gather(&order)
    }

    /// Rows of the overlay behind the end of the checkpoint.
    fn overlay_stretch(&mut self) -> Result<RecordBatch> {
        let mut order = Vec::with_capacity(self.batch_rows);
        while order.len() < self.batch_rows && self.take_overlaid(&mut order) {}
        self.gather(&order)
    }

    fn take_overlaid(&mut self, order: &mut Vec<(usize, usize)>) -> bool {
        let Some((run, row)) = self.overlay.next() else { return false };
        if !self.runs[run].is_deleted(row) {
            order.push((run + 1, row));
        }
        true
    }

    /// Batch 0 is the chunk, batch n + 1 is run n.
    fn gather(&self, order: &[(usize, usize)]) -> Result<RecordBatch> {
        let batches: Vec<&RecordBatch> =
            std::iter::once(&self.chunk.rows).chain(self.runs.iter().map(|run| &run.rows)).collect();
        gather(&batches, order)
    }
}

impl Iterator for ViewScan {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.has_failed {
            match self.next_stretch() {
                Ok(None) => return None,
                Ok(Some(rows)) if rows.num_rows() == 0 => {}
                Ok(Some(rows)) => return Some(Ok(rows)),
                Err(error) => {
                    self.has_failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
