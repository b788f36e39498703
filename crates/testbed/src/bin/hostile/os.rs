//! The system calls that the standard library does not offer, each behind a safe function. All unsafe code is here.

use std::ffi::{CString, c_int};
use std::sync::atomic::{AtomicI32, Ordering};

use alhena_testbed::script::{DEFAULT_LIFETIME, LIFETIME_VARIABLE};

/// Makes this process kill itself after its lifetime. A fork does not inherit that: call it again there.
pub fn limit_lifetime() {
    limit_lifetime_to(lifetime());
}

/// The lifetime of every process of the stand-in, in seconds.
pub fn lifetime() -> u32 {
    std::env::var(LIFETIME_VARIABLE).ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_LIFETIME)
}

/// The same for a process that has no environment.
pub fn limit_lifetime_to(seconds: u32) {
    // SAFETY: alarm has no preconditions.
    unsafe { libc::alarm(seconds) };
}

/// Without this every death by SIGSEGV or SIGQUIT would leave a file in the test's directory.
pub fn forbid_core_dumps() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct outlives the call.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}

/// Forks. `Ok(None)` in the child, the child's pid in the parent. This process has one thread.
pub fn fork() -> Result<Option<i32>, String> {
    // SAFETY: single-threaded, so the child may go on with any code.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", std::io::Error::last_os_error())),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Ends the process at once, without flushing or handlers.
pub fn exit(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

pub fn new_session() {
    // SAFETY: setsid has no preconditions; it fails only for a group leader, which a fresh fork is not.
    unsafe { libc::setsid() };
}

pub fn reap(pid: i32) {
    let mut status = 0;
    // SAFETY: the status lives on this stack.
    unsafe { libc::waitpid(pid, &mut status, 0) };
}

/// Lets the kernel take away children, so that a storm leaves no zombies.
pub fn discard_children() {
    ignore(libc::SIGCHLD);
}

pub fn ignore(signal: c_int) {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

static EXIT_CODE: AtomicI32 = AtomicI32::new(0);

extern "C" fn exit_by_handler(_signal: c_int) {
    exit(EXIT_CODE.load(Ordering::Relaxed));
}

/// Exits with the code when one of the signals comes.
pub fn exit_on(signals: &[c_int], code: i32) {
    EXIT_CODE.store(code, Ordering::Relaxed);
    for signal in signals {
        // SAFETY: the handler calls only async-signal-safe functions.
        unsafe { libc::signal(*signal, exit_by_handler as *const () as libc::sighandler_t) };
    }
}

/// Sends this process a signal with its default action.
pub fn kill_self(signal: c_int) {
    // SAFETY: plain calls on this process; the set lives on this stack.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}

pub fn hang() -> ! {
    loop {
        // SAFETY: pause has no preconditions.
        unsafe { libc::pause() };
    }
}

pub fn close(descriptor: c_int) {
    // SAFETY: nothing in this process owns descriptors 0 to 2 or those it passes here.
    unsafe { libc::close(descriptor) };
}

/// Writes all bytes. A reader that is gone ends the process with 0, as it ends the CLI; other errors are ignored, because
/// a script may write after it closed stdout.
pub fn write_all(descriptor: c_int, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the buffer is valid for its length.
        let written = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(written) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EPIPE) => exit(0),
                _ => return,
            },
        }
    }
}

/// Reads stdin to its end. Like the CLI: not from a terminal, and not when nothing comes for half a second.
pub fn read_stdin() -> Vec<u8> {
    let mut all = Vec::new();
    // SAFETY: isatty has no preconditions; the pollfd lives on this stack.
    let silent = unsafe {
        let mut wait = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
        libc::isatty(0) == 1 || libc::poll(&mut wait, 1, 500) <= 0
    };
    if silent {
        return all;
    }
    let mut block = vec![0_u8; 1 << 16];
    loop {
        // SAFETY: the buffer is valid for its length.
        let count = unsafe { libc::read(0, block.as_mut_ptr().cast(), block.len()) };
        match usize::try_from(count) {
            Ok(0) => return all,
            Ok(count) => all.extend_from_slice(block.get(..count).unwrap_or_default()),
            Err(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => return all,
        }
    }
}

/// A pipe that survives an exec: read end, write end.
pub fn pipe() -> Result<(c_int, c_int), String> {
    let mut ends = [0; 2];
    // SAFETY: the array holds two descriptors.
    match unsafe { libc::pipe(ends.as_mut_ptr()) } {
        0 => Ok((ends[0], ends[1])),
        _ => Err(format!("pipe: {}", std::io::Error::last_os_error())),
    }
}

/// Waits for one byte, or for the other end to be gone.
pub fn wait_for_byte(descriptor: c_int) {
    let mut byte = 0_u8;
    // SAFETY: the byte lives on this stack.
    while unsafe { libc::read(descriptor, std::ptr::from_mut(&mut byte).cast(), 1) } < 0
        && std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
    {}
}

/// Replaces this process by the same program with these arguments and no environment.
pub fn exec_self_without_environment(arguments: &[String]) {
    let arguments: Vec<CString> =
        arguments.iter().filter_map(|text| CString::new(text.as_str()).ok()).collect();
    let mut pointers: Vec<_> = arguments.iter().map(|text| text.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let environment = [std::ptr::null()];
    // SAFETY: both arrays end in null and outlive the call.
    unsafe { libc::execve(c"/proc/self/exe".as_ptr(), pointers.as_ptr(), environment.as_ptr()) };
}
