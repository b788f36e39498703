//! Which processes belong to a trial, found without trusting any of them: by the program file, the working directory, the
//! open files, the command line and the environment. One that clears its environment, renames itself and moves away still
//! runs a program file that only this trial has.

use std::path::Path;

use alhena_testbed::processes::{alive, all, command_line, executable, parent, signal};
use rustix::process::Signal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub pid: u32,
    pub by: &'static str,
    pub command: String,
}

/// Every living process that has to do with this directory, which only the trial knows.
pub fn members(root: &Path) -> Vec<Member> {
    // What runs our own program is we ourselves, or another trial's child that has not become its program yet: until then it
    // has all files open that we had, this trial's too.
    let own = executable(std::process::id());
    all()
        .into_iter()
        .filter(|pid| executable(*pid) != own)
        .filter_map(|pid| {
            let by = belongs(pid, root)?;
            alive(pid).then(|| Member { pid, by, command: command_line(pid) })
        })
        .collect()
}

fn belongs(pid: u32, root: &Path) -> Option<&'static str> {
    let text = root.to_string_lossy();
    let mentions = |file: &str| {
        let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text.as_ref())
    };
    let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).ok();
    if executable(pid).is_some_and(|program| program.starts_with(root)) {
        return Some("program");
    }
    if mentions("cmdline") {
        return Some("command line");
    }
    if mentions("environ") {
        return Some("environment");
    }
    if link("cwd").is_some_and(|directory| directory.starts_with(root)) {
        return Some("working directory");
    }
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    let mut files = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    files.any(|file| file.starts_with(root)).then_some("open file")
}

/// Kills all of them, again and again until there are none: they may fork meanwhile.
pub fn kill_all(root: &Path) {
    for _ in 0..50 {
        let left = members(root);
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(|member| signal(member.pid, Signal::KILL));
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// The processes of one run of Alhena that a stop can be aimed at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Team {
    /// The process that alhena started, if it is still there.
    pub guard: Option<u32>,
    /// The innermost process of Alhena's own; the guard itself where there is no other.
    pub keeper: Option<u32>,
    pub cli: Option<u32>,
}

impl Team {
    /// Who is there now, below this process, whose program is `alhena`.
    pub fn of(root: u32, alhena: &Path) -> Self {
        let parents: Vec<(u32, u32)> =
            all().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
        let child = |of: u32, own: bool| {
            let children = parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid);
            let is_own = |pid: &u32| executable(*pid).is_some_and(|program| program == alhena);
            children.filter(|pid| alive(*pid)).find(|pid| is_own(pid) == own)
        };
        let guard = child(root, true);
        let keeper = guard.and_then(|guard| child(guard, true)).or(guard);
        let cli = keeper.and_then(|keeper| child(keeper, false));
        Self { guard, keeper, cli }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_child_that_has_not_become_its_program_yet_belongs_to_no_trial() {
        let root = tempfile::tempdir().unwrap();
        let held = std::fs::File::create(root.path().join("file")).unwrap();
        let mut command = Command::new("/bin/true");
        // SAFETY: it only sleeps.
        unsafe {
            command.pre_exec(|| {
                std::thread::sleep(Duration::from_millis(500));
                Ok(())
            })
        };
        std::thread::scope(|scope| {
            let child = scope.spawn(|| command.status().unwrap());
            while !child.is_finished() {
                assert_eq!(members(root.path()), []);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        drop(held);
    }
}
