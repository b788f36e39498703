//! Who agents are and how they work together: profiles, MCP servers and supervisors, on the real CLI in real tmux.

mod asking;
mod back;
mod here;
mod logs;
mod lying;
mod person;
mod post;
mod profiles;
mod team;
mod top;

use crate::real_terminal::place;
