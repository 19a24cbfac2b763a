//! Random tables, random changes, random views: after every step each view equals its own SELECT
//! in batch.
//!
//! ```text
//!  tables ─► views, before and between the changes ─► INSERT/UPDATE/DELETE, alone and in transactions
//!                                                  │   now and then: kill, back at another parallelism
//!                                                  └─► check all
//! ```
//!
//! `VIEWS_SEED=…` repeats a run, `VIEWS_DATABASES=…` makes it longer.

mod changes;
mod expressions;
mod queries;

use testkit::crash::Random;
use testkit::database::{Backend, Database};
use testkit::oracle::check_views;

use self::changes::Changes;
use self::queries::Queries;

const SEED: i64 = 1;
/// Databases of one test, on alternating backends.
const DATABASES: i64 = 6;
const VIEWS: usize = 12;
const STEPS: usize = 14;

fn setting(name: &str, default: i64) -> i64 {
    std::env::var(name)
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

/// A database and the statements it was given, which a failure prints.
struct Run {
    database: Database,
    statements: Vec<String>,
    /// Statements that were refused, as PostgreSQL would have.
    refused: usize,
    compared: usize,
}

impl Run {
    /// Runs statements in one session; an error ends them with ROLLBACK. Whether all went well.
    async fn execute(&mut self, statements: &[String]) -> bool {
        let mut session = self.database.engine().session("tester");
        for statement in statements {
            self.statements.push(format!("{statement};"));
            let Err(error) = testkit::database::run(&mut session, statement).await else { continue };
            let sqlstate = error.sqlstate();
            self.statements.push(format!("-- {sqlstate} {error}"));
            // Values that are not allowed or cannot be represented; anything else is a bug of the
            // engine or of this test.
            // A SELECT over one row of constants is optimized to one without FROM.
            let is_without_from = error.to_string().starts_with("SELECT without FROM");
            let is_expected = sqlstate.starts_with("22") || sqlstate.starts_with("23") || is_without_from;
            assert!(is_expected, "{}\n{sqlstate} {error}", self.statements.join("\n"));
            if statements.len() > 1 {
                self.statements.push("ROLLBACK;".to_owned());
                testkit::database::run(&mut session, "ROLLBACK").await.unwrap();
            }
            self.refused += 1;
            return false;
        }
        true
    }

    async fn check(&mut self) {
        let checked = check_views(&mut self.database.engine().session("tester")).await;
        match checked {
            Ok(checked) => self.compared += checked.equal,
            Err(difference) => panic!("{}\n\n{difference}", self.statements.join("\n")),
        }
    }
}

async fn run(seed: i64, backend: Backend) -> (usize, usize) {
    let mut random = Random::new(seed.unsigned_abs());
    let mut parallelism = *random.pick(&[1, 2, 4]);
    let database = Database::open(backend, parallelism).await;
    let mut run = Run {
        database,
        statements: vec![format!("-- VIEWS_SEED={seed} {backend:?}")],
        refused: 0,
        compared: 0,
    };
    let mut changes = Changes::new(random.fork());
    let mut queries = Queries::new(random.fork());
    for table in Queries::tables() {
        assert!(run.execute(&[table]).await);
    }
    let mut views = 0;
    for step in 0..STEPS {
        // Views over empty tables, and over what is there by then.
        while views * STEPS <= step * VIEWS {
            let (statement, view) = queries.view(views);
            if run.execute(&[statement]).await {
                queries.add(view);
            }
            views += 1;
        }
        run.check().await;
        let statements = changes.next();
        run.execute(&statements).await;
        run.check().await;
        if random.one_in(6) {
            parallelism = if parallelism == 1 { 3 } else { 1 };
            run.statements.push(format!("-- killed, back at parallelism {parallelism}"));
            run.database.kill_and_restart(parallelism).await;
            run.check().await;
        }
    }
    (views, run.compared)
}

fn runs(number: i64) {
    let (seed, databases) = (setting("VIEWS_SEED", SEED), setting("VIEWS_DATABASES", DATABASES));
    let is_one = std::env::var_os("VIEWS_SEED").is_some() && databases == 1;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut views, mut compared) = (0, 0);
    for database in 0..databases {
        // One database is the one of its seed; the tests run different ones of many.
        let seed = if is_one { seed } else { seed * 1_000 + number * databases + database };
        let backend = if seed % 2 == 0 { Backend::Memory } else { Backend::RocksDb };
        let (more_views, more_compared) = runtime.block_on(run(seed, backend));
        views += more_views;
        compared += more_compared;
    }
    println!("{views} views, {compared} comparisons");
    assert!(compared > views * STEPS / 2, "{views} views were compared only {compared} times");
}

#[test]
fn views_equal_their_selects_one() {
    runs(0);
}

#[test]
fn views_equal_their_selects_two() {
    runs(1);
}

#[test]
fn views_equal_their_selects_three() {
    runs(2);
}
