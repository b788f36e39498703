//! Word that something changed that is told under `/v1/now`.

use tokio::sync::watch;

/// Tells whoever waits for it.
#[derive(Debug)]
pub struct News(watch::Sender<u64>);

impl Default for News {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl News {
    /// Something changed.
    pub fn tell(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Word of each change from now on; several at once are one.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
