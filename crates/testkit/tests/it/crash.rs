//! The real server, killed under load and started over damaged files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testkit::crash::{Options, Process, connect, rows, run, succeed};

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// `CRASH_SEED=…` repeats the decisions of an earlier run, `CRASH_KILLS=…` asks for more of them.
fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn nothing_is_lost_or_doubled_by_kills_under_load() {
    let seed = setting("CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let kills = setting("CRASH_KILLS").unwrap_or(24);
    println!("CRASH_SEED={seed} CRASH_KILLS={kills}");
    let summary = block_on(run(seed, usize::try_from(kills).unwrap()))
        .unwrap_or_else(|error| panic!("CRASH_SEED={seed}: {error}"));
    println!("{summary:?}");
    assert!(summary.acknowledged > 100, "hardly any load: {summary:?}");
    assert!(summary.applied + summary.not_applied > 0, "no kill met a statement under way: {summary:?}");
}

/// A data folder with rows in the inbox and in checkpoints, as a kill leaves it.
struct Killed {
    folder: tempfile::TempDir,
    options: Options,
}

impl Killed {
    fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            data: folder.path().join("data"),
            allowed: folder.path().to_owned(),
            parallelism: 2,
            checkpoint_interval: Duration::from_millis(50),
            log: folder.path().join("server.log"),
            flags: Vec::new(),
        };
        let killed = Self { folder, options };
        block_on(killed.fill());
        killed
    }

    async fn fill(&self) {
        let mut process = Process::spawn(&self.options);
        let client = connect(process.ready(&self.options).await.unwrap()).await.unwrap();
        succeed(&client, "CREATE TABLE t (id BIGINT PRIMARY KEY, label TEXT)").await.unwrap();
        succeed(&client, "CREATE MATERIALIZED VIEW m AS SELECT label, count(*) AS n FROM t GROUP BY label")
            .await
            .unwrap();
        for round in 0..20 {
            let insert = format!(
                "INSERT INTO t SELECT g, 'label ' || CAST(g % 9 AS TEXT) FROM generate_series({}, {}) AS s(g)",
                round * 100 + 1,
                round * 100 + 100,
            );
            succeed(&client, &insert).await.unwrap();
        }
        succeed(&client, "FLUSH DURABLE").await.unwrap();
        // Not in a checkpoint yet when the kill comes, so the inbox must have it.
        succeed(&client, "INSERT INTO t VALUES (0, 'last')").await.unwrap();
        process.kill();
    }

    /// The newest file of a folder with this ending.
    fn newest(&self, folder: &str, ending: &str) -> PathBuf {
        let mut found: Vec<PathBuf> = fs::read_dir(self.options.data.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().ends_with(ending))
            .collect();
        found.sort();
        found.pop().unwrap_or_else(|| panic!("no {ending} in {folder}"))
    }

    /// Starts over the damaged folder: the server must end with an error that names the file, and
    /// must do so again, because a refusal changes nothing.
    fn is_refused_naming(&self, file: &Path) {
        let name = file.file_name().unwrap().to_string_lossy();
        for _ in 0..2 {
            let ended = block_on(async {
                Process::spawn(&self.options).ready(&self.options).await.expect_err("the start is refused")
            });
            assert_eq!(ended.status.code(), Some(1), "{ended}");
            assert!(ended.messages.contains(&*name), "{name} is not named: {ended}");
            assert!(!ended.messages.contains("panicked"), "{ended}");
        }
    }
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_flipped_bit_in_the_log_of_checkpoints_is_refused_and_named() {
    let killed = Killed::create();
    let log = killed.newest("rocksdb", ".log");
    let whole = fs::read(&log).unwrap();
    edit(&log, |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
    });
    killed.is_refused_naming(&log);
    // With the byte put right again everything is there: nothing was touched.
    fs::write(&log, whole).unwrap();
    block_on(async {
        let mut process = Process::spawn(&killed.options);
        let client = connect(process.ready(&killed.options).await.unwrap()).await.unwrap();
        let counted = rows(&client, "SELECT (SELECT count(*) FROM t), (SELECT sum(n) FROM m)").await.unwrap();
        assert_eq!(counted, [["2001", "2001"]]);
    });
}

#[test]
fn an_inbox_shorter_than_what_was_acknowledged_is_refused_and_named() {
    let killed = Killed::create();
    let segment = killed.newest("inbox", ".inbox");
    edit(&segment, |bytes| bytes.truncate(bytes.len() - 3));
    killed.is_refused_naming(&segment);
}

#[test]
fn a_folder_that_another_server_holds_is_refused() {
    let killed = Killed::create();
    block_on(async {
        let mut first = Process::spawn(&killed.options);
        first.ready(&killed.options).await.unwrap();
        let options = Options { log: killed.folder.path().join("second.log"), ..killed.options.clone() };
        let ended = Process::spawn(&options).ready(&options).await.expect_err("the folder is taken");
        assert_eq!(ended.status.code(), Some(1), "{ended}");
        assert!(ended.messages.contains(&*options.data.to_string_lossy()), "{ended}");
        assert!(ended.messages.contains("in use"), "{ended}");
    });
}

#[test]
fn a_data_folder_is_not_passed_over_for_memory() {
    let killed = Killed::create();
    let options =
        Options { flags: vec!["--state-backend".to_owned(), "memory".to_owned()], ..killed.options };
    let ended = block_on(async {
        Process::spawn(&options).ready(&options).await.expect_err("the folder holds a database")
    });
    assert_eq!(ended.status.code(), Some(1), "{ended}");
    assert!(ended.messages.contains("holds a database"), "{ended}");
    assert!(ended.messages.contains(&*options.data.to_string_lossy()), "{ended}");
}
