//! The real server under a small budget: exact results, and no more memory than it was given.
//!
//! State, views and results are several times larger than what fits into the budgets.
//! `MEMORY_KEYS=5000000` runs the aggregate at full size, with a budget of 256 MiB.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use testkit::crash::{Answer, Options, Process, connect, execute, rows, succeed};
use tokio_postgres::Client;

const MIB: u64 = 1 << 20;
/// What the process may take beside its budget: code, threads, plans.
const BASE: u64 = 150 * MIB;
/// Groups that a budget of 256 MiB is made for.
const KEYS_OF_256_MIB: u64 = 5_000_000;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

/// A server with a budget, and one client.
struct Server {
    _folder: tempfile::TempDir,
    process: Process,
    address: SocketAddr,
    client: Client,
    budget: u64,
}

impl Server {
    async fn start(budget: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            data: folder.path().join("data"),
            allowed: folder.path().to_owned(),
            parallelism: 2,
            checkpoint_interval: Duration::from_secs(1),
            log: folder.path().join("server.log"),
            flags: Vec::new(),
        };
        let mut process = Process::spawn_with_memory(&options, budget);
        let address = process.ready(&options).await.unwrap();
        let client = connect(address).await.unwrap();
        Self { _folder: folder, process, address, client, budget }
    }

    async fn run(&self, text: &str) {
        succeed(&self.client, text).await.unwrap_or_else(|stop| panic!("{text}: {stop:?}"));
    }

    async fn rows(&self, text: &str) -> Vec<Vec<String>> {
        rows(&self.client, text).await.unwrap_or_else(|stop| panic!("{text}: {stop:?}"))
    }

    /// The most memory it ever had resident must be the budget and what every process takes,
    /// but for the inaccuracy of accounting.
    fn stayed_within_its_budget(&self) {
        let allowed = (self.budget + BASE) * 115 / 100;
        let peak = self.process.peak_memory();
        println!("budget {} MiB, peak {} MiB, allowed {} MiB", self.budget / MIB, peak / MIB, allowed / MIB);
        assert!(peak <= allowed, "{} MiB resident, {} MiB allowed", peak / MIB, allowed / MIB);
    }
}

/// The number of groups of the large aggregate, and the budget that goes with it.
fn size() -> (u64, u64) {
    let keys = std::env::var("MEMORY_KEYS").map_or(KEYS_OF_256_MIB / 4, |text| text.parse().unwrap());
    (keys, (keys * 256 / KEYS_OF_256_MIB).max(128) * MIB)
}

/// Every group is met twice, in an order that has nothing to do with the keys and with all other
/// groups in between: it has left memory by then and must come back.
#[test]
fn an_aggregate_over_more_groups_than_fit_is_exact_within_the_budget() {
    let (keys, budget) = size();
    block_on(async {
        let server = Server::start(budget).await;
        server
            .run(&format!(
                "CREATE SOURCE numbers (a BIGINT) WITH (connector = 'datagen', rows = '{}', \
                 fields.a.kind = 'sequence', fields.a.start = '0')",
                keys * 2
            ))
            .await;
        // 1234577 has no factor in common with the number of keys (a product of twos and fives).
        server
            .run(&format!(
                "CREATE MATERIALIZED VIEW groups AS SELECT a * 1234577 % {keys} AS k, count(*) AS n, sum(a) AS total, \
                 min(a) AS least, max(a) AS greatest FROM numbers GROUP BY a * 1234577 % {keys}"
            ))
            .await;
        server.run("FLUSH").await;
        let wrong = format!(
            "n <> 2 OR least * 1234577 % {keys} <> k OR greatest <> least + {keys} OR total <> least + greatest"
        );
        let counted = server
            .rows(&format!("SELECT count(*), min(k), max(k), count(*) FILTER (WHERE {wrong}) FROM groups"))
            .await;
        assert_eq!(counted, [[keys.to_string(), "0".to_owned(), (keys - 1).to_string(), "0".to_owned()]]);
        server.stayed_within_its_budget();
    });
}

/// Asserts that a statement is refused for want of memory, with advice.
async fn is_too_large(server: &Server, text: &str) {
    let error = server.client.simple_query(text).await.err();
    let text = &text[..text.len().min(60)];
    let error = error.unwrap_or_else(|| panic!("{text}: not refused"));
    let error = error.as_db_error().unwrap_or_else(|| panic!("{text}: {error}"));
    assert_eq!(error.code().code(), "53200", "{text}: {error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("--memory")), "{error:?}");
}

#[test]
fn what_does_not_fit_is_refused_and_everything_else_goes_on() {
    block_on(async {
        let server = Server::start(128 * MIB).await;
        server.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)").await;
        server.run("INSERT INTO t VALUES (0, 0)").await;
        let five_millions = "INSERT INTO t SELECT g, g FROM generate_series(1, 5000000) AS s(g)";
        is_too_large(&server, five_millions).await;
        let list: Vec<String> = (1..400_000).map(|id| format!("({id}, 0)")).collect();
        is_too_large(&server, &format!("INSERT INTO t VALUES {}", list.join(", "))).await;
        server.run("BEGIN").await;
        server.run("INSERT INTO t VALUES (-1, 0)").await;
        is_too_large(&server, five_millions).await;
        assert!(execute(&server.client, "INSERT INTO t VALUES (-2, 0)").await.is_ok_and(|answer| {
            matches!(answer, Answer::Refused { sqlstate, .. } if sqlstate == "25P02")
        }));
        server.run("ROLLBACK").await;
        // Statement after statement, a transaction grows as far as memory goes.
        server.run("BEGIN").await;
        let mut refused = false;
        for start in (1..5_000_000).step_by(5_000) {
            let insert =
                format!("INSERT INTO t SELECT g, g FROM generate_series({start}, {}) AS s(g)", start + 4_999);
            if let Answer::Refused { sqlstate, .. } = execute(&server.client, &insert).await.unwrap() {
                assert_eq!(sqlstate, "53200");
                refused = true;
                break;
            }
        }
        assert!(refused, "five million rows fit into one transaction");
        server.run("ROLLBACK").await;
        // What was refused holds nothing any more.
        server.run("INSERT INTO t SELECT g, g FROM generate_series(1, 5000) AS s(g)").await;
        assert_eq!(server.rows("SELECT count(*), sum(v) FROM t").await, [["5001", "12502500"]]);
        server.stayed_within_its_budget();
    });
}

/// A client that asks for millions of rows and takes its time.
struct SlowClient(std::net::TcpStream);

impl SlowClient {
    fn connect(address: SocketAddr) -> Self {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let start = b"\x00\x03\x00\x00user\0slow\0database\0highwater\0\0";
        stream.write_all(&u32::try_from(start.len() + 4).unwrap().to_be_bytes()).unwrap();
        stream.write_all(start).unwrap();
        let mut client = Self(stream);
        while client.message().0 != b'Z' {}
        client
    }

    fn ask(&mut self, query: &str) {
        self.0.write_all(b"Q").unwrap();
        self.0.write_all(&u32::try_from(query.len() + 5).unwrap().to_be_bytes()).unwrap();
        self.0.write_all(query.as_bytes()).unwrap();
        self.0.write_all(b"\0").unwrap();
    }

    fn message(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (head[0], body)
    }
}

#[test]
fn large_views_are_read_within_the_budget_at_any_pace() {
    const ROWS: u64 = 1_500_000;
    block_on(async {
        let server = Server::start(192 * MIB).await;
        server
            .run(&format!(
                "CREATE SOURCE numbers (a BIGINT, t TEXT) WITH (connector = 'datagen', rows = '{ROWS}', \
                 fields.a.kind = 'sequence', fields.a.start = '0', fields.t.length = '40')"
            ))
            .await;
        server.run("CREATE MATERIALIZED VIEW v AS SELECT a, t FROM numbers").await;
        server.run("FLUSH").await;
        assert_eq!(
            server.rows("SELECT count(*), max(a) FROM v").await,
            [[ROWS.to_string(), (ROWS - 1).to_string()]]
        );
        let last = (ROWS - 1).to_string();
        assert_eq!(server.rows("SELECT a FROM v ORDER BY a DESC LIMIT 1").await, [[last.clone()]]);
        assert_eq!(server.rows("SELECT t IS NULL FROM v ORDER BY t LIMIT 1").await, [["f"]]);
        // Groups that do not fit go to disk.
        let groups = "SELECT count(*) FROM (SELECT a, count(*) FROM v GROUP BY a) AS g";
        assert_eq!(server.rows(groups).await, [[ROWS.to_string()]]);
        server.stayed_within_its_budget();

        let mut slow = SlowClient::connect(server.address);
        slow.ask("SELECT * FROM v");
        let mut rows = 0;
        while rows < 20 {
            rows += u64::from(slow.message().0 == b'D');
            // The server has all the time in the world to read ahead.
            assert_eq!(server.rows("SELECT max(a) FROM v").await, [[last.clone()]]);
        }
        server.stayed_within_its_budget();
        drop(slow);
        server.run("CREATE TABLE t (a BIGINT)").await;
    });
}
