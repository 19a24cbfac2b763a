//! psql 15: the queries behind its backslash commands and completions.

use engine::Session;

use crate::database::{ok, run, session};

/// Statements of the file, each with the command that sends it.
fn statements() -> Vec<(&'static str, &'static str)> {
    let text = include_str!("psql15.sql");
    text.split("\n\n")
        .filter_map(|paragraph| {
            let (command, statement) = paragraph.trim().split_once('\n')?;
            (!statement.starts_with("--")).then(|| (command.trim_start_matches("-- "), statement))
        })
        .collect()
}

async fn example() -> Session {
    let mut db = session().await;
    ok(&mut db, "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT NOT NULL DEFAULT 'x', v NUMERIC(10,2))")
        .await;
    ok(&mut db, "CREATE VIEW vw AS SELECT * FROM t").await;
    ok(&mut db, "CREATE MATERIALIZED VIEW mv AS SELECT id, count(*) AS n FROM t GROUP BY id").await;
    db
}

/// The statement with the numbers of this database.
async fn numbered(db: &mut Session, statement: &str) -> String {
    let mut statement = statement.to_owned();
    for name in ["t_pkey", "mv", "vw", "t"] {
        let number = ok(db, &format!("SELECT oid FROM pg_class WHERE relname = '{name}'")).await;
        statement = statement.replace(&format!("':{name}'"), &format!("'{number}'"));
    }
    statement
}

#[tokio::test]
async fn every_statement_is_answered() {
    let mut db = example().await;
    let mut refused = Vec::new();
    for (command, statement) in statements() {
        let statement = numbered(&mut db, statement).await;
        if let Err(error) = run(&mut db, &statement).await {
            refused.push(format!("{command}: {} {error}\n{statement}", error.sqlstate()));
        }
    }
    assert!(refused.is_empty(), "{} statements refused:\n{}", refused.len(), refused.join("\n\n"));
}

#[tokio::test]
async fn what_psql_shows_of_a_table() {
    let mut db = example().await;
    let answer = |command: &'static str, part: &'static str| {
        let found = statements().into_iter().find(|(name, text)| *name == command && text.contains(part));
        found.unwrap_or_else(|| panic!("{command} {part}")).1
    };
    let relations = numbered(&mut db, answer("\\d", "relkind IN")).await;
    assert_eq!(
        ok(&mut db, &relations).await,
        "public|mv|materialized view|me\npublic|t|table|me\npublic|vw|view|me",
    );
    let columns = numbered(&mut db, answer("\\d t", "pg_attribute a")).await;
    assert_eq!(
        ok(&mut db, &columns).await,
        "id|bigint|NULL|true|NULL||\nname|text|'x'|true|NULL||\nv|numeric(10,2)|NULL|false|NULL||",
    );
    let indexes = numbered(&mut db, answer("\\d t", "pg_index i")).await;
    assert_eq!(
        ok(&mut db, &indexes).await,
        "t_pkey|true|true|false|true|CREATE UNIQUE INDEX t_pkey ON public.t USING btree (id)|PRIMARY KEY (id)|p|false|false|false|0",
    );
}
