//! A database for one test: opened in a temporary folder or in memory, killed and reopened at will.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use engine::{Clock, Engine, EngineOptions, Session};
use futures::StreamExt;
use server::TextRows;
use sql::SqlError;
use state::{Storage, StorageOptions};

/// A checkpoint this rare comes only when something asks for it.
pub const NEVER: Duration = Duration::from_secs(1 << 20);

/// How a test database is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// In a temporary folder.
    RocksDb,
    /// In a memory backend that outlives the engine, as a disk would.
    Memory,
}

/// Wall time that stands still unless a test moves it.
#[derive(Debug, Default)]
pub struct TestClock(AtomicI64);

impl TestClock {
    /// A clock that shows so many microseconds since 1970.
    #[must_use]
    pub fn at(micros: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(micros)))
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// One row of a result as text; `None` is NULL.
pub type Row = Vec<Option<String>>;

/// Runs statements; the rows are those of the last one that has some.
pub async fn run(session: &mut Session, text: &str) -> Result<Vec<Row>, SqlError> {
    Ok(query(session, text).await?.1)
}

/// The same with the columns of the rows.
pub async fn query(session: &mut Session, text: &str) -> Result<(SchemaRef, Vec<Row>), SqlError> {
    let (mut schema, mut found) = (SchemaRef::new(Schema::empty()), Vec::new());
    for parsed in session.parse(text)? {
        let Some(mut result) = session.execute(&parsed).await?.rows else { continue };
        let mut encoder = TextRows::new(&result.schema);
        found.clear();
        while let Some(batch) = result.stream.next().await {
            let batch = batch.map_err(sql::from_datafusion)?;
            found.extend(encoder.rows(&batch).map_err(|error| sql::from_datafusion(error.into()))?);
        }
        schema = result.schema;
    }
    Ok((schema, found))
}

/// Bytes of memory a database may use unless a test says otherwise.
const BUDGET: usize = 256 << 20;

/// An engine with what it needs to come back after a kill.
pub struct Database {
    backend: Backend,
    clock: Option<Arc<TestClock>>,
    checkpoint_interval: Duration,
    budget: usize,
    folder: tempfile::TempDir,
    /// The memory backend, which a killed engine leaves behind.
    memory: Option<Storage>,
    allowed_paths: Vec<PathBuf>,
    engine: Option<Engine>,
}

impl Database {
    /// Opens an empty database with a budget of 256 MiB. Relative paths of sources start at `sql-tests/`.
    pub async fn open(backend: Backend, parallelism: usize) -> Self {
        Self::new(backend, parallelism, Duration::from_millis(100), None, BUDGET).await
    }

    /// The same with a budget of so many bytes.
    pub async fn open_with_memory(backend: Backend, parallelism: usize, budget: usize) -> Self {
        Self::new(backend, parallelism, Duration::from_millis(100), None, budget).await
    }

    /// The same with checkpoints so often, and by a clock of the test's own.
    pub async fn open_with(
        backend: Backend,
        parallelism: usize,
        checkpoint_interval: Duration,
        clock: Option<Arc<TestClock>>,
    ) -> Self {
        Self::new(backend, parallelism, checkpoint_interval, clock, BUDGET).await
    }

    async fn new(
        backend: Backend,
        parallelism: usize,
        checkpoint_interval: Duration,
        clock: Option<Arc<TestClock>>,
        budget: usize,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let memory = (backend == Backend::Memory).then(|| open_storage(None, budget));
        let allowed_paths = vec![crate::repository().join("sql-tests"), folder.path().to_owned()];
        let engine = None;
        let mut database =
            Self { backend, clock, checkpoint_interval, budget, folder, memory, allowed_paths, engine };
        database.start(parallelism).await;
        database
    }

    /// The running engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("the engine runs between open and drop")
    }

    /// Runs statements in a session of their own; the rows are those of the last one that has some.
    pub async fn run(&self, text: &str) -> Result<Vec<Row>, SqlError> {
        run(&mut self.engine().session("tester"), text).await
    }

    /// A folder that sources may read from and that goes away with the database.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Ends the engine without a last checkpoint, as a crash would, and starts it again.
    pub async fn kill_and_restart(&mut self, parallelism: usize) {
        if let Some(engine) = self.engine.take() {
            engine.abort().await;
        }
        self.start(parallelism).await;
    }

    async fn start(&mut self, parallelism: usize) {
        let options = EngineOptions {
            data: (self.backend == Backend::RocksDb).then(|| self.folder.path().join("data")),
            allowed_paths: self.allowed_paths.clone(),
            memory: self.budget,
            parallelism,
            epoch_min: Duration::from_millis(2),
            epoch_max: Duration::from_millis(50),
            checkpoint_interval: self.checkpoint_interval,
        };
        let storage = match &self.memory {
            Some(storage) => storage.clone(),
            None => open_storage(options.data.clone(), self.budget),
        };
        let connectors = connectors::registry();
        let opened = match &self.clock {
            Some(clock) => {
                let clock: Arc<dyn Clock> = Arc::<TestClock>::clone(clock);
                Engine::open_with_clock(options, connectors, storage, clock).await
            }
            None => Engine::open_with(options, connectors, storage).await,
        };
        self.engine = Some(opened.expect("the database opens"));
    }
}

/// A quarter of the budget is the storage's, as in the engine.
fn open_storage(path: Option<PathBuf>, budget: usize) -> Storage {
    Storage::open(&StorageOptions { path, memory: budget / 4 }).expect("the storage opens")
}
