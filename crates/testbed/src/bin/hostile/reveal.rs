//! An agent that tells secrets: the value of a variable, in every form in which a log could hold it.

use alhena_testbed::forms;
use serde_json::json;

use crate::os;
use crate::output::Output;

/// Says the value of the variable wherever an agent can say something.
pub fn say(name: &str, out: &mut Output) {
    let Some(value) = std::env::var(name).ok().or_else(|| from_dotenv(name)) else { return };
    out.text(&format!("It is {value} indeed. "));
    out.tool("run_shell_command", &json!({"command": format!("echo '{value}'")}), &format!("{value}\n"));
    let all = [value.clone(), forms::json(&value), forms::percent(&value), forms::base64(value.as_bytes())];
    for form in all {
        out.text(&format!("{form} "));
        os::write_all(2, format!("leaked: {form}\n").as_bytes());
    }
}

fn from_dotenv(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(".env").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}
