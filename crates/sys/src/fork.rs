//! What the standard library has no safe words for: a second process from this one, a child that dies with its parent, and
//! orphans that become children.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Which of the two processes this is.
pub enum Fork {
    /// The one that was there before, and the new one's number.
    Parent(u32),
    /// The new one.
    Child,
}

/// Makes a second process of this one. Far cheaper than starting the program again.
///
/// Only for a process with a single thread: the locks of others would stay taken in the new one. Where there are more
/// threads this refuses.
pub fn fork() -> io::Result<Fork> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(io::Error::other("a process with threads cannot be doubled"));
    }
    // SAFETY: there is no other thread, so the new process has everything that this one has.
    let pid = unsafe { libc::fork() };
    match u32::try_from(pid) {
        Ok(0) => Ok(Fork::Child),
        Ok(pid) => Ok(Fork::Parent(pid)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Has the kernel kill the child when this thread, which starts it, is gone: however that ends.
///
/// Only the child itself: what it starts in turn is for subreapers to find.
pub fn die_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getpid();
        let ask_the_kernel = move || {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            // It may have gone before we asked; then nobody tells us.
            match rustix::process::getppid() == Some(parent) {
                true => Ok(()),
                false => Err(rustix::io::Errno::SRCH.into()),
            }
        };
        // SAFETY: two system calls, which allocate nothing and take no locks.
        unsafe { command.pre_exec(ask_the_kernel) };
    }
}

/// Becomes the parent of every orphan below this process, where the system has such a thing.
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}
