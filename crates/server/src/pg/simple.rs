//! The simple protocol: a text of statements, each one's results sent as it runs.

use std::fmt::Debug;

use async_trait::async_trait;
use engine::Session;
use futures::{Sink, SinkExt, StreamExt};
use pgwire::api::query::{SimpleQueryHandler, send_ready_for_query};
use pgwire::api::results::{FieldFormat, Response};
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PgWireConnectionState};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{FieldDescription, RowDescription};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, TransactionStatus};
use pgwire::messages::simplequery::Query;

use super::Connection;
use super::connection::{DataRows, command_tag, field_infos, notice, row_tag};
use super::error::{protocol_error, wire_error};
use super::rows::RowEncoder;

/// Bytes from which a text is long.
const LONG_TEXT: usize = 64 << 10;

#[async_trait]
impl SimpleQueryHandler for Connection {
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        client.set_state(PgWireConnectionState::QueryInProgress);
        let result = self.run_text(client, &query.query).await;
        match result {
            Ok(()) => {}
            // The client is gone: nobody is there to be told.
            Err(PgWireError::IoError(error)) => return Err(PgWireError::IoError(error)),
            Err(error) => {
                self.fail_transaction().await;
                let info: pgwire::error::ErrorInfo = error.into();
                client.feed(PgWireBackendMessage::ErrorResponse(info.into())).await?;
            }
        }
        let status = self.transaction_status().await;
        if status == TransactionStatus::Idle {
            // The end of a transaction is the end of its portals.
            client.portal_store().clear_portals();
        }
        client.set_state(PgWireConnectionState::ReadyForQuery);
        client.set_transaction_status(status);
        send_ready_for_query(client, status).await
    }

    /// Never called: [`Self::on_query`] runs the statements itself.
    async fn do_query<C>(&self, _client: &mut C, _query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Err(protocol_error("XX000", "internal error: simple query outside of its handler".to_owned()))
    }
}

impl Connection {
    async fn run_text<C>(&self, client: &mut C, text: &str) -> PgWireResult<()>
    where
        C: Sink<PgWireBackendMessage> + Unpin + Send,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let mut session = self.session.lock().await;
        let session = session
            .as_mut()
            .ok_or_else(|| protocol_error("08P01", "a query came before the start-up message".to_owned()))?;
        let statements = parse(session, text).map_err(|error| wire_error(&error))?;
        if statements.iter().all(|parsed| matches!(parsed.statement, sql::Statement::Empty)) {
            client.feed(PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
            return Ok(());
        }
        for parsed in &statements {
            let guard = self.begin_statement(session);
            let output = guard
                .run(session.execute(parsed))
                .await?
                .map_err(|error| wire_error(&shifted(error, parsed.offset)))?;
            for (severity, text) in &output.notices {
                client.feed(notice(severity, text)).await?;
            }
            let Some(rows) = output.rows else {
                let tag = command_tag(&output);
                client.feed(PgWireBackendMessage::CommandComplete(CommandComplete::new(tag))).await?;
                continue;
            };
            let infos = field_infos(&rows.schema, |_| FieldFormat::Text);
            let fields: Vec<FieldDescription> = infos.iter().map(Into::into).collect();
            client.feed(PgWireBackendMessage::RowDescription(RowDescription::new(fields))).await?;
            let encoder = RowEncoder::new(rows.schema.fields(), |_| false);
            let mut messages = DataRows::new(rows, encoder, guard);
            let mut count = 0;
            while let Some(row) = messages.next().await {
                client.feed(PgWireBackendMessage::DataRow(row?)).await?;
                count += 1;
            }
            let tag = CommandComplete::new(row_tag(&output.tag, count));
            client.feed(PgWireBackendMessage::CommandComplete(tag)).await?;
        }
        Ok(())
    }
}

/// A long text takes its time; the other clients of this thread must not wait for it.
fn parse(session: &Session, text: &str) -> Result<Vec<sql::Parsed>, sql::SqlError> {
    if text.len() < LONG_TEXT {
        session.parse(text)
    } else {
        tokio::task::block_in_place(|| session.parse(text))
    }
}

/// Positions are those of the whole text, not of the statement.
fn shifted(mut error: sql::SqlError, offset: u32) -> sql::SqlError {
    error.position = error.position.map(|position| position + offset);
    error
}
