//! The real psql against the real server: its backslash commands, completions and exit codes.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::protocol::Running;

/// What psql prints for some input, standard error included.
fn psql(server: &Running, input: &str) -> String {
    let (mut shown, errors) = run_psql(server, input);
    shown.push('\n');
    shown.push_str(&errors);
    shown.trim_matches('\n').to_owned()
}

/// What psql prints for some input, answers and messages apart, without spaces at line ends.
pub(crate) fn run_psql(server: &Running, input: &str) -> (String, String) {
    let url = format!("postgresql://postgres@{}/highwater", server.address);
    let mut child = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", "--pset=pager=off", &url])
        .env_remove("PGOPTIONS")
        .env("PGCLIENTENCODING", "UTF8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect(".ci/setup installs psql");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_matches('\n').to_owned()
    };
    (text(&output.stdout), text(&output.stderr))
}

fn server() -> Running {
    let server = Running::start();
    let made = psql(
        &server,
        r#"CREATE SCHEMA shop;
CREATE TABLE orders (id INT PRIMARY KEY, customer TEXT NOT NULL DEFAULT 'nobody', amount NUMERIC(10,2), at TIMESTAMPTZ);
CREATE TABLE shop."Odd Name" ("a b" BIGINT, tags TEXT[]);
CREATE VIEW big AS SELECT id, amount FROM orders WHERE amount > 100;
CREATE MATERIALIZED VIEW spent AS SELECT customer, count(*) AS orders, sum(amount) AS total FROM orders GROUP BY customer;
CREATE SOURCE ticks (n BIGINT, label TEXT) WITH (connector = 'datagen', rows = '5');
"#,
    );
    assert!(!made.contains("ERROR"), "{made}");
    server
}

#[test]
fn lists_of_relations() {
    let server = server();
    assert_eq!(
        psql(&server, r"\d"),
        "               List of relations
 Schema |  Name  |       Type        |  Owner
--------+--------+-------------------+----------
 public | big    | view              | postgres
 public | orders | table             | postgres
 public | spent  | materialized view | postgres
 public | ticks  | table             | postgres
(4 rows)",
    );
    assert_eq!(
        psql(&server, r"\dt"),
        "         List of relations
 Schema |  Name  | Type  |  Owner
--------+--------+-------+----------
 public | orders | table | postgres
 public | ticks  | table | postgres
(2 rows)",
    );
    assert_eq!(
        psql(&server, r"\dm"),
        "               List of relations
 Schema | Name  |       Type        |  Owner
--------+-------+-------------------+----------
 public | spent | materialized view | postgres
(1 row)",
    );
    assert_eq!(
        psql(&server, r"\dv"),
        "        List of relations
 Schema | Name | Type |  Owner
--------+------+------+----------
 public | big  | view | postgres
(1 row)",
    );
    assert!(
        psql(&server, r"\dt shop.*").contains("shop   | Odd Name | table"),
        "{}",
        psql(&server, r"\dt shop.*")
    );
    assert!(psql(&server, r"\dt+").contains("orders"));
    assert!(psql(&server, r"\dt nix*").contains("(0 rows)"));
}

#[test]
fn descriptions_of_relations() {
    let server = server();
    assert_eq!(
        psql(&server, r"\d orders"),
        "                         Table \"public.orders\"
  Column  |           Type           | Collation | Nullable | Default
----------+--------------------------+-----------+----------+----------
 id       | integer                  |           | not null |
 customer | text                     |           | not null | 'nobody'
 amount   | numeric(10,2)            |           |          |
 at       | timestamp with time zone |           |          |
Indexes:
    \"orders_pkey\" PRIMARY KEY, btree (id)",
    );
    assert_eq!(
        psql(&server, r#"\d shop."Odd Name""#),
        "              Table \"shop.Odd Name\"
 Column |  Type  | Collation | Nullable | Default
--------+--------+-----------+----------+---------
 a b    | bigint |           |          |
 tags   | text[] |           |          |",
    );
    let view = psql(&server, r"\d+ big");
    assert!(view.contains("View \"public.big\""), "{view}");
    assert!(view.contains("View definition:") && view.contains("amount > 100"), "{view}");
    let view = psql(&server, r"\d+ spent");
    assert!(view.contains("Materialized view \"public.spent\""), "{view}");
    assert!(view.contains(" customer |") && view.contains("GROUP BY customer"), "{view}");
    let source = psql(&server, r"\d ticks");
    assert!(source.contains("\"public.ticks\"") && source.contains("label"), "{source}");
    assert_eq!(psql(&server, r"\d nix"), "");
}

#[test]
fn other_lists_and_the_connection() {
    let server = server();
    let schemas = psql(&server, r"\dn");
    assert!(schemas.contains(" public ") && schemas.contains(" shop "), "{schemas}");
    assert!(psql(&server, r"\l").contains(" highwater | "), "{}", psql(&server, r"\l"));
    let functions = psql(&server, r"\df");
    assert!(functions.contains("List of functions"), "{functions}");
    let conninfo = psql(&server, r"\conninfo");
    let expected = format!(
        "You are connected to database \"highwater\" as user \"postgres\" on host \"127.0.0.1\" at port \"{}\".",
        server.address.port(),
    );
    assert_eq!(conninfo, expected);
    assert_eq!(
        psql(&server, r"SELECT 1 AS one, 'x' AS two \gdesc"),
        " Column |  Type
--------+---------
 one    | integer
 two    | text
(2 rows)",
    );
}

/// Every command that only reads ends without an error. (What completion asks is in the engine's tests.)
#[test]
fn nothing_is_an_error() {
    let server = server();
    for command in [
        r"\d",
        r"\d+",
        r"\dS",
        r"\d *",
        r"\d orders",
        r"\d+ orders",
        r"\d spent",
        r"\d big",
        r"\d ticks",
        r"\d orders_pkey",
        r"\dt",
        r"\dt+",
        r"\dtS",
        r"\dv",
        r"\dv+",
        r"\dm",
        r"\dm+",
        r"\di",
        r"\di+",
        r"\ds",
        r"\dE",
        r"\dn",
        r"\dn+",
        r"\dnS",
        r"\l",
        r"\l+",
        r"\df",
        r"\df+",
        r"\dfS",
        r"\df count",
        r"\da",
        r"\dT",
        r"\dT+",
        r"\do",
        r"\du",
        r"\du+",
        r"\dg",
        r"\dp",
        r"\z",
        r"\db",
        r"\dc",
        r"\dC",
        r"\dD",
        r"\dd",
        r"\ddp",
        r"\des",
        r"\det",
        r"\dew",
        r"\deu",
        r"\dF",
        r"\dFd",
        r"\dFp",
        r"\dFt",
        r"\dL",
        r"\dO",
        r"\dP",
        r"\drds",
        r"\dRp",
        r"\dRs",
        r"\dx",
        r"\dX",
        r"\dy",
        r"\dA",
        r"\dAc",
        r"\dAf",
        r"\dAo",
        r"\dAp",
        r"\dconfig",
        r"\dconfig+",
        r"\sv big",
        r"\conninfo",
        r"\encoding",
        r"\timing on",
        r"\set",
        r"\x auto",
        r"SELECT 1 \gx",
        r"SELECT 1 AS a \gset",
        r"\echo :a",
        r"\lo_list",
    ] {
        let shown = psql(&server, command);
        assert!(!shown.contains("ERROR:") && !shown.contains("FATAL:"), "{command}\n{shown}");
    }
}

#[test]
fn an_error_shows_where() {
    let server = server();
    assert_eq!(
        psql(&server, "SELECT id,\n       nix\nFROM orders;"),
        "ERROR:  column \"nix\" does not exist
LINE 2:        nix
               ^",
    );
    assert_eq!(
        psql(&server, "SELEC 1;"),
        "ERROR:  syntax error at or near \"SELEC\"\nLINE 1: SELEC 1;\n        ^"
    );
}

#[test]
fn a_script_stops_at_its_first_error_if_told_to() {
    let server = server();
    assert_eq!(
        psql(&server, "\\set ON_ERROR_STOP on\nINSERT INTO orders (id) VALUES (1);\nINSERT INTO orders (id) VALUES (1);\nINSERT INTO orders (id) VALUES (2);")
            .lines()
            .next(),
        Some("ERROR:  duplicate key value violates unique constraint \"orders_pkey\""),
    );
    assert_eq!(psql(&server, "\\pset tuples_only on\nSELECT count(*) FROM orders;").trim(), "1");
}
