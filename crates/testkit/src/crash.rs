//! Kills the real server under load, again and again, and checks what it comes back with.
//!
//! ```text
//!  start ─► load: writers with ledgers · readers · a view maker · lines added to a followed file
//!    ▲                                      │ after a random time: SIGKILL
//!    │                                      ▼
//!    └── check ◄── start again, now and then killed while it starts, at another parallelism
//! ```
//!
//! The check asks the ledgers, which lie outside of the server: every acknowledged row is there
//! exactly once, a statement without an answer is there entirely or not at all, and each view
//! equals its own SELECT run in batch over the same input.

mod events;
mod ledger;
mod process;
mod random;
mod sql;
mod views;
mod watcher;
mod writer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_postgres::Client;

use self::events::EventWriter;
use self::ledger::{Found, Item, Outcome, Transfer};
use self::views::{CLOSED, Input, OPENING_BALANCE, VIEWS, equal};
use self::watcher::{ViewMaker, read_on};
use self::writer::{Writer, balances};

pub use self::process::{Ended, Options, Process, binary};
pub use self::random::Random;
pub use self::sql::{Answer, Stop, connect, execute, rows, succeed};

const WRITERS: i64 = 4;

/// What a run has seen.
#[derive(Debug, Default, Clone, Copy)]
pub struct Summary {
    /// Kills under load.
    pub kills: usize,
    /// Kills while the server was starting.
    pub killed_starts: usize,
    /// Statements that were acknowledged, all of which were found.
    pub acknowledged: u64,
    /// Statements without an answer that were found entirely, and not at all.
    pub applied: usize,
    pub not_applied: usize,
    /// Rows compared with a ledger or an oracle, over all checks.
    pub rows_compared: usize,
    /// Lines of the followed file.
    pub events: i64,
}

/// A database, its clients and its file.
pub struct Run {
    folder: TempDir,
    random: Random,
    options: Options,
    writers: Vec<Writer>,
    maker: ViewMaker,
    events: EventWriter,
    summary: Summary,
}

impl Run {
    /// Starts an empty database with everything in it that the load needs.
    pub async fn create(seed: u64) -> Result<(Self, Process), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut random = Random::new(seed);
        let options = Options {
            data: folder.path().join("data"),
            allowed: folder.path().to_owned(),
            parallelism: 2,
            checkpoint_interval: Duration::from_millis(300),
            log: folder.path().join("server.log"),
            flags: Vec::new(),
        };
        let file = folder.path().join("events.jsonl");
        let writers = (1..=WRITERS).map(|number| Writer::new(number, random.fork())).collect();
        let maker = ViewMaker::new(random.fork());
        let mut events = EventWriter::create(&file, random.fork());
        events.burst();
        let mut run = Self { folder, random, options, writers, maker, events, summary: Summary::default() };
        let mut process = Process::spawn(&run.options);
        let address = process.ready(&run.options).await.map_err(|error| error.to_string())?;
        let client = connect(address).await.map_err(described)?;
        for statement in views::schema(&file.display().to_string()) {
            succeed(&client, &statement).await.map_err(described)?;
        }
        run.check(address).await?;
        Ok((run, process))
    }

    /// Lets the load run for a life, kills the server under it, starts it again and checks.
    pub async fn live_and_die(
        &mut self,
        mut process: Process,
        address: SocketAddr,
    ) -> Result<(Process, SocketAddr), String> {
        let life = Duration::from_millis(40 + self.random.below(1_400).unsigned_abs());
        self.load(address, life, &mut process, |process| process.kill()).await?;
        self.summary.kills += 1;
        // Every fourth time it does not even come up before the next one.
        while self.random.one_in(4) {
            let mut process = Process::spawn(&self.next_options());
            let moment = Duration::from_millis(self.random.below(250).unsigned_abs());
            if let Ok(Err(ended)) = tokio::time::timeout(moment, process.ready(&self.options)).await {
                return Err(self.with_log(&format!("a start after a kill is refused: {ended}")));
            }
            process.kill();
            self.summary.killed_starts += 1;
        }
        self.come_back().await
    }

    /// Starts the server again, with other settings, and checks what is there.
    pub async fn come_back(&mut self) -> Result<(Process, SocketAddr), String> {
        let mut process = Process::spawn(&self.next_options());
        let address =
            process.ready(&self.options).await.map_err(|error| self.with_log(&error.to_string()))?;
        self.check(address).await.map_err(|error| self.with_log(&error))?;
        Ok((process, address))
    }

    fn next_options(&mut self) -> Options {
        let other: Vec<usize> =
            [1, 2, 4].into_iter().filter(|count| *count != self.options.parallelism).collect();
        self.options.parallelism = *self.random.pick(&other);
        self.options.checkpoint_interval = Duration::from_millis(*self.random.pick(&[30, 200, 1_000]));
        self.options.clone()
    }

    /// Runs all clients for `life`, then ends the server and waits until the clients have noticed.
    async fn load(
        &mut self,
        address: SocketAddr,
        life: Duration,
        process: &mut Process,
        end: impl FnOnce(&mut Process),
    ) -> Result<(), String> {
        let mut clients = JoinSet::new();
        for mut writer in self.writers.drain(..) {
            clients.spawn(async move {
                let ended = writer.write_on(address).await;
                (ended, Some(writer))
            });
        }
        for _ in 0..2 {
            let random = self.random.fork();
            clients.spawn(async move { (read_on(address, random).await, None) });
        }
        let early = {
            let first = async {
                tokio::select! {
                    ended = clients.join_next() => ended.map(|ended| ended.map_err(|error| error.to_string())),
                    ended = self.maker.make_on(address) => Some(Ok((ended, None))),
                    () = self.events.write_on() => None,
                }
            };
            tokio::time::timeout(life, first).await.ok().flatten()
        };
        end(process);
        let mut wrong = Vec::new();
        if let Some(early) = early {
            let (ended, writer) = early?;
            self.writers.extend(writer);
            wrong.push(
                ended.err().unwrap_or_else(|| "a client lost its connection before the kill".to_owned()),
            );
        }
        while let Some(client) = clients.join_next().await {
            let (ended, writer) = client.map_err(|error| error.to_string())?;
            self.writers.extend(writer);
            wrong.extend(ended.err());
        }
        self.writers.sort_by_key(Writer::number);
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(self.with_log(&wrong.join("\n"))),
        }
    }

    /// Everything that must hold when nobody writes.
    async fn check(&mut self, address: SocketAddr) -> Result<(), String> {
        let client = connect(address).await.map_err(described)?;
        self.check_tables(&client).await?;
        self.check_views(&client).await.map_err(described)
    }

    /// The ledgers against the tables. Without FLUSH: acknowledged rows are seen by every query.
    async fn check_tables(&mut self, client: &Client) -> Result<(), String> {
        let mut found = read_tables(client).await.map_err(described)?;
        for writer in &mut self.writers {
            let number = writer.number();
            let rows = found.remove(&number).unwrap_or_default();
            self.summary.rows_compared +=
                rows.rows.items.len() + rows.rows.notes.len() + rows.transfers.len();
            match writer.ledger.settle(&rows).map_err(|error| format!("client {number}: {error}"))? {
                Outcome::Nothing => {}
                Outcome::Applied => self.summary.applied += 1,
                Outcome::NotApplied => self.summary.not_applied += 1,
            }
        }
        if let Some((number, rows)) = found.first_key_value() {
            return Err(format!("rows of a client {number} that does not exist: {rows:?}"));
        }
        let transfers = self.writers.iter().flat_map(|writer| writer.ledger.transfers().values().copied());
        let expected: Vec<_> = balances(transfers, OPENING_BALANCE)
            .into_iter()
            .map(|(id, balance)| vec![format!("{id:02}"), balance.to_string()])
            .collect();
        let query = "SELECT lpad(CAST(id AS TEXT), 2, '0'), balance FROM account";
        let accounts = rows(client, query).await.map_err(described)?;
        self.summary.rows_compared += equal("account", &accounts, &expected).map_err(described)?;
        self.summary.acknowledged = self.writers.iter().map(|writer| writer.ledger.acknowledged()).sum();
        Ok(())
    }

    /// Each view against its SELECT, and the file against what was written to it.
    async fn check_views(&mut self, client: &Client) -> Result<(), Stop> {
        let mut compared = 0;
        for view in VIEWS.iter().filter(|view| view.input == Input::Tables) {
            compared += view.check(client).await?;
        }
        succeed(client, "FLUSH").await?;
        for view in VIEWS.iter().filter(|view| view.input == Input::File) {
            compared += view.check(client).await?;
        }
        let closed = rows(client, "SELECT * FROM event_closed").await?;
        let due = format!(
            "SELECT * FROM ({}) AS w WHERE window_end <= TIMESTAMP '{}'",
            CLOSED.batch(),
            self.events.watermark()
        );
        compared += equal(CLOSED.name, &closed, &rows(client, &due).await?)?;
        compared += self.maker.check(client).await?;
        let counts = [
            ("SELECT sum(events) FROM event_by_kind", self.events.events()),
            ("SELECT count(DISTINCT number) FROM (SELECT number FROM event_now) AS e", self.events.events()),
            ("SELECT count(*) FROM \"event_10s$late\"", self.events.late()),
            ("SELECT count(*) FROM \"event$errors\"", self.events.undecodable()),
        ];
        for (query, expected) in counts {
            compared += equal(query, &rows(client, query).await?, &[vec![expected.to_string()]])?;
        }
        self.summary.rows_compared += compared;
        self.summary.events = self.events.events();
        Ok(())
    }

    /// What the run has seen so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// An error with the end of the server's log; the folder stays for whoever looks into it.
    fn with_log(&mut self, error: &str) -> String {
        self.folder.disable_cleanup(true);
        let messages = process::last_lines(&self.options.log, 30);
        format!(
            "{error}\n\nfolder {}, last messages of the server:\n{messages}",
            self.folder.path().display()
        )
    }
}

/// Runs a whole test: load, kill and check until there were `kills`, then an orderly end under load.
pub async fn run(seed: u64, kills: usize) -> Result<Summary, String> {
    let (mut run, mut process) = Run::create(seed).await?;
    process.kill();
    let (mut process, mut address) = run.come_back().await?;
    while run.summary.kills < kills {
        (process, address) = run.live_and_die(process, address).await?;
    }
    run.end_in_order(process, address).await?;
    let (mut process, _) = run.come_back().await?;
    process.kill();
    Ok(run.summary)
}

impl Run {
    /// SIGTERM while clients write, and once more: exit code 0.
    async fn end_in_order(&mut self, mut process: Process, address: SocketAddr) -> Result<(), String> {
        let twice = |process: &mut Process| {
            process.send_terminate();
            process.send_terminate();
        };
        self.load(address, Duration::from_millis(500), &mut process, twice).await?;
        match process.wait().await {
            Some(status) if status.success() => Ok(()),
            other => Err(self.with_log(&format!("after SIGTERM the server ended with {other:?}"))),
        }
    }
}

/// The rows of all clients.
async fn read_tables(client: &Client) -> Result<BTreeMap<i64, Found>, Stop> {
    let mut found: BTreeMap<i64, Found> = BTreeMap::new();
    for row in rows(client, "SELECT owner, id, kind, price, label FROM item").await? {
        let item = Item { kind: number(&row[2])?, price: number(&row[3])?, label: row[4].clone() };
        let id = number(&row[1])?;
        if found.entry(number(&row[0])?).or_default().rows.items.insert(id, item).is_some() {
            return Err(Stop::Wrong(format!("item {id} is there twice")));
        }
    }
    for row in rows(client, "SELECT owner, label FROM note").await? {
        *found.entry(number(&row[0])?).or_default().rows.notes.entry(row[1].clone()).or_default() += 1;
    }
    for row in rows(client, "SELECT client, id, source, target, amount FROM transfer").await? {
        let transfer =
            Transfer { source: number(&row[2])?, target: number(&row[3])?, amount: number(&row[4])? };
        let transfers = &mut found.entry(number(&row[0])?).or_default().transfers;
        transfers.entry(number(&row[1])?).or_insert((transfer, 0)).1 += 1;
    }
    Ok(found)
}

fn number(text: &str) -> Result<i64, Stop> {
    text.parse().map_err(|_| Stop::Wrong(format!("\"{text}\" is not a number")))
}

fn described(stop: Stop) -> String {
    match stop {
        Stop::Lost => "the connection was lost".to_owned(),
        Stop::Wrong(message) => message,
    }
}
