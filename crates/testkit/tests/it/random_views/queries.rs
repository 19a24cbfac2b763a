//! Random SELECTs inside of what a view can be.

#![expect(clippy::wildcard_enum_match_arm, reason = "what holds for most types of a generator")]

use testkit::crash::Random;

use super::expressions::{Column, KEY_TYPES, Scope, Type};

/// The columns of both tables; only the first has a key.
pub(super) const COLUMNS: &[(&str, &str, Type)] = &[
    ("id", "INT", Type::Int),
    ("g", "INT", Type::Int),
    ("b", "BIGINT", Type::Big),
    ("n", "NUMERIC(12, 2)", Type::Numeric),
    ("f", "DOUBLE PRECISION", Type::Float),
    ("x", "DOUBLE PRECISION", Type::Extreme),
    ("s", "TEXT", Type::Text),
    ("p", "BOOLEAN", Type::Bool),
    ("ts", "TIMESTAMP", Type::Timestamp),
];
pub(super) const TABLES: [&str; 2] = ["keyed", "bag"];

/// Something to select from.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    name: String,
    columns: Vec<Column>,
}

/// Makes views over tables and over each other.
pub(super) struct Queries {
    random: Random,
    relations: Vec<Relation>,
}

impl Queries {
    pub(super) fn new(random: Random) -> Self {
        let columns: Vec<Column> =
            COLUMNS.iter().map(|(name, _, of)| Column { name: (*name).to_owned(), of: *of }).collect();
        let table = |name: &&str| Relation { name: (*name).to_owned(), columns: columns.clone() };
        Self { random, relations: TABLES.iter().map(table).collect() }
    }

    pub(super) fn tables() -> Vec<String> {
        let columns = |key: &str| {
            let columns = COLUMNS.iter().enumerate();
            let columns: Vec<String> = columns
                .map(|(place, (name, of, _))| format!("{name} {of}{}", if place == 0 { key } else { "" }))
                .collect();
            columns.join(", ")
        };
        vec![
            format!("CREATE TABLE {} ({})", TABLES[0], columns(" PRIMARY KEY")),
            format!("CREATE TABLE {} ({})", TABLES[1], columns("")),
        ]
    }

    /// The next view, for [`Self::add`].
    pub(super) fn view(&mut self, number: usize) -> (String, Relation) {
        let (select, columns) = self.select(2);
        let name = format!("v{number}");
        (format!("CREATE MATERIALIZED VIEW {name} AS {select}"), Relation { name, columns })
    }

    pub(super) fn add(&mut self, view: Relation) {
        self.relations.push(view);
    }

    /// Something to select from: a table, a view, or a query in parentheses.
    fn from(&mut self, depth: usize) -> (String, Vec<Column>) {
        if depth > 0 && self.random.one_in(4) {
            let (select, columns) = self.select(depth - 1);
            return (format!("({select}) AS q"), columns);
        }
        let relation = self.random.pick(&self.relations);
        (relation.name.clone(), relation.columns.clone())
    }

    fn select(&mut self, depth: usize) -> (String, Vec<Column>) {
        match self.random.below(10) {
            0 | 1 => self.projection(depth),
            2 => self.union(depth),
            3 => self.distinct(depth),
            4 | 5 => self.tumble(depth),
            _ => self.grouped(depth),
        }
    }

    fn filter(&mut self, columns: &[Column]) -> String {
        if self.random.one_in(2) {
            return String::new();
        }
        let condition = Scope { columns, random: &mut self.random }.condition();
        format!(" WHERE {condition}")
    }

    /// Computed columns of these types.
    fn list(&mut self, from: &[Column], types: &[Type], prefix: &str) -> (Vec<String>, Vec<Column>) {
        let mut scope = Scope { columns: from, random: &mut self.random };
        let named = types.iter().enumerate().map(|(place, of)| {
            let name = format!("{prefix}{place}");
            (format!("{} AS {name}", scope.expression(*of)), Column { name, of: *of })
        });
        named.unzip()
    }

    fn types(&mut self, count: i64) -> Vec<Type> {
        (0..count).map(|_| *self.random.pick(KEY_TYPES)).collect()
    }

    fn projection(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (from, columns) = self.from(depth);
        let filter = self.filter(&columns);
        if self.random.one_in(4) {
            return (format!("SELECT * FROM {from}{filter}"), columns);
        }
        let count = 1 + self.random.below(4);
        let mut types = self.types(count);
        types.extend(
            columns.iter().filter(|column| column.of == Type::Rounded).map(|column| column.of).take(1),
        );
        let (list, columns) = self.list(&columns, &types, "c");
        (format!("SELECT {} FROM {from}{filter}", list.join(", ")), columns)
    }

    fn union(&mut self, depth: usize) -> (String, Vec<Column>) {
        let count = 1 + self.random.below(3);
        let types = self.types(count);
        let mut branches = Vec::new();
        let mut columns = Vec::new();
        for _ in 0..2 + self.random.below(2) {
            let (from, of) = self.from(depth.min(1));
            let filter = self.filter(&of);
            let (list, named) = self.list(&of, &types, "u");
            branches.push(format!("SELECT {} FROM {from}{filter}", list.join(", ")));
            columns = named;
        }
        (branches.join(" UNION ALL "), columns)
    }

    fn distinct(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (from, columns) = self.from(depth);
        let filter = self.filter(&columns);
        let count = 1 + self.random.below(2);
        let types = self.types(count);
        let (list, columns) = self.list(&columns, &types, "d");
        (format!("SELECT DISTINCT {} FROM {from}{filter}", list.join(", ")), columns)
    }

    fn grouped(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (from, columns) = self.from(depth);
        let filter = self.filter(&columns);
        let keys = self.random.below(3);
        let types = self.types(keys);
        self.aggregate(&format!("{from}{filter}"), &columns, &types, &[])
    }

    fn tumble(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (from, columns) = self.from(depth);
        let times: Vec<&Column> = columns.iter().filter(|column| column.of == Type::Timestamp).collect();
        let has_window = columns.iter().any(|column| column.name.starts_with("window_"));
        if times.is_empty() || has_window {
            return self.projection(depth);
        }
        let time = self.random.pick(&times).name.clone();
        let from = from.strip_suffix(" AS q").unwrap_or(&from).to_owned();
        let size = *self.random.pick(&["1 second", "7 seconds", "1 minute", "1 day"]);
        let offset = *self.random.pick(&["", "", ", INTERVAL '3 seconds'"]);
        let from = format!("TUMBLE({from}, {time}, INTERVAL '{size}'{offset})");
        let filter = self.filter(&columns);
        let keys = self.random.below(2);
        let types = self.types(keys);
        self.aggregate(&format!("{from}{filter}"), &columns, &types, &["window_start", "window_end"])
    }

    /// GROUP BY keys of some types and columns as they are.
    fn aggregate(
        &mut self,
        from: &str,
        columns: &[Column],
        keys: &[Type],
        plain: &[&str],
    ) -> (String, Vec<Column>) {
        let mut list: Vec<String> = plain.iter().map(|name| (*name).to_owned()).collect();
        let mut named: Vec<Column> =
            plain.iter().map(|name| Column { name: (*name).to_owned(), of: Type::Timestamp }).collect();
        let mut groups = list.clone();
        for (place, of) in keys.iter().enumerate() {
            let expression = Scope { columns, random: &mut self.random }.expression(*of);
            // Constants are no groups: an integer would be a position.
            list.push(format!("{expression} AS k{place}"));
            groups.push(format!("{}", plain.len() + place + 1));
            named.push(Column { name: format!("k{place}"), of: *of });
        }
        for place in 0..1 + self.random.below(4) {
            let (call, of) = self.call(columns);
            list.push(format!("{call} AS a{place}"));
            named.push(Column { name: format!("a{place}"), of });
        }
        let mut text = format!("SELECT {} FROM {from}", list.join(", "));
        if !groups.is_empty() {
            text += &format!(" GROUP BY {}", groups.join(", "));
        }
        if self.random.one_in(5) {
            let having = *self.random.pick(&["count(*) > 1", "count(*) % 2 = 1", "count(*) < 4"]);
            text += &format!(" HAVING {having}");
        }
        (text, named)
    }

    /// One aggregate call and the type of its result.
    fn call(&mut self, columns: &[Column]) -> (String, Type) {
        const SUMMED: &[Type] = &[Type::Int, Type::Big, Type::Numeric, Type::Float];
        // Not `Float`: batch finds no variance in one infinity.
        const MEASURED: &[Type] = &[Type::Int];
        // Not `Float`: whether batch takes NaN for the least depends on the order of the rows.
        const ORDERED: &[Type] =
            &[Type::Int, Type::Big, Type::Numeric, Type::Extreme, Type::Text, Type::Timestamp];
        let kind = self.random.below(9);
        let is_distinct = self.random.one_in(4);
        let has_filter = self.random.one_in(4);
        let mut scope = Scope { columns, random: &mut self.random };
        let (call, of) = match kind {
            0 => ("count(*)".to_owned(), Type::Big),
            1 | 2 => {
                let argument = scope.some_type(KEY_TYPES);
                (called("count", is_distinct, &scope.expression(argument)), Type::Big)
            }
            3 | 4 => {
                let argument = scope.some_type(SUMMED);
                let of = match argument {
                    Type::Int => Type::Big,
                    Type::Float => Type::Float,
                    _ => Type::Numeric,
                };
                (called("sum", is_distinct, &scope.expression(argument)), of)
            }
            5 => {
                let argument = scope.some_type(SUMMED);
                let of = if argument == Type::Float { Type::Rounded } else { Type::Numeric };
                (called("avg", is_distinct, &scope.expression(argument)), of)
            }
            6 => {
                let function = *scope.random.pick(&["bool_and", "bool_or"]);
                (called(function, false, &scope.expression(Type::Bool)), Type::Bool)
            }
            7 => {
                let function = *scope.random.pick(&["stddev", "stddev_pop", "variance", "var_pop"]);
                let argument = scope.some_type(MEASURED);
                (called(function, false, &scope.expression(argument)), Type::Rounded)
            }
            _ => {
                let function = *scope.random.pick(&["min", "max"]);
                let argument = scope.some_type(ORDERED);
                (called(function, false, &scope.expression(argument)), argument)
            }
        };
        if !has_filter {
            return (call, of);
        }
        let condition = scope.condition();
        (format!("{call} FILTER (WHERE {condition})"), of)
    }
}

fn called(function: &str, is_distinct: bool, argument: &str) -> String {
    format!("{function}({}{argument})", if is_distinct { "DISTINCT " } else { "" })
}
