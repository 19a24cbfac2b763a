//! `highwater serve`: opens the database and accepts clients until it is told to stop.

use std::net::SocketAddr;
use std::sync::Arc;

use dataflow::ConnectorRegistry;
use engine::Engine;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, watch};
use tracing::{debug, info, warn};

use crate::config::Config;
use crate::pg::{Cancellations, refuse_connection, serve_connection};

/// Clients at the same time; one more is told so (SQLSTATE 53300).
const CONNECTIONS_MAX: usize = 1_000;
/// Clients that are being told so at the same time; the rest only see a closed socket.
const REFUSALS_MAX: usize = 100;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot listen on {address}: {reason}")]
    Listen { address: String, reason: String },
    #[error(
        "{0} is not a loopback address: without authentication, which this version does not have, anybody \
         on the network could read and write everything"
    )]
    NotLoopback(SocketAddr),
}

/// A listening server over an open engine; ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

impl Server {
    /// Starts to accept clients. `listen` may name port 0 for any free port.
    pub async fn start(engine: Engine, listen: &str) -> Result<Self, ServerError> {
        let failed = |error: std::io::Error| ServerError::Listen {
            address: listen.to_owned(),
            reason: error.to_string(),
        };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        if !address.ip().is_loopback() {
            return Err(ServerError::NotLoopback(address));
        }
        let (stop, stopped) = watch::channel(false);
        tokio::task::spawn(accept(listener, engine, stopped));
        Ok(Self { address, stop })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more clients and leaves those there are.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
    }
}

async fn accept(listener: TcpListener, engine: Engine, mut stopped: watch::Receiver<bool>) {
    let cancellations = Arc::new(Cancellations::default());
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.changed() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors: the next client may be luckier.
                warn!(%error, "cannot accept a client");
                tokio::task::yield_now().await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            warn!(limit = CONNECTIONS_MAX, "too many clients");
            if let Ok(refusal) = Arc::clone(&refusals).try_acquire_owned() {
                tokio::task::spawn(async move {
                    let _refusal = refusal;
                    let _ = refuse_connection(stream).await;
                });
            }
            continue;
        };
        let engine = engine.clone();
        let cancellations = Arc::clone(&cancellations);
        let stopped = stopped.clone();
        tokio::task::spawn(async move {
            let _place = place;
            if let Err(error) = serve_connection(stream, engine, cancellations, stopped).await {
                debug!(%error, "connection lost");
            }
        });
    }
}

/// Serves until SIGINT or SIGTERM, then takes a last checkpoint. Further signals change nothing.
pub(crate) async fn serve(config: Config) -> Result<(), String> {
    config.check_folder()?;
    // First of all: a signal that comes while the database is opened ends it in order as well.
    let listen = |kind| signal(kind).map_err(|error| format!("signals: {error}"));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    let engine = open(&config, connectors::registry()).await?;
    let server = Server::start(engine.clone(), &config.listen).await.map_err(|error| error.to_string())?;
    announce(&server, &config);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    info!("shutting down");
    server.stop();
    engine.shutdown().await;
    Ok(())
}

/// Opens the engine of a configuration.
pub(crate) async fn open(config: &Config, registry: ConnectorRegistry) -> Result<Engine, String> {
    Engine::open(config.engine_options(), registry).await.map_err(|error| match &error.hint {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    })
}

#[allow(clippy::print_stdout, reason = "what the person who started the server copies")]
fn announce(server: &Server, config: &Config) {
    let address = server.address();
    println!("Highwater {} is ready.", env!("CARGO_PKG_VERSION"));
    println!("  data     {}", config.data.display());
    println!("  connect  psql 'postgresql://postgres@{address}/highwater'");
}
