//! From the inbox to the tables: row changes in sequence order, whole transactions at a time.
//!
//! **Invariant.** A barrier lies between two records: all tables of a transaction see it in the
//! same epoch, because handing out a record and injecting a barrier take the same lock.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use dataflow::{ChangeBatch, JobId, Watermark};
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use state::{InboxChange, InboxRecord};

use crate::events::Events;
use crate::exchange::{Barrier, Channel, Message, Wake};

/// Feeds the tables, and gives barriers to every task that has no other input.
pub(crate) struct InboxReader {
    feed: Mutex<Feed>,
    room: Condvar,
    events: Arc<Events>,
    this: Weak<Self>,
}

struct Feed {
    /// Sequence of the next record to hand out.
    next: u64,
    /// Records whose predecessors are still being written.
    early: BTreeMap<u64, InboxRecord>,
    jobs: HashMap<JobId, Fed>,
    is_stopped: bool,
}

/// A table, or a job without any input.
struct Fed {
    /// One per subtask; the first one gets the rows.
    channels: Vec<Arc<Channel>>,
    /// What barriers promise: nothing for a table, the end for a job without input.
    watermark: Watermark,
}

impl InboxReader {
    /// A reader behind sequence `after`.
    pub(crate) fn new(after: u64, events: Arc<Events>) -> Arc<Self> {
        let feed = Feed { next: after + 1, early: BTreeMap::new(), jobs: HashMap::new(), is_stopped: false };
        Arc::new_cyclic(|this| Self {
            feed: Mutex::new(feed),
            room: Condvar::new(),
            events,
            this: Weak::clone(this),
        })
    }

    /// What a channel wakes when there is room again.
    pub(crate) fn waker(&self) -> Arc<dyn Wake> {
        Arc::new(RoomSignal(Weak::clone(&self.this)))
    }

    pub(crate) fn attach(&self, job: JobId, channels: Vec<Arc<Channel>>, has_inbox: bool) {
        let watermark = if has_inbox { Watermark::MIN } else { Watermark::MAX };
        self.feed.lock().jobs.insert(job, Fed { channels, watermark });
    }

    pub(crate) fn detach(&self, job: JobId) {
        self.feed.lock().jobs.remove(&job);
        self.room.notify_all();
    }

    /// Lets writers look again whether there is room.
    pub(crate) fn wake_writers(&self) {
        // Under the lock, else a writer between its look and its wait would miss this.
        let feed = self.feed.lock();
        self.room.notify_all();
        drop(feed);
    }

    /// Waits until no table is behind and memory is not short. False: the database is shutting down.
    pub(crate) fn wait_for_room(&self) -> bool {
        let mut feed = self.feed.lock();
        while !feed.is_stopped && (!feed.has_room() || self.events.gauge.is_full()) {
            self.room.wait(&mut feed);
        }
        !feed.is_stopped
    }

    pub(crate) fn stop(&self) {
        self.feed.lock().is_stopped = true;
        self.room.notify_all();
    }

    /// Takes in a record that is on disk. Records may come out of order; they go on in order.
    pub(crate) fn offer(&self, sequence: u64, record: InboxRecord) {
        let mut feed = self.feed.lock();
        feed.early.insert(sequence, record);
        while let Some(record) = feed.take_next() {
            for change in record.changes {
                feed.deliver(change);
            }
            feed.next += 1;
        }
        drop(feed);
        self.events.input();
    }

    /// Behind a replay: records of tables that are gone were not offered.
    pub(crate) fn skip_to(&self, sequence: u64) {
        let mut feed = self.feed.lock();
        feed.next = feed.next.max(sequence + 1);
    }

    /// Lets a barrier in; returns the sequence of the last record in front of it.
    pub(crate) fn inject(&self, barrier: &Barrier) -> u64 {
        let feed = self.feed.lock();
        for fed in feed.jobs.values() {
            for channel in &fed.channels {
                channel.send(Message::Barrier(Barrier { watermark: fed.watermark, ..barrier.clone() }));
            }
        }
        feed.next - 1
    }

    /// Sequence of the last record handed out.
    pub(crate) fn sequence(&self) -> u64 {
        self.feed.lock().next - 1
    }
}

impl Feed {
    fn has_room(&self) -> bool {
        self.jobs.values().flat_map(|fed| &fed.channels).all(|channel| channel.has_room())
    }

    fn take_next(&mut self) -> Option<InboxRecord> {
        self.early.remove(&self.next)
    }

    fn deliver(&self, change: InboxChange) {
        let fed = self.jobs.get(&JobId(change.job));
        // Nobody, if the table is gone or has failed.
        let Some(channel) = fed.and_then(|fed| fed.channels.first()) else { return };
        let mut batch = ChangeBatch::append(change.rows);
        if change.diffs.values().iter().any(|diff| *diff != 1) {
            batch.diffs = Some(change.diffs);
        }
        // No origin: a row and its retraction come from different records, and in `$errors` they must
        // meet. Tables declare no watermark, so nobody asks for one.
        channel.send(Message::Batch(batch));
    }
}

struct RoomSignal(Weak<InboxReader>);

impl Wake for RoomSignal {
    fn wake(&self) {
        if let Some(reader) = self.0.upgrade() {
            reader.wake_writers();
        }
    }
}
