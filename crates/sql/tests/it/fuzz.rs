//! The parser gives a statement or an error, whatever it is given.

use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_oneof, proptest};

const SEEDS: &[&str] = &[
    "CREATE SOURCE s (a INT, WATERMARK FOR a AS a - INTERVAL '4' SECOND) WITH (connector = 'file', x.y = 1) FORMAT PLAIN ENCODE CSV (d = ';')",
    "CREATE TABLE t (a INT DEFAULT 1 NOT NULL, b TEXT, CONSTRAINT k PRIMARY KEY (b, a) NOT ENFORCED)",
    "CREATE MATERIALIZED VIEW v (a) AS SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) FROM b GROUP BY TUMBLE(ts, INTERVAL '1' HOUR) EMIT ON WINDOW CLOSE ALLOWED LATENESS INTERVAL '1 minute'",
    "SELECT * FROM TABLE(TUMBLE(SIZE => INTERVAL '10' SECOND, DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts))) JOIN emit ON x",
    "CREATE SINK k FROM s.\"V\" WITH (connector = 'blackhole'); CREATE SINK k AS TABLE t EMIT ON UPDATE WITH (connector = 'blackhole')",
    "INSERT INTO t (a) VALUES (1, DEFAULT), ($1, E'é\\n') ON CONFLICT (a) DO UPDATE SET a = 1 RETURNING *",
    "EXPLAIN (ANALYZE, COSTS off) SELECT CASE WHEN a THEN b[1] ELSE (r).f END::numeric(10,2) FROM (t JOIN u USING (k)) WHERE x IN (SELECT 1)",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY; BEGIN; SHOW TIME ZONE; DROP VIEW a.b, c CASCADE",
];

/// Words and signs that matter to the grammar.
const PIECES: &[&str] = &[
    " ",
    "\n",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ".",
    "'",
    "\"",
    "`",
    "$$",
    "$1",
    "é",
    "/*",
    "*/",
    "--",
    "=",
    "=>",
    "::",
    "-",
    "*",
    "0",
    "1e9",
    " EMIT ",
    " ON ",
    " TABLE ",
    " TUMBLE ",
    " DESCRIPTOR ",
    " WITH ",
    " SELECT ",
    " FROM ",
    " CREATE ",
    " INTERVAL ",
    " CASE ",
    " NOT ",
    " NULL ",
    " AS ",
    " VIEW ",
    " GROUP BY ",
    " EXPLAIN ",
    " INSERT INTO ",
    "U&'\\",
];

#[derive(Debug, Clone)]
enum Edit {
    Delete(usize, usize),
    Insert(usize, &'static str),
    Copy(usize, usize, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (0..400usize, 1..12usize).prop_map(|(at, length)| Edit::Delete(at, length)),
        (0..400usize, prop::sample::select(PIECES)).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (0..400usize, 0..400usize, 1..30usize).prop_map(|(from, to, length)| Edit::Copy(from, to, length)),
    ]
}

fn apply(text: &str, edits: &[Edit]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for edit in edits {
        let clamp = |at: usize| at.min(chars.len());
        match *edit {
            Edit::Delete(at, length) => {
                let range = clamp(at)..clamp(at + length);
                chars.drain(range);
            }
            Edit::Insert(at, piece) => {
                let at = clamp(at);
                chars.splice(at..at, piece.chars());
            }
            Edit::Copy(from, to, length) => {
                let copied: Vec<char> = chars[clamp(from)..clamp(from + length)].to_vec();
                let to = clamp(to);
                chars.splice(to..to, copied);
            }
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_statements_never_panic_and_errors_stay_inside_the_text(
        seed in prop_oneof![prop::sample::select(SEEDS), Just("")],
        edits in prop::collection::vec(edit(), 0..12),
    ) {
        let text = apply(seed, &edits);
        match sql::parse(&text) {
            Ok(parsed) => {
                for one in parsed {
                    let from: String = text.chars().skip(one.offset as usize).take(one.text.chars().count()).collect();
                    assert_eq!(from, one.text);
                }
            }
            Err(error) => {
                let length = text.chars().count() + 1;
                assert!(error.position.is_none_or(|position| (1..=length).contains(&(position as usize))), "{error:?}");
            }
        }
    }
}
