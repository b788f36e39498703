//! Connections: taken, bounded in number and time, and ended.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::gate::Connection;
use crate::state::Tls;

/// So many connections at once; more wait in the system's queue.
const MOST: usize = 4096;
/// How long the head of a request may take, and how long a connection may be idle.
const SLOWEST_HEAD: Duration = Duration::from_secs(20);
/// How long the beginning of TLS may take.
const SLOWEST_HANDSHAKE: Duration = Duration::from_secs(10);
/// So much of a request's head is taken, and so much of an answer waits for a slow reader.
const BUFFER: usize = 64 << 10;
/// How long is waited when no connection can be taken, such as without a free file.
const BREATH: Duration = Duration::from_millis(100);

/// Takes connections until it is told to end, and then waits a little for those that are there.
pub async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    mut over: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(MOST));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            () = told(&mut over) => break,
        };
        let Ok((stream, _)) = taken else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let (router, tls, over) = (router.clone(), tls.clone(), over.clone());
        tokio::spawn(async move {
            // Whoever breaks off has what they wanted.
            let _gone = hold(stream, tls, router, over).await;
            drop(place);
        });
    }
    drop(listener);
    let all = u32::try_from(MOST).unwrap_or(u32::MAX);
    let _or_not = tokio::time::timeout(LAST_WORDS, room.acquire_many(all)).await;
}

/// Waits until it is told to end.
async fn told(over: &mut watch::Receiver<bool>) {
    let _or_nobody_is_there = over.wait_for(|over| *over).await;
}

/// How long connections may take to end when the server does.
const LAST_WORDS: Duration = Duration::from_secs(2);

async fn hold(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    over: watch::Receiver<bool>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let connection = Connection { local: stream.local_addr()?, tls: tls.is_some() };
    match tls {
        None => speak(stream, connection, router, over).await,
        Some(tls) => {
            let stream = tokio::time::timeout(SLOWEST_HANDSHAKE, tls.accept(stream)).await;
            let stream = stream.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            speak(stream, connection, router, over).await
        }
    }
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    connection: Connection,
    router: Router,
    mut over: watch::Receiver<bool>,
) -> io::Result<()> {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection);
        let mut router = router.clone();
        async move {
            let response = router.call(request.map(Body::new)).await;
            Ok::<_, Infallible>(response.unwrap_or_else(|never| match never {}))
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SLOWEST_HEAD)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(served);
    let done = tokio::select! {
        done = served.as_mut() => done,
        () = told(&mut over) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    done.map_err(io::Error::other)
}

/// What speaks TLS with this certificate.
pub fn acceptor(tls: &Tls) -> io::Result<TlsAcceptor> {
    let wrong = |path: &std::path::Path, error: &dyn std::fmt::Display| {
        io::Error::other(format!("{}: {error}", path.display()))
    };
    let certificates = CertificateDer::pem_file_iter(&tls.cert).map_err(|error| wrong(&tls.cert, &error))?;
    let certificates: Vec<_> =
        certificates.collect::<Result<_, _>>().map_err(|error| wrong(&tls.cert, &error))?;
    if certificates.is_empty() {
        return Err(wrong(&tls.cert, &"there is no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| wrong(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| wrong(&tls.cert, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
