//! Cancel requests: a client opens a second connection and names the process id and secret of
//! the first. Each connection registers a [`CancelHandle`]; a running statement waits on it
//! beside its own work, while planning and while rows are streamed.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use pgwire::api::cancel::CancelHandler;
use pgwire::messages::cancel::CancelRequest;
use tokio::sync::watch;

/// Raised by a cancel request; the number counts requests, so that one that comes between two
/// statements does not hit the second.
#[derive(Debug)]
pub(crate) struct CancelHandle {
    requests: watch::Sender<u64>,
}

impl CancelHandle {
    fn new() -> Self {
        Self { requests: watch::Sender::new(0) }
    }

    /// A watch over the statement that begins now.
    pub(super) fn begin(&self) -> CancelWatch {
        let mut requests = self.requests.subscribe();
        requests.mark_unchanged();
        CancelWatch { requests }
    }

    /// Cancels what runs now.
    pub(super) fn cancel(&self) {
        self.requests.send_modify(|count| *count += 1);
    }
}

/// Waits for the cancellation of one statement.
#[derive(Debug, Clone)]
pub(crate) struct CancelWatch {
    requests: watch::Receiver<u64>,
}

impl CancelWatch {
    /// Returns when the statement is cancelled, never otherwise.
    pub(super) async fn cancelled(&mut self) {
        if self.requests.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// All connections that can be cancelled, by process id and secret.
#[derive(Debug, Default)]
pub(crate) struct Cancellations {
    handles: Mutex<HashMap<(i32, Vec<u8>), Arc<CancelHandle>>>,
}

impl Cancellations {
    /// Registers a connection.
    pub(super) fn register(self: &Arc<Self>, pid: i32, secret: Vec<u8>) -> Registration {
        let handle = Arc::new(CancelHandle::new());
        let key = (pid, secret);
        self.handles.lock().insert(key.clone(), Arc::clone(&handle));
        Registration { all: Arc::clone(self), key, handle }
    }
}

#[async_trait]
impl CancelHandler for Cancellations {
    async fn on_cancel_request(&self, request: CancelRequest) {
        let key = (request.pid, secret_bytes(&request.secret_key));
        if let Some(handle) = self.handles.lock().get(&key) {
            handle.cancel();
        }
    }
}

/// The secret as bytes, whatever protocol version chose its form.
pub(super) fn secret_bytes(secret: &pgwire::messages::startup::SecretKey) -> Vec<u8> {
    match secret {
        pgwire::messages::startup::SecretKey::I32(value) => value.to_be_bytes().to_vec(),
        pgwire::messages::startup::SecretKey::Bytes(bytes) => bytes.to_vec(),
    }
}

/// Keeps a connection registered for as long as it lives.
#[derive(Debug)]
pub(crate) struct Registration {
    all: Arc<Cancellations>,
    key: (i32, Vec<u8>),
    pub(super) handle: Arc<CancelHandle>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.all.handles.lock().remove(&self.key);
    }
}
