//! The end of a run: the rest is read, the disk is asked, and the verdict is given.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use alhena_model::{End, Input};
use alhena_wire::frame::Framer;

use super::happening::READER_IS_BEHIND;
use super::{Engine, RunState};
use crate::home::Finished;
use crate::recording::LONGEST_LINE;
use crate::run::{Item, Listener, Queue};

impl Engine {
    /// The process is gone and nothing of it is left: the rest is read.
    pub(super) fn end_attempt(&mut self, watch: &mut RunState) -> Finished {
        let finished = self.ward.end();
        self.account.warnings.append(&mut self.ward.warnings);
        self.account.take_sessions(&finished, &self.sessions);
        self.account.read_session_to_its_end();
        self.read_rest(watch);
        // Where the reading was cut short the line is not whole, and that is not the CLI's fault.
        if watch.cut_short {
            watch.framer = Framer::default();
            if let Some(recorder) = &mut self.account.recorder {
                recorder.cut_short(self.account.lines);
            }
        }
        let mut framer = std::mem::replace(&mut watch.framer, Framer::new(LONGEST_LINE));
        framer.finish(|frame| self.account.line(frame, Input::from));
        self.account.ask_disk();
        finished
    }

    /// What remains is to judge.
    pub(super) fn finish(mut self, finished: &Finished) {
        self.account.say_if_lost(&finished.sessions);
        self.account.ask_disk_at_last(self.ward.has_started());
        self.account.hear_last_of(&self.ward);
        self.account.settle(&self.ward);
        let (exit, stderr) = self.ward.exit();
        let end = End { exit, stderr, duration_ms: Some(self.started.elapsed().as_millis() as u64) };
        let waiting = self.account.conclude(&end);
        // Before the last event is out everything is cleaned up: whoever has it may exit at once.
        drop(self.ward);
        self.over.store(true, Ordering::Release);
        hand_out(&self.queue, waiting);
    }
}

fn hand_out(queue: &Queue, mut waiting: VecDeque<Item>) {
    while let Some(item) = waiting.pop_front() {
        let Some(item) = queue.offer(item) else { continue };
        if queue.listener() == Listener::Gone {
            return;
        }
        waiting.push_front(item);
        std::thread::sleep(READER_IS_BEHIND);
    }
}
