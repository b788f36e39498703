//! The keeper in a program that uses the library.
//!
//! Such a program starts itself again as the keeper of its runs, so that they are supervised on systems without the `alhena` binary.

use std::ffi::{OsStr, OsString};
use std::process::exit;

use alhena_sys::sockets;

use super::{custody, guard};
use crate::{env, hooks};

/// The only argument that a keeper is started with.
pub(super) const KEEPER: &str = "keeper";

/// Acts as a keeper, or as a hook, and exits, if this process was started as one. Returns otherwise.
///
/// Call it at the start of `main`, before threads are started and arguments are parsed. From then on runs of this program are
/// supervised by this program, unless `ALHENA_KEEPER` names another one.
///
/// ```no_run
/// fn main() {
///     alhena_agent::keeper::run_if_keeper();
///     // The rest of the program.
/// }
/// ```
#[allow(clippy::needless_doctest_main)]
pub fn run_if_keeper() {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // A keeper gets its orders from a socket, so that a program's own command `keeper` is not taken for one.
    if is_keeper(&arguments) && sockets::stdin_is_one() {
        exit(i32::from(guard::main().is_err()));
    }
    if let Some((socket, moment)) = question(&arguments, std::env::var_os(env::ALHENA_HOOK_SOCKET).as_deref())
    {
        exit(i32::from(hooks::relay(socket, moment)));
    }
    custody::this_program_is_the_keeper();
}

fn is_keeper(arguments: &[OsString]) -> bool {
    matches!(arguments, [_, keeper] if keeper == KEEPER)
}

/// Returns the socket and the moment of a hook's question. Gemini CLI's hook passes the socket both as an argument and in the environment,
/// so that a program's own command `hook` is not taken for one.
fn question<'a>(arguments: &'a [OsString], socket_of_run: Option<&OsStr>) -> Option<(&'a OsStr, &'a OsStr)> {
    match arguments {
        [_, hook, socket, moment] if hook == "hook" && socket_of_run == Some(socket) => {
            Some((socket, moment))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_programs_own_is_not_taken_for_a_hook() {
        let arguments = ["app", "hook", "/run/hooks", "before-tool"].map(OsString::from);
        let asked = question(&arguments, Some("/run/hooks".as_ref()));
        assert_eq!(asked, Some(("/run/hooks".as_ref(), "before-tool".as_ref())));
        assert_eq!(question(&arguments, None), None);
        assert_eq!(question(&arguments, Some("/run/other".as_ref())), None);
        assert_eq!(question(&arguments[..3], Some("/run/hooks".as_ref())), None);
    }
}
