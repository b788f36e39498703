//! The server: opened, run, and ended in order.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_batch::launcher::Launcher;
use alhena_model::{Policy, Timestamp};
use alhena_sys::{files, locks, processes};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::extract::aside;
use crate::listen;
use crate::now::Now;
use crate::policy;
use crate::routes::router;
use crate::state::News;
use crate::state::{App, Knows, OnExit, Settings, Shared};
use crate::tasks::{self, Keeping, TaskKind, TaskStore};
use crate::token::{Access, Tokens};

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nobody can listen there.
    #[error("{0} cannot be listened on: {1}")]
    Listen(SocketAddr, io::Error),
    /// Another server keeps its files there.
    #[error("{} is in use by another server", .0.display())]
    InUse(PathBuf),
    /// Files cannot be kept there.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    State(PathBuf, io::Error),
    /// There is no such folder.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Root(PathBuf, io::Error),
    /// The certificate or its key cannot be used.
    #[error("{0}")]
    Tls(io::Error),
    /// The system gives no threads.
    #[error("{0}")]
    Threads(io::Error),
}

/// A server that listens.
pub struct Server {
    app: Shared,
    runtime: Runtime,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    /// As long as it is held no other server keeps its files in the same place.
    _lock: File,
}

/// Tells a server to end: once for in order, twice for at once.
#[derive(Clone)]
pub struct Ender(watch::Sender<u32>);

impl Ender {
    /// To end in order; told again, at once.
    pub fn end(&self) {
        self.0.send_modify(|asked| *asked = asked.saturating_add(1));
    }
}

/// What a run that is stopped at once may take to be gone.
const AT_ONCE: Duration = Duration::from_secs(10);
const NOW_AND_THEN: Duration = Duration::from_millis(50);
/// So many recordings are read at once.
const RECORDINGS: usize = 16;
/// How often what is too old is looked for where nothing ends that would be a reason to.
const TIDY_EACH: Duration = Duration::from_secs(60);

impl Server {
    /// Listens, and finds what was kept. Nothing is answered before [`Server::run`].
    pub fn open(
        settings: Settings,
        launcher: Arc<dyn Launcher>,
        knows: Arc<dyn Knows>,
        environment: Environment,
    ) -> Result<Self, ServeError> {
        let broken = |error| ServeError::State(settings.state.clone(), error);
        files::create_private_dir(&settings.state).map_err(broken)?;
        let lock = locks::take_from_the_dead(&settings.state.join("lock")).map_err(broken)?;
        let lock = lock.ok_or_else(|| ServeError::InUse(settings.state.clone()))?;
        let tokens = Tokens::open(&settings.state).map_err(broken)?;
        let root = |error| ServeError::Root(settings.root.clone().unwrap_or_default(), error);
        let policy = Policy {
            max_approval: settings.max_approval,
            allow_env: settings.allow_env.clone(),
            allow_programs: settings.allow_programs,
            ..policy::below(settings.root.as_deref()).map_err(root)?
        };
        let tls = settings.tls.as_ref().map(listen::acceptor).transpose().map_err(ServeError::Tls)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .map_err(ServeError::Threads)?;
        // Each connection is an open file; most systems allow more than they give at first.
        processes::allow_most_files();
        let listener = runtime.block_on(TcpListener::bind(settings.listen));
        let listener = listener.map_err(|error| ServeError::Listen(settings.listen, error))?;
        let news = Arc::new(News::default());
        let keeping = Keeping {
            max_runs: settings.max_runs,
            max_conversations: settings.max_conversations,
            most: settings.keep,
            longest: settings.keep_for,
        };
        let app = App {
            tasks: TaskStore::open(settings.state.clone(), keeping, news.clone()).map_err(broken)?,
            policy,
            tokens,
            now: Now::default(),
            news,
            launcher,
            knows,
            environment,
            terminals: Mutex::default(),
            recordings: Arc::new(Semaphore::new(RECORDINGS)),
            looking: Arc::default(),
            ending: watch::Sender::new(0),
            settings,
        };
        Ok(Self { app: Arc::new(app), runtime, listener, tls, _lock: lock })
    }

    /// The address to click, with the token.
    pub fn address(&self) -> io::Result<String> {
        let (scheme, address) =
            (if self.tls.is_some() { "https" } else { "http" }, self.listener.local_addr()?);
        let host = match self.app.settings.hosts.first() {
            Some(host) if host.contains(':') => host.clone(),
            Some(host) => format!("{host}:{}", address.port()),
            None => reachable(address).to_string(),
        };
        Ok(format!("{scheme}://{host}/?token={}", self.app.tokens.get(Access::Full)?))
    }

    /// Something that can tell it to end.
    pub fn ender(&self) -> Ender {
        Ender(self.app.ending.clone())
    }

    /// Serves until it is told to end, and nothing of what was begun is left.
    pub fn run(self) {
        let Self { app, runtime, listener, tls, _lock } = self;
        let (over, is_over) = watch::channel(false);
        let accepting = runtime.spawn(listen::accept(listener, tls, router(app.clone()), is_over));
        runtime.spawn(tidy(app.clone()));
        runtime.block_on(async {
            let mut ending = app.ending.subscribe();
            // What it gives would keep the next word from being said.
            drop(ending.wait_for(|asked| *asked > 0).await);
            let app = app.clone();
            let _done = tokio::task::spawn_blocking(move || finish(&app)).await;
            // Whoever follows gets the last event before the connection ends.
            let _nobody_listens = over.send(true);
            let _done = accepting.await;
        });
        runtime.shutdown_timeout(Duration::from_millis(500));
    }
}

/// Forgets what gets too old.
async fn tidy(app: Shared) {
    loop {
        tokio::time::sleep(TIDY_EACH).await;
        let app = app.clone();
        let pruned = aside(move || {
            app.tasks.prune(Timestamp::now());
            Ok(())
        });
        let _or_later = pruned.await;
    }
}

/// Ends what was begun: as the server was told, and at once if it is told again.
fn finish(app: &Shared) {
    let asked = || *app.ending.borrow();
    for entry in app.tasks.close() {
        match entry.kind {
            TaskKind::Run if app.settings.on_exit == OnExit::Stop => entry.stop(),
            TaskKind::Run => {}
            // A conversation does not end by itself.
            TaskKind::Conversation => {
                let closing = app.spawn("close", &entry, |app, entry| tasks::close(app, entry));
                closing.unwrap_or_else(|_no_thread| tasks::close(app, &entry));
            }
        }
    }
    let mut deadline = None;
    while !app.tasks.is_idle() {
        if asked() > 1 && deadline.is_none() {
            deadline = Some(std::time::Instant::now() + AT_ONCE);
            for run in app.tasks.active().iter().filter(|entry| entry.kind == TaskKind::Run) {
                run.stop();
                // The second time stops it at once.
                run.stop();
            }
        }
        // The keepers end what is left when this process does.
        if deadline.is_some_and(|deadline| std::time::Instant::now() >= deadline) {
            return;
        }
        std::thread::sleep(NOW_AND_THEN);
    }
}

/// Nobody has the address that stands for all of them: from here the server is reached by that of this machine.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(any) if any.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(any) if any.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}
