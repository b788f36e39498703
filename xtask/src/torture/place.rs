//! The private place of one trial: a home with things in it that must not change, a folder to work in, a `TMPDIR`, and program
//! files of its own, and the shortages that it is to suffer. All of it is below one directory, and gone with it.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::mount::{self, MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::json;
use tempfile::TempDir;

use super::plan::{Disk, Home, Plan};
use super::{members, traps};

#[derive(Debug)]
pub struct Programs {
    /// Holds a copy of the program and of the stand-in: trials link to them, so that each has program files of its own.
    pub directory: TempDir,
    pub can_mount: bool,
    /// The real CLI's command, where it was fetched.
    pub real: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Place {
    pub root: PathBuf,
    pub home: PathBuf,
    pub real_home: PathBuf,
    pub work: PathBuf,
    pub tmp: PathBuf,
    pub out: PathBuf,
    pub record: PathBuf,
    pub alhena_home: PathBuf,
    /// Files by which the agent and the traps say what happened.
    pub marks: PathBuf,
    pub alhena: PathBuf,
    pub stand_in: PathBuf,
    mounts: Vec<PathBuf>,
}

/// The session of this folder that can be resumed.
pub const RESUMED: &str = "5e551000-0000-4000-8000-000000000000";
/// What the user said in every session that was there before.
pub const OLD_PROMPT: &str = "an old prompt";

fn session(id: &str) -> String {
    let time = "2026-01-01T00:00:00.000Z";
    let records = [
        json!({"sessionId": id, "projectHash": "h", "startTime": time, "lastUpdated": time, "kind": "main"}),
        json!({"id": "u1", "timestamp": time, "type": "user", "content": [{"text": OLD_PROMPT}]}),
        json!({"id": "g1", "timestamp": time, "type": "gemini", "content": "An old answer.", "model": "gemini-2.5-flash"}),
    ];
    records.iter().map(|record| format!("{record}\n")).collect()
}

impl Place {
    pub fn make(plan: &Plan, programs: &Programs) -> io::Result<Self> {
        let root = tempfile::Builder::new()
            .prefix(&format!("t{:x}-", plan.seed))
            .tempdir_in(programs.directory.path())?
            .keep()
            .canonicalize()?;
        let below = |name: &str| root.join(name);
        let long = ["long-path-".repeat(8), "and-longer-".repeat(8)].join("/");
        let real_home = match plan.home {
            Home::OddName => below("ho me 'ü\"$x 家"),
            Home::Long => below(&long).join("home"),
            Home::Workspace => below("work"),
            _ => below("home"),
        };
        let home = if plan.home == Home::Linked { below("linked") } else { real_home.clone() };
        let mut place = Self {
            work: below("work"),
            tmp: below("tmp"),
            out: below("out"),
            record: below("record"),
            alhena_home: below("alhena-home"),
            marks: below("marks"),
            alhena: below("bin/alhena"),
            stand_in: below("bin/gemini"),
            home,
            real_home,
            root,
            mounts: Vec::new(),
        };
        match place.fill(plan, programs) {
            Ok(()) => Ok(place),
            Err(error) => {
                place.remove();
                Err(error)
            }
        }
    }

    fn fill(&mut self, plan: &Plan, programs: &Programs) -> io::Result<()> {
        let directories = [&self.real_home, &self.work, &self.tmp, &self.out, &self.record, &self.marks];
        for directory in directories.into_iter().chain([&self.root.join("bin")]) {
            std::fs::create_dir_all(directory)?;
        }
        if let Some((disk, free)) = plan.small_disk
            && programs.can_mount
        {
            self.small_disk(disk, free)?;
        }
        if self.home != self.real_home {
            std::os::unix::fs::symlink(&self.real_home, &self.home)?;
        }
        for (name, link) in [("alhena", &self.alhena), ("hostile", &self.stand_in)] {
            std::fs::hard_link(programs.directory.path().join(name), link)?;
        }
        write(&self.work.join("a.txt"), "unchanged\n")?;
        if plan.home != Home::Empty {
            self.furnish_home(plan)?;
        }
        if plan.traps {
            traps::plant(&self.work, &self.marks)?;
        }
        if plan.home == Home::ReadOnly {
            let gemini = self.real_home.join(".gemini");
            if programs.can_mount {
                mount_read_only(&gemini)?;
                self.mounts.push(gemini);
            } else {
                std::fs::set_permissions(&gemini, std::fs::Permissions::from_mode(0o555))?;
            }
        }
        match plan.small_disk {
            Some((disk, free)) if programs.can_mount => use_up(&self.disk(disk), free),
            _ => Ok(()),
        }
    }

    /// A home as people have it: a login by key, instructions, a session of another project.
    fn furnish_home(&self, plan: &Plan) -> io::Result<()> {
        let gemini = self.real_home.join(".gemini");
        let settings =
            json!({"security": {"auth": {"selectedType": "gemini-api-key"}}, "ui": {"theme": "Mine"}});
        write(&gemini.join("settings.json"), &format!("{settings:#}\n"))?;
        write(&gemini.join("GEMINI.md"), "My own instructions.\n")?;
        let mut projects = json!({"/old/project": "project"});
        let old = "01d00000-0000-4000-8000-000000000000";
        write(&gemini.join("tmp/project/.project_root"), "/old/project")?;
        write(&gemini.join("tmp/project/chats/session-2026-01-01T00-00-01d00000.jsonl"), &session(old))?;
        if plan.resumes {
            let folder = self.work.to_string_lossy().into_owned();
            write(&gemini.join("tmp/work/.project_root"), &folder)?;
            write(&gemini.join("tmp/work/chats/session-2026-01-01T00-00-5e551000.jsonl"), &session(RESUMED))?;
            if let Some(projects) = projects.as_object_mut() {
                projects.insert(folder, "work".into());
            }
        }
        write(&gemini.join("projects.json"), &format!("{:#}\n", json!({"projects": projects})))?;
        write(&self.real_home.join(".bashrc"), "# mine\n")?;
        if !plan.traps {
            let folder = self.work.to_string_lossy().into_owned();
            write(&gemini.join("trustedFolders.json"), &format!("{:#}\n", json!({folder: "TRUST_FOLDER"})))?;
        }
        Ok(())
    }

    fn disk(&self, disk: Disk) -> PathBuf {
        match disk {
            Disk::Home => self.real_home.clone(),
            Disk::Temporary => self.tmp.clone(),
            Disk::Record => self.record.clone(),
            Disk::Output => self.out.clone(),
        }
    }

    fn small_disk(&mut self, disk: Disk, free: u64) -> io::Result<()> {
        let directory = self.disk(disk);
        // Room for what the home holds already; the rest is used up afterwards.
        mount_small_disk(&directory, free + (1 << 20))?;
        self.mounts.push(directory);
        Ok(())
    }

    /// Ends what still runs here, and takes everything away.
    pub fn remove(&mut self) {
        members::kill_all(&self.root);
        for mount in self.mounts.drain(..).rev() {
            unmount(&mount);
        }
        let gemini = self.real_home.join(".gemini");
        let _ = std::fs::set_permissions(&gemini, std::fs::Permissions::from_mode(0o755));
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove();
    }
}

pub const BALLAST: &str = "ballast";

fn use_up(directory: &Path, free: u64) -> io::Result<()> {
    let state = rustix::fs::statvfs(directory)?;
    let used = (state.f_bavail * state.f_frsize).saturating_sub(free);
    let bytes = vec![b'b'; usize::try_from(used).unwrap_or_default()];
    std::fs::write(directory.join(BALLAST), bytes)
}

pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, text)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub descriptors: Option<u64>,
    pub file_size: Option<u64>,
    /// No inotify instances, as where other programs have used them up.
    pub no_inotify: bool,
}

/// Gives this process mounts of its own, which nobody else sees and none outlives. Only before other threads are started.
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
                write_to_system(c"/proc/self/setgroups", c"deny")?;
                write_to_system(c"/proc/self/uid_map", &user_map)?;
                write_to_system(c"/proc/self/gid_map", &group_map)?;
                write_to_system(c"/proc/sys/user/max_inotify_instances", c"0")?;
            }
            Ok(())
        });
    }
}

fn write_to_system(path: &CStr, text: &CStr) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.to_bytes())?;
    Ok(())
}
