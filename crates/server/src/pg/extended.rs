//! The extended protocol: parse, bind, describe, execute.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::datatypes::Schema;
use async_trait::async_trait;
use engine::Prepared;
use futures::{Sink, SinkExt};
use pgwire::api::portal::{Format, Portal};
use pgwire::api::query::ExtendedQueryHandler;
use pgwire::api::results::{
    DescribePortalResponse, DescribeStatementResponse, FieldFormat, FieldInfo, QueryResponse, Response, Tag,
};
use pgwire::api::stmt::{QueryParser, StoredStatement};
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, DEFAULT_NAME, Type};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::extendedquery::{Parse, ParseComplete, Sync as PgSync};
use pgwire::messages::response::ReadyForQuery;

use super::Connection;
use super::connection::{DataRows, command_tag, field_infos, notice};
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
        let columns = prepared.schema.as_ref().map_or(0, |schema| schema.fields().len());
        check_formats(format, columns)?;
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
        let guard = self.begin_statement();
        let mut session = self.session.lock().await;
        let session = session
            .as_mut()
            .ok_or_else(|| protocol_error("08P01", "a query came before the start-up message".to_owned()))?;
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
        response.set_command_tag(if output.tag == "INSERT" { "INSERT 0" } else { &output.tag });
        Ok(Response::Query(response))
    }

    async fn on_sync<C>(&self, client: &mut C, _message: PgSync) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Prepared>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        // Outside of a transaction block, Sync ends the implicit transaction and its portals.
        let status = self.transaction_status().await;
        client.portal_store().rm_portal(DEFAULT_NAME);
        client.set_transaction_status(status);
        client.send(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status))).await?;
        client.flush().await?;
        Ok(())
    }
}

impl Connection {
    /// Plans a statement in the session; its parameter types are the client's where it gave them.
    async fn prepare(&self, text: &str, types: &[Option<Type>]) -> PgWireResult<Prepared> {
        let types: Vec<_> = types
            .iter()
            .map(|pg| pg.as_ref().filter(|pg| **pg != Type::UNKNOWN).and_then(arrow_type))
            .collect();
        let guard = self.begin_statement();
        let mut session = self.session.lock().await;
        let session = session
            .as_mut()
            .ok_or_else(|| protocol_error("08P01", "a query came before the start-up message".to_owned()))?;
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
    expected
        .iter()
        .enumerate()
        .map(|(at, data_type)| {
            parameters::decode(
                portal.parameters[at].as_ref(),
                portal.parameter_format.is_binary(at),
                data_type,
            )
            .map_err(|error| protocol_error(error.sqlstate, error.message))
        })
        .collect()
}
