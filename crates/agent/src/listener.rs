//! A thread that accepts connections, and one for each of them.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alhena_sys::handles::AsHandle;
use alhena_sys::poll::{self, Wanted};
use alhena_sys::sockets::Stream;

/// Accepts until it is dropped. Connections under way go on until they end by themselves.
#[derive(Debug)]
pub(crate) struct Listener {
    stop: Option<Stream>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Accepts from a socket that does not block.
    pub(crate) fn start<L: AsHandle + Send + 'static, S: Send + 'static>(
        name: &'static str,
        listener: L,
        accept: impl Fn(&L) -> io::Result<S> + Send + 'static,
        serve: impl Fn(S) + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = Stream::pair()?;
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            while goes_on(&listener, &stopped) {
                while let Ok(line) = accept(&listener) {
                    let serve = serve.clone();
                    let serving = thread::Builder::new().name(name.to_owned()).spawn(move || serve(line));
                    // Without a thread the line is closed, and whoever is at its other end has no answer.
                    if let Err(error) = serving {
                        tracing::warn!(%error, name, "a connection could not be taken");
                    }
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

fn goes_on(listener: &impl AsHandle, stopped: &Stream) -> bool {
    let wanted = [Wanted::readable(listener), Wanted::readable(stopped)];
    let _looked_at_anyway = poll::wait(&wanted, Some(Duration::from_secs(1)));
    !poll::is_readable(stopped, Duration::ZERO).unwrap_or(true)
}

impl Drop for Listener {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
