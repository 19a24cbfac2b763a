//! Settings of a session: one list of names, defaults and accepted values.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use arrow::array::timezone::Tz;
use sql::{SqlError, SqlErrorKind};

/// What a setting accepts.
#[derive(Debug, Clone, Copy)]
enum Accepts {
    Text,
    Bool,
    /// A whole number, perhaps with a unit.
    Number,
    /// A time in milliseconds, or with a unit; zero is no limit.
    Time,
    OneOf(&'static [&'static str]),
    /// The only value that is carried out, in all its spellings; the first one is shown.
    Only(&'static [&'static str]),
    TimeZone,
    /// Schemas; names without one are those of `public`, whatever the path says.
    SearchPath,
    /// What the server is, not what a session wants.
    Fixed,
}

struct SettingSpec {
    /// As `SHOW` prints it; compared without case.
    name: &'static str,
    default: &'static str,
    accepts: Accepts,
    doc: &'static str,
    /// Whether plans depend on it, so that it is stored with what is created.
    plans: bool,
}

const fn setting(
    name: &'static str,
    default: &'static str,
    accepts: Accepts,
    doc: &'static str,
) -> SettingSpec {
    SettingSpec { name, default, accepts, doc, plans: false }
}

const fn planning(
    name: &'static str,
    default: &'static str,
    accepts: Accepts,
    doc: &'static str,
) -> SettingSpec {
    SettingSpec { name, default, accepts, doc, plans: true }
}

use Accepts::{Bool, Fixed, Number, OneOf, Only, SearchPath, Text, Time, TimeZone};

const LEVELS: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error", "info"];
const ISOLATION: &[&str] = &["read uncommitted", "read committed", "repeatable read", "serializable"];

const SETTINGS: &[SettingSpec] = &[
    setting("allow_stale_reads", "off", Bool, "Lets views of failed jobs be read as they were last."),
    setting("application_name", "", Text, "Sets the application name to be reported."),
    setting("bytea_output", "hex", Only(&["hex"]), "Sets the output format for bytea."),
    setting(
        "client_encoding",
        "UTF8",
        Only(&["UTF8", "UTF-8", "UNICODE", "SQL_ASCII"]),
        "Sets the client's character set encoding.",
    ),
    setting(
        "client_min_messages",
        "notice",
        OneOf(LEVELS),
        "Sets the message levels that are sent to the client.",
    ),
    setting(
        "DateStyle",
        "ISO, MDY",
        Only(&["ISO, MDY", "ISO,MDY", "ISO"]),
        "Sets the display format for date and time values.",
    ),
    setting(
        "default_transaction_isolation",
        "repeatable read",
        OneOf(ISOLATION),
        "Sets the isolation level of new transactions.",
    ),
    setting("default_transaction_read_only", "off", Bool, "Sets the read-only status of new transactions."),
    planning(
        "dialect",
        "auto",
        OneOf(&["auto", "postgres", "flink", "risingwave", "arroyo"]),
        "Chooses defaults that differ between dialects.",
    ),
    setting(
        "extra_float_digits",
        "1",
        Number,
        "Sets the number of digits displayed for floating-point values.",
    ),
    setting(
        "idle_in_transaction_session_timeout",
        "0",
        Time,
        "Sets the maximum allowed idle time between queries in a transaction.",
    ),
    setting("idle_session_timeout", "0", Time, "Sets the maximum allowed idle time between queries."),
    setting("integer_datetimes", "on", Fixed, "Shows whether datetimes are integer based."),
    setting("IntervalStyle", "postgres", Only(&["postgres"]), "Sets the display format for interval values."),
    setting("is_superuser", "on", Fixed, "Shows whether the current user is a superuser."),
    setting("jit", "off", Bool, "Accepted for compatibility."),
    setting("lc_messages", "C", Text, "Accepted for compatibility."),
    setting("lock_timeout", "0", Time, "Sets the maximum allowed duration of any wait for a lock."),
    setting("max_identifier_length", "63", Fixed, "Shows the maximum identifier length."),
    setting("max_index_keys", "32", Fixed, "Shows the maximum number of index keys."),
    setting("read_durable", "off", Bool, "Makes queries read checkpoints only."),
    setting("row_security", "on", Bool, "Accepted for compatibility."),
    setting(
        "search_path",
        "\"$user\", public",
        SearchPath,
        "Sets the schema search order for names that are not schema-qualified.",
    ),
    setting("server_encoding", "UTF8", Fixed, "Shows the server character set encoding."),
    setting("server_version", "15.0 (Highwater)", Fixed, "Shows the server version."),
    setting("server_version_num", "150000", Fixed, "Shows the server version as an integer."),
    setting("session_authorization", "postgres", Fixed, "Shows the session user name."),
    setting(
        "standard_conforming_strings",
        "on",
        OneOf(&["on"]),
        "Causes '...' strings to treat backslashes literally.",
    ),
    setting("statement_timeout", "0", Time, "Sets the maximum allowed duration of any statement."),
    setting("synchronous_commit", "on", Text, "Accepted for compatibility."),
    planning("TimeZone", "UTC", TimeZone, "Sets the time zone for displaying and interpreting time stamps."),
    setting(
        "transaction_isolation",
        "repeatable read",
        OneOf(ISOLATION),
        "Sets the current transaction's isolation level.",
    ),
    setting("transaction_read_only", "off", Bool, "Sets the current transaction's read-only status."),
];

/// The values of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What differs from the defaults, by list name; names with a dot are the user's own.
    values: BTreeMap<String, String>,
    /// What `RESET` goes back to, where it differs: what the client asked for at its start.
    initial: BTreeMap<String, String>,
}

impl Settings {
    pub(crate) fn new(user: &str) -> Self {
        let initial = BTreeMap::from([("session_authorization".to_owned(), user.to_owned())]);
        Self { values: initial.clone(), initial }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        match find(name) {
            Some(spec) => Some(self.values.get(spec.name).map_or(spec.default, String::as_str)),
            None => self.values.get(&name.to_lowercase()).map(String::as_str),
        }
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name) == Some("on")
    }

    /// The time a setting allows; `None`: no limit.
    pub(crate) fn time_limit(&self, name: &str) -> Option<Duration> {
        let limit = milliseconds(self.get(name)?).filter(|limit| *limit > 0)?;
        Some(Duration::from_millis(limit))
    }

    /// `SET`; several values are a list.
    pub(crate) fn set(&mut self, name: &str, values: &[String]) -> Result<(), SqlError> {
        let value = values.join(", ");
        let Some(spec) = find(name) else {
            if name.contains('.') {
                self.values.insert(name.to_lowercase(), value);
                return Ok(());
            }
            return Err(SqlErrorKind::UndefinedSetting { name: name.to_owned() }.into());
        };
        let value = spec.canonical(&value)?;
        self.values.insert(spec.name.to_owned(), value);
        Ok(())
    }

    /// A value given by the client at its start.
    pub(crate) fn set_initial(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        self.set(name, &[value.to_owned()])?;
        let name = find(name).map_or_else(|| name.to_lowercase(), |spec| spec.name.to_owned());
        if let Some(value) = self.values.get(&name) {
            self.initial.insert(name, value.clone());
        }
        Ok(())
    }

    /// `RESET name`.
    pub(crate) fn reset(&mut self, name: &str) -> Result<(), SqlError> {
        let name = match find(name) {
            Some(spec) => spec.name.to_owned(),
            None if name.contains('.') => name.to_lowercase(),
            None => return Err(SqlErrorKind::UndefinedSetting { name: name.to_owned() }.into()),
        };
        match self.initial.get(&name) {
            Some(value) => self.values.insert(name, value.clone()),
            None => self.values.remove(&name),
        };
        Ok(())
    }

    pub(crate) fn reset_all(&mut self) {
        self.values = self.initial.clone();
    }

    /// Name, value and description of every setting, by name.
    pub(crate) fn all(&self) -> Vec<(String, String, String)> {
        SETTINGS
            .iter()
            .map(|spec| {
                let value = self.values.get(spec.name).map_or(spec.default, String::as_str);
                (spec.name.to_owned(), value.to_owned(), spec.doc.to_owned())
            })
            .collect()
    }

    /// What planning depends on.
    pub(crate) fn for_planning(&self) -> BTreeMap<String, String> {
        SETTINGS
            .iter()
            .filter(|spec| spec.plans)
            .map(|spec| {
                let value = self.values.get(spec.name).map_or(spec.default, String::as_str);
                (spec.name.to_lowercase(), value.to_owned())
            })
            .collect()
    }
}

/// The name as `SHOW` prints it.
pub(crate) fn canonical_name(name: &str) -> String {
    find(name).map_or_else(|| name.to_lowercase(), |spec| spec.name.to_owned())
}

fn find(name: &str) -> Option<&'static SettingSpec> {
    SETTINGS.iter().find(|spec| spec.name.eq_ignore_ascii_case(name))
}

/// `500`, `500ms`, `2 s`; a negative time is refused.
fn milliseconds(value: &str) -> Option<u64> {
    let value = value.trim();
    let digits = value.find(|char: char| !char.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..digits].parse().ok()?;
    let factor = match value[digits..].trim_start() {
        "" | "ms" => 1,
        "us" => return Some(number.div_ceil(1_000)),
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    // PostgreSQL's own limit, about 24 days.
    number.checked_mul(factor).filter(|limit| i32::try_from(*limit).is_ok())
}

impl SettingSpec {
    /// The value as it is shown, or why it cannot be.
    fn canonical(&self, value: &str) -> Result<String, SqlError> {
        let invalid = || SqlErrorKind::InvalidSetting { name: self.name.to_owned(), value: value.to_owned() };
        match self.accepts {
            Text => Ok(value.to_owned()),
            Bool => match value.to_lowercase().as_str() {
                "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on".to_owned()),
                "off" | "false" | "no" | "0" | "f" | "n" => Ok("off".to_owned()),
                _ => Err(SqlErrorKind::InvalidArgument {
                    message: format!("parameter \"{}\" requires a Boolean value", self.name),
                }
                .into()),
            },
            Number => {
                let digits = value.trim_start_matches('-').chars().take_while(char::is_ascii_digit).count();
                if digits == 0 { Err(invalid().into()) } else { Ok(value.to_owned()) }
            }
            Time => match milliseconds(value) {
                Some(_) => Ok(value.to_owned()),
                None => Err(invalid().hint(
                    "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
                )),
            },
            Only(spellings) => {
                // asyncpg sends `client_encoding` with quotes, and PostgreSQL looks at letters and digits only.
                let value = value.trim_matches(['\'', '"']);
                let is_known = spellings.iter().any(|spelling| spelling.eq_ignore_ascii_case(value));
                let hint = || invalid().hint(format!("Highwater has only {}.", spellings[0]));
                if is_known { Ok(spellings[0].to_owned()) } else { Err(hint()) }
            }
            OneOf(choices) => {
                let choice = choices.iter().find(|choice| choice.eq_ignore_ascii_case(value));
                let hint = || invalid().hint(format!("Available values: {}.", choices.join(", ")));
                choice.map(|choice| (*choice).to_owned()).ok_or_else(hint)
            }
            TimeZone => {
                let known = if value.eq_ignore_ascii_case("utc") { "UTC" } else { value };
                Tz::from_str(known).map(|_| known.to_owned()).map_err(|_| invalid().into())
            }
            SearchPath => match value
                .split(',')
                .map(|name| name.trim().trim_matches('"'))
                .find(|name| !["", "$user", "public", "pg_catalog"].contains(name))
            {
                None => Ok(value.to_owned()),
                Some(schema) => {
                    let feature = format!("schema \"{schema}\" in search_path");
                    Err(SqlErrorKind::unsupported(feature).hint("Write the schema before the name."))
                }
            },
            Fixed => Err(SqlErrorKind::FixedSetting { name: self.name.to_owned() }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_without_case_and_values_are_checked() {
        let mut settings = Settings::new("me");
        settings.set("timezone", &["Europe/Berlin".to_owned()]).unwrap();
        assert_eq!(settings.get("TIMEZONE"), Some("Europe/Berlin"));
        assert_eq!(settings.set("timezone", &["Mars/Crater".to_owned()]).unwrap_err().sqlstate(), "22023");
        assert_eq!(
            settings.set("search_path", &["s".to_owned(), "public".to_owned()]).unwrap_err().sqlstate(),
            "0A000"
        );
        settings.set("search_path", &["public".to_owned()]).unwrap();
        assert_eq!(settings.set("nope", &["1".to_owned()]).unwrap_err().sqlstate(), "42704");
        assert_eq!(settings.set("server_version", &["1".to_owned()]).unwrap_err().sqlstate(), "55P02");
        assert_eq!(
            settings.set("DateStyle", &["SQL".to_owned(), "DMY".to_owned()]).unwrap_err().sqlstate(),
            "22023"
        );
        settings.set("DateStyle", &["iso".to_owned(), "mdy".to_owned()]).unwrap();
        assert_eq!(
            settings.set("statement_timeout", &["1 fortnight".to_owned()]).unwrap_err().sqlstate(),
            "22023"
        );
        settings.set("statement_timeout", &["2s".to_owned()]).unwrap();
        assert_eq!(settings.time_limit("statement_timeout"), Some(Duration::from_secs(2)));
        assert_eq!(settings.time_limit("lock_timeout"), None);
        settings.reset("TimeZone").unwrap();
        assert_eq!(settings.get("timezone"), Some("UTC"));
        assert_eq!(settings.get("session_authorization"), Some("me"));
    }

    #[test]
    fn reset_goes_back_to_what_the_client_began_with() {
        let mut settings = Settings::new("me");
        settings.set_initial("application_name", "psql").unwrap();
        settings.set("application_name", &["other".to_owned()]).unwrap();
        settings.reset_all();
        assert_eq!(settings.get("application_name"), Some("psql"));
    }
}
