//! The extended protocol: parse, bind, describe, execute.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use async_trait::async_trait;
use engine::Prepared;
use futures::{Sink, SinkExt, StreamExt};
use pgwire::api::portal::{Format, Portal, PortalExecutionState};
use pgwire::api::query::ExtendedQueryHandler;
use pgwire::api::results::{
    DescribePortalResponse, DescribeStatementResponse, FieldFormat, FieldInfo, QueryResponse, Response, Tag,
};
use pgwire::api::stmt::{QueryParser, StoredStatement};
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, DEFAULT_NAME, Type};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::extendedquery::{Execute, Parse, ParseComplete, PortalSuspended, Sync as PgSync};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};

use super::Connection;
use super::connection::{DataRows, command_tag, field_infos, notice, row_tag};
use super::error::{protocol_error, wire_error};
use super::parameters;
use super::rows::RowEncoder;
use super::types::{arrow_type, of_data_type};

/// Answers questions about statements that [`Connection::prepare`] has made.
pub(crate) struct Describer;

#[async_trait]
impl QueryParser for Describer {
    type Statement = Prepared;

    /// Never called: [`Connection::on_parse`] prepares in the session.
    async fn parse_sql<C>(
        &self,
        _client: &C,
        _sql: &str,
        _types: &[Option<Type>],
    ) -> PgWireResult<Option<Prepared>>
    where
        C: ClientInfo + Unpin + Send + Sync,
    {
        Err(protocol_error("XX000", "internal error: parse outside of its handler".to_owned()))
    }

    fn get_parameter_types(&self, prepared: &Prepared) -> PgWireResult<Vec<Type>> {
        Ok(prepared.parameters.iter().map(of_data_type).collect())
    }

    fn get_result_schema(
        &self,
        prepared: &Prepared,
        format: Option<&Format>,
    ) -> PgWireResult<Vec<FieldInfo>> {
        if let Some(schema) = &prepared.schema {
            check_formats(format, schema.fields().len())?;
        }
        let format_of = |at| format.map_or(FieldFormat::Text, |format| format.format_for(at));
        Ok(prepared
            .schema
            .as_deref()
            .map(|schema: &Schema| field_infos(schema, format_of))
            .unwrap_or_default())
    }
}

/// A bind message may give no format, one for all columns, or one for each.
fn check_formats(format: Option<&Format>, columns: usize) -> PgWireResult<()> {
    match format {
        Some(Format::Individual(codes)) if codes.len() != columns => Err(protocol_error(
            "08P01",
            format!("bind message has {} result formats but query has {columns} columns", codes.len()),
        )),
        _ => Ok(()),
    }
}

#[async_trait]
impl ExtendedQueryHandler for Connection {
    type Statement = Prepared;
    type QueryParser = Describer;

    fn query_parser(&self) -> Arc<Describer> {
        Arc::new(Describer)
    }

    async fn on_parse<C>(&self, client: &mut C, message: Parse) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let types: Vec<Option<Type>> = message.type_oids.iter().map(|oid| Type::from_oid(*oid)).collect();
        let name = message.name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned());
        if name == DEFAULT_NAME {
            // Gone even if the new one is refused.
            client.portal_store().rm_statement(DEFAULT_NAME);
        } else if client.portal_store().get_statement(&name).is_some() {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(protocol_error("42P05", message));
        }
        let prepared = self.prepare(&message.query, &types).await?;
        let stored = StoredStatement::new(name, prepared, types);
        client.portal_store().put_statement(Arc::new(stored));
        client.send(PgWireBackendMessage::ParseComplete(ParseComplete::new())).await?;
        Ok(())
    }

    async fn do_describe_statement<C>(
        &self,
        _client: &mut C,
        target: &StoredStatement<Prepared>,
    ) -> PgWireResult<DescribeStatementResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let parameters = parameter_types(target);
        Ok(DescribeStatementResponse::new(parameters, Describer.get_result_schema(&target.statement, None)?))
    }

    async fn do_describe_portal<C>(
        &self,
        _client: &mut C,
        target: &Portal<Prepared>,
    ) -> PgWireResult<DescribePortalResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let prepared = &target.statement.statement;
        Ok(DescribePortalResponse::new(
            Describer.get_result_schema(prepared, Some(&target.result_column_format))?,
        ))
    }

    async fn do_query<C>(
        &self,
        client: &mut C,
        portal: &Portal<Prepared>,
        _max_rows: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let prepared = &portal.statement.statement;
        if prepared.kind == engine::StatementKind::Empty {
            return Ok(Response::EmptyQuery);
        }
        let values = bound_values(portal)?;
        let mut session = self.session.lock().await;
        let session = session
            .as_mut()
            .ok_or_else(|| protocol_error("08P01", "a query came before the start-up message".to_owned()))?;
        let guard = self.begin_statement(session);
        let output = guard
            .run(session.execute_prepared(prepared, values))
            .await?
            .map_err(|error| wire_error(&error))?;
        for (severity, text) in &output.notices {
            client.feed(notice(severity, text)).await?;
        }
        let Some(rows) = output.rows else {
            return Ok(Response::Execution(Tag::new(&command_tag(&output))));
        };
        check_formats(Some(&portal.result_column_format), rows.schema.fields().len())?;
        let format = portal.result_column_format.clone();
        let infos = field_infos(&rows.schema, |at| format.format_for(at));
        let encoder = RowEncoder::new(rows.schema.fields(), |at| format.is_binary(at));
        let mut response = QueryResponse::new(Arc::new(infos), DataRows::new(rows, encoder, guard));
        response.set_command_tag(&output.tag);
        Ok(Response::Query(response))
    }

    /// Rows are sent as they are made, at most `max_rows` of them; a negative number or zero is no limit.
    async fn on_execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        let Some(portal) = client.portal_store().get_portal(name).and_then(|entry| entry.value().cloned())
        else {
            return Err(no_portal(name));
        };
        let mut state = portal.state.lock().await;
        // Left so by an error: a portal that has failed cannot go on.
        let mut rows = match std::mem::replace(&mut *state, PortalExecutionState::Finished) {
            PortalExecutionState::Initial => match self.do_query(client, &portal, 0).await? {
                Response::Query(rows) => rows,
                Response::EmptyQuery => {
                    client.feed(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
                    return Ok(());
                }
                Response::Execution(tag) => {
                    client.feed(PgWireBackendMessage::CommandComplete(tag.into())).await?;
                    return Ok(());
                }
                _ => {
                    return Err(protocol_error(
                        "XX000",
                        "internal error: an unknown kind of answer".to_owned(),
                    ));
                }
            },
            PortalExecutionState::Suspended(rows) => {
                if let Some(session) = self.session.lock().await.as_ref() {
                    self.restart_time_limit(session);
                }
                rows
            }
            PortalExecutionState::Finished
                if portal.statement.statement.kind == engine::StatementKind::Query =>
            {
                client
                    .feed(PgWireBackendMessage::CommandComplete(CommandComplete::new("SELECT 0".to_owned())))
                    .await?;
                return Ok(());
            }
            PortalExecutionState::Finished => {
                return Err(protocol_error("55000", format!("portal \"{name}\" cannot be run")));
            }
        };
        let limit = usize::try_from(message.max_rows).unwrap_or(0);
        let mut count = 0;
        while let Some(row) = rows.data_rows().next().await {
            client.feed(PgWireBackendMessage::DataRow(row?)).await?;
            count += 1;
            if count == limit {
                *state = PortalExecutionState::Suspended(rows);
                client.feed(PgWireBackendMessage::PortalSuspended(PortalSuspended::new())).await?;
                return Ok(());
            }
        }
        let tag = row_tag(rows.command_tag(), count);
        client.feed(PgWireBackendMessage::CommandComplete(CommandComplete::new(tag))).await?;
        Ok(())
    }

    async fn on_sync<C>(&self, client: &mut C, _message: PgSync) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        // Outside of a transaction block, Sync ends the implicit transaction and with it all portals.
        let status = self.transaction_status().await;
        if status == TransactionStatus::Idle {
            client.portal_store().clear_portals();
        }
        client.set_transaction_status(status);
        client.send(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status))).await?;
        client.flush().await?;
        Ok(())
    }
}

fn no_portal(name: &str) -> PgWireError {
    protocol_error("34000", format!("portal \"{name}\" does not exist"))
}

impl Connection {
    /// Plans a statement in the session; its parameter types are the client's where it gave them.
    async fn prepare(&self, text: &str, types: &[Option<Type>]) -> PgWireResult<Prepared> {
        let types: Vec<_> = types
            .iter()
            .map(|pg| pg.as_ref().filter(|pg| **pg != Type::UNKNOWN).and_then(arrow_type))
            .collect();
        let mut session = self.session.lock().await;
        let session = session
            .as_mut()
            .ok_or_else(|| protocol_error("08P01", "a query came before the start-up message".to_owned()))?;
        let guard = self.begin_statement(session);
        guard.run(session.prepare(text, &types)).await?.map_err(|error| wire_error(&error))
    }
}

/// The client's type of each parameter, else the inferred one.
fn parameter_types(stored: &StoredStatement<Prepared>) -> Vec<Type> {
    let inferred = stored.statement.parameters.iter().map(of_data_type);
    inferred
        .enumerate()
        .map(|(at, inferred)| {
            let given = stored.parameter_types.get(at).cloned().flatten();
            given.filter(|pg| *pg != Type::UNKNOWN).unwrap_or(inferred)
        })
        .collect()
}

fn bound_values(portal: &Portal<Prepared>) -> PgWireResult<Vec<datafusion::scalar::ScalarValue>> {
    let expected = &portal.statement.statement.parameters;
    if portal.parameters.len() != expected.len() {
        return Err(protocol_error(
            "08P01",
            format!(
                "bind message supplies {} parameters, but prepared statement requires {}",
                portal.parameters.len(),
                expected.len()
            ),
        ));
    }
    if let Format::Individual(codes) = &portal.parameter_format
        && codes.len() != expected.len()
    {
        let message =
            format!("bind message has {} parameter formats but {} parameters", codes.len(), expected.len());
        return Err(protocol_error("08P01", message));
    }
    let types = parameter_types(&portal.statement);
    let value = |at: usize, data_type: &DataType| {
        let is_binary = portal.parameter_format.is_binary(at);
        let mut bytes = portal.parameters[at].clone();
        let mut is_text = !is_binary;
        if let Some(given) = &bytes
            && is_binary
            && matches!(types[at], Type::JSONB | Type::UUID)
        {
            bytes = Some(parameters::text_of_binary(given, &types[at])?);
            is_text = true;
        }
        parameters::decode(bytes.as_ref(), !is_text, data_type)
    };
    expected
        .iter()
        .enumerate()
        .map(|(at, data_type)| {
            value(at, data_type).map_err(|error| protocol_error(error.sqlstate, error.message))
        })
        .collect()
}
