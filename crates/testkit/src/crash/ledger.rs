//! What a client knows of the rows that only it writes: the external record of a crash test.
//!
//! A client has at most one statement under way. When the server dies, the rows are those before
//! that statement or those after it, and nothing else: not half of it, nothing acknowledged
//! missing, nothing there twice.

use std::collections::BTreeMap;

/// One row of `item`, without its key and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub kind: i64,
    pub price: i64,
    pub label: String,
}

/// One row of `transfer`, without its key and its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub source: i64,
    pub target: i64,
    pub amount: i64,
}

/// The rows of one client that statements change or take away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rows {
    /// Rows of `item`, by key.
    pub items: BTreeMap<i64, Item>,
    /// Rows of `note`, which has no key, and how often each is there.
    pub notes: BTreeMap<String, i64>,
}

/// What a statement without an answer would leave.
#[derive(Debug, Clone)]
struct Pending {
    statement: String,
    rows: Rows,
    transfer: Option<(i64, Transfer)>,
}

/// The rows of one client as last acknowledged, and the statement under way.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    rows: Rows,
    /// Rows of `transfer`, which has no key; they are only added.
    transfers: BTreeMap<i64, Transfer>,
    pending: Option<Pending>,
    acknowledged: u64,
}

/// The rows of one client in the database.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub rows: Rows,
    /// With how often each is there, which may only be once.
    pub transfers: BTreeMap<i64, (Transfer, usize)>,
}

/// What became of the statement under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There was none, or none that changes anything.
    Nothing,
    Applied,
    NotApplied,
}

impl Ledger {
    /// The rows as last acknowledged.
    #[must_use]
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The transfers of this client.
    #[must_use]
    pub(super) fn transfers(&self) -> &BTreeMap<i64, Transfer> {
        &self.transfers
    }

    /// Statements that changed rows and were acknowledged.
    #[must_use]
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// A statement goes out that will leave `rows`.
    pub(super) fn begin(&mut self, statement: &str, rows: Rows, transfer: Option<(i64, Transfer)>) {
        self.pending = Some(Pending { statement: statement.to_owned(), rows, transfer });
    }

    /// It was acknowledged.
    pub(super) fn acknowledge(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.rows = pending.rows;
            self.transfers.extend(pending.transfer);
            self.acknowledged += 1;
        }
    }

    /// It was refused, so it has changed nothing.
    pub(super) fn refuse(&mut self) {
        self.pending = None;
    }

    /// Compares with what is there after a crash and settles the statement under way.
    pub(super) fn settle(&mut self, found: &Found) -> Result<Outcome, String> {
        if let Some((id, (_, times))) = found.transfers.iter().find(|(_, (_, times))| *times != 1) {
            return Err(format!("transfer {id} is there {times} times"));
        }
        let found_transfers: BTreeMap<i64, Transfer> =
            found.transfers.iter().map(|(id, (transfer, _))| (*id, *transfer)).collect();
        let Some(pending) = self.pending.take() else {
            difference(&self.rows, &self.transfers, &found.rows, &found_transfers)?;
            return Ok(Outcome::Nothing);
        };
        let before = difference(&self.rows, &self.transfers, &found.rows, &found_transfers);
        let mut transfers = self.transfers.clone();
        transfers.extend(pending.transfer);
        let after = difference(&pending.rows, &transfers, &found.rows, &found_transfers);
        match (before, after) {
            // It met no row, so nobody can tell.
            (Ok(()), Ok(())) => Ok(Outcome::Nothing),
            (Err(_), Ok(())) => {
                self.rows = pending.rows;
                self.transfers = transfers;
                Ok(Outcome::Applied)
            }
            (Ok(()), Err(_)) => Ok(Outcome::NotApplied),
            (Err(before), Err(after)) => Err(format!(
                "neither without nor with the statement under way:\n  {}\n  without it: {before}\n  with it: {after}",
                pending.statement,
            )),
        }
    }
}

/// The first few differences in words.
fn difference(
    rows: &Rows,
    transfers: &BTreeMap<i64, Transfer>,
    found: &Rows,
    found_transfers: &BTreeMap<i64, Transfer>,
) -> Result<(), String> {
    compare("item", &rows.items, &found.items)?;
    compare("note", &rows.notes, &found.notes)?;
    compare("transfer", transfers, found_transfers)
}

/// Compares two maps and describes where they differ.
fn compare<K: Ord + std::fmt::Debug, V: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &BTreeMap<K, V>,
    found: &BTreeMap<K, V>,
) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let missing: Vec<_> = expected.iter().filter(|(key, _)| !found.contains_key(key)).collect();
    let more: Vec<_> = found.iter().filter(|(key, _)| !expected.contains_key(key)).collect();
    let changed: Vec<_> = expected
        .iter()
        .filter_map(|(key, value)| {
            found.get(key).filter(|other| *other != value).map(|other| (key, value, other))
        })
        .collect();
    Err(format!(
        "{what}: {} missing {:?}, {} too many {:?}, {} with other values {:?}",
        missing.len(),
        missing.iter().take(3).collect::<Vec<_>>(),
        more.len(),
        more.iter().take(3).collect::<Vec<_>>(),
        changed.len(),
        changed.iter().take(3).collect::<Vec<_>>(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: &[i64]) -> Rows {
        let item = |key: &i64| (*key, Item { kind: 0, price: *key, label: String::new() });
        Rows { items: keys.iter().map(item).collect(), notes: BTreeMap::new() }
    }

    fn found(keys: &[i64]) -> Found {
        Found { rows: rows(keys), transfers: BTreeMap::new() }
    }

    fn ledger_with_pending() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.begin("first", rows(&[1, 2]), None);
        ledger.acknowledge();
        ledger.begin("second", rows(&[1, 2, 3, 4]), None);
        ledger
    }

    #[test]
    fn a_statement_without_an_answer_is_there_entirely_or_not_at_all() {
        assert_eq!(ledger_with_pending().settle(&found(&[1, 2])), Ok(Outcome::NotApplied));
        assert_eq!(ledger_with_pending().settle(&found(&[1, 2, 3, 4])), Ok(Outcome::Applied));
        let half = ledger_with_pending().settle(&found(&[1, 2, 3])).unwrap_err();
        assert!(half.contains("second"), "{half}");
    }

    #[test]
    fn an_acknowledged_row_may_not_be_missing() {
        let lost = ledger_with_pending().settle(&found(&[1])).unwrap_err();
        assert!(lost.contains("1 missing"), "{lost}");
    }

    #[test]
    fn nothing_may_be_there_twice() {
        let transfer = Transfer { source: 1, target: 2, amount: 3 };
        let mut ledger = Ledger::default();
        ledger.begin("transfer", Rows::default(), Some((7, transfer)));
        let doubled = Found { transfers: BTreeMap::from([(7, (transfer, 2))]), ..Found::default() };
        assert_eq!(ledger.settle(&doubled), Err("transfer 7 is there 2 times".to_owned()));
    }
}
