//! Groups that do not fit in memory leave it and come back: with rows taken back meanwhile, emptied,
//! reappearing, and over restarts. The view must equal its own SELECT, run in batch.

use datafusion::arrow::util::display::array_value_to_string;
use engine::Session;
use futures::StreamExt;
use testkit::database::{Backend, Database};

/// Of which jobs get three eighths: less than half of what all groups need.
const BUDGET: usize = 32 << 20;
const GROUPS: i64 = 120_000;
/// Rows a statement writes: they must fit what queries get.
const ROWS: i64 = 8_000;
/// Groups that are compared at a time, for the same reason.
const PART: usize = 4_000;

const SELECT: &str = "SELECT k, count(*) AS n, sum(v) AS total, min(v) AS least, max(v) AS greatest, \
     count(DISTINCT v % 3) AS kinds, avg(v) FILTER (WHERE v % 2 = 0) AS even FROM t";

async fn lines(session: &mut Session, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for parsed in session.parse(text).unwrap() {
        let output = session.execute(&parsed).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let Some(mut rows) = output.rows else { continue };
        while let Some(batch) = rows.stream.next().await {
            let batch = batch.unwrap_or_else(|error| panic!("{text}: {error:?}"));
            lines.extend((0..batch.num_rows()).map(|row| {
                let values = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
                values.collect::<Vec<_>>().join("|")
            }));
        }
    }
    lines
}

struct Test {
    database: Database,
}

impl Test {
    async fn open(backend: Backend) -> Self {
        let database = Database::open_with_memory(backend, 2, BUDGET).await;
        let test = Self { database };
        test.run("CREATE TABLE t (id BIGINT PRIMARY KEY, k BIGINT, v BIGINT)").await;
        test.run(&format!("CREATE MATERIALIZED VIEW m AS {SELECT} GROUP BY k")).await;
        test
    }

    /// In a session of its own: one that is left open would keep a killed engine's folder locked.
    async fn lines(&self, text: &str) -> Vec<String> {
        lines(&mut self.database.engine().session("tester"), text).await
    }

    async fn run(&self, text: &str) {
        self.lines(text).await;
    }

    /// One row for each group from `from` to before `to`: its id is `round` and the group.
    async fn insert(&self, round: i64, from: i64, to: i64) {
        for start in (from..to).step_by(usize::try_from(ROWS).unwrap()) {
            let end = to.min(start + ROWS) - 1;
            self.run(&format!(
                "INSERT INTO t SELECT g + {round} * {GROUPS}, g, g * 7919 % 1000 + {round} \
                 FROM generate_series({start}, {end}) AS s(g)"
            ))
            .await;
        }
    }

    async fn delete(&self, round: i64, from: i64, to: i64) {
        let first = round * GROUPS;
        for start in (from..to).step_by(usize::try_from(ROWS).unwrap()) {
            let end = to.min(start + ROWS) - 1;
            self.run(&format!("DELETE FROM t WHERE id BETWEEN {} AND {}", first + start, first + end)).await;
        }
    }

    async fn equals_batch(&self, groups: usize) {
        self.run("FLUSH").await;
        let mut compared = 0;
        for from in (0..GROUPS).step_by(PART) {
            let of_part = format!("WHERE k BETWEEN {from} AND {}", from + PART as i64 - 1);
            let view = self.lines(&format!("SELECT * FROM m {of_part} ORDER BY k")).await;
            let batch = self.lines(&format!("{SELECT} {of_part} GROUP BY k ORDER BY k")).await;
            assert!(view == batch, "groups from {from}: {:?}", first_difference(&view, &batch));
            compared += view.len();
        }
        assert_eq!(compared, groups);
    }

    /// Checkpoints until everything is on disk, so that clean groups can go, and looks whether they
    /// went.
    async fn has_evicted(&self) {
        self.run("FLUSH DURABLE").await;
        // The epoch of one more row: at its end memory is looked at.
        self.run("INSERT INTO t VALUES (-1, -1, 0); FLUSH; DELETE FROM t WHERE id = -1; FLUSH").await;
        let memory = self.lines("SELECT memory_bytes FROM highwater.jobs WHERE name = 'm'").await;
        let memory: usize = memory[0].parse().unwrap();
        let budget = BUDGET * 3 / 8;
        assert!(memory <= budget, "{memory} bytes in memory, {budget} allowed");
        assert!(memory > budget / 4, "{memory} bytes: the groups would fit without eviction");
    }

    async fn kill_and_restart(&mut self, parallelism: usize) {
        self.database.kill_and_restart(parallelism).await;
    }
}

fn first_difference(view: &[String], batch: &[String]) -> Option<(Option<String>, Option<String>)> {
    let most = view.len().max(batch.len());
    (0..most).map(|row| (view.get(row).cloned(), batch.get(row).cloned())).find(|(view, batch)| view != batch)
}

fn groups(count: i64) -> usize {
    usize::try_from(count).unwrap()
}

async fn evicted_groups_come_back(backend: Backend) {
    let mut test = Test::open(backend).await;
    test.insert(0, 0, GROUPS).await;
    test.insert(1, 0, GROUPS).await;
    test.has_evicted().await;
    test.equals_batch(groups(GROUPS)).await;

    // Taken back from groups that left memory long ago: one row, then the last.
    test.delete(1, 0, 24_000).await;
    test.equals_batch(groups(GROUPS)).await;
    test.delete(0, 0, 16_000).await;
    test.equals_batch(groups(GROUPS - 16_000)).await;
    // Emptied and evicted, they reappear: nothing of what they were may come back.
    test.has_evicted().await;
    test.insert(2, 0, 8_000).await;
    test.equals_batch(groups(GROUPS - 8_000)).await;

    // Emptied, then killed; they reappear before anything has read them.
    test.delete(2, 0, 8_000).await;
    test.run("FLUSH DURABLE").await;
    test.kill_and_restart(1).await;
    test.insert(3, 0, 4_000).await;
    test.equals_batch(groups(GROUPS - 12_000)).await;
    // After the restart everything is on disk only.
    test.delete(1, 100_000, GROUPS).await;
    test.delete(0, 110_000, GROUPS).await;
    test.equals_batch(groups(GROUPS - 12_000 - 10_000)).await;
    test.kill_and_restart(2).await;
    test.equals_batch(groups(GROUPS - 12_000 - 10_000)).await;

    // Emptied and filled again within one epoch, and one row after the other.
    test.run("BEGIN; DELETE FROM t WHERE k BETWEEN 50000 AND 50999; COMMIT").await;
    test.insert(4, 50_000, 50_500).await;
    test.run("DELETE FROM t WHERE k BETWEEN 50000 AND 50249").await;
    test.equals_batch(groups(GROUPS - 12_000 - 10_000 - 750)).await;
}

fn block_on(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

#[test]
fn evicted_groups_come_back_from_memory() {
    block_on(evicted_groups_come_back(Backend::Memory));
}

#[test]
fn evicted_groups_come_back_from_disk() {
    block_on(evicted_groups_come_back(Backend::RocksDb));
}
