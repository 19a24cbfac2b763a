//! The tables and views of a crash test, and the oracle: each view equals its own SELECT, run in
//! batch over the same input.

use tokio_postgres::Client;

use super::sql::{Row, Stop, rows};

/// Accounts that money is moved between.
pub(super) const ACCOUNTS: i64 = 12;

/// What each holds at first.
pub(super) const OPENING_BALANCE: i64 = 1_000;

/// What the SELECT of a view reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// Tables, or views over them: view and SELECT read one instant in one transaction.
    Tables,
    /// The followed file: the batch oracle reads it by `event_now`, once nobody writes to it.
    File,
}

/// A materialized view and its SELECT.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub name: &'static str,
    pub input: Input,
    /// `{event}` stands for the source, `{in_time}` for the rows that are not late, which a view
    /// finds out by itself and a batch query is told by the file.
    pub select: &'static str,
    /// What follows the SELECT in the definition.
    pub emit: &'static str,
}

const fn over_tables(name: &'static str, select: &'static str) -> View {
    View { name, input: Input::Tables, select, emit: "" }
}

/// In the order in which they can be created.
pub(super) const VIEWS: &[View] = &[
    over_tables(
        "item_by_kind",
        "SELECT kind, count(*) AS items, sum(price) AS total, min(price) AS lowest, max(price) AS highest, \
         avg(price) AS average, count(DISTINCT owner) AS owners FROM item GROUP BY kind",
    ),
    over_tables(
        "all_items",
        "SELECT count(*) AS kinds, sum(items) AS items, max(total) AS largest FROM item_by_kind",
    ),
    over_tables("cheap_item", "SELECT id, owner, price * 2 AS doubled, label FROM item WHERE price < 500"),
    over_tables(
        "notes_by_label",
        "SELECT label, count(*) AS notes, min(owner) AS first FROM note GROUP BY label",
    ),
    over_tables("balance", "SELECT sum(balance) AS total, count(*) AS accounts FROM account"),
    over_tables(
        "turnover",
        "SELECT account, sum(amount) AS net, count(*) AS moves FROM (SELECT source AS account, -amount AS amount \
         FROM transfer UNION ALL SELECT target, amount FROM transfer) AS move GROUP BY account",
    ),
    over_tables("busy_account", "SELECT account, net FROM turnover WHERE moves % 2 = 0"),
    View {
        name: "event_10s",
        input: Input::File,
        select: "SELECT kind, window_start, window_end, count(*) AS events, sum(amount) AS total, \
                 min(amount) AS lowest, max(amount) AS highest, avg(amount) AS average, \
                 count(DISTINCT number % 7) AS sevens FROM TUMBLE({event}, happened, INTERVAL '10 seconds') {in_time} \
                 GROUP BY kind, window_start, window_end",
        emit: "",
    },
    View {
        name: "event_copy",
        input: Input::File,
        select: "SELECT number, kind, amount FROM {event} WHERE amount >= 0",
        emit: "",
    },
    View {
        name: "event_by_kind",
        input: Input::File,
        select: "SELECT kind, count(*) AS events, sum(amount) AS total FROM {event} GROUP BY kind",
        emit: "",
    },
];

/// Windows that are shown once, when they are closed; compared with those before the watermark.
pub(super) const CLOSED: View = View {
    name: "event_closed",
    input: Input::File,
    select: "SELECT kind, window_start, window_end, count(*) AS events, sum(amount) AS total \
             FROM TUMBLE({event}, happened, INTERVAL '10 seconds') {in_time} GROUP BY kind, window_start, window_end",
    emit: " EMIT ON WINDOW CLOSE",
};

impl View {
    /// The statement that creates it under a name.
    #[must_use]
    pub(super) fn create(&self, name: &str) -> String {
        let select = self.select.replace("{event}", "event").replace("{in_time}", "");
        format!("CREATE MATERIALIZED VIEW {name} AS {select}{}", self.emit)
    }

    /// Its SELECT as a batch query.
    #[must_use]
    pub(super) fn batch(&self) -> String {
        self.select.replace("{event}", "event_now").replace("{in_time}", "WHERE NOT late")
    }

    /// Compares content and oracle; gives the number of rows.
    pub(super) async fn check(&self, client: &Client) -> Result<usize, Stop> {
        self.check_as(client, self.name).await
    }

    /// The same for a view of this definition under another name.
    pub(super) async fn check_as(&self, client: &Client, name: &str) -> Result<usize, Stop> {
        let found = rows(client, &format!("SELECT * FROM {name}")).await?;
        let expected = rows(client, &self.batch()).await?;
        equal(name, &found, &expected)
    }
}

/// Compares the rows of a view with those of its oracle.
pub(super) fn equal(name: &str, found: &[Row], expected: &[Row]) -> Result<usize, Stop> {
    if found == expected {
        return Ok(found.len());
    }
    let missing = expected.iter().find(|row| !found.contains(row));
    let more = found.iter().find(|row| !expected.contains(row));
    Err(Stop::Wrong(format!(
        "view {name} has {} rows, its SELECT {}; e.g. missing {missing:?}, e.g. too many {more:?}",
        found.len(),
        expected.len(),
    )))
}

/// The statements that create everything, over an event file.
#[must_use]
pub(super) fn schema(file: &str) -> Vec<String> {
    let columns = "number BIGINT, kind INT, amount BIGINT, happened TIMESTAMP, late BOOLEAN";
    let mut statements = vec![
        "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)".to_owned(),
        "CREATE TABLE transfer (id BIGINT, client BIGINT, source BIGINT, target BIGINT, amount BIGINT)"
            .to_owned(),
        "CREATE TABLE item (id BIGINT PRIMARY KEY, owner BIGINT, kind BIGINT, price BIGINT, label TEXT)"
            .to_owned(),
        "CREATE TABLE note (owner BIGINT, label TEXT)".to_owned(),
        format!(
            "CREATE SOURCE event ({columns}, WATERMARK FOR happened AS happened - INTERVAL '5 seconds') \
             WITH (connector = 'file', path = '{file}', follow = true) FORMAT PLAIN ENCODE JSON"
        ),
        format!(
            "CREATE SOURCE event_now ({columns}) WITH (connector = 'file', path = '{file}') \
             FORMAT PLAIN ENCODE JSON"
        ),
    ];
    statements.extend(VIEWS.iter().chain([&CLOSED]).map(|view| view.create(view.name)));
    let accounts: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {OPENING_BALANCE})")).collect();
    statements.push(format!("INSERT INTO account VALUES {}", accounts.join(", ")));
    statements
}
