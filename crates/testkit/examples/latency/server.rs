//! The release server as a child process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts the server beside this program on an empty data folder and waits until it answers.
    pub(crate) async fn start(folder: &Path, port: u16) -> Self {
        std::fs::create_dir_all(folder).expect("the folder can be made");
        let data = folder.join("data");
        let _ = std::fs::remove_dir_all(&data);
        let child = Command::new(binary())
            .arg("serve")
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .arg("--data")
            .arg(&data)
            .arg("--allow-path")
            .arg(folder)
            // A configuration file of the developer must not change the measurement.
            .env("HIGHWATER_CONFIG", "/nonexistent")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the server starts; build it with `cargo build --release -p server`");
        let mut server = Self { child, port };
        let begin = Instant::now();
        while server.connect().await.is_none() {
            assert!(matches!(server.child.try_wait(), Ok(None)), "the server has ended");
            assert!(begin.elapsed() < PATIENCE, "the server does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        server
    }

    async fn connect(&self) -> Option<Client> {
        let url = format!("host=127.0.0.1 port={} user=postgres dbname=highwater", self.port);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.ok()?;
        tokio::spawn(async move {
            // It ends with its client.
            let _ = connection.await;
        });
        Some(client)
    }

    /// A new connection.
    pub(crate) async fn client(&self) -> Client {
        self.connect().await.expect("the server takes a client")
    }

    /// CPU time of all its threads up to now.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        const TICKS_PER_SECOND: f64 = 100.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        // Behind the name in parentheses: state is the first field, utime the 12th, stime the 13th.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = fields.split_ascii_whitespace().skip(11).take(2);
        ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
    }

    /// `VmRSS:` or `VmHWM:`.
    pub(crate) fn memory_mib(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) >> 10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `<target>/release/highwater`, seen from `<target>/release/examples/latency`.
fn binary() -> PathBuf {
    let own = std::env::current_exe().expect("a program has a path");
    own.ancestors().nth(2).expect("<target>/release/examples/latency").join("highwater")
}
