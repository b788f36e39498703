//! The system calls behind full disks, missing descriptors and missing inotify. Mounts are made in a namespace of our own,
//! so that nobody else sees them and none outlives us.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub descriptors: Option<u64>,
    pub file_size: Option<u64>,
    /// No inotify instances, as where other programs have used them up.
    pub no_inotify: bool,
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn path_text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Gives this process mounts of its own. Only before other threads are started.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: plain calls; the strings are static.
    unsafe {
        checked(libc::unshare(libc::CLONE_NEWNS))?;
        let (none, root) = (c"none".as_ptr(), c"/".as_ptr());
        checked(libc::mount(none, root, std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE, std::ptr::null()))
    }
}

/// Puts a disk of this many bytes over a directory.
pub fn mount_small_disk(directory: &Path, bytes: u64) -> io::Result<()> {
    let (path, options) = (path_text(directory)?, CString::new(format!("size={bytes},mode=700"))?);
    // SAFETY: all strings end in NUL and outlive the call.
    checked(unsafe {
        libc::mount(
            c"tmpfs".as_ptr(),
            path.as_ptr(),
            c"tmpfs".as_ptr(),
            libc::MS_NOSUID,
            options.as_ptr().cast(),
        )
    })
}

/// Makes a directory read-only, for the superuser too.
pub fn mount_read_only(directory: &Path) -> io::Result<()> {
    let path = path_text(directory)?;
    let null = std::ptr::null();
    // SAFETY: the path ends in NUL and outlives the calls.
    unsafe {
        checked(libc::mount(path.as_ptr(), path.as_ptr(), null, libc::MS_BIND, null.cast()))?;
        let flags = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
        checked(libc::mount(c"none".as_ptr(), path.as_ptr(), null, flags, null.cast()))
    }
}

/// Takes a mount away at once, whoever still uses it.
pub fn unmount(directory: &Path) {
    if let Ok(path) = path_text(directory) {
        // SAFETY: the path ends in NUL and outlives the call. What is not mounted is no mistake.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
    }
}

/// The command dies with the thread that starts it, and is denied what the limits say.
pub fn confine(command: &mut Command, limits: Limits) {
    // SAFETY: both have no preconditions.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let user_map = CString::new(format!("{user} {user} 1")).unwrap_or_default();
    let group_map = CString::new(format!("{group} {group} 1")).unwrap_or_default();
    // SAFETY: only system calls on values that were made before the fork.
    unsafe {
        command.pre_exec(move || {
            checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            if let Some(most) = limits.descriptors {
                limit(libc::RLIMIT_NOFILE, most)?;
            }
            if let Some(most) = limits.file_size {
                limit(libc::RLIMIT_FSIZE, most)?;
            }
            if limits.no_inotify {
                checked(libc::unshare(libc::CLONE_NEWUSER))?;
                write(c"/proc/self/setgroups", c"deny")?;
                write(c"/proc/self/uid_map", &user_map)?;
                write(c"/proc/self/gid_map", &group_map)?;
                write(c"/proc/sys/user/max_inotify_instances", c"0")?;
            }
            Ok(())
        });
    }
}

fn limit(what: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the struct lives on this stack.
    checked(unsafe { libc::setrlimit(what, &limit) })
}

fn write(path: &CStr, text: &CStr) -> io::Result<()> {
    let bytes = text.to_bytes();
    // SAFETY: path and text are valid; the descriptor is closed again.
    unsafe {
        let descriptor = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        let written = libc::write(descriptor, bytes.as_ptr().cast(), bytes.len());
        let error = io::Error::last_os_error();
        libc::close(descriptor);
        if written < 0 { Err(error) } else { Ok(()) }
    }
}
