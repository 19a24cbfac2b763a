//! What survives: epochs, key groups, encodings, backends, checkpoints, view content, the inbox.
//!
//! ```text
//!  operators ── TableChanges ─┐                                   ┌─► RocksDB (meta, state, views)
//!                             ├─► CheckpointWrites ── one commit ─┤
//!  views ────── Run ──────────┤                                   └─► fence
//!                             └─► ViewStore: Published { epoch, base snapshot, runs } ─► readers
//!  INSERT/UPDATE/DELETE ─► Inbox (segment log, group commit) ─► table jobs
//! ```
//!
//! **Invariant.** What is on disk is exactly the last checkpoint: nothing is written between two.

#![warn(missing_docs)]

mod backend;
mod encoding;
mod epoch;
mod error;
mod fence;
mod file;
mod inbox;
mod key_group;
mod merge;
mod published;
mod run;
mod scan;
mod table;
mod view_writer;

pub use backend::{CheckpointWrites, Entries, Entry, Snapshot, StateBackend, Storage, StorageOptions};
pub use encoding::{EncodedKeys, decode_keys, decode_rows, encode_keys, encode_rows, prefix_end};
pub use epoch::Epoch;
pub use error::{Result, StateError};
pub use inbox::{Inbox, InboxChange, InboxRecord};
pub use key_group::{KEY_GROUPS, KeyGroupRange, key_groups};
pub use published::{Published, ViewRange, ViewStore};
pub use run::Run;
pub use table::{TableChanges, TableId, TableSchema};
pub use view_writer::ViewWriter;
