//! Functions about the session: who, where, when, settings.

use std::str::FromStr;

use arrow::array::timezone::Tz;
use chrono::{DateTime, Offset, TimeZone, Utc};
use datafusion::common::Result;
use sql::SqlErrorKind;

use super::Returns::{Bool, Date, Int8, Text, Time, Timestamp, Timestamptz};
use super::{Definition, FunctionContext, SettingAssignment, text};
use crate::batch::external;
use crate::system::Datum;

const DAY: i64 = 86_400_000_000;

/// What `version()` says. Drivers read the first two words.
const VERSION: &str = concat!("PostgreSQL 15.0 (Highwater ", env!("CARGO_PKG_VERSION"), ")");

pub(super) const FUNCTIONS: &[Definition] = &[
    Definition { names: &["version"], returns: Text, call: |_, _| Ok(VERSION.into()) },
    Definition {
        names: &["current_database", "current_catalog"],
        returns: Text,
        call: |ctx, _| Ok(ctx.system.database.clone().into()),
    },
    Definition {
        names: &["current_user", "session_user", "user", "current_role"],
        returns: Text,
        call: |ctx, _| Ok(ctx.system.user.clone().into()),
    },
    Definition { names: &["current_schema"], returns: Text, call: |_, _| Ok("public".into()) },
    Definition { names: &["current_schemas"], returns: Text, call: current_schemas },
    Definition {
        names: &["pg_backend_pid"],
        returns: Int8,
        call: |ctx, _| Ok(i64::from(ctx.process).into()),
    },
    Definition { names: &["current_setting"], returns: Text, call: current_setting },
    Definition { names: &["set_config"], returns: Text, call: set_config },
    Definition {
        names: &[
            "now",
            "current_timestamp",
            "transaction_timestamp",
            "statement_timestamp",
            "clock_timestamp",
        ],
        returns: Timestamptz,
        call: |ctx, _| Ok(ctx.now.into()),
    },
    Definition { names: &["localtimestamp"], returns: Timestamp, call: |ctx, _| Ok(local(ctx)?.into()) },
    Definition {
        names: &["current_date", "today"],
        returns: Date,
        call: |ctx, _| Ok(local(ctx)?.div_euclid(DAY).into()),
    },
    Definition {
        names: &["current_time", "localtime"],
        returns: Time,
        call: |ctx, _| Ok(local(ctx)?.rem_euclid(DAY).into()),
    },
    Definition { names: &["pg_is_in_recovery"], returns: Bool, call: |_, _| Ok(false.into()) },
    Definition { names: &["pg_my_temp_schema"], returns: Int8, call: |_, _| Ok(0_i64.into()) },
    Definition { names: &["pg_is_other_temp_schema"], returns: Bool, call: |_, _| Ok(false.into()) },
    Definition {
        names: &["inet_server_addr", "inet_client_addr", "pg_advisory_unlock_all"],
        returns: Text,
        call: |_, _| Ok(Datum::Null),
    },
    Definition {
        names: &[
            "has_table_privilege",
            "has_schema_privilege",
            "has_database_privilege",
            "has_column_privilege",
            "has_any_column_privilege",
            "has_function_privilege",
            "pg_has_role",
        ],
        returns: Bool,
        call: |_, _| Ok(true.into()),
    },
];

fn current_schemas(_: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let implicit = arguments.first() == Some(&Datum::Bool(true));
    Ok(if implicit { "{pg_catalog,public}" } else { "{public}" }.into())
}

fn current_setting(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(name) = text(arguments, 0) else { return Ok(Datum::Null) };
    let known = ctx.system.settings.iter().find(|(other, _, _)| other.eq_ignore_ascii_case(name));
    match known {
        Some((_, value, _)) => Ok(value.clone().into()),
        None if arguments.get(1) == Some(&Datum::Bool(true)) => Ok(Datum::Null),
        None => Err(external(SqlErrorKind::UndefinedSetting { name: name.to_owned() }.into())),
    }
}

fn set_config(ctx: &FunctionContext, arguments: &[Datum]) -> Result<Datum> {
    let Some(name) = text(arguments, 0) else { return Ok(Datum::Null) };
    let value = text(arguments, 1).unwrap_or_default();
    ctx.assignments.lock().push(SettingAssignment {
        name: name.to_owned(),
        value: value.to_owned(),
        local: arguments.get(2) == Some(&Datum::Bool(true)),
    });
    Ok(value.into())
}

/// The clock on the wall of the session's time zone, microseconds.
fn local(ctx: &FunctionContext) -> Result<i64> {
    let zone = ctx.system.settings.iter().find(|(name, _, _)| name.eq_ignore_ascii_case("timezone"));
    let zone = zone.map_or("UTC", |(_, value, _)| value.as_str());
    let zone = Tz::from_str(zone)?;
    let Some(utc) = DateTime::<Utc>::from_timestamp_micros(ctx.now) else {
        return Err(external(SqlErrorKind::internal("the clock is out of range").into()));
    };
    let offset = zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc();
    Ok(ctx.now + i64::from(offset) * 1_000_000)
}
