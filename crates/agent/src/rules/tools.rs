//! Which tools a rule means: a kind (`shell`, `edit`), a name of Gemini CLI's or of Claude's, or those of an MCP server.

use alhena_model::tool::{self, Class, TOOLS, Tool};
use alhena_wire::acp::gemini;

use super::Question;
use super::command::{Fit, is_like};
use crate::home::{DISCOVERED, Mistaken};

/// The kinds by name. Claude's `Edit` and `Read` are kinds as well: there they cover every tool that does so.
const KINDS: &[(&str, Class)] = &[
    ("shell", Class::Command),
    ("edit", Class::FileWrite),
    ("Edit", Class::FileWrite),
    ("read", Class::FileRead),
    ("Read", Class::FileRead),
    ("fetch", Class::SearchFetch),
    ("mcp", Class::Mcp),
    ("agent", Class::Agent),
    ("plan", Class::Planning),
];

/// Tools that are meant.
#[derive(Clone, Debug)]
pub(super) enum Tools {
    Every,
    Kind(Class),
    /// The one of this name.
    One(&'static Tool),
    Discovered(String),
    Mcp {
        /// Each of the ways in which a name is meant.
        names: Vec<McpNames>,
        /// Others in which it can be meant.
        others: Vec<McpNames>,
        /// A name that can be Gemini CLI's own.
        written: Option<String>,
    },
}

/// Names of servers and of their tools: pieces, with stars between them.
#[derive(Clone, Debug)]
pub(super) struct McpNames {
    server: Vec<String>,
    tool: Vec<String>,
}

/// What is wrong, and what to do about it.
type Wrong = (String, Option<String>);

impl Tools {
    /// The tools of a name, and what is left between the parentheses.
    pub fn named<'t>(name: &str, inside: Option<&'t str>) -> Result<(Self, Option<&'t str>), Wrong> {
        if name == "*" {
            return Ok((Tools::Every, inside));
        }
        if let Some((_, class)) = KINDS.iter().find(|(kind, _)| *kind == name) {
            return match (class, inside) {
                (Class::Mcp, Some(inside)) => Ok((Self::of_server(inside)?, None)),
                (class, inside) => Ok((Tools::Kind(*class), inside)),
            };
        }
        let known =
            |tool: &&Tool| tool.name == name || tool.aliases.contains(&name) || tool.claude == Some(name);
        if let Some(tool) = TOOLS.iter().find(known) {
            return Ok((Tools::One(tool), inside));
        }
        if name == "ShellTool" {
            return Ok((Tools::Kind(Class::Command), inside));
        }
        if name.starts_with(DISCOVERED) && !name.contains('*') {
            return Ok((Tools::Discovered(name.to_owned()), inside));
        }
        match mcp_name(name) {
            Some(found) => Ok((found?, inside)),
            None if name.contains('*') => Err((
                "a name is a whole name".to_owned(),
                Some("Write '*' for every tool, or mcp(SERVER/*).".to_owned()),
            )),
            None => Err((Mistaken::of(name).to_string(), None)),
        }
    }

    /// `SERVER` or `SERVER/TOOL`, with stars.
    fn of_server(inside: &str) -> Result<Self, Wrong> {
        let (server, tool) = inside.split_once('/').unwrap_or((inside, "*"));
        let is_name =
            |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/');
        match is_name(server) && is_name(tool) {
            true => Ok(Tools::Mcp {
                names: vec![McpNames::of((server, tool))],
                others: Vec::new(),
                written: None,
            }),
            false => Err((format!("{inside:?} is not SERVER or SERVER/TOOL"), None)),
        }
    }

    /// Whether it is not clear which tools they are, so that none can be allowed.
    pub fn are_ambiguous(&self) -> bool {
        matches!(self, Tools::Mcp { names, .. } if names.len() > 1)
    }

    /// What kind of tools they are, if one.
    pub fn class(&self) -> Option<Class> {
        match self {
            Tools::Every | Tools::Discovered(_) => None,
            Tools::Kind(class) => Some(*class),
            Tools::One(tool) => Some(tool.class),
            Tools::Mcp { .. } => Some(Class::Mcp),
        }
    }

    /// Their names in a policy of the CLI. Of a server's tools it is all: whose they are is not always clear.
    pub fn names(&self) -> Vec<String> {
        let of = |tool: &Tool| {
            std::iter::once(tool.name)
                .chain(tool.aliases.iter().copied())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        match self {
            Tools::Every => vec!["*".to_owned()],
            Tools::Kind(Class::Mcp) | Tools::Mcp { .. } => vec!["*__*".to_owned()],
            Tools::Kind(class) => TOOLS.iter().filter(|tool| tool.class == *class).flat_map(of).collect(),
            Tools::One(tool) => of(tool),
            Tools::Discovered(name) => vec![name.clone()],
        }
    }

    pub fn fit(&self, question: &Question) -> Fit {
        if !question.named {
            return self.fit_of_unnamed(question.class);
        }
        let is = match self {
            Tools::Every => true,
            Tools::Kind(class) => *class == question.class,
            Tools::One(tool) => Tool::find(&question.tool).is_some_and(|asked| asked.name == tool.name),
            Tools::Discovered(name) => *name == question.tool,
            Tools::Mcp { names, others, written } if question.class == Class::Mcp => {
                let is_own_name = |name: &String| gemini::registered_name(name) == question.tool;
                let may_be = written.as_ref().is_some_and(is_own_name)
                    || others.iter().any(|names| names.fit(question) > Fit::No);
                let least = if may_be { Fit::Maybe } else { Fit::No };
                return names.iter().map(|names| names.fit(question)).fold(least, Fit::max);
            }
            Tools::Mcp { .. } => false,
        };
        if is { Fit::Yes } else { Fit::No }
    }

    /// Of a tool without a name only its kind is known, if that.
    fn fit_of_unnamed(&self, class: Class) -> Fit {
        let may_be = match self {
            Tools::Every => return Fit::Yes,
            Tools::Kind(kind) if *kind == class => return Fit::Yes,
            Tools::Kind(_) => class == Class::Unknown,
            Tools::One(tool) => class == Class::Unknown || class == tool.class,
            Tools::Discovered(_) => true,
            Tools::Mcp { .. } => matches!(class, Class::Mcp | Class::Unknown),
        };
        if may_be { Fit::Maybe } else { Fit::No }
    }
}

pub(super) const NO_END: &str = "it does not say where the server's name ends";
pub(super) const NO_END_HINT: &str = "Write mcp(SERVER/TOOL), where both can have a *.";

/// A tool of an MCP server by its whole name: `mcp__SERVER__TOOL`, `SERVER__TOOL` or `mcp_SERVER_TOOL`. The last one does not
/// say where the server's name ends, so it has to be clear.
fn mcp_name(name: &str) -> Option<Result<Tools, Wrong>> {
    let mut readings = tool::mcp_readings(name);
    let is_claudes = name.strip_prefix("mcp__").is_some_and(|rest| rest.contains("__"));
    if let Some(rest) = name.strip_prefix("mcp_").filter(|_| !is_claudes) {
        let (server, tool) = rest.split_once('_').filter(|(_, tool)| !tool.is_empty())?;
        if name.contains('*') && (tool != "*" || server.contains('*') || !readings.is_empty()) {
            return Some(Err((NO_END.to_owned(), Some(NO_END_HINT.to_owned()))));
        }
        readings.push((server, tool));
    }
    let others = if is_claudes { tool::divisions(name) } else { Vec::new() };
    let all = |names: Vec<_>| names.into_iter().map(McpNames::of).collect();
    let written = name.starts_with("mcp_").then(|| name.to_owned());
    (!readings.is_empty()).then(|| Ok(Tools::Mcp { names: all(readings), others: all(others), written }))
}

impl McpNames {
    fn of((server, tool): (&str, &str)) -> Self {
        let pieces = |text: &str| text.split('*').map(str::to_owned).collect();
        Self { server: pieces(server), tool: pieces(tool) }
    }

    fn are(&self, server: &str, tool: &str) -> bool {
        is_like(&self.server, server) && is_like(&self.tool, tool)
    }

    /// Certain is what the names themselves say. What only Gemini CLI's whole name says may be meant: it replaces characters, and leaves
    /// out the middle.
    fn fit(&self, question: &Question) -> Fit {
        let name = question.tool.as_str();
        let written = match (&*self.server, &*self.tool) {
            ([server], [tool]) => Some((server, tool)),
            _ => None,
        };
        let is_called_so = written.is_some_and(|(server, tool)| gemini::mcp_name(server, tool) == name);
        let may_be = |may_be: bool| if may_be { Fit::Maybe } else { Fit::No };
        if let (Some(server), Some(tool)) = (&question.server, &question.server_tool) {
            let is_shown_so = || self.are(&gemini::plain(server), &gemini::plain(tool));
            return if self.are(server, tool) { Fit::Yes } else { may_be(is_called_so || is_shown_so()) };
        }
        if gemini::may_be_shortened(name) {
            return may_be(is_called_so || written.is_none() || !name.contains("..."));
        }
        let plain = |pieces: &[String]| pieces.iter().map(|piece| gemini::plain(piece)).collect::<Vec<_>>();
        let shown = Self { server: plain(&self.server), tool: plain(&self.tool) };
        let is_plain = shown.server == self.server && shown.tool == self.tool;
        let Some(rest) = whole_name(name) else { return Fit::No };
        if let ([server], [tool]) = (&*shown.server, &*shown.tool) {
            // Two servers with such names would be one to Gemini CLI, too.
            let is = rest == format!("{server}_{tool}") || rest == format!("{server}__{tool}");
            return if is && is_plain { Fit::Yes } else { may_be(is || is_called_so) };
        }
        let fitting: Vec<bool> = splits(rest).map(|(server, tool)| shown.are(server, tool)).collect();
        match fitting.iter().all(|fits| *fits) && is_plain && !fitting.is_empty() {
            true => Fit::Yes,
            // A server's name can begin with `mcp_` or with an underscore itself.
            false => {
                let unprefixed = name.strip_prefix("mcp_").unwrap_or_default();
                let mut others = splits(name).chain(splits(unprefixed));
                may_be(fitting.contains(&true) || others.any(|(server, tool)| shown.are(server, tool)))
            }
        }
    }
}

/// The servers and tools that a name with an underscore between them can mean.
fn splits(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let splits = name.match_indices('_').flat_map(|(at, _)| {
        let (server, tool) = name.split_at(at);
        [tool.get(1..).unwrap_or_default(), tool.trim_start_matches('_')].map(|tool| (server, tool))
    });
    splits.filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// Server and tool in one.
fn whole_name(name: &str) -> Option<&str> {
    match name.strip_prefix("mcp_") {
        Some(rest) => Some(rest.strip_prefix('_').unwrap_or(rest)),
        None => name.contains("__").then_some(name),
    }
}
