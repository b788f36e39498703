//! The one thread of a pool: who waits, which process serves whom, and which has to go.
//!
//! Whoever has waited longest comes first. Somebody else gets a process before only if it is one that the first cannot use, and not
//! too often: then that process is ended to make room.

mod waiting;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use alhena_model::Stop;
use alhena_sys::poll::{self, Wanted};
use alhena_sys::sockets::Stream;

use self::waiting::Made;
pub(super) use self::waiting::Waiting;
use super::PoolOptions;
use super::machine;
use crate::acp::{self, Free, Service, SessionFolder, Told};

/// How often others may be served before one who waits.
const MOST_PASSED: u32 = 16;
/// How long to wait at the most before looking at clocks and memory.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// What the thread hears.
pub(super) enum News {
    Asked(Box<Waiting>),
    Of(u64, Told),
    Close(async_channel::Sender<()>),
}

/// The way to the thread.
pub(super) struct Desk {
    news: Sender<News>,
    bell: Arc<Stream>,
}

impl Desk {
    pub(super) fn open(options: PoolOptions) -> io::Result<Self> {
        let (news, heard) = mpsc::channel();
        let (bell, rung) = Stream::pair()?;
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let bell = Arc::new(bell);
        let keeper = Keeper {
            options,
            heard,
            rung,
            tell: Desk { news: news.clone(), bell: bell.clone() },
            waiting: VecDeque::new(),
            processes: Vec::new(),
            started: 0,
            closed: Vec::new(),
            closing: false,
        };
        std::thread::Builder::new().name("alhena-pool".to_owned()).spawn(move || keeper.run())?;
        Ok(Self { news, bell })
    }

    /// False when nobody hears it any more.
    pub(super) fn tell(&self, news: News) -> bool {
        let heard = self.news.send(news).is_ok();
        // A full bell has been rung.
        let _rung = (&*self.bell).write(b".");
        heard
    }

    pub(super) fn close(&self) -> async_channel::Receiver<()> {
        let (closed, is_closed) = async_channel::bounded(1);
        self.tell(News::Close(closed));
        is_closed
    }
}

/// The thread.
struct Keeper {
    options: PoolOptions,
    heard: Receiver<News>,
    rung: Stream,
    tell: Desk,
    /// Who waits, the longest first.
    waiting: VecDeque<Waiting>,
    processes: Vec<Process>,
    started: u64,
    /// Whoever waits for the end.
    closed: Vec<async_channel::Sender<()>>,
    closing: bool,
}

struct Process {
    number: u64,
    made: Arc<Made>,
    service: Service,
    state: State,
    began: Instant,
    prompts: u32,
}

enum State {
    Busy,
    /// Without a prompt since then; with a session that has nothing in it.
    Idle(Instant, Option<SessionFolder>),
    /// It was told to end.
    Ending,
}

impl Keeper {
    fn run(mut self) {
        loop {
            self.wait();
            while let Ok(news) = self.heard.try_recv() {
                self.take(news);
            }
            self.let_go();
            self.end_old();
            self.serve();
            if self.closing && self.processes.is_empty() && self.waiting.is_empty() {
                break;
            }
        }
        // Whoever asks from now on is told that nobody hears.
        drop(self.heard);
        for closed in self.closed {
            let _nobody_waits = closed.try_send(());
        }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        let alarm = self.waiting.iter().filter_map(Waiting::deadline).min();
        let longest = alarm.map_or(LONGEST_WAIT, |at| at.saturating_duration_since(now).min(LONGEST_WAIT));
        let mut wanted = vec![Wanted::readable(&self.rung)];
        wanted.extend(self.waiting.iter().filter_map(Waiting::bell).map(Wanted::readable));
        let _looked_at_anyway = poll::wait(&wanted, Some(longest));
        let mut rung = [0; 256];
        while (&self.rung).read(&mut rung).is_ok_and(|count| count == rung.len()) {}
    }

    fn take(&mut self, news: News) {
        match news {
            News::Asked(waiting) if self.closing => waiting.stop(Stop::Cancelled),
            News::Asked(waiting) => self.waiting.push_back(*waiting),
            News::Of(number, Told::Free(free)) => self.freed(number, free),
            News::Of(number, Told::Gone { back, why }) => {
                let Some(index) = self.processes.iter().position(|process| process.number == number) else {
                    return;
                };
                let made = self.processes.swap_remove(index).made;
                let Some(job) = back else { return };
                let waiting = Waiting::again(made, job);
                match why {
                    Some(error) => waiting.fail(error),
                    None if self.closing => waiting.stop(Stop::Cancelled),
                    // It has waited before.
                    None => self.waiting.push_front(waiting),
                }
            }
            News::Close(closed) => {
                self.closed.push(closed);
                self.closing = true;
                self.waiting.drain(..).for_each(|waiting| waiting.stop(Stop::Cancelled));
                self.processes.iter_mut().for_each(Process::end);
            }
        }
    }

    /// A process has served its prompt. One that has had enough goes.
    fn freed(&mut self, number: u64, free: Free) {
        let (options, closing) = (&self.options, self.closing);
        let Some(process) = self.processes.iter_mut().find(|process| process.number == number) else {
            return;
        };
        process.prompts += 1;
        let worn = free.sessions >= options.sessions && free.clean.is_none()
            || process.prompts >= options.prompts
            || free.memory > options.memory
            || process.began.elapsed() > options.age;
        if matches!(process.state, State::Ending) {
            return;
        }
        process.state = State::Idle(Instant::now(), free.clean);
        if worn || closing {
            process.end();
        }
    }

    /// Those who do not want to wait any longer are let go.
    fn let_go(&mut self) {
        for index in (0..self.waiting.len()).rev() {
            let Some(stop) = self.waiting.get_mut(index).and_then(Waiting::wants_to_stop) else { continue };
            if let Some(waiting) = self.waiting.remove(index) {
                waiting.stop(stop);
            }
        }
    }

    fn end_old(&mut self) {
        let (idle, age) = (self.options.idle, self.options.age);
        for process in &mut self.processes {
            if let State::Idle(since, _) = process.state
                && (since.elapsed() > idle || process.began.elapsed() > age)
            {
                process.end();
            }
        }
    }

    /// Everybody who can be served is.
    fn serve(&mut self) {
        let mut index = 0;
        // Somebody has been passed over so often that nobody may be served before.
        let mut patient = true;
        let mut ending =
            self.processes.iter().filter(|process| matches!(process.state, State::Ending)).count();
        while let Some(waiting) = self.waiting.get(index) {
            let fit = self.fit_for(waiting).filter(|_| patient || index == 0);
            let has_room = self.processes.len() < self.options.processes
                && (self.processes.is_empty() || machine::has_room());
            if fit.is_some() || (has_room && (patient || index == 0)) {
                let Some(waiting) = self.waiting.remove(index) else { return };
                self.waiting.iter_mut().take(index).for_each(|earlier| earlier.passed += 1);
                match fit {
                    Some(process) => self.give(process, waiting),
                    None => self.start(waiting),
                }
                continue;
            }
            patient &= waiting.passed < MOST_PASSED;
            // Room is being made for those before.
            if ending > index {
                index += 1;
                continue;
            }
            if let Some(process) = self.dispensable(index).and_then(|found| self.processes.get_mut(found)) {
                process.end();
                ending += 1;
            }
            index += 1;
        }
    }

    /// A process without a prompt that can serve this one; best one whose session can.
    fn fit_for(&self, waiting: &Waiting) -> Option<usize> {
        let place = &waiting.job.terms.place;
        let fits = self.processes.iter().enumerate().filter_map(|(index, process)| match &process.state {
            State::Idle(_, clean) if process.made.key == waiting.made.key => {
                Some((clean.as_ref() != Some(place), index))
            }
            _ => None,
        });
        fits.min().map(|(_, index)| index)
    }

    /// A process without a prompt that nobody else who waits can use, or that has to make room all the same.
    fn dispensable(&self, index: usize) -> Option<usize> {
        let passed = self.waiting.get(index).map_or(0, |waiting| waiting.passed);
        let is_wanted =
            |process: &Process| self.waiting.iter().any(|other| other.made.key == process.made.key);
        let idle = self.processes.iter().enumerate().filter_map(|(index, process)| match process.state {
            State::Idle(since, _) if passed >= MOST_PASSED || !is_wanted(process) => Some((since, index)),
            _ => None,
        });
        idle.min().map(|(_, index)| index)
    }

    fn give(&mut self, index: usize, waiting: Waiting) {
        let Some(process) = self.processes.get_mut(index) else { return };
        let Waiting { job, made, .. } = waiting;
        process.state = State::Busy;
        if let Err(job) = process.service.give(job) {
            // It has just died, and will say so.
            process.state = State::Ending;
            self.waiting.push_front(Waiting::again(made, job));
        }
    }

    fn start(&mut self, waiting: Waiting) {
        let Waiting { job, made, .. } = waiting;
        self.started += 1;
        let number = self.started;
        let tell = Desk { news: self.tell.news.clone(), bell: self.tell.bell.clone() };
        let told = move |told| {
            let _nobody_hears = tell.tell(News::Of(number, told));
        };
        let kind = acp::Kind { heap_mb: self.options.heap_mb, reuse: self.options.reuse };
        match acp::serve(&made.gemini, &made.environment, kind, job, told) {
            Ok(service) => self.processes.push(Process {
                number,
                made,
                service,
                state: State::Busy,
                began: Instant::now(),
                prompts: 0,
            }),
            Err((job, error)) => Waiting::again(made, job).fail(error),
        }
    }
}

impl Process {
    fn end(&mut self) {
        self.state = State::Ending;
        self.service.end();
    }
}
