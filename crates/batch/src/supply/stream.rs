//! Jobs as they are written, read by a thread of its own that waits when nobody takes them.

use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use alhena_model::SettingError;
use serde_json::Value;

use super::records::{Format, Record, Records};
use super::{Complaint, Setting};
use crate::job::{Job, Lane, Mark};

/// So many jobs are read ahead.
const AHEAD: usize = 64;

/// What comes of a stream of jobs.
#[derive(Debug)]
pub enum Came {
    /// A job, and who may work at the same time.
    Job(Box<Job>, Lane),
    /// A line that is no job.
    Refused {
        /// Its id, where it has one that nobody else has.
        id: Option<String>,
        /// Of what it says.
        mark: Option<Mark>,
        /// What is wrong with it.
        complaints: Vec<Complaint>,
    },
    /// The end.
    End,
    /// The end, because nothing more can be read.
    Broken(Vec<Complaint>),
}

pub(super) struct JobStream {
    came: Receiver<Came>,
    over: bool,
}

impl JobStream {
    pub(super) fn begin(
        input: impl Read + Send + 'static,
        setting: Arc<Setting>,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, came) = sync_channel(AHEAD);
        let read = move || {
            let mut last = Came::End;
            if let Err(complaints) = read(input, &setting, &sender, &wake) {
                last = Came::Broken(complaints);
            }
            let _nobody_listens = sender.send(last);
            wake();
        };
        // It may wait for a line that never comes: nobody waits for it.
        std::thread::Builder::new().name("alhena-jobs".to_owned()).spawn(read)?;
        Ok(Self { came, over: false })
    }

    pub(super) fn next(&mut self) -> Option<Came> {
        match self.came.try_recv() {
            Ok(came) => {
                self.over = matches!(came, Came::End | Came::Broken(_));
                Some(came)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) if self.over => None,
            Err(TryRecvError::Disconnected) => {
                self.over = true;
                Some(Came::End)
            }
        }
    }
}

/// What a line is called that says nothing of a job: not by its number alone, as jobs without an id are.
pub(crate) fn id_of_no_job(line: u64) -> String {
    format!("line {line}")
}

fn read(
    input: impl Read,
    setting: &Setting,
    sender: &SyncSender<Came>,
    wake: &impl Fn(),
) -> Result<(), Vec<Complaint>> {
    let mut records = Records::new(BufReader::new(input), setting.format);
    let mut line = 1;
    let mut next = |line: &mut u64| -> Result<Option<Record>, Vec<Complaint>> {
        let record = records.next().map_err(|error| {
            let fault = SettingError::new(format!("the jobs cannot be read: {error}"), "");
            vec![Complaint { line: *line, fault }]
        })?;
        *line = record.as_ref().map_or(*line, |record| record.line);
        Ok(record)
    };
    let first = match setting.format {
        Format::Lines => None,
        Format::Table(_) => match next(&mut line)? {
            None => return Ok(()),
            first => first,
        },
    };
    let at = |line: u64| move |fault| Complaint { line, fault };
    let parser = setting
        .parser(first.as_ref().map(|record| record.bytes.as_slice()))
        .map_err(|faults| faults.into_iter().map(at(line)).collect::<Vec<_>>())?;
    while let Some(record) = next(&mut line)? {
        let said = parser.parse(&record.bytes);
        let id = match &said {
            Ok(said) => match said.get("id") {
                None => Some(line.to_string()),
                Some(Value::String(id)) => Some(id.clone()),
                Some(Value::Number(id)) => Some(id.to_string()),
                Some(_) => None,
            },
            Err(_) => Some(id_of_no_job(line)),
        };
        let read =
            said.map_err(|fault| vec![fault]).and_then(|said| Job::read(line, said, &setting.common()));
        let came = match read {
            Ok((job, lane)) => Came::Job(Box::new(job), lane),
            Err(faults) => Came::Refused {
                id,
                mark: Some(Mark::of(&[&record.bytes])),
                complaints: faults.into_iter().map(at(line)).collect(),
            },
        };
        if sender.send(came).is_err() {
            return Ok(());
        }
        wake();
    }
    Ok(())
}
