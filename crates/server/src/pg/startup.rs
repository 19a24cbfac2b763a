//! The start of a connection: who it is, what the server says of itself.
//!
//! On loopback any role name is let in (trust), as `docs` say; other bind addresses need
//! authentication, which does not exist yet, so the server refuses to listen on them.

use std::collections::HashMap;
use std::fmt::Debug;

use async_trait::async_trait;
use futures::{Sink, SinkExt};
use pgwire::api::auth::{
    DefaultServerParameterProvider, ServerParameterProvider, StartupHandler, finish_authentication,
    protocol_negotiation, save_startup_parameters_to_metadata,
};
use pgwire::api::{ClientInfo, METADATA_USER, PidSecretKeyGenerator, RandomPidSecretKeyGenerator};
use pgwire::error::{PgWireError, PgWireResult};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use super::Connection;
use super::cancel::secret_bytes;
use super::error::wire_error;

/// Settings that PostgreSQL reports without being asked, with their wire spelling.
const REPORTED: &[&str] = &[
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// Parameters of a start-up message that are not settings.
const NOT_SETTINGS: &[&str] = &["user", "database", "options", "replication"];

static PIDS: std::sync::LazyLock<RandomPidSecretKeyGenerator> =
    std::sync::LazyLock::new(RandomPidSecretKeyGenerator::default);

struct Parameters(HashMap<String, String>);

impl ServerParameterProvider for Parameters {
    fn server_parameters<C>(&self, client: &C) -> Option<HashMap<String, String>>
    where
        C: ClientInfo,
    {
        let mut all = DefaultServerParameterProvider::default().server_parameters(client).unwrap_or_default();
        all.extend(self.0.clone());
        Some(all)
    }
}

#[async_trait]
impl StartupHandler for Connection {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let PgWireFrontendMessage::Startup(startup) = message else {
            return Ok(());
        };
        protocol_negotiation(client, &startup).await?;
        save_startup_parameters_to_metadata(client, &startup);
        let user = client.metadata().get(METADATA_USER).cloned().unwrap_or_else(|| "postgres".to_owned());
        let mut session = self.engine.session(&user);
        for (name, value) in
            startup.parameters.iter().filter(|(name, _)| !NOT_SETTINGS.contains(&name.as_str()))
        {
            session.set_initial(name, value).map_err(|error| wire_error(&error))?;
        }
        if let Some(options) = startup.parameters.get("options") {
            for (name, value) in command_line_settings(options) {
                session.set_initial(name, value).map_err(|error| wire_error(&error))?;
            }
        }
        let parameters =
            REPORTED.iter().filter_map(|name| Some(((*name).to_owned(), session.setting(name)?))).collect();
        *self.session.lock().await = Some(session);

        let (pid, secret) = PIDS.generate(client);
        let registration = self.cancellations.register(pid, secret_bytes(&secret));
        client.set_pid_and_secret_key(pid, secret);
        *self.registration.lock() = Some(registration);
        finish_authentication(client, &Parameters(parameters)).await?;
        client.flush().await?;
        Ok(())
    }
}

/// The settings of `options=-c name=value --name=value`.
fn command_line_settings(options: &str) -> Vec<(&str, &str)> {
    let mut words = options.split_ascii_whitespace();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let assignment = match word.strip_prefix("--") {
            Some(rest) => Some(rest),
            None if word == "-c" => words.next(),
            None => word.strip_prefix("-c"),
        };
        if let Some((name, value)) = assignment.and_then(|text| text.split_once('=')) {
            settings.push((name, value));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_name_settings_in_every_spelling() {
        assert_eq!(command_line_settings("-c a=1 -cb=2 --c=3"), [("a", "1"), ("b", "2"), ("c", "3")],);
    }
}
