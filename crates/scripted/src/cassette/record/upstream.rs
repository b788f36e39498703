//! The real API: where it is, and a connection to it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::cassette::CassetteError;

const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// A model may think for long before it says anything.
const SILENCE_LIMIT: Duration = Duration::from_secs(600);

/// Where the API is, and whom to believe that it is.
pub struct Upstream {
    url: String,
    host: String,
    port: u16,
    prefix: String,
    tls: Option<Arc<ClientConfig>>,
}

impl Upstream {
    /// The API at this base URL, `http` or `https`. Certificates are checked against those that the system trusts
    /// (`SSL_CERT_FILE` and `SSL_CERT_DIR` name others), and those of a further file.
    pub fn new(url: &str, further: Option<&Path>) -> Result<Self, CassetteError> {
        let url = url.trim_end_matches('/').to_owned();
        let wrong = |why: &str| CassetteError::Upstream(format!("{url} is no address of an API: {why}"));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it does not begin with https://"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let default = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return Err(wrong("it does not begin with https://")),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| wrong("its port is not a number"))?)
            }
            _ => (authority, default),
        };
        if host.is_empty() || host.contains('@') {
            return Err(wrong("it has no host, or a user"));
        }
        let tls = if scheme == "https" { Some(Arc::new(trusting(further)?)) } else { None };
        let prefix = if path.is_empty() { String::new() } else { format!("/{path}") };
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Upstream { host, port, prefix, tls, url })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The host and port, as a request names them.
    pub(super) fn authority(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or(rest)
    }

    /// A connection, and its socket for whoever wants to end it.
    pub(super) fn connect(&self) -> io::Result<(Wire, TcpStream)> {
        let mut last = io::Error::other(format!("{} has no address", self.host));
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(socket) => return self.speak(socket),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn speak(&self, socket: TcpStream) -> io::Result<(Wire, TcpStream)> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE_LIMIT))?;
        socket.set_write_timeout(Some(SILENCE_LIMIT))?;
        let handle = socket.try_clone()?;
        let Some(tls) = &self.tls else { return Ok((Wire::Plain(socket), handle)) };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
        Ok((Wire::Tls(Box::new(StreamOwned::new(session, socket))), handle))
    }
}

/// Ring, because it is the lightest to build; the system's roots, because people add their own there.
fn trusting(further: Option<&Path>) -> Result<ClientConfig, CassetteError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = further {
        let failed = |error| CassetteError::Upstream(format!("{}: {error}", path.display()));
        for certificate in CertificateDer::pem_file_iter(path).map_err(failed)? {
            roots.add_parsable_certificates([certificate.map_err(failed)?]);
        }
    }
    if roots.is_empty() {
        return Err(CassetteError::Upstream(
            "this system trusts no certificate, and SSL_CERT_FILE names none".to_owned(),
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| CassetteError::Upstream(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.read(buffer),
            Wire::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(stream) => stream.write(bytes),
            Wire::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(stream) => stream.flush(),
            Wire::Tls(stream) => stream.flush(),
        }
    }
}
