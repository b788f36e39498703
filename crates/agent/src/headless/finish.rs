//! The end of a run: the rest is read, the disk is asked, and the verdict is given.

use alhena_model::{End, Input};
use alhena_wire::frame::Framer;

use super::Headless;
use crate::home::Finished;
use crate::recording::LONGEST_LINE;

impl Headless {
    /// The process is gone and nothing of it is left: the rest is read.
    pub(super) fn end_attempt(&mut self) -> Finished {
        let finished = self.process.ward.end();
        self.account.warnings.append(&mut self.process.ward.warnings);
        self.account.take_sessions(&finished, &self.process.sessions);
        self.account.read_session_to_its_end();
        self.read_rest();
        // Where the reading was cut short the line is not whole, and that is not the CLI's fault.
        if self.state.cut_short {
            self.state.framer = Framer::default();
            if let Some(recorder) = &mut self.account.recorder {
                recorder.cut_short(self.account.lines);
            }
        }
        let mut framer = std::mem::replace(&mut self.state.framer, Framer::new(LONGEST_LINE));
        framer.finish(|frame| self.account.line(frame, Input::from));
        self.account.ask_disk();
        finished
    }

    /// What remains is to judge.
    pub(super) fn judge(mut self) {
        self.account.say_if_lost(&self.state.finished.sessions);
        self.account.ask_disk_at_last(self.process.ward.has_started());
        self.account.hear_last_of(&self.process.ward);
        self.account.settle(&self.process.ward);
        let (exit, stderr) = self.process.ward.exit();
        let end = End { exit, stderr, duration_ms: Some(self.process.started.elapsed().as_millis() as u64) };
        let waiting = self.account.conclude(&end);
        self.process.close([(self.outlet, waiting)], || ());
    }
}
