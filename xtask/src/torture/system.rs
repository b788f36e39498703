//! The system calls behind full disks, missing descriptors and missing inotify. Mounts are made in a namespace of our own,
//! so that nobody else sees them and none outlives us.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{self, MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub descriptors: Option<u64>,
    pub file_size: Option<u64>,
    /// No inotify instances, as where other programs have used them up.
    pub no_inotify: bool,
}

/// Gives this process mounts of its own. Only before other threads are started.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: no descriptors are unshared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    Ok(mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Puts a disk of this many bytes over a directory.
pub fn mount_small_disk(directory: &Path, bytes: u64) -> io::Result<()> {
    let options = CString::new(format!("size={bytes},mode=700"))?;
    Ok(mount::mount("tmpfs", directory, "tmpfs", MountFlags::NOSUID, options.as_c_str())?)
}

/// Makes a directory read-only, for the superuser too.
pub fn mount_read_only(directory: &Path) -> io::Result<()> {
    mount::mount_bind(directory, directory)?;
    Ok(mount::mount_remount(directory, MountFlags::BIND | MountFlags::RDONLY, "")?)
}

/// Takes a mount away at once, whoever still uses it. What is not mounted is no mistake.
pub fn unmount(directory: &Path) {
    let _not_mounted = mount::unmount(directory, UnmountFlags::DETACH);
}

/// The command dies with the thread that starts it, and is denied what the limits say.
pub fn confine(command: &mut Command, limits: Limits) {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let map = |id: u32| CString::new(format!("{id} {id} 1")).unwrap_or_default();
    let (user_map, group_map) = (map(user.as_raw()), map(group.as_raw()));
    // SAFETY: only system calls on values that were made before the fork.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            let most = [(Resource::Nofile, limits.descriptors), (Resource::Fsize, limits.file_size)];
            for (resource, most) in most {
                if most.is_some() {
                    rustix::process::setrlimit(resource, Rlimit { current: most, maximum: most })?;
                }
            }
            if limits.no_inotify {
                unshare_unsafe(UnshareFlags::NEWUSER)?;
                write(c"/proc/self/setgroups", c"deny")?;
                write(c"/proc/self/uid_map", &user_map)?;
                write(c"/proc/self/gid_map", &group_map)?;
                write(c"/proc/sys/user/max_inotify_instances", c"0")?;
            }
            Ok(())
        });
    }
}

fn write(path: &CStr, text: &CStr) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.to_bytes())?;
    Ok(())
}
