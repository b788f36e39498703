//! What Debian's packages have, unpacked into the cache: nothing is installed, and no rights are needed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files_under;
use super::sources::check;

/// A tmux unpacked from Debian's packages, with its libraries.
pub(super) fn unpack_tmux(directory: &Path, _: &str) -> io::Result<()> {
    let downloads = tempfile::tempdir()?;
    for package in download_packages(downloads.path())? {
        check(Command::new("dpkg-deb").arg("-x").arg(package).arg(directory.join("root")), "dpkg-deb")?;
    }
    let wrapper = wrapper(directory, "tmux", TMUX_WRAPPER)?;
    check(Command::new(&wrapper).arg("-V"), "the unpacked tmux").map(|_| ())
}

/// Makes a command that finds what was unpacked beside it.
fn wrapper(directory: &Path, name: &str, script: &str) -> io::Result<PathBuf> {
    let wrapper = directory.join("bin").join(name);
    std::fs::create_dir_all(directory.join("bin"))?;
    std::fs::write(&wrapper, script)?;
    alhena_sys::files::set_mode(&wrapper, 0o755)?;
    Ok(wrapper)
}

/// Finds the libraries beside itself, wherever the cache is.
const TMUX_WRAPPER: &str = r#"#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
for directory in "$here"/root/usr/lib/*-linux-gnu* "$here"/root/lib/*-linux-gnu*; do
    [ -d "$directory" ] && LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$directory"
done
export LD_LIBRARY_PATH
exec "$here/root/usr/bin/tmux" "$@"
"#;

/// The smallest of Debian's packages with a browser in it, and its command.
pub(super) const CHROMIUM: &str = "chromium-headless-shell";

/// A browser unpacked from Debian's packages, with everything that it depends on.
///
/// What the machine has installed plays no part: the dependencies are those of a machine without any package. Only the
/// C library stays the machine's own, because it belongs to the loader that starts every program there.
pub(super) fn unpack_chromium(directory: &Path, _: &str) -> io::Result<()> {
    unpack_complete(&[CHROMIUM], |name| !name.starts_with("libc6_"), &directory.join("root"))?;
    let wrapper = wrapper(directory, CHROMIUM, CHROMIUM_WRAPPER)?;
    check_browser(&wrapper, tempfile::tempdir()?.path())
}

/// Unpacks Debian's packages with everything that they depend on, as far as the names of the files are wanted.
fn unpack_complete(packages: &[&str], wanted: impl Fn(&str) -> bool, root: &Path) -> io::Result<()> {
    let downloads = tempfile::tempdir()?;
    let mut options = private_apt_options(downloads.path())?;
    let nothing_installed = downloads.path().join("status");
    std::fs::write(&nothing_installed, "")?;
    // Nothing is installed, so nobody has to be kept out.
    for setting in
        ["Debug::NoLocking=1".to_owned(), format!("Dir::State::status={}", nothing_installed.display())]
    {
        options.extend(["-o".to_owned(), setting]);
    }
    check(Command::new("apt-get").args(&options).arg("update"), "apt-get update")?;
    let mut apt = Command::new("apt-get");
    apt.args(&options)
        .args(["install", "--download-only", "--yes", "--no-install-recommends"])
        .args(packages);
    check(&mut apt, "apt-get install --download-only")?;
    let name = |package: &Path| package.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for package in files_under(downloads.path()) {
        if package.extension().is_some_and(|extension| extension == "deb") && wanted(&name(&package)) {
            check(Command::new("dpkg-deb").arg("-x").arg(package).arg(root), "dpkg-deb")?;
        }
    }
    Ok(())
}

/// It shows a page: `--version` alone works without the data files, too.
fn check_browser(browser: &Path, profile: &Path) -> io::Result<()> {
    let mut command = Command::new(browser);
    command
        .args(["--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.join("profile").display()))
        .arg("data:text/html,<p>shown</p>")
        .env("HOME", profile);
    let shown = check(&mut command, "the unpacked browser")?.stdout_text();
    match shown.contains("<p>shown</p>") {
        true => Ok(()),
        false => Err(io::Error::other(format!("the unpacked browser shows no page: {shown}"))),
    }
}

/// Finds libraries and fonts beside itself, before any of the machine; some libraries are in a directory of their own.
const CHROMIUM_WRAPPER: &str = r#"#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
unset LD_LIBRARY_PATH
for directory in "$here"/root/usr/lib/*-linux-gnu* "$here"/root/usr/lib/*-linux-gnu*/* "$here"/root/lib/*-linux-gnu*; do
    [ -d "$directory" ] && LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$directory"
done
FONTCONFIG_SYSROOT=$here/root
export LD_LIBRARY_PATH FONTCONFIG_SYSROOT
exec "$here/root/usr/lib/chromium/chromium-headless-shell" "$@"
"#;

/// Downloads tmux and the libraries that it depends on. `apt-get` needs no rights for that, and with a state directory of
/// our own it works on a machine without lists of packages.
fn download_packages(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let tmux = ["tmux".to_owned()];
    let mut options = Vec::new();
    let downloaded = match download(directory, &options, &tmux) {
        Ok(files) => files,
        Err(_) => {
            options = private_apt_options(directory)?;
            check(Command::new("apt-get").args(&options).arg("update"), "apt-get update")?;
            download(directory, &options, &tmux)?
        }
    };
    let archive = downloaded.first().ok_or_else(|| io::Error::other("apt-get downloaded nothing"))?;
    let depends =
        check(Command::new("dpkg-deb").arg("-f").arg(archive).arg("Depends"), "dpkg-deb")?.stdout_text();
    let libraries: Vec<String> = depends
        .split(',')
        .filter_map(|dependency| dependency.split_whitespace().next())
        .filter(|name| name.starts_with("lib") && !name.starts_with("libc6"))
        .map(str::to_owned)
        .collect();
    if libraries.is_empty() { Ok(downloaded) } else { download(directory, &options, &libraries) }
}

/// Downloads packages and gives all that are in the directory now.
fn download(directory: &Path, options: &[String], names: &[String]) -> io::Result<Vec<PathBuf>> {
    let mut apt = Command::new("apt-get");
    check(apt.args(options).arg("download").args(names).current_dir(directory), "apt-get download")?;
    let files = files_under(directory).into_iter();
    Ok(files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
}

fn private_apt_options(directory: &Path) -> io::Result<Vec<String>> {
    let (lists, archives) = (directory.join("apt/lists"), directory.join("apt/cache"));
    std::fs::create_dir_all(lists.join("partial"))?;
    std::fs::create_dir_all(archives.join("archives/partial"))?;
    let settings = [
        format!("Dir::State::Lists={}", lists.display()),
        format!("Dir::Cache={}", archives.display()),
        "APT::Sandbox::User=".to_owned(),
    ];
    Ok(settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect())
}

pub(super) fn unpack_staticcheck(directory: &Path, _: &str) -> io::Result<()> {
    let is_go = |name: &str| name.starts_with("go");
    unpack_complete(&["go-staticcheck", "golang-go"], is_go, &directory.join("root"))
}
