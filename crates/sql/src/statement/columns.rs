//! The bracketed list of a CREATE SOURCE or CREATE TABLE: columns, key and watermark.

use sqlparser::ast;
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use crate::dialect::HighwaterDialect;
use crate::error::SqlErrorKind;
use crate::parser::grammar::{Grammar, Result};

#[derive(Debug, Clone)]
pub struct ColumnDefinition {
    pub name: String,
    pub data_type: ast::DataType,
    pub not_null: bool,
    pub default: Option<ast::Expr>,
    pub position: u32,
}

/// `WATERMARK FOR column AS expression`.
#[derive(Debug, Clone)]
pub struct WatermarkDefinition {
    pub column: String,
    pub expression: ast::Expr,
    pub position: u32,
}

/// What stands between the brackets.
#[derive(Debug, Default)]
pub(crate) struct ColumnList {
    pub(crate) columns: Vec<ColumnDefinition>,
    /// Column names and the place of the words `PRIMARY KEY`.
    pub(crate) primary_key: Option<(Vec<String>, u32)>,
    pub(crate) watermark: Option<WatermarkDefinition>,
}

/// Reads `(column, …, PRIMARY KEY (…), WATERMARK FOR …)`.
pub(crate) fn parse(grammar: &mut Grammar<'_>) -> Result<ColumnList> {
    let mut list = ColumnList::default();
    grammar.expect_token(&Token::LParen)?;
    if grammar.take_token(&Token::RParen) {
        return Ok(list);
    }
    grammar.comma_separated(|grammar| list.element(grammar))?;
    grammar.expect_token(&Token::RParen)?;
    list.check()?;
    Ok(list)
}

impl ColumnList {
    fn element(&mut self, grammar: &mut Grammar<'_>) -> Result<()> {
        if grammar.at(&["WATERMARK", "FOR"]) {
            return self.watermark(grammar);
        }
        if *grammar.peek_token() == Token::Mul {
            return Err(grammar.unsupported("a column list taken from the source (*)"));
        }
        let named = grammar.take(&["CONSTRAINT"]);
        if named {
            grammar.identifier()?;
        }
        match grammar.peek_word(0).as_deref() {
            Some("PRIMARY") => self.table_key(grammar),
            Some("UNIQUE") => Err(grammar.unsupported("UNIQUE constraint")),
            Some("CHECK") => Err(grammar.unsupported("CHECK constraint")),
            Some("FOREIGN") => Err(grammar.unsupported("FOREIGN KEY constraint")),
            Some("EXCLUDE") => Err(grammar.unsupported("EXCLUDE constraint")),
            Some("LIKE") => Err(grammar.unsupported("LIKE in a column list")),
            _ if named => Err(grammar.unexpected()),
            _ => self.column(grammar),
        }
    }

    fn watermark(&mut self, grammar: &mut Grammar<'_>) -> Result<()> {
        let position = grammar.position();
        if self.watermark.is_some() {
            let message = "a relation has at most one watermark".to_owned();
            return Err(SqlErrorKind::InvalidTableDefinition { message }.at(position));
        }
        grammar.expect(&["WATERMARK", "FOR"])?;
        let column = grammar.identifier()?;
        grammar.expect(&["AS"])?;
        let expression = grammar.expression()?;
        self.watermark = Some(WatermarkDefinition { column, expression, position });
        Ok(())
    }

    fn table_key(&mut self, grammar: &mut Grammar<'_>) -> Result<()> {
        let position = grammar.position();
        grammar.expect(&["PRIMARY", "KEY"])?;
        let columns = grammar.parenthesized(Grammar::identifier)?;
        grammar.take(&["NOT", "ENFORCED"]);
        self.set_key(columns, position)
    }

    fn set_key(&mut self, columns: Vec<String>, position: u32) -> Result<()> {
        if self.primary_key.is_some() {
            let message = "multiple primary keys are not allowed".to_owned();
            return Err(SqlErrorKind::InvalidTableDefinition { message }.at(position));
        }
        self.primary_key = Some((columns, position));
        Ok(())
    }

    fn column(&mut self, grammar: &mut Grammar<'_>) -> Result<()> {
        let position = grammar.position();
        let name = grammar.identifier()?;
        if grammar.at(&["AS"]) {
            return Err(grammar.unsupported("a computed column"));
        }
        if self.columns.iter().any(|column| column.name == name) {
            return Err(SqlErrorKind::DuplicateColumn { name }.at(position));
        }
        let data_type = grammar.data_type()?;
        let mut column = ColumnDefinition { name, data_type, not_null: false, default: None, position };
        while self.column_constraint(&mut column, grammar)? {}
        self.columns.push(column);
        Ok(())
    }

    /// Reads one constraint of a column; `false` if there is none.
    fn column_constraint(
        &mut self,
        column: &mut ColumnDefinition,
        grammar: &mut Grammar<'_>,
    ) -> Result<bool> {
        if grammar.take(&["CONSTRAINT"]) {
            grammar.identifier()?;
        }
        let position = grammar.position();
        if grammar.take(&["NOT", "NULL"]) {
            column.not_null = true;
        } else if grammar.take(&["NULL"]) {
            column.not_null = false;
        } else if grammar.take(&["DEFAULT"]) {
            column.default = Some(grammar.sqlparser(default_expression)?);
        } else if grammar.take(&["PRIMARY", "KEY"]) {
            grammar.take(&["NOT", "ENFORCED"]);
            self.set_key(vec![column.name.clone()], position)?;
        } else {
            let refused = match grammar.peek_word(0).as_deref() {
                Some("AS" | "GENERATED") => "a computed column",
                Some("METADATA") => "a METADATA column",
                Some("UNIQUE") => "UNIQUE constraint",
                Some("CHECK") => "CHECK constraint",
                Some("REFERENCES") => "FOREIGN KEY constraint",
                Some("COLLATE") => "COLLATE of a column",
                _ => return Ok(false),
            };
            return Err(grammar.unsupported(refused));
        }
        Ok(true)
    }

    /// Key and watermark name columns of the list; key columns are NOT NULL.
    fn check(&mut self) -> Result<()> {
        if let Some((key, position)) = &self.primary_key {
            for (index, name) in key.iter().enumerate() {
                if key[..index].contains(name) {
                    let message = format!("column \"{name}\" appears twice in primary key constraint");
                    return Err(SqlErrorKind::InvalidTableDefinition { message }.at(*position));
                }
                let Some(column) = self.columns.iter_mut().find(|column| column.name == *name) else {
                    return Err(SqlErrorKind::UndefinedKeyColumn { name: name.clone() }.at(*position));
                };
                column.not_null = true;
            }
        }
        if let Some(watermark) = &self.watermark
            && !self.columns.iter().any(|column| column.name == watermark.column)
        {
            return Err(SqlErrorKind::undefined_column(None, &watermark.column).at(watermark.position));
        }
        Ok(())
    }
}

/// A DEFAULT must not take the `NOT NULL` behind it for the operator of that name.
fn default_expression(parser: &mut Parser<'static>) -> std::result::Result<ast::Expr, ParserError> {
    parser.parse_subexpr(HighwaterDialect.prec_value(Precedence::Is))
}
