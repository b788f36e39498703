//! TLS before a server that speaks plain HTTP, with a certificate authority that nobody trusts unless told to.
//!
//! The key in `tls/server.key` belongs to `localhost` alone, and the authority's own key is not kept.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const LIMIT: Duration = Duration::from_secs(60);

/// A front on a port of its own; dropping it closes the port.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl TlsFront {
    /// The certificate authority, for `SSL_CERT_FILE`.
    pub fn authority() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tls/ca.pem"))
    }

    /// Puts TLS before the server at this address. Each connection takes one request and is closed behind the answer.
    pub fn before(plain: SocketAddr) -> io::Result<Self> {
        let config = Arc::new(config()?);
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let acceptor = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let config = Arc::clone(&config);
                std::thread::spawn(move || pass(stream, plain, config));
            }
        });
        Ok(Self { address, stopping, acceptor: Some(acceptor) })
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect_timeout(&self.address, LIMIT);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn config() -> io::Result<ServerConfig> {
    let path = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tls").join(name);
    let certificate = CertificateDer::from_pem_file(path("server.pem")).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(path("server.key")).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(io::Error::other)?.with_no_client_auth();
    builder.with_single_cert(vec![certificate], key).map_err(io::Error::other)
}

/// One request in, one answer out; whoever breaks off ends it.
fn pass(outside: TcpStream, plain: SocketAddr, config: Arc<ServerConfig>) {
    let _refused = try_pass(outside, plain, config);
}

fn try_pass(outside: TcpStream, plain: SocketAddr, config: Arc<ServerConfig>) -> io::Result<()> {
    outside.set_read_timeout(Some(LIMIT))?;
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    let mut outside = StreamOwned::new(session, outside);
    let mut inside = TcpStream::connect(plain)?;
    inside.set_read_timeout(Some(LIMIT))?;
    inside.write_all(&whole_request(&mut outside)?)?;
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = inside.read(&mut buffer) {
        outside.write_all(buffer.get(..read).unwrap_or_default())?;
        outside.flush()?;
    }
    outside.conn.send_close_notify();
    outside.flush()?;
    outside.sock.shutdown(Shutdown::Write)
}

/// A request with a length, as the recorder sends it.
fn whole_request(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if request.len() >= head.len() + 4 + length.unwrap_or(0) {
                return Ok(request);
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => request.extend_from_slice(buffer.get(..read).unwrap_or_default()),
        }
    }
}
