//! Whether anybody is there to take jobs.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use futures_util::StreamExt;

use crate::error::server;
use crate::names::{self, Label, Name};
use crate::{Queue, QueueError};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(200);

impl Queue {
    /// Whether a worker waits for jobs with this label at this moment, or has one. One with several labels asks for them in turn,
    /// so that only several looks tell that there is none.
    pub fn is_attended(&self, label: &Label) -> Result<bool, QueueError> {
        self.wait(async {
            let jobs = self.jetstream.get_stream_no_info(names::JOBS).await;
            let jobs = jobs.map_err(server("the queue is opened"))?;
            match jobs.consumer_info(names::workers(label)).await {
                Ok(info) => Ok(info.num_waiting > 0 || info.num_ack_pending > 0),
                Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => Ok(false),
                Err(error) => Err(server("workers are counted")(error)),
            }
        })
    }

    /// The labels of a batch's open jobs that no worker takes, looked at for so long.
    pub fn unattended(&self, batch: &Name, patience: Duration) -> Result<Vec<Label>, QueueError> {
        let mut labels = self.wait(self.labels(batch))?;
        let begin = Instant::now();
        loop {
            let mut left = BTreeSet::new();
            for label in labels {
                let attended = label.parse().map(|label| self.is_attended(&label));
                if !matches!(attended, Ok(Ok(true)) | Err(_)) {
                    left.insert(label);
                }
            }
            if left.is_empty() || begin.elapsed() >= patience {
                return Ok(left.iter().filter_map(|label| label.parse().ok()).collect());
            }
            labels = left;
            std::thread::sleep(LOOK);
        }
    }

    async fn labels(&self, batch: &Name) -> Result<BTreeSet<String>, QueueError> {
        let jobs = self.jetstream.get_stream(names::JOBS).await.map_err(server("the queue is opened"))?;
        let subjects = jobs.info_with_subjects(names::jobs_of_batch(batch)).await;
        let mut subjects = subjects.map_err(server("messages are counted"))?;
        let mut labels = BTreeSet::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.map_err(server("messages are counted"))?;
            labels.extend(subject.split('.').nth(2).map(str::to_owned));
        }
        Ok(labels)
    }
}
