//! Options of a `WITH (…)` clause, checked against what a connector or format knows.
//!
//! Nothing is ever ignored: an unknown name is refused with the nearest known one, a name and its
//! alias may not both be given, and every getter says what would be right.

use std::collections::BTreeMap;
use std::time::Duration;

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use dataflow::{OptionError, OptionSpec, Options};

/// An option that may be left out.
pub(crate) const fn optional(
    name: &'static str,
    aliases: &'static [&'static str],
    doc: &'static str,
) -> OptionSpec {
    OptionSpec { name, aliases, doc, required: false }
}

/// An option that must be given.
pub(crate) const fn required(
    name: &'static str,
    aliases: &'static [&'static str],
    doc: &'static str,
) -> OptionSpec {
    OptionSpec { name, aliases, doc, required: true }
}

/// The options of one statement under their canonical names.
#[derive(Debug, Clone)]
pub(crate) struct CheckedOptions {
    values: BTreeMap<&'static str, Given>,
}

/// An option as the user wrote it, for messages.
#[derive(Debug, Clone)]
struct Given {
    name: String,
    value: String,
}

impl CheckedOptions {
    /// Checks that every option is known, given once, and that none is missing.
    pub(crate) fn check(
        connector: &str,
        specs: &[OptionSpec],
        options: &Options,
    ) -> Result<Self, OptionError> {
        let mut values: BTreeMap<&'static str, Given> = BTreeMap::new();
        for (name, value) in options {
            let Some(spec) =
                specs.iter().find(|spec| spec.name == name || spec.aliases.contains(&name.as_str()))
            else {
                return Err(OptionError::Unknown {
                    name: name.clone(),
                    connector: connector.to_owned(),
                    nearest: nearest(name, specs.iter().flat_map(names)),
                });
            };
            let given = Given { name: name.clone(), value: value.clone() };
            if let Some(other) = values.insert(spec.name, given) {
                return Err(OptionError::Other(format!(
                    "options \"{}\" and \"{name}\" mean the same; give one of them",
                    other.name
                )));
            }
        }
        for spec in specs {
            if spec.required && !values.contains_key(spec.name) {
                return Err(OptionError::Missing { name: spec.name, connector: connector.to_owned() });
            }
        }
        Ok(Self { values })
    }

    /// The text of an option.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(|given| given.value.as_str())
    }

    /// The text of an option that `check` found to be there.
    pub(crate) fn required_text(&self, name: &'static str) -> Result<&str, OptionError> {
        self.text(name).ok_or_else(|| OptionError::Other(format!("option \"{name}\" is missing")))
    }

    /// A switch, as PostgreSQL spells switches.
    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, OptionError> {
        self.parse(name, "expected true or false", |text| match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Some(true),
            "false" | "off" | "no" | "0" => Some(false),
            _ => None,
        })
    }

    /// A whole number of at least `min`; `_` may group digits.
    pub(crate) fn integer(&self, name: &str, min: i64) -> Result<Option<i64>, OptionError> {
        let reason = if min > i64::MIN {
            format!("expected a whole number of at least {min}")
        } else {
            "expected a whole number".to_owned()
        };
        self.parse(name, &reason, |text| text.replace('_', "").parse().ok().filter(|number| *number >= min))
    }

    /// One of a few words, in any case.
    pub(crate) fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<Option<T>, OptionError> {
        let known: Vec<String> = words.iter().map(|(word, _)| format!("'{word}'")).collect();
        self.parse(name, &format!("expected {}", known.join(" or ")), |text| {
            words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
        })
    }

    /// A single byte, such as a delimiter; `\t` is a tab.
    pub(crate) fn single_byte(&self, name: &str) -> Result<Option<u8>, OptionError> {
        self.parse_untrimmed(name, "expected a single one-byte character", |text| match text.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Some(*byte),
            b"\\t" => Some(b'\t'),
            _ => None,
        })
    }

    /// What `read` makes of an option's text, or the error that says what would be right.
    pub(crate) fn parse<T>(
        &self,
        name: &str,
        reason: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, OptionError> {
        self.parse_untrimmed(name, reason, |text| read(text.trim()))
    }

    fn parse_untrimmed<T>(
        &self,
        name: &str,
        reason: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, OptionError> {
        let Some(given) = self.values.get(name) else {
            return Ok(None);
        };
        match read(&given.value) {
            Some(value) => Ok(Some(value)),
            None => Err(self.refuse(name, reason)),
        }
    }

    /// The error for an option whose value cannot be used.
    pub(crate) fn refuse(&self, name: &str, reason: impl Into<String>) -> OptionError {
        let given = self.values.get(name).cloned();
        let (name, value) =
            given.map_or_else(|| (name.to_owned(), String::new()), |given| (given.name, given.value));
        OptionError::Value { name, value, reason: reason.into() }
    }
}

fn names(spec: &OptionSpec) -> impl Iterator<Item = &'static str> {
    std::iter::once(spec.name).chain(spec.aliases.iter().copied())
}

/// A length of time: `5s`, `10 ms`, `1.5 minutes`, `1 hour 30 minutes`, `INTERVAL '5 seconds'`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let upper = text.to_ascii_uppercase();
    if upper.starts_with("INTERVAL") {
        return parse_duration(text["INTERVAL".len()..].trim().strip_prefix('\'')?.strip_suffix('\'')?);
    }
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = (text[..split].trim(), text[split..].trim());
    if let (Ok(number), Some(nanos)) = (number.parse::<f64>(), unit_nanos(unit)) {
        let nanos = number * nanos;
        // False for NaN too.
        return (0.0..9e18).contains(&nanos).then(|| Duration::from_nanos(nanos.round() as u64));
    }
    let interval = parse_interval_month_day_nano(text).ok()?;
    let days = u64::try_from(interval.days).ok().filter(|_| interval.months == 0)?;
    let nanos = u64::try_from(interval.nanoseconds).ok()?;
    Some(Duration::from_secs(days * 86_400) + Duration::from_nanos(nanos))
}

fn unit_nanos(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ns" => 1.0,
        "us" | "microsecond" | "microseconds" => 1e3,
        "ms" | "millisecond" | "milliseconds" => 1e6,
        "s" | "sec" | "secs" | "second" | "seconds" => 1e9,
        "m" | "min" | "mins" | "minute" | "minutes" => 60e9,
        "h" | "hr" | "hour" | "hours" => 3600e9,
        "d" | "day" | "days" => 86_400e9,
        _ => return None,
    })
}

/// The known name nearest to a wrong one, if one is near enough to be a slip of the keyboard.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let far = name.chars().count() / 3 + 2;
    known
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance < far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein distance, one row at a time.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, r) in right.iter().enumerate() {
            let change = diagonal + usize::from(l != *r);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[OptionSpec] = &[
        required("path", &["file.path"], "where"),
        optional("follow", &[], "tail"),
        optional("rows", &["number-of-rows"], "how many"),
    ];

    fn check(options: &[(&str, &str)]) -> Result<CheckedOptions, OptionError> {
        let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        CheckedOptions::check("file", SPECS, &options)
    }

    #[test]
    fn an_unknown_option_names_the_nearest_known_one() {
        let error = check(&[("path", "x"), ("folow", "true")]).unwrap_err();
        assert_eq!(
            error,
            OptionError::Unknown {
                name: "folow".to_owned(),
                connector: "file".to_owned(),
                nearest: Some("follow".to_owned())
            }
        );
        let OptionError::Unknown { nearest, .. } = check(&[("bootstrap", "x")]).unwrap_err() else {
            panic!()
        };
        assert_eq!(nearest, None);
    }

    #[test]
    fn a_required_option_may_not_be_missing() {
        assert_eq!(
            check(&[]).unwrap_err(),
            OptionError::Missing { name: "path", connector: "file".to_owned() }
        );
    }

    #[test]
    fn an_alias_counts_as_the_option_and_not_twice() {
        assert_eq!(check(&[("file.path", "x")]).unwrap().text("path"), Some("x"));
        let error = check(&[("file.path", "x"), ("path", "y")]).unwrap_err();
        assert_eq!(error.to_string(), "options \"file.path\" and \"path\" mean the same; give one of them");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_with_the_name_the_user_wrote() {
        let options = check(&[("path", "x"), ("follow", "maybe"), ("number-of-rows", "-1")]).unwrap();
        assert_eq!(
            options.boolean("follow").unwrap_err().to_string(),
            "invalid value \"maybe\" of option \"follow\": expected true or false"
        );
        assert_eq!(
            options.integer("rows", 0).unwrap_err().to_string(),
            "invalid value \"-1\" of option \"number-of-rows\": expected a whole number of at least 0"
        );
        assert_eq!(
            options.integer("path", 0).unwrap_err().to_string(),
            "invalid value \"x\" of option \"path\": expected a whole number of at least 0"
        );
    }

    #[test]
    fn durations_are_read_with_units_in_words_and_as_intervals() {
        for (text, ms) in [
            ("5s", 5_000),
            ("10 ms", 10),
            ("1.5 minutes", 90_000),
            ("INTERVAL '5 seconds'", 5_000),
            ("interval '1' ", 0),
            ("1 hour 30 minutes", 5_400_000),
            ("2 days", 172_800_000),
        ] {
            let expected = (ms > 0).then(|| Duration::from_millis(ms));
            assert_eq!(parse_duration(text), expected, "{text}");
        }
        for text in ["", "5", "s", "-5s", "1 month", "5 parsecs"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
