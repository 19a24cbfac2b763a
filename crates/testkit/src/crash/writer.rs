//! A client that writes until the server is gone, and keeps a ledger of what was acknowledged.
//!
//! Rows of `item` and `note` belong to one client, so that what they must be is known at every
//! moment. Money is moved between accounts that all clients share, so transfers meet conflicts.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio_postgres::Client;

use super::ledger::{Item, Ledger, Rows, Transfer};
use super::random::Random;
use super::sql::{Answer, Stop, connect, execute, succeed};
use super::views::ACCOUNTS;

/// Keys of one client.
const KEYS_PER_CLIENT: i64 = 10_000_000;

/// Rows of `item` that a client keeps about.
const ITEMS_KEPT: usize = 300;

const LABELS: &[&str] =
    &["plain", "with 'quotes'", "", "größer", "a longer label that does not fit in a view"];

/// One client.
pub(super) struct Writer {
    number: i64,
    random: Random,
    pub ledger: Ledger,
    next_key: i64,
}

impl Writer {
    #[must_use]
    pub(super) fn new(number: i64, random: Random) -> Self {
        Self { number, random, ledger: Ledger::default(), next_key: number * KEYS_PER_CLIENT }
    }

    /// Which client it is.
    #[must_use]
    pub(super) fn number(&self) -> i64 {
        self.number
    }

    /// Writes until the connection is lost; an error is an answer that is wrong.
    pub(super) async fn write_on(&mut self, address: SocketAddr) -> Result<(), String> {
        let stopped = async {
            let client = connect(address).await?;
            loop {
                self.step(&client).await?;
            }
        };
        match stopped.await {
            Err(Stop::Wrong(message)) => Err(format!("client {}: {message}", self.number)),
            Err(Stop::Lost) | Ok::<(), Stop>(()) => Ok(()),
        }
    }

    async fn step(&mut self, client: &Client) -> Result<(), Stop> {
        if self.ledger.rows().items.len() > ITEMS_KEPT {
            return self.delete_items(client).await;
        }
        match self.random.below(16) {
            0..4 => self.insert_items(client).await,
            4..6 => self.update_items(client).await,
            6 => self.delete_items(client).await,
            7 => self.insert_taken_key(client).await,
            8..10 => self.insert_note(client).await,
            10 => self.relabel_notes(client).await,
            11 => self.copy_labels_to_notes(client).await,
            12 => self.delete_and_reinsert(client).await,
            _ => self.transfer(client).await,
        }
    }

    /// New rows, as a statement and in the ledger's form.
    fn new_items(&mut self, rows: &mut Rows, count: i64) -> String {
        let mut values = Vec::new();
        for _ in 0..count {
            let id = self.next_key;
            self.next_key += 1;
            let item = Item {
                kind: self.random.below(5),
                price: self.random.below(1_000),
                label: (*self.random.pick(LABELS)).to_owned(),
            };
            values.push(format!(
                "({id}, {}, {}, {}, {})",
                self.number,
                item.kind,
                item.price,
                quoted(&item.label)
            ));
            rows.items.insert(id, item);
        }
        format!("INSERT INTO item VALUES {}", values.join(", "))
    }

    async fn insert_items(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let count = 1 + self.random.below(12);
        let statement = self.new_items(&mut rows, count);
        self.change(client, &statement, count, rows).await
    }

    async fn update_items(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let kind = self.random.below(5);
        let more = self.random.below(50);
        let mut count = 0;
        for item in rows.items.values_mut().filter(|item| item.kind == kind) {
            item.price = (item.price + more) % 1_000;
            count += 1;
        }
        let statement = format!(
            "UPDATE item SET price = (price + {more}) % 1000 WHERE owner = {} AND kind = {kind}",
            self.number,
        );
        self.change(client, &statement, count, rows).await
    }

    async fn delete_items(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let keys: Vec<i64> = rows.items.keys().copied().collect();
        if keys.is_empty() {
            return Ok(());
        }
        let first = *self.random.pick(&keys);
        let last = first + self.random.below(60);
        let before = rows.items.len();
        rows.items.retain(|key, _| !(first..=last).contains(key));
        let count = i64::try_from(before - rows.items.len()).unwrap_or(0);
        self.change(client, &format!("DELETE FROM item WHERE id BETWEEN {first} AND {last}"), count, rows)
            .await
    }

    /// A statement with one bad row changes nothing, not even by its good rows.
    async fn insert_taken_key(&mut self, client: &Client) -> Result<(), Stop> {
        let Some(taken) = self.ledger.rows().items.keys().next().copied() else { return Ok(()) };
        let mut unused = Rows::default();
        let good = self.new_items(&mut unused, 2);
        let statement = format!("{good}, ({taken}, {}, 0, 0, 'doubled')", self.number);
        match execute(client, &statement).await? {
            Answer::Refused { sqlstate, .. } if sqlstate == "23505" => Ok(()),
            other @ (Answer::Done(_) | Answer::Refused { .. }) => {
                Err(Stop::Wrong(format!("{statement}\n  answered {other:?}")))
            }
        }
    }

    async fn insert_note(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let label = *self.random.pick(LABELS);
        *rows.notes.entry(label.to_owned()).or_default() += 2;
        let value = format!("({}, {})", self.number, quoted(label));
        self.change(client, &format!("INSERT INTO note VALUES {value}, {value}"), 2, rows).await
    }

    async fn relabel_notes(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let from = *self.random.pick(LABELS);
        let is_deletion = self.random.one_in(2);
        let count = rows.notes.remove(from).unwrap_or(0);
        let statement = if is_deletion {
            format!("DELETE FROM note WHERE owner = {} AND label = {}", self.number, quoted(from))
        } else {
            let to = *self.random.pick(LABELS);
            if count > 0 {
                *rows.notes.entry(to.to_owned()).or_default() += count;
            }
            format!(
                "UPDATE note SET label = {} WHERE owner = {} AND label = {}",
                quoted(to),
                self.number,
                quoted(from),
            )
        };
        self.change(client, &statement, count, rows).await
    }

    async fn copy_labels_to_notes(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let below = self.random.below(100);
        let mut count = 0;
        let Rows { items, notes } = &mut rows;
        for item in items.values().filter(|item| item.price < below) {
            *notes.entry(item.label.clone()).or_default() += 1;
            count += 1;
        }
        let statement = format!(
            "INSERT INTO note SELECT owner, label FROM item WHERE owner = {} AND price < {below}",
            self.number,
        );
        self.change(client, &statement, count, rows).await
    }

    /// A transaction that takes rows away and puts the same keys back with other values; one of
    /// three is rolled back.
    async fn delete_and_reinsert(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let keys: Vec<i64> = rows.items.keys().copied().take(3).collect();
        let Some(last) = keys.last() else { return Ok(()) };
        let mut values = Vec::new();
        for key in &keys {
            let item = Item { kind: 4, price: self.random.below(1_000), label: "again".to_owned() };
            values.push(format!(
                "({key}, {}, {}, {}, {})",
                self.number,
                item.kind,
                item.price,
                quoted(&item.label)
            ));
            rows.items.insert(*key, item);
        }
        let delete = format!("DELETE FROM item WHERE owner = {} AND id <= {last}", self.number);
        let insert = format!("INSERT INTO item VALUES {}", values.join(", "));
        succeed(client, "BEGIN").await?;
        for (statement, expected) in [(&delete, keys.len()), (&insert, keys.len())] {
            let affected = succeed(client, statement).await?;
            is_count(statement, affected, i64::try_from(expected).unwrap_or(0))?;
        }
        if self.random.one_in(3) {
            succeed(client, "ROLLBACK").await?;
            return Ok(());
        }
        self.commit(client, &format!("{delete}; {insert}"), rows, None).await
    }

    /// Moves money, and writes that down in a table without key and in one with, in one transaction.
    async fn transfer(&mut self, client: &Client) -> Result<(), Stop> {
        let mut rows = self.ledger.rows().clone();
        let source = self.random.below(ACCOUNTS);
        let target = (source + 1 + self.random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let transfer = Transfer { source, target, amount: 1 + self.random.below(99) };
        let id = self.next_key;
        let with_items = self.new_items(&mut rows, 1);
        let amount = transfer.amount;
        let statements = [
            format!("UPDATE account SET balance = balance - {amount} WHERE id = {source}"),
            format!("UPDATE account SET balance = balance + {amount} WHERE id = {target}"),
            format!("INSERT INTO transfer VALUES ({id}, {}, {source}, {target}, {amount})", self.number),
            with_items,
        ];
        let text = statements.join("; ");
        if self.random.one_in(2) {
            // One message: everything from its first byte on is under way at once.
            self.ledger.begin(&text, rows, Some((id, transfer)));
            return self.settle_conflict(client, &format!("BEGIN; {text}; COMMIT")).await;
        }
        succeed(client, "BEGIN").await?;
        for statement in &statements {
            match execute(client, statement).await? {
                Answer::Done(1) => {}
                Answer::Refused { sqlstate, .. } if sqlstate == "40001" => {
                    succeed(client, "ROLLBACK").await?;
                    return Ok(());
                }
                other @ (Answer::Done(_) | Answer::Refused { .. }) => {
                    return Err(Stop::Wrong(format!("{statement}\n  answered {other:?}")));
                }
            }
        }
        self.commit(client, &text, rows, Some((id, transfer))).await
    }

    async fn commit(
        &mut self,
        client: &Client,
        text: &str,
        rows: Rows,
        transfer: Option<(i64, Transfer)>,
    ) -> Result<(), Stop> {
        self.ledger.begin(&format!("{text}; COMMIT"), rows, transfer);
        self.settle_conflict(client, "COMMIT").await
    }

    /// Runs what ends a transaction: done, or in conflict with another client and without effect.
    async fn settle_conflict(&mut self, client: &Client, text: &str) -> Result<(), Stop> {
        match execute(client, text).await? {
            Answer::Done(_) => {
                self.ledger.acknowledge();
                Ok(())
            }
            Answer::Refused { sqlstate, .. } if sqlstate == "40001" => {
                self.ledger.refuse();
                // Ends the failed transaction where it is still open; without one this is a notice.
                succeed(client, "ROLLBACK").await.map(drop)
            }
            Answer::Refused { sqlstate, message } => {
                Err(Stop::Wrong(format!("{text}\n  {sqlstate}: {message}")))
            }
        }
    }

    /// One statement that must succeed and affect `count` rows.
    async fn change(&mut self, client: &Client, statement: &str, count: i64, rows: Rows) -> Result<(), Stop> {
        self.ledger.begin(statement, rows, None);
        let affected = succeed(client, statement).await?;
        is_count(statement, affected, count)?;
        self.ledger.acknowledge();
        Ok(())
    }
}

fn is_count(statement: &str, affected: u64, expected: i64) -> Result<(), Stop> {
    if i64::try_from(affected) == Ok(expected) {
        return Ok(());
    }
    Err(Stop::Wrong(format!("{statement}\n  affected {affected} rows instead of {expected}")))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// What all ledgers say the accounts must hold.
pub(super) fn balances(transfers: impl Iterator<Item = Transfer>, opening: i64) -> BTreeMap<i64, i64> {
    let mut balances: BTreeMap<i64, i64> = (0..ACCOUNTS).map(|id| (id, opening)).collect();
    for transfer in transfers {
        *balances.entry(transfer.source).or_default() -= transfer.amount;
        *balances.entry(transfer.target).or_default() += transfer.amount;
    }
    balances
}
