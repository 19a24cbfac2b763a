//! Clients that look while others write: a reader that must never see half a change, and one that
//! creates and drops views all the time.

use std::net::SocketAddr;

use tokio_postgres::Client;

use super::random::Random;
use super::sql::{Stop, connect, rows, succeed};
use super::views::{ACCOUNTS, Input, OPENING_BALANCE, VIEWS, equal};

/// Reads views and tables in one transaction each, until the connection is lost. What it sees is
/// one instant of the database, and never an earlier one than what it saw before.
pub(super) async fn read_on(address: SocketAddr, mut random: Random) -> Result<(), String> {
    let over_tables: Vec<_> = VIEWS.iter().filter(|view| view.input == Input::Tables).collect();
    let stopped = async {
        let client = connect(address).await?;
        let mut last = Counts::default();
        loop {
            let view = random.pick(&over_tables);
            succeed(&client, "BEGIN").await?;
            let found = rows(&client, &format!("SELECT * FROM {}", view.name)).await?;
            let expected = rows(&client, &view.batch()).await?;
            let total = rows(&client, "SELECT sum(balance) FROM account").await?;
            let counts = Counts::read(&client).await?;
            succeed(&client, "COMMIT").await?;
            equal(view.name, &found, &expected)?;
            equal("balance", &total, &[vec![(ACCOUNTS * OPENING_BALANCE).to_string()]])?;
            counts.check_after(&last)?;
            last = counts;
        }
    };
    ended("reader", stopped.await)
}

/// Numbers of rows that only ever grow, of one instant.
#[derive(Debug, Default)]
struct Counts {
    transfers: i64,
    /// Each transfer is two moves.
    moves: i64,
    events: i64,
    in_windows: i64,
    late: i64,
}

impl Counts {
    async fn read(client: &Client) -> Result<Self, Stop> {
        Ok(Self {
            transfers: count(client, "SELECT count(*) FROM transfer").await?,
            moves: count(client, "SELECT coalesce(sum(moves), 0) FROM turnover").await?,
            events: count(client, "SELECT coalesce(sum(events), 0) FROM event_by_kind").await?,
            in_windows: count(client, "SELECT coalesce(sum(events), 0) FROM event_10s").await?,
            late: count(client, "SELECT count(*) FROM \"event_10s$late\"").await?,
        })
    }

    fn check_after(&self, last: &Self) -> Result<(), Stop> {
        let is_one_instant = self.moves == 2 * self.transfers && self.in_windows + self.late == self.events;
        let goes_on =
            self.transfers >= last.transfers && self.events >= last.events && self.late >= last.late;
        if is_one_instant && goes_on {
            return Ok(());
        }
        Err(Stop::Wrong(format!("{self:?} is no instant, or an earlier one than {last:?}")))
    }
}

async fn count(client: &Client, query: &str) -> Result<i64, Stop> {
    let found = rows(client, query).await?;
    let number = found.first().and_then(|row| row.first()).and_then(|text| text.parse().ok());
    number.ok_or_else(|| Stop::Wrong(format!("{query}\n  answered {found:?}")))
}

/// Creates and drops views, and knows which may exist.
pub(super) struct ViewMaker {
    random: Random,
    /// The view, by its number and its place in `VIEWS`; acknowledged as created.
    existing: Vec<(u32, usize)>,
    /// A creation or a drop without an answer.
    pending: Option<(u32, usize)>,
    next: u32,
}

impl ViewMaker {
    #[must_use]
    pub(super) fn new(random: Random) -> Self {
        Self { random, existing: Vec::new(), pending: None, next: 0 }
    }

    /// Goes on until the connection is lost.
    pub(super) async fn make_on(&mut self, address: SocketAddr) -> Result<(), String> {
        let stopped = async {
            let client = connect(address).await?;
            loop {
                self.step(&client).await?;
            }
        };
        ended("view maker", stopped.await)
    }

    async fn step(&mut self, client: &Client) -> Result<(), Stop> {
        if self.existing.len() >= 3 {
            let oldest = self.existing.remove(0);
            self.pending = Some(oldest);
            succeed(client, &format!("DROP MATERIALIZED VIEW {}", name(oldest.0))).await?;
        } else {
            let kind = usize::try_from(self.random.below(VIEWS.len() as i64)).unwrap_or(0);
            let made = (self.next, kind);
            self.next += 1;
            self.pending = Some(made);
            succeed(client, &VIEWS[kind].create(&name(made.0))).await?;
            self.existing.push(made);
        }
        self.pending = None;
        Ok(())
    }

    /// After a crash: every acknowledged view is there, none that was dropped, and each one there
    /// has the right content. Gives the number of rows compared.
    pub(super) async fn check(&mut self, client: &Client) -> Result<usize, Stop> {
        let query =
            "SELECT relname FROM pg_catalog.pg_class WHERE relkind = 'm' AND relname LIKE 'scratch_%'";
        let found: Vec<String> = rows(client, query).await?.into_iter().flatten().collect();
        if let Some(pending) = self.pending.take()
            && found.contains(&name(pending.0))
        {
            self.existing.push(pending);
        }
        self.existing.sort_unstable();
        let mut expected: Vec<String> = self.existing.iter().map(|(number, _)| name(*number)).collect();
        expected.sort_unstable();
        if found != expected {
            return Err(Stop::Wrong(format!("views {found:?} are there instead of {expected:?}")));
        }
        let mut compared = 0;
        for (number, kind) in &self.existing {
            compared += VIEWS[*kind].check_as(client, &name(*number)).await?;
        }
        Ok(compared)
    }
}

fn name(number: u32) -> String {
    format!("scratch_{number:05}")
}

fn ended(who: &str, stopped: Result<(), Stop>) -> Result<(), String> {
    match stopped {
        Err(Stop::Wrong(message)) => Err(format!("{who}: {message}")),
        Err(Stop::Lost) | Ok(()) => Ok(()),
    }
}
