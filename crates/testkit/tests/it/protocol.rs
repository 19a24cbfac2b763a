//! The PostgreSQL protocol against the real server, message by message.

#![expect(clippy::disallowed_methods, reason = "what is tested are time limits")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testkit::crash::{Options, Process};
use testkit::wire::{Wire, bind, execute, parse, startup, string};

/// A running server and its folder.
pub(crate) struct Running {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    options: Options,
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(work)
}

fn pause(time: Duration) {
    block_on(async {
        let mut ticks = tokio::time::interval(time);
        ticks.tick().await;
        ticks.tick().await;
    });
}

impl Running {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            data: folder.path().join("data"),
            allowed: folder.path().to_owned(),
            parallelism: 2,
            checkpoint_interval: Duration::from_millis(200),
            log: folder.path().join("server.log"),
            flags: Vec::new(),
        };
        let mut process = Process::spawn(&options);
        let address = block_on(process.ready(&options)).unwrap();
        Self { folder, process, address, options }
    }

    /// Ends it in an orderly way and starts it over the same data.
    pub(crate) fn restart(&mut self) {
        self.process.send_terminate();
        assert!(block_on(self.process.wait()).is_some_and(|status| status.success()));
        self.process = Process::spawn(&self.options);
        self.address = block_on(self.process.ready(&self.options)).unwrap();
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.address).unwrap()
    }
}

/// Runs for minutes, unless something ends it, without a pause between rows.
const LONG: &str = "SELECT sum(a.value * b.value % 7) FROM generate_series(1, 200000) AS a(value), generate_series(1, 200000) AS b(value)";

#[test]
fn results_of_a_text_are_sent_until_the_first_error() {
    let server = Running::start();
    let mut wire = server.wire();
    assert_eq!(
        wire.query("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2); SELECT id FROM t ORDER BY id; SELECT 1 / 0; INSERT INTO t VALUES (3)").unwrap(),
        [
            "tag CREATE TABLE",
            "tag INSERT 0 2",
            "RowDescription",
            "row 1",
            "row 2",
            "tag SELECT 2",
            "RowDescription",
            "ERROR 22012",
            "ready I",
        ],
    );
    assert_eq!(wire.query("SELECT count(*) FROM t").unwrap()[1], "row 2");
    // A syntax error anywhere refuses the whole text.
    assert_eq!(wire.query("INSERT INTO t VALUES (4); SELEC 1").unwrap(), ["ERROR 42601", "ready I"]);
    assert_eq!(wire.query("SELECT count(*) FROM t").unwrap()[1], "row 2");
    assert_eq!(wire.query("").unwrap(), ["empty", "ready I"]);
    assert_eq!(wire.query(" ; -- nothing\n").unwrap(), ["empty", "ready I"]);
}

#[test]
fn positions_count_characters_of_the_whole_text() {
    let server = Running::start();
    let mut wire = server.wire();
    wire.send(b'Q', &string("SELECT 'ä'; SELECT\n 'ö', nix")).unwrap();
    let messages = wire.until_ready().unwrap();
    let error = messages.iter().find(|message| message.kind == b'E').unwrap();
    assert_eq!(error.field(b'C').as_deref(), Some("42703"));
    assert_eq!(error.field(b'P').as_deref(), Some("26"));
}

#[test]
fn command_tags_are_those_of_postgresql() {
    let server = Running::start();
    let mut wire = server.wire();
    let tag = |wire: &mut Wire, text: &str| {
        let mut answer = wire.query(text).unwrap();
        answer.retain(|line| line.starts_with("tag ") || line.starts_with("ERROR"));
        answer.join(", ").replace("tag ", "")
    };
    for (text, expected) in [
        ("CREATE SCHEMA s", "CREATE SCHEMA"),
        ("CREATE TABLE s.t (id INT PRIMARY KEY, v TEXT)", "CREATE TABLE"),
        ("CREATE VIEW v AS SELECT * FROM s.t", "CREATE VIEW"),
        (
            "CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM s.t GROUP BY v",
            "CREATE MATERIALIZED VIEW",
        ),
        ("CREATE SOURCE g (n BIGINT) WITH (connector = 'datagen', rows = '3')", "CREATE SOURCE"),
        ("CREATE SINK k FROM m WITH (connector = 'blackhole')", "CREATE SINK"),
        ("INSERT INTO s.t VALUES (1, 'a'), (2, 'b')", "INSERT 0 2"),
        ("INSERT INTO s.t VALUES (3, 'c') RETURNING id", "INSERT 0 1"),
        ("UPDATE s.t SET v = 'z' WHERE id > 1", "UPDATE 2"),
        ("DELETE FROM s.t WHERE id = 1 RETURNING *", "DELETE 1"),
        ("SELECT * FROM s.t", "SELECT 2"),
        ("VALUES (1), (2)", "SELECT 2"),
        ("SHOW search_path", "SHOW"),
        ("SET application_name = 'x'", "SET"),
        ("RESET application_name", "RESET"),
        ("EXPLAIN SELECT 1", "EXPLAIN"),
        ("FLUSH", "FLUSH"),
        ("BEGIN", "BEGIN"),
        ("ROLLBACK", "ROLLBACK"),
        ("START TRANSACTION", "START TRANSACTION"),
        ("COMMIT", "COMMIT"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("DROP SINK k", "DROP SINK"),
        ("DROP SOURCE g", "DROP SOURCE"),
        ("DROP MATERIALIZED VIEW m", "DROP MATERIALIZED VIEW"),
        ("DROP VIEW v", "DROP VIEW"),
        ("DROP TABLE s.t", "DROP TABLE"),
        ("DROP SCHEMA s", "DROP SCHEMA"),
        ("DROP TABLE IF EXISTS s.t", "DROP TABLE"),
    ] {
        assert_eq!(tag(&mut wire, text), expected, "{text}");
    }
}

#[test]
fn an_error_ends_a_transaction_but_for_its_rollback() {
    let server = Running::start();
    let mut wire = server.wire();
    wire.query("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    assert_eq!(wire.query("BEGIN").unwrap(), ["tag BEGIN", "ready T"]);
    assert_eq!(wire.query("INSERT INTO t VALUES (1)").unwrap(), ["tag INSERT 0 1", "ready T"]);
    assert_eq!(
        wire.query("BEGIN").unwrap(),
        ["WARNING there is already a transaction in progress", "tag BEGIN", "ready T"]
    );
    assert_eq!(wire.query("SELECT nix").unwrap(), ["ERROR 42703", "ready E"]);
    assert_eq!(wire.query("SELECT 1").unwrap(), ["ERROR 25P02", "ready E"]);
    assert_eq!(wire.query("COMMIT").unwrap(), ["tag ROLLBACK", "ready I"]);
    assert_eq!(
        wire.query("COMMIT").unwrap(),
        ["WARNING there is no transaction in progress", "tag COMMIT", "ready I"]
    );
    assert_eq!(
        wire.query("BEGIN; CREATE TABLE u (id INT)").unwrap(),
        ["tag BEGIN", "ERROR 25001", "ready E"]
    );
    assert_eq!(wire.query("ROLLBACK").unwrap(), ["tag ROLLBACK", "ready I"]);
    assert_eq!(
        wire.query("BEGIN READ ONLY; INSERT INTO t VALUES (2)").unwrap(),
        ["tag BEGIN", "ERROR 25006", "ready E"]
    );
    assert_eq!(wire.query("ROLLBACK; SELECT count(*) FROM t").unwrap()[2], "row 0");
    // Errors that the protocol layer finds count too.
    wire.query("BEGIN").unwrap();
    wire.send(b'E', &execute("nowhere", 0)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(wire.summaries().unwrap(), ["ERROR 34000", "ready E"]);
}

#[test]
fn a_portal_goes_on_where_it_stopped() {
    let server = Running::start();
    let mut wire = server.wire();
    wire.query("BEGIN").unwrap();
    wire.send(b'P', &parse("s", "SELECT g FROM generate_series(1, 5) AS x(g)", &[])).unwrap();
    wire.send(b'B', &bind("p", "s", 0, &[])).unwrap();
    wire.send(b'E', &execute("p", 2)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(
        wire.summaries().unwrap(),
        ["ParseComplete", "BindComplete", "row 1", "row 2", "suspended", "ready T"]
    );
    wire.send(b'E', &execute("p", 2)).unwrap();
    wire.send(b'E', &execute("p", 0)).unwrap();
    wire.send(b'E', &execute("p", 0)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(
        wire.summaries().unwrap(),
        ["row 3", "row 4", "suspended", "row 5", "tag SELECT 1", "tag SELECT 0", "ready T"],
    );
    wire.query("COMMIT").unwrap();
    // The end of the transaction was the end of its portals.
    wire.send(b'E', &execute("p", 0)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(wire.summaries().unwrap(), ["ERROR 34000", "ready I"]);
}

#[test]
fn a_row_limit_reserves_nothing() {
    let server = Running::start();
    let mut wire = server.wire();
    for limit in [i32::MAX, -1, i32::MIN] {
        wire.send(b'P', &parse("", "SELECT 1", &[])).unwrap();
        wire.send(b'B', &bind("", "", 0, &[])).unwrap();
        wire.send(b'E', &execute("", limit)).unwrap();
        wire.send(b'S', b"").unwrap();
        assert_eq!(
            wire.summaries().unwrap(),
            ["ParseComplete", "BindComplete", "row 1", "tag SELECT 1", "ready I"]
        );
    }
}

#[test]
fn a_portal_that_changes_rows_runs_once() {
    let server = Running::start();
    let mut wire = server.wire();
    wire.query("CREATE TABLE t (id INT)").unwrap();
    wire.send(b'P', &parse("", "INSERT INTO t VALUES (1)", &[])).unwrap();
    wire.send(b'B', &bind("", "", 0, &[])).unwrap();
    wire.send(b'E', &execute("", 0)).unwrap();
    wire.send(b'E', &execute("", 0)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(
        wire.summaries().unwrap(),
        ["ParseComplete", "BindComplete", "tag INSERT 0 1", "ERROR 55000", "ready I"]
    );
    assert_eq!(wire.query("SELECT count(*) FROM t").unwrap()[1], "row 1");
}

/// Each type's number, a value in text and the same in binary.
fn values() -> Vec<(&'static str, u32, &'static str, Vec<u8>)> {
    const DAY: i64 = 86_400_000_000;
    // 2024-02-29, counted from 2000-01-01.
    let days = 8_825i32;
    let time = 3_723_500_000i64;
    let stamp = (i64::from(days) * DAY + time).to_be_bytes().to_vec();
    let mut interval = 10_800_000_000i64.to_be_bytes().to_vec();
    interval.extend(2i32.to_be_bytes());
    interval.extend(1i32.to_be_bytes());
    let numeric = [2u16, 0, 0, 2, 123, 4500].iter().flat_map(|number| number.to_be_bytes()).collect();
    let mut jsonb = vec![1];
    jsonb.extend(br#"{"a":1}"#);
    vec![
        ("boolean", 16, "t", vec![1]),
        ("smallint", 21, "-7", (-7i16).to_be_bytes().to_vec()),
        ("integer", 23, "70000", 70_000i32.to_be_bytes().to_vec()),
        ("bigint", 20, "-9223372036854775808", i64::MIN.to_be_bytes().to_vec()),
        ("real", 700, "1.5", 1.5f32.to_be_bytes().to_vec()),
        ("double precision", 701, "0.1", 0.1f64.to_be_bytes().to_vec()),
        ("double precision", 701, "NaN", f64::NAN.to_be_bytes().to_vec()),
        ("double precision", 701, "-Infinity", f64::NEG_INFINITY.to_be_bytes().to_vec()),
        ("numeric(10,2)", 1700, "123.45", numeric),
        ("text", 25, "é 日本", "é 日本".as_bytes().to_vec()),
        ("text", 25, "", Vec::new()),
        ("bytea", 17, "\\x00ff", vec![0, 255]),
        ("date", 1082, "2024-02-29", days.to_be_bytes().to_vec()),
        ("time", 1083, "01:02:03.5", time.to_be_bytes().to_vec()),
        ("timestamp", 1114, "2024-02-29 01:02:03.5", stamp.clone()),
        ("timestamptz", 1184, "2024-02-29 01:02:03.5+00", stamp),
        ("interval", 1186, "1 mon 2 days 03:00:00", interval),
        ("uuid", 2950, "00112233-4455-6677-8899-aabbccddeeff", (0..16).map(|n| n * 0x11).collect()),
        ("jsonb", 3802, "{\"a\":1}", jsonb),
    ]
}

#[test]
fn values_of_every_type_travel_both_ways_in_text_and_binary() {
    let server = Running::start();
    let mut wire = server.wire();
    let columns: Vec<String> =
        values().iter().enumerate().map(|(at, value)| format!("c{at} {}", value.0)).collect();
    let answer =
        wire.query(&format!("CREATE TABLE typed (id INT PRIMARY KEY, {})", columns.join(", "))).unwrap();
    assert_eq!(answer, ["tag CREATE TABLE", "ready I"]);
    let types: Vec<u32> = std::iter::once(23).chain(values().iter().map(|value| value.1)).collect();
    let numbers: Vec<String> = (1..=types.len()).map(|at| format!("${at}")).collect();
    let insert = format!("INSERT INTO typed VALUES ({})", numbers.join(", "));
    for given in [0u16, 1] {
        let id = if given == 0 { b"10".to_vec() } else { 11i32.to_be_bytes().to_vec() };
        let in_format: Vec<Vec<u8>> = std::iter::once(id)
            .chain(
                values()
                    .into_iter()
                    .map(|value| if given == 0 { value.2.as_bytes().to_vec() } else { value.3 }),
            )
            .collect();
        let parameters: Vec<Option<&[u8]>> = in_format.iter().map(|value| Some(value.as_slice())).collect();
        wire.send(b'P', &parse("", &insert, &types)).unwrap();
        wire.send(b'B', &bind("", "", given, &parameters)).unwrap();
        wire.send(b'E', &execute("", 0)).unwrap();
        wire.send(b'S', b"").unwrap();
        assert_eq!(wire.summaries().unwrap(), ["ParseComplete", "BindComplete", "tag INSERT 0 1", "ready I"]);
        for shown in [0u16, 1] {
            wire.send(b'P', &parse("", "SELECT * FROM typed WHERE id = $1", &[23])).unwrap();
            let id = if shown == 0 {
                format!("{}", 10 + given).into_bytes()
            } else {
                (10 + i32::from(given)).to_be_bytes().to_vec()
            };
            wire.send(b'B', &bind("", "", shown, &[Some(&id)])).unwrap();
            wire.send(b'E', &execute("", 0)).unwrap();
            wire.send(b'S', b"").unwrap();
            let messages = wire.until_ready().unwrap();
            let row = messages
                .iter()
                .find(|message| message.kind == b'D')
                .unwrap_or_else(|| panic!("{messages:?}"));
            for (value, expected) in row.values().into_iter().skip(1).zip(values()) {
                let expected_bytes = if shown == 0 { expected.2.as_bytes().to_vec() } else { expected.3 };
                assert_eq!(value, Some(expected_bytes), "{} given in {given}, shown in {shown}", expected.0);
            }
        }
    }
    // And NULL of each.
    let nulls: Vec<Option<&[u8]>> =
        std::iter::once(Some(&b"12"[..])).chain(values().iter().map(|_| None)).collect();
    wire.send(b'P', &parse("", &insert, &types)).unwrap();
    wire.send(b'B', &bind("", "", 0, &nulls)).unwrap();
    wire.send(b'E', &execute("", 0)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(wire.summaries().unwrap()[2], "tag INSERT 0 1");
    let row = wire.query("SELECT * FROM typed WHERE id = 12").unwrap()[1].clone();
    assert_eq!(row, format!("row 12{}", "|NULL".repeat(values().len())));
}

#[test]
fn after_an_error_messages_are_skipped_until_sync() {
    let server = Running::start();
    let mut wire = server.wire();
    wire.query("CREATE TABLE t (id INT)").unwrap();
    wire.send(b'P', &parse("", "SELECT nix", &[])).unwrap();
    wire.send(b'P', &parse("i", "INSERT INTO t VALUES (1)", &[])).unwrap();
    wire.send(b'B', &bind("", "i", 0, &[])).unwrap();
    wire.send(b'E', &execute("", 0)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(wire.summaries().unwrap(), ["ERROR 42703", "ready I"]);
    wire.send(b'B', &bind("", "i", 0, &[])).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(wire.summaries().unwrap(), ["ERROR 26000", "ready I"]);
    assert_eq!(wire.query("SELECT count(*) FROM t").unwrap()[1], "row 0");
    wire.send(b'P', &parse("i", "SELECT 1", &[])).unwrap();
    wire.send(b'B', &bind("", "i", 0, &[Some(b"1")])).unwrap();
    wire.send(b'E', &execute("", 0)).unwrap();
    wire.send(b'S', b"").unwrap();
    assert_eq!(wire.summaries().unwrap(), ["ParseComplete", "BindComplete", "ERROR 08P01", "ready I"]);
}

#[test]
fn a_cancel_request_ends_the_statement_at_once() {
    let server = Running::start();
    for in_extended_protocol in [false, true] {
        let mut wire = server.wire();
        wire.query("BEGIN").unwrap();
        if in_extended_protocol {
            wire.send(b'P', &parse("", LONG, &[])).unwrap();
            wire.send(b'B', &bind("", "", 1, &[])).unwrap();
            wire.send(b'E', &execute("", 0)).unwrap();
            wire.send(b'S', b"").unwrap();
        } else {
            wire.send(b'Q', &string(LONG)).unwrap();
        }
        server.is_busy();
        let asked = Instant::now();
        wire.cancel().unwrap();
        let answer = wire.summaries().unwrap();
        let took = asked.elapsed();
        assert_eq!(answer[answer.len() - 2..], ["ERROR 57014", "ready E"], "{answer:?}");
        assert!(took < Duration::from_millis(200), "{took:?}");
        // It can go on, and the cancel request is used up.
        assert_eq!(wire.query("ROLLBACK").unwrap(), ["tag ROLLBACK", "ready I"]);
        assert_eq!(wire.query("SELECT 1").unwrap()[1], "row 1");
    }
    server.is_idle();
}

#[test]
fn a_statement_ends_with_its_client() {
    let server = Running::start();
    let mut wire = server.wire();
    wire.send(b'Q', &string(LONG)).unwrap();
    server.is_busy();
    drop(wire);
    server.is_idle();
}

#[test]
fn a_statement_ends_with_its_timeout() {
    let server = Running::start();
    let mut wire = server.wire();
    wire.query("SET statement_timeout = '100ms'").unwrap();
    let asked = Instant::now();
    wire.send(b'Q', &string(LONG)).unwrap();
    let messages = wire.until_ready().unwrap();
    let error = messages.iter().find(|message| message.kind == b'E').unwrap();
    assert_eq!(error.field(b'C').as_deref(), Some("57014"));
    assert_eq!(error.field(b'M').as_deref(), Some("canceling statement due to statement timeout"));
    assert!(asked.elapsed() < Duration::from_secs(5));
    server.is_idle();
}

impl Running {
    /// Processor time of the server so far, in hundredths of a second.
    fn used(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_ascii_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Waits until a statement is at work.
    fn is_busy(&self) {
        let before = self.used();
        let begun = Instant::now();
        while self.used() < before + 20 {
            pause(Duration::from_millis(10));
            assert!(begun.elapsed() < Duration::from_secs(60), "nothing is at work");
        }
    }

    /// Waits until the server uses hardly any processor time, which a statement that still runs would.
    fn is_idle(&self) {
        let begun = Instant::now();
        loop {
            let before = self.used();
            pause(Duration::from_millis(300));
            if self.used() - before < 10 {
                return;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "a statement goes on although nobody waits for it"
            );
        }
    }
}

#[test]
fn a_start_that_fails_is_fatal() {
    let server = Running::start();
    for (parameters, code) in [
        (&[("user", "u"), ("client_encoding", "LATIN1")][..], "22023"),
        (&[("user", "u"), ("TimeZone", "Mars/Crater")][..], "22023"),
        (&[("user", "u"), ("nix", "1")][..], "42704"),
    ] {
        let mut wire = Wire::open(server.address).unwrap();
        wire.send_bytes(&startup(parameters)).unwrap();
        let messages = wire.until_closed();
        let summaries: Vec<String> = messages.iter().map(testkit::wire::Message::summary).collect();
        assert_eq!(summaries, [format!("FATAL {code}")], "{parameters:?}");
    }
    let mut wire = Wire::open(server.address).unwrap();
    let options = [
        ("user", "u"),
        ("client_encoding", "utf-8"),
        ("DateStyle", "ISO"),
        ("options", "-c statement_timeout=5s"),
    ];
    wire.send_bytes(&startup(&options)).unwrap();
    wire.until_ready().unwrap();
    assert_eq!(wire.query("SHOW statement_timeout").unwrap()[1], "row 5s");
}

#[test]
fn sigterm_says_good_bye_to_clients_and_loses_nothing() {
    let mut server = Running::start();
    let mut wire = server.wire();
    wire.query("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    wire.query("INSERT INTO t SELECT g FROM generate_series(1, 1000) AS s(g)").unwrap();
    let mut busy = server.wire();
    busy.send(b'Q', &string(LONG)).unwrap();
    server.is_busy();
    let asked = Instant::now();
    server.process.send_terminate();
    let messages = wire.until_closed();
    assert_eq!(messages.last().map(testkit::wire::Message::summary).as_deref(), Some("FATAL 57P01"));
    assert_eq!(
        busy.until_closed().last().map(testkit::wire::Message::summary).as_deref(),
        Some("FATAL 57P01")
    );
    let status = block_on(server.process.wait()).expect("it ends");
    assert!(status.success(), "{status}");
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    let error = Wire::connect(server.address).err().expect("nobody listens any more");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}
