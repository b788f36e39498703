//! A terminal that somebody types at.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use alhena_testbed::Deadline;
use alhena_testbed::processes::kill_tree;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The start of the real CLI on a loaded machine is in it.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Screen {
    child: Child,
    keys: File,
    sent: Receiver<Vec<u8>>,
    /// All that the terminal was sent.
    pub seen: String,
    /// How much of it has been waited for.
    read: usize,
}

impl Screen {
    /// Starts a command on a terminal of its own, which ^C reaches it by.
    pub fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&terminal, size).unwrap();
        command.env("TERM", "xterm");
        command.stdin(terminal.try_clone().unwrap());
        command.stdout(terminal.try_clone().unwrap()).stderr(terminal.try_clone().unwrap());
        // SAFETY: both are plain system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop((command, terminal));
        let keys = File::from(master);
        let (seen, sent) = std::sync::mpsc::channel();
        let mut reader = keys.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let _over = seen.send(buffer[..count].to_vec());
            }
        });
        Self { child, keys, sent, seen: String::new(), read: 0 }
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line when the prompt is there.
    pub fn say(&mut self, line: &str) {
        self.wait_for("> ");
        self.press(&format!("{line}\r"));
        // The echo of it is not what anybody waits for.
        let last = line.chars().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect::<String>();
        self.wait_for(&last);
    }

    /// Answers a question when it is there.
    pub fn answer(&mut self, line: &str) {
        self.wait_for("or a reason: ");
        self.press(&format!("{line}\r"));
    }

    /// Waits until this is on the terminal, behind what was waited for before.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Deadline::after(PATIENCE);
        let mut found = None;
        let there = deadline.wait_until(|| {
            let bytes: Vec<u8> = self.sent.try_iter().flatten().collect();
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
            found = self.seen.get(self.read..).and_then(|rest| rest.find(text));
            found.is_some()
        });
        if !there {
            kill_tree(self.child.id());
            panic!("{text:?} never came behind {:?}", self.seen.get(self.read..));
        }
        self.read += found.unwrap() + text.len();
    }

    /// Waits for the end.
    pub fn ended(&mut self) -> ExitStatus {
        let deadline = Deadline::after(PATIENCE);
        let mut status = None;
        let over = deadline.wait_until(|| {
            let bytes: Vec<u8> = self.sent.try_iter().flatten().collect();
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        if !over {
            kill_tree(self.child.id());
            panic!("it did not end: {}", self.seen);
        }
        self.seen.push_str(&String::from_utf8_lossy(&self.sent.iter().flatten().collect::<Vec<u8>>()));
        status.unwrap()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            kill_tree(self.child.id());
            let _gone = self.child.wait();
        }
    }
}
