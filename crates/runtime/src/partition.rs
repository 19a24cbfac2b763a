//! The result partition: the sending end of a task.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use dataflow::{ChangeBatch, Exchange, JobId, Result};
use state::{KEY_GROUPS, KeyGroupRange};

use crate::exchange::{Barrier, Channel, Message};

/// Everything a task sends to.
#[derive(Default)]
pub(crate) struct ResultPartition {
    pub(crate) outputs: Vec<Output>,
}

/// One receiver of a task's rows: another vertex of the job, or a follower.
pub(crate) struct Output {
    /// The job that receives, if it is another one.
    pub(crate) follower: Option<JobId>,
    exchange: Exchange,
    channels: Vec<Arc<Channel>>,
    /// Which subtask owns each key group.
    owners: Vec<usize>,
    /// Scratch: the rows of a batch by receiving subtask.
    rows: Vec<Vec<u32>>,
    /// Next receiver of a rebalance.
    turn: usize,
}

impl Output {
    /// `channels`: one per receiving subtask; a single one for forward.
    pub(crate) fn new(follower: Option<JobId>, exchange: Exchange, channels: Vec<Arc<Channel>>) -> Self {
        let count = channels.len();
        let owners = (0..KEY_GROUPS).map(|group| KeyGroupRange::subtask_of(group as u8, count)).collect();
        Self { follower, exchange, channels, owners, rows: vec![Vec::new(); count], turn: 0 }
    }

    fn send(&mut self, batch: ChangeBatch) -> Result<()> {
        if let [only] = self.channels.as_slice() {
            only.send(Message::Batch(batch));
            return Ok(());
        }
        match &self.exchange {
            Exchange::Forward | Exchange::Broadcast => {
                for channel in &self.channels {
                    channel.send(Message::Batch(batch.clone()));
                }
            }
            Exchange::Rebalance => {
                self.channels[self.turn].send(Message::Batch(batch));
                self.turn = (self.turn + 1) % self.channels.len();
            }
            Exchange::Hash(columns) => {
                let keys: Vec<ArrayRef> =
                    columns.iter().map(|&column| Arc::clone(batch.rows.column(column))).collect();
                self.send_by_key(&keys, batch)?;
            }
        }
        Ok(())
    }

    fn send_by_key(&mut self, keys: &[ArrayRef], batch: ChangeBatch) -> Result<()> {
        let groups = state::key_groups(keys, batch.len())?;
        for (row, group) in groups.iter().enumerate() {
            self.rows[self.owners[usize::from(*group)]].push(row as u32);
        }
        for (channel, rows) in self.channels.iter().zip(&mut self.rows) {
            if rows.len() == batch.len() {
                channel.send(Message::Batch(batch.clone()));
            } else if !rows.is_empty() {
                channel.send(Message::Batch(batch.take(&UInt32Array::from(rows.clone()))?));
            }
            rows.clear();
        }
        Ok(())
    }
}

impl ResultPartition {
    /// Whether the task may start another step: no receiver is behind.
    pub(crate) fn has_room(&self) -> bool {
        self.outputs.iter().all(|output| output.channels.iter().all(|channel| channel.has_room()))
    }

    /// Sends rows to every receiver.
    pub(crate) fn send(&mut self, batch: ChangeBatch) -> Result<()> {
        let Some((last, others)) = self.outputs.split_last_mut() else { return Ok(()) };
        for output in others {
            output.send(batch.clone())?;
        }
        last.send(batch)
    }

    /// Sends a barrier on every channel, and forgets receivers that have failed.
    pub(crate) fn send_barrier(&mut self, barrier: &Barrier) {
        self.outputs.retain(|output| !output.channels.iter().any(|channel| channel.is_closed()));
        for channel in self.outputs.iter().flat_map(|output| &output.channels) {
            channel.send(Message::Barrier(barrier.clone()));
        }
    }
}
