//! The command line: `serve`, `run`, `version`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use crate::config::{Config, Flags};
use crate::{run, serve};

/// How long work that does not give way may hold up the end of the process.
const GRACE: Duration = Duration::from_secs(1);

/// A streaming SQL database that speaks the PostgreSQL protocol.
#[derive(Debug, Parser)]
#[command(name = "highwater", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the database in a data folder to PostgreSQL clients.
    Serve {
        #[command(flatten)]
        flags: Flags,
    },
    /// Run a SQL script on an embedded engine, print results, end when its bounded sources end.
    Run {
        /// The script.
        script: PathBuf,
        #[command(flatten)]
        flags: Flags,
    },
}

/// Runs the command the process was called with.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("HIGHWATER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    match execute(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            report(&message);
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(engine::STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let outcome = match command {
        Command::Serve { flags } => {
            Config::load(&flags).and_then(|config| runtime.block_on(serve::serve(config)))
        }
        Command::Run { script, flags } => {
            let is_data_given = flags.data.is_some();
            Config::load(&flags).and_then(|config| runtime.block_on(run::run(&script, config, is_data_given)))
        }
    };
    // Everything is durable by now; what a client still waits for may end with the process.
    runtime.shutdown_timeout(GRACE);
    outcome
}

#[allow(clippy::print_stderr, reason = "the last word of a failed command")]
fn report(message: &str) {
    eprintln!("highwater: {message}");
}
