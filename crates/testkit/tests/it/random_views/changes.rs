//! Random changes of the tables.

#![expect(clippy::wildcard_enum_match_arm, reason = "what holds for most types of a generator")]

use testkit::crash::Random;

use super::expressions::{Type, literal};
use super::queries::{COLUMNS, TABLES};

/// Makes statements, alone or as a transaction.
pub(super) struct Changes {
    random: Random,
}

impl Changes {
    pub(super) fn new(random: Random) -> Self {
        Self { random }
    }

    pub(super) fn next(&mut self) -> Vec<String> {
        if !self.random.one_in(3) {
            return vec![self.statement()];
        }
        let mut statements = vec!["BEGIN".to_owned()];
        statements.extend((0..2 + self.random.below(3)).map(|_| self.statement()));
        statements.push((*self.random.pick(&["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"])).to_owned());
        statements
    }

    fn statement(&mut self) -> String {
        let table = *self.random.pick(&TABLES);
        match self.random.below(10) {
            0..5 => self.insert(table),
            5 => format!("INSERT INTO bag SELECT * FROM {table} WHERE {}", self.condition()),
            6 | 7 => self.update(table),
            8 => {
                let (by, condition) =
                    (self.random.pick(&["id + 40", "-id - 1", "id * 2"]).to_owned(), self.condition());
                format!("UPDATE {table} SET id = {by} WHERE {condition}")
            }
            _ => format!("DELETE FROM {table} WHERE {}", self.condition()),
        }
    }

    fn value(&mut self, place: usize, of: Type) -> String {
        if place == 0 {
            return self.random.below(40).to_string();
        }
        if self.random.one_in(6) { "NULL".to_owned() } else { literal(&mut self.random, of) }
    }

    fn insert(&mut self, table: &str) -> String {
        let mut rows: Vec<String> = Vec::new();
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..1 + self.random.below(9) {
            let values: Vec<String> =
                COLUMNS.iter().enumerate().map(|(place, (_, _, of))| self.value(place, *of)).collect();
            // Most duplicates of a key should not refuse the whole statement.
            if ids.insert(values[0].clone()) || table != TABLES[0] {
                rows.push(format!("({})", values.join(", ")));
            }
        }
        if table == TABLES[1] && self.random.one_in(3) {
            rows.extend_from_within(..);
        }
        format!("INSERT INTO {table} VALUES {}", rows.join(", "))
    }

    fn update(&mut self, table: &str) -> String {
        let place = 1 + usize::try_from(self.random.below(8)).unwrap();
        let (name, _, of) = COLUMNS[place];
        let value = match of {
            Type::Int if self.random.one_in(2) => format!("{name} + 1"),
            Type::Big if self.random.one_in(2) => format!("{name} / 2"),
            Type::Text if self.random.one_in(2) => format!("{name} || 'z'"),
            _ => self.value(place, of),
        };
        format!("UPDATE {table} SET {name} = {value} WHERE {}", self.condition())
    }

    fn condition(&mut self) -> String {
        match self.random.below(6) {
            0 => "true".to_owned(),
            1 => format!("id % {} = 0", 2 + self.random.below(4)),
            2 => "p IS NOT TRUE".to_owned(),
            3 => format!("g = {}", self.random.below(4)),
            4 => "s LIKE '%a%' OR n > 1".to_owned(),
            _ => format!("id < {}", self.random.below(40)),
        }
    }
}
