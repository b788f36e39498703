//! Real NATS servers for tests: one, or three that keep everything together. Each is gone when its value is.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Deadline;
use crate::HeldPort;
use crate::tools;

const LIMIT: Duration = Duration::from_secs(30);

/// A server with JetStream on loopback.
#[derive(Debug)]
pub struct NatsServer {
    child: Option<Child>,
    port: HeldPort,
    scheme: &'static str,
    directory: tempfile::TempDir,
    monitor: Option<HeldPort>,
    /// The one for other servers of its cluster.
    route: Option<HeldPort>,
    /// What it is started with.
    pub arguments: Vec<String>,
}

/// Messages and bytes, as the server counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub struct Traffic {
    pub in_msgs: u64,
    pub out_msgs: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
}

impl Traffic {
    /// What has passed since, all together: messages, and bytes.
    pub fn since(&self, before: &Traffic) -> (u64, u64) {
        let messages = self.in_msgs - before.in_msgs + self.out_msgs - before.out_msgs;
        (messages, self.in_bytes - before.in_bytes + self.out_bytes - before.out_bytes)
    }
}

impl NatsServer {
    pub fn alone() -> io::Result<Self> {
        Self::with(&[])
    }

    pub fn with(arguments: &[&str]) -> io::Result<Self> {
        let more: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self::start(&more, "nats")
    }

    /// One that speaks TLS with the certificate of [`crate::tls`], and asks for no other.
    pub fn with_tls() -> io::Result<Self> {
        let (certificate, key) = (kept("tls/server.pem"), kept("tls/server.key"));
        Self::start(&["--tls".into(), "--tlscert".into(), certificate, "--tlskey".into(), key], "tls")
    }

    /// One that lets nobody in without the certificate of `tls/client.pem`, or another of the same authority.
    pub fn with_certificates_of_clients() -> io::Result<Self> {
        let mut server = Self::with_tls()?;
        let more = ["--tlsverify".into(), "--tlscacert".into(), kept("tls/client-ca.pem")];
        server.arguments.extend(more);
        server.again()?;
        Ok(server)
    }

    /// One that knows its users by the configuration of this name in `nats`: `accounts.conf` or `nkey.conf`.
    pub fn configured(name: &str) -> io::Result<Self> {
        Self::with(&["-c", &kept(&format!("nats/{name}"))])
    }

    /// One that can be asked for its [`Traffic`].
    pub fn monitored() -> io::Result<Self> {
        let port = HeldPort::new()?;
        let mut server = Self::with(&["-m", &port.number.to_string()])?;
        server.monitor = Some(port);
        Ok(server)
    }

    /// What has passed through it so far.
    pub fn traffic(&self) -> io::Result<Traffic> {
        let port =
            self.monitor.as_ref().ok_or_else(|| io::Error::other("it was not started as monitored"))?;
        let mut stream = TcpStream::connect(("127.0.0.1", port.number))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.write_all(b"GET /varz HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).map_err(io::Error::other)
    }

    fn start(arguments: &[String], scheme: &'static str) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("alhena-nats-").tempdir()?;
        let port = HeldPort::new()?;
        let data = directory.path().join("data").to_string_lossy().into_owned();
        let own = ["-js", "-a", "127.0.0.1", "-p", &port.number.to_string(), "-sd", &data];
        let mut all: Vec<String> = own.iter().map(|word| (*word).to_owned()).collect();
        all.extend_from_slice(arguments);
        let mut server =
            Self { child: None, port, scheme, directory, monitor: None, route: None, arguments: all };
        server.again()?;
        Ok(server)
    }

    /// Starts it, with what it had kept. Comes back when somebody listens.
    pub fn again(&mut self) -> io::Result<()> {
        self.kill();
        let log = File::options().create(true).append(true).open(self.directory.path().join("log"))?;
        let child = Command::new(tools::nats_server()?)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        self.child = Some(child);
        let (mut listens, mut ended) = (false, false);
        Deadline::after(LIMIT).wait_until(|| {
            listens = TcpStream::connect(("127.0.0.1", self.port.number)).is_ok();
            ended = self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
            listens || ended
        });
        match listens && !ended {
            true => Ok(()),
            false => Err(io::Error::other(format!("nats-server does not listen: {}", self.log()))),
        }
    }

    /// Kills it, empties its store directory and starts it again.
    pub fn lose_storage(&mut self) -> io::Result<()> {
        self.kill();
        std::fs::remove_dir_all(self.directory.path().join("data"))?;
        self.again()
    }

    /// Kills it, as the power would.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }

    /// Where it is. A server with TLS is `localhost`.
    pub fn url(&self) -> String {
        let host = if self.scheme == "tls" { "localhost" } else { "127.0.0.1" };
        format!("{}://{host}:{}", self.scheme, self.port.number)
    }

    /// `host:port`, for who speaks to it by hand.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port.number)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A file that is kept beside this crate: certificates in `tls`, users of NATS in `nats`.
pub fn kept(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name).to_string_lossy().into_owned()
}

/// Three servers that know each other.
pub fn cluster() -> io::Result<Vec<NatsServer>> {
    let routes: Vec<HeldPort> = (0..3).map(|_| HeldPort::new()).collect::<io::Result<_>>()?;
    let address = |route: &HeldPort| format!("nats://127.0.0.1:{}", route.number);
    let all = routes.iter().map(address).collect::<Vec<_>>().join(",");
    let server = |(index, route): (usize, HeldPort)| {
        let (own, name) = (address(&route), format!("n{index}"));
        let arguments = ["--cluster_name", "three", "--cluster", &own, "--routes", &all, "-n", &name];
        let mut server = NatsServer::with(&arguments)?;
        server.route = Some(route);
        Ok(server)
    };
    routes.into_iter().enumerate().map(server).collect()
}

pub fn urls(servers: &[NatsServer]) -> String {
    servers.iter().map(NatsServer::url).collect::<Vec<_>>().join(",")
}
