//! A database for one test: opened in a temporary folder or in memory, killed and reopened at will.

use std::path::PathBuf;
use std::time::Duration;

use engine::{Engine, EngineOptions};
use state::{Storage, StorageOptions};

/// How a test database is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// In a temporary folder.
    RocksDb,
    /// In a memory backend that outlives the engine, as a disk would.
    Memory,
}

/// An engine with what it needs to come back after a kill.
pub struct Database {
    backend: Backend,
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
        Self::open_with_memory(backend, parallelism, 256 << 20).await
    }

    /// The same with a budget of so many bytes.
    pub async fn open_with_memory(backend: Backend, parallelism: usize, budget: usize) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let memory = (backend == Backend::Memory).then(|| {
            Storage::open(&StorageOptions { path: None, memory: 64 << 20 })
                .expect("a memory backend always opens")
        });
        let allowed_paths = vec![crate::repository().join("sql-tests"), folder.path().to_owned()];
        let mut database = Self { backend, budget, folder, memory, allowed_paths, engine: None };
        database.start(parallelism).await;
        database
    }

    /// The running engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("the engine runs between open and drop")
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
            checkpoint_interval: Duration::from_millis(100),
        };
        let opened = match &self.memory {
            Some(storage) => Engine::open_with(options, connectors::registry(), storage.clone()).await,
            None => Engine::open(options, connectors::registry()).await,
        };
        self.engine = Some(opened.expect("the database opens"));
    }
}
