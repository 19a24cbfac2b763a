//! Channels between tasks: bounded by bytes, in order, with barriers between the rows.
//!
//! ```text
//!  sender ── send ─► [ batch batch barrier batch ] ── receive ─► receiver
//!     ▲                                                   │
//!     └──────────── wake, when there is room again ───────┘
//! ```
//!
//! A channel never refuses: a sender asks [`Channel::has_room`] before it starts a step, so a
//! channel holds at most its capacity and the output of one step. Barriers need no room.
//!
//! **Invariant.** Back-pressure cannot deadlock. A receiver stops reading a channel only when that
//! channel has delivered the barrier the others still owe; a sender puts a barrier on all its
//! channels at once; and only one epoch is in flight.

use std::collections::VecDeque;
use std::sync::Arc;

use dataflow::{ChangeBatch, JobId, Watermark, row_bytes};
use parking_lot::Mutex;
use state::Epoch;

/// Whoever waits for a channel: a task, or the inbox.
pub(crate) trait Wake: Send + Sync {
    /// Lets it look again. Cheap when it is already going to.
    fn wake(&self);
}

/// The end of an epoch on its way through the tasks.
#[derive(Debug, Clone)]
pub(crate) struct Barrier {
    pub(crate) epoch: Epoch,
    /// Wall time of the barrier, microseconds; never goes back.
    pub(crate) now: i64,
    /// Whether tasks hand over their dirty state.
    pub(crate) is_checkpoint: bool,
    /// What the sender promises; `MAX` when it has ended.
    pub(crate) watermark: Watermark,
    /// How the set of jobs changes behind this barrier.
    pub(crate) mutation: Option<Arc<Mutation>>,
}

/// A change of the set of jobs, carried by a barrier and applied by every task behind it.
#[derive(Default)]
pub(crate) struct Mutation {
    /// New followers: rows behind the barrier go to them too.
    pub(crate) attach: Vec<Attachment>,
    /// Jobs that end with this barrier.
    pub(crate) drop: Vec<JobId>,
}

/// A new follower of a job's output.
pub(crate) struct Attachment {
    /// Who sends.
    pub(crate) upstream: JobId,
    /// Who receives.
    pub(crate) follower: JobId,
    /// One channel per subtask.
    pub(crate) channels: Vec<Arc<Channel>>,
}

impl std::fmt::Debug for Mutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mutation {{ attach: {}, drop: {:?} }}", self.attach.len(), self.drop)
    }
}

/// What travels through a channel.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "most are batches, and they are only moved")]
pub(crate) enum Message {
    Batch(ChangeBatch),
    Barrier(Barrier),
}

/// One direction between two tasks.
pub(crate) struct Channel {
    queue: Mutex<Queue>,
    capacity: usize,
    sender: Arc<dyn Wake>,
    receiver: Arc<dyn Wake>,
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<(usize, Message)>,
    bytes: usize,
    /// The receiver has failed: what is sent is dropped, so that the sender goes on.
    closed: bool,
}

impl Channel {
    pub(crate) fn new(capacity: usize, sender: Arc<dyn Wake>, receiver: Arc<dyn Wake>) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::default(), capacity, sender, receiver })
    }

    /// Whether the sender may start another step.
    pub(crate) fn has_room(&self) -> bool {
        let queue = self.queue.lock();
        queue.closed || queue.bytes < self.capacity
    }

    /// Whether the receiver has failed.
    pub(crate) fn is_closed(&self) -> bool {
        self.queue.lock().closed
    }

    /// Bytes waiting.
    pub(crate) fn bytes(&self) -> usize {
        self.queue.lock().bytes
    }

    pub(crate) fn send(&self, message: Message) {
        let bytes = match &message {
            Message::Batch(batch) => credit_bytes(batch),
            Message::Barrier(_) => 0,
        };
        let mut queue = self.queue.lock();
        if queue.closed {
            return;
        }
        let was_empty = queue.messages.is_empty();
        queue.bytes += bytes;
        queue.messages.push_back((bytes, message));
        drop(queue);
        if was_empty {
            self.receiver.wake();
        }
    }

    pub(crate) fn receive(&self) -> Option<Message> {
        let mut queue = self.queue.lock();
        let (bytes, message) = queue.messages.pop_front()?;
        let was_full = queue.bytes >= self.capacity;
        queue.bytes -= bytes;
        let has_room = queue.bytes < self.capacity;
        drop(queue);
        if was_full && has_room {
            self.sender.wake();
        }
        Some(message)
    }

    /// Drops what is queued and everything sent from now on.
    pub(crate) fn close(&self) {
        let dropped = {
            let mut queue = self.queue.lock();
            queue.closed = true;
            queue.bytes = 0;
            std::mem::take(&mut queue.messages)
        };
        drop(dropped);
        self.sender.wake();
    }
}

/// What a batch costs on a channel: the bytes of its rows and what they carry.
fn credit_bytes(batch: &ChangeBatch) -> usize {
    let hidden = usize::from(batch.diffs.is_some()) + 4 * usize::from(batch.origin.is_some());
    row_bytes(&batch.rows) + hidden * batch.len() * size_of::<i64>()
}
