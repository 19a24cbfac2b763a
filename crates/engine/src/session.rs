//! One client's session: settings, transaction, prepared statements.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use futures::FutureExt;
use parking_lot::Mutex;
use planner::PlanContext;
use sql::{Parsed, SqlError, SqlErrorKind, Statement};

use crate::engine::Shared;
use crate::execute;
use crate::functions::{FunctionContext, SettingAssignment};
use crate::live::Live;
use crate::parameters::{self, Parameter};
use crate::settings::Settings;
use crate::statement_text;
use crate::system::{DATABASE, SystemContext};
use crate::transaction::Transaction;
use crate::workers::from_panic;
use crate::{Output, Prepared, StatementKind};

/// One client's session. Not shared between clients.
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: String,
    pub(crate) process: i32,
    pub(crate) settings: Settings,
    pub(crate) transaction: Option<Transaction>,
    /// What the settings become when the transaction commits, and when it does not.
    pub(crate) settings_after: Option<SettingsAfter>,
    /// Calls of `set_config` not yet carried out.
    assignments: Arc<Mutex<Vec<SettingAssignment>>>,
}

/// Where `SET` inside of a transaction leads: `SET LOCAL` is gone either way.
pub(crate) struct SettingsAfter {
    pub(crate) commit: Settings,
    pub(crate) rollback: Settings,
}

/// What [`Prepared::inner`] holds.
pub(crate) struct PreparedStatement {
    pub(crate) parsed: Parsed,
    pub(crate) parameters: Vec<DataType>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, user: &str, process: i32) -> Self {
        Self {
            shared,
            user: user.to_owned(),
            process,
            settings: Settings::new(user),
            transaction: None,
            settings_after: None,
            assignments: Arc::default(),
        }
    }

    /// Splits a text into statements (a syntax error refuses the whole text). Each can then be
    /// given to [`Self::execute`].
    pub fn parse(&self, text: &str) -> Result<Vec<Parsed>, SqlError> {
        let parsed = statement_text::check(&self.shared, text).and_then(|()| {
            let parsed = std::panic::catch_unwind(|| sql::parse(text));
            parsed.unwrap_or_else(|payload| Err(from_panic(payload.as_ref())))
        });
        if parsed.is_err() {
            self.fail_transaction();
        }
        parsed
    }

    /// Runs one statement without parameters. Rows are streamed; dropping the future or the
    /// stream cancels the statement. Positions in errors count in [`Parsed::text`].
    pub async fn execute(&mut self, statement: &Parsed) -> Result<Output, SqlError> {
        self.guarded(statement).await
    }

    /// Plans one statement with parameters; `parameters[i] = None`: infer.
    pub async fn prepare(
        &mut self,
        text: &str,
        parameters: &[Option<DataType>],
    ) -> Result<Prepared, SqlError> {
        let prepared = AssertUnwindSafe(Box::pin(self.prepare_one(text, parameters))).catch_unwind().await;
        let prepared = prepared.unwrap_or_else(|payload| Err(from_panic(payload.as_ref())));
        if prepared.is_err() {
            self.fail_transaction();
        }
        prepared
    }

    /// Runs a prepared statement.
    pub async fn execute_prepared(
        &mut self,
        prepared: &Prepared,
        values: Vec<ScalarValue>,
    ) -> Result<Output, SqlError> {
        let statement = prepared
            .inner
            .downcast_ref::<PreparedStatement>()
            .ok_or_else(|| SqlErrorKind::internal("a prepared statement of another session"))?;
        if values.len() != statement.parameters.len() {
            let message = format!(
                "bind message supplies {} parameters, but the statement requires {}",
                values.len(),
                statement.parameters.len(),
            );
            return Err(SqlErrorKind::ProtocolViolation { message }.into());
        }
        let mut parsed = statement.parsed.clone();
        let values: Vec<Parameter> = values.into_iter().map(Parameter::Value).collect();
        if !values.is_empty() {
            parameters::bind(&mut parsed.statement, &values)?;
        }
        self.guarded(&parsed).await
    }

    /// `I` idle, `T` in a transaction, `E` in a failed transaction.
    #[must_use]
    pub fn transaction_status(&self) -> u8 {
        match &self.transaction {
            None => b'I',
            Some(transaction) if transaction.is_failed() => b'E',
            Some(_) => b'T',
        }
    }

    /// Value of a session setting, e.g. for ParameterStatus.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<String> {
        self.settings.get(name).map(str::to_owned)
    }

    /// The time a setting such as `statement_timeout` allows; `None`: no limit.
    #[must_use]
    pub fn time_limit(&self, name: &str) -> Option<Duration> {
        self.settings.time_limit(name)
    }

    /// Sets what the client asks for at its start; `RESET` goes back to it.
    pub fn set_initial(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        self.settings.set_initial(name, value)
    }

    /// Runs a statement so that neither an error nor a panic leaves the transaction as if nothing
    /// had happened.
    async fn guarded(&mut self, parsed: &Parsed) -> Result<Output, SqlError> {
        self.carry_out_assignments();
        if let Some(transaction) = &self.transaction
            && transaction.is_failed()
            && !matches!(parsed.statement, Statement::Commit | Statement::Rollback | Statement::Empty)
        {
            return Err(SqlErrorKind::InFailedTransaction.into());
        }
        // A statement that is dropped half way (a cancelled one) fails its transaction too.
        let failed = self.transaction.as_ref().map(|transaction| Arc::clone(&transaction.failed));
        let mut fail_on_drop = FailOnDrop(failed);
        let notices = parsed.notices.clone();
        let output = AssertUnwindSafe(Box::pin(execute::run(self, parsed))).catch_unwind().await;
        let output = output.unwrap_or_else(|payload| Err(from_panic(payload.as_ref())));
        if output.is_ok() {
            fail_on_drop.0 = None;
        }
        drop(fail_on_drop);
        output.map(|mut output| {
            let mapped = notices.into_iter().map(|text| ("NOTICE", text));
            output.notices.splice(0..0, mapped);
            output
        })
    }

    async fn prepare_one(&mut self, text: &str, types: &[Option<DataType>]) -> Result<Prepared, SqlError> {
        statement_text::check(&self.shared, text)?;
        let mut statements = sql::parse(text)?;
        if statements.len() > 1 {
            return Err(SqlErrorKind::Syntax {
                message: "cannot insert multiple commands into a prepared statement".to_owned(),
            }
            .into());
        }
        let Some(parsed) = statements.pop() else {
            return Ok(Prepared {
                kind: StatementKind::Empty,
                parameters: Vec::new(),
                schema: None,
                inner: Arc::new(PreparedStatement { parsed: empty(), parameters: Vec::new() }),
            });
        };
        let offset = parsed.offset;
        execute::prepare(self, parsed, types).await.map_err(|error| error.shift(offset))
    }

    /// `set_config` takes effect with the statement after the one that called it.
    fn carry_out_assignments(&mut self) {
        let assignments = std::mem::take(&mut *self.assignments.lock());
        for assignment in assignments {
            let set = self.set(&assignment.name, &[assignment.value], assignment.local);
            if let Err(error) = set {
                tracing::warn!(name = %assignment.name, %error, "set_config was refused");
            }
        }
    }

    /// `SET [LOCAL]`.
    pub(crate) fn set(&mut self, name: &str, values: &[String], local: bool) -> Result<(), SqlError> {
        self.settings.set(name, values)?;
        match &mut self.settings_after {
            Some(after) if !local => after.commit.set(name, values),
            Some(_) | None => Ok(()),
        }
    }

    /// Fails the transaction, if there is one, for an error outside of its statements.
    pub fn fail_transaction(&self) {
        if let Some(transaction) = &self.transaction {
            transaction.failed.store(true, std::sync::atomic::Ordering::Release);
        }
    }

    /// What planning a statement depends on.
    pub(crate) fn plan_context(&self, live: &Live) -> PlanContext {
        PlanContext {
            catalog: Arc::clone(&live.catalog),
            connectors: self.shared.connectors.clone(),
            connector_context: self.shared.connector_context.clone(),
            settings: self.settings.for_planning(),
        }
    }

    /// What the session's functions and the system tables say in a statement.
    pub(crate) fn function_context(&self, live: Arc<Live>) -> Arc<FunctionContext> {
        let now = match &self.transaction {
            Some(transaction) => transaction.began_at,
            None => self.shared.clock.now(),
        };
        Arc::new(FunctionContext {
            system: SystemContext {
                live,
                user: self.user.clone(),
                database: DATABASE.to_owned(),
                settings: self.settings.all(),
                jobs: self.shared.runtime.jobs(),
            },
            process: self.process,
            now,
            assignments: Arc::clone(&self.assignments),
        })
    }

    /// What exists for the next statement: in a transaction, what existed at its snapshot.
    pub(crate) fn live(&self) -> Arc<Live> {
        let snapshot = self.transaction.as_ref().and_then(|transaction| transaction.snapshot.as_ref());
        snapshot.map_or_else(|| self.shared.live(), |(live, _)| Arc::clone(live))
    }
}

fn empty() -> Parsed {
    Parsed { statement: Statement::Empty, text: String::new(), offset: 0, notices: Vec::new() }
}

/// Fails the transaction unless told otherwise.
struct FailOnDrop(Option<Arc<std::sync::atomic::AtomicBool>>);

impl Drop for FailOnDrop {
    fn drop(&mut self) {
        if let Some(failed) = &self.0 {
            failed.store(true, std::sync::atomic::Ordering::Release);
        }
    }
}
