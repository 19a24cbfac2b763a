//! An engine thread: runs the tasks of one subtask number, one step at a time.
//!
//! ```text
//!            wake                 run                     Again
//!  waiting ───────► ready queue ─────► a quantum of steps ──────► ready queue
//!     ▲                                      │ Idle, Blocked: until a channel wakes it
//!     └──────────────────────────────────────┘
//! ```
//!
//! **Invariant.** No error and no panic of a task reaches anything but its job: the worker drops
//! the job's tasks and tells the coordinator.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use dataflow::{JobId, Result};
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use state::Epoch;

use crate::events::Events;
use crate::exchange::Wake;
use crate::task::{Ran, Task, TaskPlan};

/// Names a task for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TaskId(pub(crate) u64);

/// What the coordinator tells a worker.
pub(crate) enum Order {
    Start(Box<TaskPlan>),
    /// Drop the tasks of a failed job.
    Remove(JobId),
    /// A checkpoint is durable.
    Durable(Epoch),
    /// Free about so many bytes of clean state.
    Release(usize),
    Stop,
}

/// Where tasks become ready and orders arrive.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
    condvar: Condvar,
}

#[derive(Default)]
struct Letters {
    orders: VecDeque<Order>,
    ready: VecDeque<Arc<Signal>>,
}

impl Mailbox {
    pub(crate) fn order(&self, order: Order) {
        self.letters.lock().orders.push_back(order);
        self.condvar.notify_one();
    }

    fn ready(&self, signal: Arc<Signal>) {
        self.letters.lock().ready.push_back(signal);
        self.condvar.notify_one();
    }

    /// The next thing to do; waits for one.
    fn next(&self) -> Letter {
        let mut letters = self.letters.lock();
        loop {
            if let Some(order) = letters.orders.pop_front() {
                return Letter::Order(order);
            }
            if let Some(signal) = letters.ready.pop_front() {
                return Letter::Ready(signal);
            }
            self.condvar.wait(&mut letters);
        }
    }
}

enum Letter {
    Order(Order),
    Ready(Arc<Signal>),
}

/// Makes one task ready.
pub(crate) struct Signal {
    task: TaskId,
    mailbox: Arc<Mailbox>,
    is_queued: AtomicBool,
    this: Weak<Self>,
}

impl Signal {
    pub(crate) fn new(task: TaskId, mailbox: Arc<Mailbox>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            task,
            mailbox,
            is_queued: AtomicBool::new(false),
            this: Weak::clone(this),
        })
    }
}

impl Wake for Signal {
    fn wake(&self) {
        if !self.is_queued.swap(true, Ordering::AcqRel)
            && let Some(this) = self.this.upgrade()
        {
            self.mailbox.ready(this);
        }
    }
}

/// The loop of one engine thread.
pub(crate) struct Worker {
    mailbox: Arc<Mailbox>,
    events: Arc<Events>,
    tasks: HashMap<TaskId, Task>,
}

impl Worker {
    pub(crate) fn new(mailbox: Arc<Mailbox>, events: Arc<Events>) -> Self {
        Self { mailbox, events, tasks: HashMap::new() }
    }

    pub(crate) fn run(mut self) {
        loop {
            match self.mailbox.next() {
                Letter::Ready(signal) => self.run_task(&signal),
                Letter::Order(Order::Start(plan)) => self.start(*plan),
                Letter::Order(Order::Remove(job)) => self.remove(job),
                Letter::Order(Order::Durable(epoch)) => self.durable(epoch),
                Letter::Order(Order::Release(bytes)) => self.release(bytes),
                Letter::Order(Order::Stop) => return,
            }
        }
    }

    fn start(&mut self, plan: TaskPlan) {
        let (job, signal) = (plan.job, Arc::clone(&plan.signal));
        match guarded(|| Task::open(plan)) {
            Ok(task) => {
                self.tasks.insert(signal.task, task);
                signal.wake();
            }
            Err(reason) => self.fail(job, reason),
        }
    }

    fn run_task(&mut self, signal: &Arc<Signal>) {
        // Cleared before the task looks at its inputs: news that comes later queues it again.
        signal.is_queued.store(false, Ordering::Release);
        let Some(task) = self.tasks.get_mut(&signal.task) else { return };
        let job = task.job();
        match guarded(|| task.run()) {
            Ok(Ran::Again) => signal.wake(),
            Ok(Ran::Idle | Ran::Blocked) => {}
            Ok(Ran::Finished) => {
                self.tasks.remove(&signal.task);
            }
            Err(reason) => self.fail(job, reason),
        }
    }

    fn fail(&mut self, job: JobId, reason: String) {
        self.remove(job);
        self.events.failed(job, reason);
    }

    fn remove(&mut self, job: JobId) {
        self.tasks.retain(|_, task| task.job() != job);
    }

    fn durable(&mut self, epoch: Epoch) {
        let mut failed = Vec::new();
        for task in self.tasks.values_mut() {
            let job = task.job();
            if let Err(reason) = guarded(|| {
                task.on_checkpoint_durable(epoch);
                Ok(())
            }) {
                failed.push((job, reason));
            }
        }
        for (job, reason) in failed {
            self.fail(job, reason);
        }
    }

    fn release(&mut self, bytes: usize) {
        let mut left = bytes;
        for task in self.tasks.values_mut() {
            if left == 0 {
                return;
            }
            left = left.saturating_sub(task.release_memory(left));
        }
    }
}

/// Runs a part of a job: an error or a panic becomes the reason why the job failed.
fn guarded<T>(run: impl FnOnce() -> Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(format!("internal error: {}", panic_text(panic.as_ref()))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return text;
    }
    panic.downcast_ref::<String>().map_or("a task panicked", String::as_str)
}
