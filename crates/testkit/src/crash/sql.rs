//! Statements over the wire, and what their answers mean in a crash test.

#![expect(clippy::wildcard_enum_match_arm, reason = "the messages of tokio-postgres are not all of them")]

use std::net::SocketAddr;

use tokio_postgres::{Client, SimpleQueryMessage};

/// Why a client stops.
#[derive(Debug)]
pub enum Stop {
    /// The connection is gone, as it is when the server is killed.
    Lost,
    /// The server answered what it may not.
    Wrong(String),
}

/// How a statement was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done, with the rows it affected.
    Done(u64),
    /// Refused with this SQLSTATE.
    Refused { sqlstate: String, message: String },
}

/// Connects; `Lost` when nobody is there.
pub async fn connect(address: SocketAddr) -> Result<Client, Stop> {
    let mut config = tokio_postgres::Config::new();
    config.host(address.ip().to_string()).port(address.port()).user("tester").dbname("highwater");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.map_err(|_| Stop::Lost)?;
    tokio::task::spawn(connection);
    Ok(client)
}

/// The answer in an error, or that there was none.
fn refusal(error: &tokio_postgres::Error) -> Result<Answer, Stop> {
    match error.as_db_error() {
        // "Operator intervention": the server is going down, which is no answer to the statement.
        Some(refused) if refused.code().code().starts_with("57P") => Err(Stop::Lost),
        Some(refused) => Ok(Answer::Refused {
            sqlstate: refused.code().code().to_owned(),
            message: refused.message().to_owned(),
        }),
        None => Err(Stop::Lost),
    }
}

/// Runs one text by the simple protocol; the affected rows are those of its last statement.
pub async fn execute(client: &Client, text: &str) -> Result<Answer, Stop> {
    match client.simple_query(text).await {
        Ok(messages) => {
            let affected = messages.iter().rev().find_map(|message| match message {
                SimpleQueryMessage::CommandComplete(affected) => Some(*affected),
                _ => None,
            });
            Ok(Answer::Done(affected.unwrap_or(0)))
        }
        Err(error) => refusal(&error),
    }
}

/// Runs a text that must succeed.
pub async fn succeed(client: &Client, text: &str) -> Result<u64, Stop> {
    match execute(client, text).await? {
        Answer::Done(affected) => Ok(affected),
        Answer::Refused { sqlstate, message } => Err(Stop::Wrong(format!("{text}\n  {sqlstate}: {message}"))),
    }
}

/// One row as text; NULL is `∅`, which no row of these tests holds.
pub(super) type Row = Vec<String>;

/// The rows of a query that must succeed, sorted.
pub async fn rows(client: &Client, text: &str) -> Result<Vec<Row>, Stop> {
    let messages = match client.simple_query(text).await {
        Ok(messages) => messages,
        Err(error) => match refusal(&error)? {
            Answer::Refused { sqlstate, message } => {
                return Err(Stop::Wrong(format!("{text}\n  {sqlstate}: {message}")));
            }
            Answer::Done(_) => return Err(Stop::Lost),
        },
    };
    let mut found: Vec<Row> = messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or("∅").to_owned()).collect())
            }
            _ => None,
        })
        .collect();
    found.sort_unstable();
    Ok(found)
}
