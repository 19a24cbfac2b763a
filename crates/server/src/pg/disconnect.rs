//! Notices that a client has gone away while its statement runs.
//!
//! The message loop does not read the socket during a statement, so a second handle of the same
//! socket is asked, a few times a second and only while a statement runs, whether the peer has
//! closed its side.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::MissedTickBehavior;

const INTERVAL: Duration = Duration::from_millis(200);

/// Watches one socket.
#[derive(Debug)]
pub(crate) struct DisconnectWatch {
    socket: OwnedFd,
}

impl DisconnectWatch {
    /// A watch that keeps its own handle of the socket.
    pub(super) fn new(stream: &TcpStream) -> std::io::Result<Self> {
        // SAFETY: the descriptor belongs to `stream`, which outlives this borrow.
        let borrowed = unsafe { BorrowedFd::borrow_raw(stream.as_raw_fd()) };
        Ok(Self { socket: borrowed.try_clone_to_owned()? })
    }

    /// Returns when the client has closed the connection, never otherwise.
    pub(super) async fn disconnected(&self) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.is_closed() {
                return;
            }
        }
    }

    fn is_closed(&self) -> bool {
        let mut asked = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: one valid pollfd, and a time-out of zero never blocks.
        let ready = unsafe { libc::poll(&raw mut asked, 1, 0) };
        ready > 0 && asked.revents & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) != 0
    }
}
