//! The real binary as a child process: started, killed, told to end.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::oneshot;

/// How long a start or an orderly end may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The binary `highwater` beside the running test, built first so that it is never an old one.
#[must_use]
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test has a path");
        let profile = test.ancestors().nth(2).expect("<target>/release/deps/<test>");
        let target = profile.parent().expect("<target>/release");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            // Of the whole workspace, because the choice of packages decides which features their
            // dependencies have: for the server alone a part of them would be built once more.
            .args(["build", "--quiet", "--release", "--workspace", "--bin", "highwater", "--target-dir"])
            .arg(target)
            .current_dir(crate::repository())
            .status();
        assert!(built.is_ok_and(|status| status.success()), "the binary does not build");
        profile.join("highwater")
    })
}

/// With what a server is started.
#[derive(Debug, Clone)]
pub struct Options {
    pub data: PathBuf,
    /// The folder that sources may read.
    pub allowed: PathBuf,
    pub parallelism: usize,
    pub checkpoint_interval: Duration,
    /// Where its messages are added.
    pub log: PathBuf,
    /// Further flags.
    pub flags: Vec<String>,
}

/// A server that may not be ready yet. Killed when dropped.
pub struct Process {
    child: Child,
    port: Option<oneshot::Receiver<u16>>,
}

/// A server ended without being told to.
#[derive(Debug, thiserror::Error)]
#[error("the server ended with {status}; its last messages:\n{messages}")]
pub struct Ended {
    pub status: ExitStatus,
    pub messages: String,
}

impl Process {
    /// Starts a server on a free port of its own choice.
    #[must_use]
    pub fn spawn(options: &Options) -> Self {
        Self::spawn_with_memory(options, 256 << 20)
    }

    /// The same with a budget of so many bytes.
    ///
    /// # Panics
    ///
    /// If the process cannot be started at all.
    #[must_use]
    pub fn spawn_with_memory(options: &Options, budget: u64) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(&options.log).expect("a log file");
        let mut child = Command::new(binary())
            .arg("serve")
            .args(["--listen", "127.0.0.1:0", "--memory", &budget.to_string()])
            .arg("--data")
            .arg(&options.data)
            .arg("--allow-path")
            .arg(&options.allowed)
            .arg("--parallelism")
            .arg(options.parallelism.to_string())
            .arg("--checkpoint-interval")
            .arg(format!("{}ms", options.checkpoint_interval.as_millis()))
            .args(&options.flags)
            // A configuration file of the developer must not change the test.
            .env("HIGHWATER_CONFIG", "/dev/null")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let stdout = child.stdout.take().expect("it is piped");
        let (sender, port) = oneshot::channel();
        // Its own thread, because a pipe that nobody reads would block the server.
        std::thread::spawn(move || {
            let mut sender = Some(sender);
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Some(port) = announced_port(&line) else { continue };
                if let Some(sender) = sender.take() {
                    let _ = sender.send(port);
                }
            }
        });
        Self { child, port: Some(port) }
    }

    /// Waits until clients are let in and says where.
    pub async fn ready(&mut self, options: &Options) -> Result<SocketAddr, Ended> {
        let port = self.port.take().expect("a server becomes ready once");
        match tokio::time::timeout(PATIENCE, port).await {
            Ok(Ok(port)) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            // The pipe is closed: it ended.
            Ok(Err(_)) => Err(self.ended(options)),
            Err(_) => {
                self.kill();
                Err(self.ended(options))
            }
        }
    }

    /// The most bytes of memory it has had resident up to now.
    ///
    /// # Panics
    ///
    /// If it has ended.
    #[must_use]
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux says so");
        let kilobytes = line.split_ascii_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
        kilobytes.expect("a number") << 10
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, without a chance to finish anything, and waits until it is gone. What it had
    /// written stays with the operating system: this is no power cut.
    pub fn kill(&mut self) {
        // It may have ended by itself; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Tells it to end in an orderly way.
    pub fn send_terminate(&mut self) {
        let told = Command::new("kill").arg("-TERM").arg(self.child.id().to_string()).status();
        assert!(told.is_ok_and(|status| status.success()), "SIGTERM cannot be sent");
    }

    /// Waits until it has ended; `None` when it does not.
    pub async fn wait(&mut self) -> Option<ExitStatus> {
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        let ended = async {
            loop {
                if let Ok(Some(status)) = self.child.try_wait() {
                    return status;
                }
                tick.tick().await;
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.ok()
    }

    fn ended(&mut self, options: &Options) -> Ended {
        let status = self.child.wait().expect("a child can be waited for");
        Ended { status, messages: last_lines(&options.log, 20) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The port in the line that tells a person how to connect.
fn announced_port(line: &str) -> Option<u16> {
    let (_, address) = line.split_once("postgres@")?;
    let (address, _) = address.split_once('/')?;
    address.rsplit_once(':')?.1.parse().ok()
}

/// The end of a log.
pub(super) fn last_lines(log: &Path, count: usize) -> String {
    let Ok(file) = File::open(log) else { return String::new() };
    let lines: Vec<String> = BufReader::new(file).lines().map_while(Result::ok).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_line_for_people() {
        let line = "  connect  psql 'postgresql://postgres@127.0.0.1:40123/highwater'";
        assert_eq!(announced_port(line), Some(40123));
        assert_eq!(announced_port("Highwater 0.1.0 is ready."), None);
    }
}
