//! `INSERT`, `UPDATE`, `DELETE`, with RETURNING.

#![expect(clippy::wildcard_enum_match_arm, reason = "sqlparser's statements list what every database knows")]

use sqlparser::ast::{self, TableObject};
use sqlparser::parser::Parser;

use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, Result};
use crate::parser::group_window;
use crate::statement::Statement;

pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<Statement> {
    let start = grammar.position();
    match grammar.peek_word(0).as_deref() {
        Some("INSERT") if grammar.peek_word(1).as_deref() != Some("INTO") => {
            grammar.advance();
            return Err(grammar.unexpected());
        }
        Some("UPDATE" | "DELETE" | "INSERT") => {}
        _ => return Err(grammar.unexpected()),
    }
    let mut statement = grammar.sqlparser(|parser: &mut Parser<'static>| {
        let token = parser.next_token();
        match parser.get_current_token().token.to_string().to_ascii_uppercase().as_str() {
            "INSERT" => parser.parse_insert(token),
            "UPDATE" => parser.parse_update(token),
            _ => parser.parse_delete(token),
        }
    })?;
    let mut notices = Vec::new();
    group_window::to_canonical(&mut statement, &mut notices)?;
    for notice in notices {
        grammar.notice(notice);
    }
    let refused = |feature: &str| Err(SqlErrorKind::unsupported(feature).at(start));
    match statement {
        ast::Statement::Insert(insert) => match insert_feature(&insert) {
            Some(feature) => refused(feature),
            None => Ok(Statement::Insert(Box::new(insert))),
        },
        ast::Statement::Update(update) => match update_feature(&update) {
            Some(feature) => refused(feature),
            None => Ok(Statement::Update(Box::new(update))),
        },
        ast::Statement::Delete(delete) => match delete_feature(&delete) {
            Some(feature) => refused(feature),
            None => Ok(Statement::Delete(Box::new(delete))),
        },
        _ => refused("INSERT INTO DIRECTORY"),
    }
}

/// What sqlparser takes from other databases.
fn insert_feature(insert: &ast::Insert) -> Option<&'static str> {
    if !matches!(insert.table, TableObject::TableName(_)) {
        Some("INSERT INTO a function or query")
    } else if insert.has_table_keyword {
        Some("INSERT INTO TABLE")
    } else if insert.partitioned.is_some() {
        Some("INSERT … PARTITION")
    } else if matches!(insert.on, Some(ast::OnInsert::DuplicateKeyUpdate(_))) {
        Some("ON DUPLICATE KEY UPDATE")
    } else if insert.output.is_some() {
        Some("OUTPUT")
    } else {
        None
    }
}

fn update_feature(update: &ast::Update) -> Option<&'static str> {
    if update.or.is_some() {
        Some("UPDATE OR")
    } else if !update.table.joins.is_empty() {
        Some("UPDATE with JOIN")
    } else if update.limit.is_some() {
        Some("UPDATE … LIMIT")
    } else if matches!(update.from, Some(ast::UpdateTableFromKind::BeforeSet(_))) {
        Some("UPDATE … FROM … SET")
    } else if update.output.is_some() {
        Some("OUTPUT")
    } else {
        None
    }
}

fn delete_feature(delete: &ast::Delete) -> Option<&'static str> {
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    if from.iter().any(|table| !table.joins.is_empty()) {
        Some("DELETE with JOIN")
    } else if !delete.tables.is_empty() {
        Some("DELETE with a list of tables")
    } else if !delete.order_by.is_empty() || delete.limit.is_some() {
        Some("DELETE … LIMIT")
    } else if delete.output.is_some() {
        Some("OUTPUT")
    } else {
        None
    }
}
