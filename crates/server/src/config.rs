//! Configuration: flags over environment over `highwater.toml` over defaults.
//!
//! | flag | environment | key in the file |
//! |---|---|---|
//! | `--listen` | `HIGHWATER_LISTEN` | `listen` |
//! | `--allow-path` | `HIGHWATER_ALLOW_PATH` (`:` between folders) | `allow_path` (a list) |
//! | … | `HIGHWATER_` + upper case, `_` for `-` | the flag with `_` for `-` |
//!
//! The file is `highwater.toml` in the working folder, or what `HIGHWATER_CONFIG` names. `HIGHWATER_LOG` filters the
//! messages on stderr (`warn`, `debug`, `info,runtime=debug`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use serde::{Deserialize, Deserializer, Serialize};

/// Where state is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum StateBackendKind {
    /// On disk, in the data folder.
    Rocksdb,
    /// In memory only: everything is gone when the process ends.
    Memory,
}

/// The flags; what is not given comes from the environment, the file or the defaults.
#[derive(Debug, Clone, Default, Args, Serialize)]
pub struct Flags {
    /// Data folder [default: ./data]
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// Address to listen on; only loopback addresses for now [default: 127.0.0.1:7432]
    #[arg(long, value_name = "ADDRESS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Folder that sources may read files from; may be given several times [default: the working folder]
    #[arg(long, value_name = "DIR")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow_path: Vec<PathBuf>,
    /// Memory budget of the whole process, e.g. 4GiB [default: 60 % of the machine]
    #[arg(long, value_name = "SIZE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Tasks per operator and engine threads [default: the number of cores]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<usize>,
    /// Shortest time between barriers under load [default: 10ms]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_min: Option<String>,
    /// Longest time between barriers under load [default: 200ms]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_max: Option<String>,
    /// Time between checkpoints [default: 1s]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_interval: Option<String>,
    /// Where state is kept [default: rocksdb]
    #[arg(long, value_enum)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_backend: Option<StateBackendKind>,
}

/// Everything as text and options, before it is checked.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    #[serde(deserialize_with = "path")]
    data: PathBuf,
    #[serde(deserialize_with = "text")]
    listen: String,
    allow_path: Vec<PathBuf>,
    #[serde(deserialize_with = "optional_text")]
    memory: Option<String>,
    parallelism: Option<usize>,
    #[serde(deserialize_with = "text")]
    epoch_min: String,
    #[serde(deserialize_with = "text")]
    epoch_max: String,
    #[serde(deserialize_with = "text")]
    checkpoint_interval: String,
    state_backend: StateBackendKind,
}

/// A value as it was written: the environment and TOML make numbers of `1073741824`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Switch(bool),
    Whole(i64),
    Fraction(f64),
}

impl Scalar {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Switch(switch) => switch.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Fraction(number) => number.to_string(),
        }
    }
}

fn text<'de, D: Deserializer<'de>>(value: D) -> Result<String, D::Error> {
    Scalar::deserialize(value).map(Scalar::into_text)
}

fn optional_text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Scalar>::deserialize(value)?.map(Scalar::into_text))
}

fn path<'de, D: Deserializer<'de>>(value: D) -> Result<PathBuf, D::Error> {
    text(value).map(PathBuf::from)
}

impl Default for Layers {
    fn default() -> Self {
        Self {
            data: PathBuf::from("data"),
            listen: "127.0.0.1:7432".to_owned(),
            allow_path: Vec::new(),
            memory: None,
            parallelism: None,
            epoch_min: "10ms".to_owned(),
            epoch_max: "200ms".to_owned(),
            checkpoint_interval: "1s".to_owned(),
            state_backend: StateBackendKind::Rocksdb,
        }
    }
}

/// A checked configuration.
#[derive(Debug, Clone)]
pub struct Config {
    pub data: PathBuf,
    pub listen: String,
    pub allow_path: Vec<PathBuf>,
    /// Bytes.
    pub memory: usize,
    pub parallelism: usize,
    pub epoch_min: Duration,
    pub epoch_max: Duration,
    pub checkpoint_interval: Duration,
    pub state_backend: StateBackendKind,
}

impl Config {
    /// Puts the layers together and checks every value; the message names the one at fault.
    pub fn load(flags: &Flags) -> Result<Self, String> {
        let file = match std::env::var_os("HIGHWATER_CONFIG") {
            Some(file) if Path::new(&file).exists() => PathBuf::from(file),
            Some(file) => return Err(format!("HIGHWATER_CONFIG: there is no file {}", file.display())),
            None => PathBuf::from("highwater.toml"),
        };
        let environment = Env::prefixed("HIGHWATER_").ignore(&["config", "allow_path", "log"]);
        let mut figment = Figment::from(Serialized::defaults(Layers::default()));
        if file.exists() {
            figment = figment.merge(Toml::file_exact(file));
        }
        figment = figment.merge(environment);
        if let Some(folders) = std::env::var_os("HIGHWATER_ALLOW_PATH") {
            let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
            figment = figment.merge(("allow_path", folders));
        }
        let layers: Layers = figment
            .merge(Serialized::defaults(flags))
            .extract()
            .map_err(|error| format!("configuration: {error}"))?;
        Self::check(layers)
    }

    /// Whoever asks for memory over a folder with a database would find nothing of it.
    pub(crate) fn check_folder(&self) -> Result<(), String> {
        if self.state_backend == StateBackendKind::Rocksdb || !self.data.join("FORMAT").exists() {
            return Ok(());
        }
        Err(format!(
            "the data folder {} holds a database, which --state-backend memory would not open; start it \
             with --state-backend rocksdb, or give another --data",
            self.data.display()
        ))
    }

    fn check(layers: Layers) -> Result<Self, String> {
        let mut allow_path = layers.allow_path;
        if allow_path.is_empty() {
            allow_path.push(std::env::current_dir().map_err(|error| format!("working folder: {error}"))?);
        }
        if let Some(folder) = allow_path.iter().find(|folder| !folder.is_dir()) {
            return Err(format!("allow-path: {} is not a folder", folder.display()));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let parallelism = layers.parallelism.unwrap_or(cores);
        if !(1..=128).contains(&parallelism) {
            return Err(format!("parallelism must be from 1 to 128, not {parallelism}"));
        }
        let memory = match layers.memory {
            Some(text) => {
                parse_bytes(&text).ok_or_else(|| format!("memory: \"{text}\" is not a size such as 4GiB"))?
            }
            None => available_memory() / 10 * 6,
        };
        if memory < 64 << 20 {
            return Err("memory must be at least 64MiB".to_owned());
        }
        let time = |name: &str, text: &str| {
            parse_duration(text).ok_or_else(|| format!("{name}: \"{text}\" is not a time such as 10ms"))
        };
        let epoch_min = time("epoch-min", &layers.epoch_min)?;
        let epoch_max = time("epoch-max", &layers.epoch_max)?;
        if epoch_max < epoch_min {
            return Err("epoch-max is shorter than epoch-min".to_owned());
        }
        let checkpoint_interval = time("checkpoint-interval", &layers.checkpoint_interval)?;
        for (name, time) in [("epoch-min", epoch_min), ("checkpoint-interval", checkpoint_interval)] {
            if time.is_zero() {
                return Err(format!("{name} must be longer than nothing"));
            }
        }
        Ok(Self {
            data: layers.data,
            listen: layers.listen,
            allow_path,
            memory,
            parallelism,
            epoch_min,
            epoch_max,
            checkpoint_interval,
            state_backend: layers.state_backend,
        })
    }

    /// The same for the engine.
    #[must_use]
    pub fn engine_options(&self) -> engine::EngineOptions {
        engine::EngineOptions {
            data: (self.state_backend == StateBackendKind::Rocksdb).then(|| self.data.clone()),
            allowed_paths: self.allow_path.clone(),
            memory: self.memory,
            parallelism: self.parallelism,
            epoch_min: self.epoch_min,
            epoch_max: self.epoch_max,
            checkpoint_interval: self.checkpoint_interval,
        }
    }
}

/// `512MiB`, `4GB`, `1073741824`.
fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// `10ms`, `1s`, `2 min`.
fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let micros = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        _ => return None,
    };
    Some(Duration::from_micros(number.checked_mul(micros)?))
}

/// The memory of the machine, or of the control group if that is smaller, in bytes.
fn available_memory() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?.to_owned();
            line.split_ascii_whitespace().nth(1)?.parse::<usize>().ok()
        })
        .map_or(4 << 30, |kilobytes| kilobytes << 10);
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(usize::MAX);
    machine.min(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(parse_bytes("4GiB"), Some(4 << 30));
        assert_eq!(parse_bytes("12 mb"), Some(12 << 20));
        assert_eq!(parse_bytes("four"), None);
        assert_eq!(parse_duration("10ms"), Some(Duration::from_millis(10)));
        assert_eq!(parse_duration("10"), None);
    }

    #[test]
    fn impossible_values_are_named() {
        let layers = Layers { parallelism: Some(0), ..Layers::default() };
        assert!(Config::check(layers).unwrap_err().contains("parallelism"));
        let layers = Layers { epoch_max: "1ms".to_owned(), ..Layers::default() };
        assert!(Config::check(layers).unwrap_err().contains("epoch-max"));
    }
}
