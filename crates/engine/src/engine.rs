//! The open database.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use dataflow::{ConnectorContext, ConnectorRegistry};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use parking_lot::RwLock;
use runtime::{Change, Clock, Runtime, RuntimeOptions, SystemClock};
use sql::{SqlError, SqlErrorKind};
use state::{Storage, StorageOptions};
use tokio::sync::Mutex;

use crate::Session;
use crate::dml::WriteLog;
use crate::error::{from_datafusion, from_runtime, from_state};
use crate::live::Live;
use crate::startup::load;
use crate::workers::Workers;

/// Of the whole budget, one in so many bytes goes to the storage's own caches and buffers.
const STORAGE_SHARE: usize = 4;
/// And one in so many to running batch queries: sorts, hash tables.
const QUERY_SHARE: usize = 8;

/// In the data folder: what running batch queries have put aside.
const SPILL_FOLDER: &str = "spill";

/// And so many parts of so many to running jobs. A quarter is left for what nobody counts: growing
/// arrays, batches on their way, buffers of the storage, gaps between allocations.
const JOBS_SHARE: (usize, usize) = (3, 8);

/// How to open a database.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The data folder; `None` keeps everything in memory.
    pub data: Option<PathBuf>,
    /// Folders that connectors may read and write.
    pub allowed_paths: Vec<PathBuf>,
    /// Budget for everything together, in bytes.
    pub memory: usize,
    /// Tasks per vertex and engine threads.
    pub parallelism: usize,
    /// Shortest time between barriers under load.
    pub epoch_min: Duration,
    /// Longest time between barriers under load.
    pub epoch_max: Duration,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
}

/// An open database. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    pub(crate) workers: Workers,
    pub(crate) connectors: ConnectorRegistry,
    pub(crate) connector_context: ConnectorContext,
    pub(crate) parallelism: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) writes: WriteLog,
    /// The memory of all batch queries together; those that can go to disk share it fairly.
    pub(crate) query_env: Arc<RuntimeEnv>,
    /// One DDL statement at a time.
    pub(crate) ddl: Mutex<()>,
    live: RwLock<Arc<Live>>,
    next_process: AtomicI32,
}

impl Engine {
    /// Opens (or makes) the database and starts its jobs. Must be called inside a tokio runtime.
    pub async fn open(options: EngineOptions, connectors: ConnectorRegistry) -> Result<Self, SqlError> {
        let storage_options =
            StorageOptions { path: options.data.clone(), memory: options.memory / STORAGE_SHARE };
        let storage = move || Storage::open(&storage_options).map_err(from_state);
        Self::start(options, connectors, Arc::new(SystemClock), storage).await
    }

    /// The same over storage that is open already, e.g. a memory backend that outlives engines.
    pub async fn open_with(
        options: EngineOptions,
        connectors: ConnectorRegistry,
        storage: Storage,
    ) -> Result<Self, SqlError> {
        Self::start(options, connectors, Arc::new(SystemClock), move || Ok(storage)).await
    }

    /// The same by another clock than the machine's.
    pub async fn open_with_clock(
        options: EngineOptions,
        connectors: ConnectorRegistry,
        storage: Storage,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SqlError> {
        Self::start(options, connectors, clock, move || Ok(storage)).await
    }

    async fn start(
        options: EngineOptions,
        connectors: ConnectorRegistry,
        clock: Arc<dyn Clock>,
        storage: impl FnOnce() -> Result<Storage, SqlError> + Send + 'static,
    ) -> Result<Self, SqlError> {
        let workers = Workers::new(options.parallelism)?;
        let shared =
            workers.block(move || start(&options, connectors, clock, storage()?)).await?.into_shared(workers);
        Ok(Self { shared: Arc::new(shared) })
    }

    /// A new session.
    #[must_use]
    pub fn session(&self, user: &str) -> Session {
        let process = self.shared.next_process.fetch_add(1, Ordering::Relaxed);
        Session::new(Arc::clone(&self.shared), user, process)
    }

    /// The end of all jobs without a checkpoint, as a crash would leave the data folder.
    pub async fn abort(&self) {
        let shared = Arc::clone(&self.shared);
        let ended = self.shared.workers.block(move || {
            shared.runtime.abort();
            Ok(())
        });
        if let Err(error) = ended.await {
            tracing::error!(%error, "the jobs did not end in order");
        }
    }

    /// Last checkpoint, then the end of all jobs.
    pub async fn shutdown(&self) {
        let shared = Arc::clone(&self.shared);
        let ended = self
            .shared
            .workers
            .block(move || {
                shared.runtime.shutdown();
                Ok(())
            })
            .await;
        if let Err(error) = ended {
            tracing::error!(%error, "the jobs did not end in order");
        }
    }
}

impl Shared {
    /// What exists now.
    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.read())
    }

    /// Makes a change durable, then visible. The caller holds [`Self::ddl`].
    pub(crate) async fn apply(&self, change: Change, live: Live) -> Result<(), SqlError> {
        let answer = self.runtime.apply(change).await;
        answer.map_err(|_| SqlErrorKind::AdminShutdown)?.map_err(from_runtime)?;
        *self.live.write() = Arc::new(live);
        Ok(())
    }
}

/// Everything of [`Shared`] but the workers it was made on.
struct Started {
    runtime: Runtime,
    connectors: ConnectorRegistry,
    connector_context: ConnectorContext,
    parallelism: usize,
    clock: Arc<dyn Clock>,
    live: Live,
    query_env: Arc<RuntimeEnv>,
    /// Last record of the inbox when the database was opened.
    inbox_sequence: u64,
}

impl Started {
    fn into_shared(self, workers: Workers) -> Shared {
        Shared {
            runtime: self.runtime,
            workers,
            connectors: self.connectors,
            connector_context: self.connector_context,
            parallelism: self.parallelism,
            clock: self.clock,
            writes: WriteLog::new(self.inbox_sequence),
            query_env: self.query_env,
            ddl: Mutex::new(()),
            live: RwLock::new(Arc::new(self.live)),
            next_process: AtomicI32::new(1),
        }
    }
}

fn start(
    options: &EngineOptions,
    connectors: ConnectorRegistry,
    clock: Arc<dyn Clock>,
    storage: Storage,
) -> Result<Started, SqlError> {
    let inbox_sequence = storage.inbox.last_sequence();
    let connector_context = ConnectorContext { allowed_paths: options.allowed_paths.clone() };
    let live = load(storage.backend.snapshot().as_ref(), &connectors, &connector_context)?;
    let runtime_options = RuntimeOptions {
        parallelism: options.parallelism,
        memory: options.memory / JOBS_SHARE.1 * JOBS_SHARE.0,
        epoch_min: options.epoch_min,
        epoch_max: options.epoch_max,
        checkpoint_interval: options.checkpoint_interval,
    };
    let runtime =
        Runtime::start(runtime_options, storage, Arc::clone(&clock), live.jobs()).map_err(from_runtime)?;
    let query_env = query_env(options)?;
    let parallelism = options.parallelism;
    Ok(Started {
        runtime,
        connectors,
        connector_context,
        parallelism,
        clock,
        live,
        query_env,
        inbox_sequence,
    })
}

/// What batch queries share. What does not fit in memory goes to the data folder: the system's
/// temporary folder may be memory itself.
fn query_env(options: &EngineOptions) -> Result<Arc<RuntimeEnv>, SqlError> {
    let pool = Arc::new(FairSpillPool::new(options.memory / QUERY_SHARE));
    let mut builder = RuntimeEnvBuilder::new().with_memory_pool(pool);
    if let Some(data) = &options.data {
        let spill = data.join(SPILL_FOLDER);
        // A process that was killed could not clear up behind itself.
        if spill.exists() {
            std::fs::remove_dir_all(&spill).map_err(|error| SqlErrorKind::Io {
                message: format!("cannot empty \"{}\": {error}", spill.display()),
            })?;
        }
        builder = builder.with_temp_file_path(spill);
    }
    builder.build_arc().map_err(from_datafusion)
}
