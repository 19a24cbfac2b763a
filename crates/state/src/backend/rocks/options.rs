//! How `RocksDB` is set up.
//!
//! Block cache and write buffers share one budget: write buffers are charged to the cache, and so
//! are index and filter blocks. The write-ahead log is bounded, because a start replays it twice
//! (once to verify, once to open).

use std::num::NonZero;
use std::thread;

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, DBRecoveryMode,
    LogLevel, Options, WriteBufferManager,
};

const MIB: usize = 1 << 20;

/// A start replays at most about this much, which takes well under a second.
const WAL_BYTES_MAX: u64 = 64 << 20;

/// The column families that hold data; `default` must exist as well and stays empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Catalog, positions, clocks.
    Meta,
    /// `table id · key group · key`.
    State,
    /// `table id · key`.
    Views,
}

impl Family {
    pub(crate) const ALL: [Self; 3] = [Self::Meta, Self::State, Self::Views];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::State => "state",
            Self::Views => "views",
        }
    }
}

/// Options of a database that stays within `memory` bytes.
pub(crate) struct DatabaseOptions {
    pub(crate) database: Options,
    pub(crate) cache: Cache,
    family: Options,
}

impl DatabaseOptions {
    pub(crate) fn new(memory: usize, recovery: DBRecoveryMode) -> Self {
        let memory = memory.max(16 * MIB);
        let cache = Cache::new_hyper_clock_cache(memory, 0);
        let mut database = family_options(memory, &cache);
        set_database_options(&mut database, memory, &cache, recovery);
        let family = family_options(memory, &cache);
        Self { database, cache, family }
    }

    /// The families to open.
    pub(crate) fn families(&self) -> impl Iterator<Item = ColumnFamilyDescriptor> {
        let names = Family::ALL.into_iter().map(Family::name).chain(["default"]);
        names.map(|name| ColumnFamilyDescriptor::new(name, self.family.clone()))
    }
}

fn set_database_options(options: &mut Options, memory: usize, cache: &Cache, recovery: DBRecoveryMode) {
    // Stalling writers would stall commits; a full buffer is flushed and charged to the cache.
    let buffers = WriteBufferManager::new_write_buffer_manager_with_cache(memory / 4, false, cache.clone());
    options.set_write_buffer_manager(&buffers);
    options.set_max_total_wal_size(WAL_BYTES_MAX);

    options.set_paranoid_checks(true);
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_wal_recovery_mode(recovery);
    // With all files open from the start, a missing one or one of another size refuses the start.
    options.set_max_open_files(-1);
    options.set_skip_stats_update_on_db_open(true);

    let cores = thread::available_parallelism().map_or(2, NonZero::get);
    options.set_max_background_jobs(cores.clamp(2, 8) as i32);
    // Write back steadily, so that the fsync of a commit does not wait for a whole table file.
    options.set_bytes_per_sync(MIB as u64);
    options.set_avoid_unnecessary_blocking_io(true);

    options.set_log_level(LogLevel::Warn);
    options.set_keep_log_file_num(4);
    options.set_max_log_file_size(4 * MIB);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
}

fn family_options(memory: usize, cache: &Cache) -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(cache);
    blocks.set_block_size(16 << 10);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_partition_filters(true);
    blocks.set_metadata_block_size(4 << 10);
    blocks.set_pin_top_level_index_and_filter(true);
    // Bloom where files are short-lived, ribbon (smaller, slower to build) below.
    blocks.set_hybrid_ribbon_filter(10.0, 1);
    blocks.set_optimize_filters_for_memory(true);

    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options.set_write_buffer_size((memory / 16).clamp(2 * MIB, 64 * MIB));
    options.set_max_write_buffer_number(4);
    options
}
