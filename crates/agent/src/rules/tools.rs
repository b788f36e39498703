//! Which tools a rule means: a kind (`shell`, `edit`), a name of Gemini CLI's or of Claude's, or those of an MCP server.

use alhena_model::tool::{Class, TOOLS, Tool};

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
        server: Vec<String>,
        tool: Vec<String>,
    },
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
            true => Ok(Self::mcp(server, tool)),
            false => Err((format!("{inside:?} is not SERVER or SERVER/TOOL"), None)),
        }
    }

    fn mcp(server: &str, tool: &str) -> Self {
        let pieces = |text: &str| text.split('*').map(str::to_owned).collect();
        Tools::Mcp { server: pieces(server), tool: pieces(tool) }
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
            Tools::Mcp { server, tool } => {
                return if question.class == Class::Mcp { mcp_fit(server, tool, question) } else { Fit::No };
            }
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

/// A tool of an MCP server by its whole name: `mcp__SERVER__TOOL`, `SERVER__TOOL` or `mcp_SERVER_TOOL`. The last one does not
/// say where the server's name ends, so it has to be clear.
fn mcp_name(name: &str) -> Option<Result<Tools, Wrong>> {
    let doubled = name.strip_prefix("mcp__").filter(|rest| rest.contains("__")).unwrap_or(name);
    if let Some((server, tool)) =
        doubled.split_once("__").filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
    {
        return Some(Ok(Tools::mcp(server, tool)));
    }
    let (server, tool) = name.strip_prefix("mcp_")?.split_once('_')?;
    if server.is_empty() || tool.is_empty() {
        return None;
    }
    match name.contains('*') && (tool != "*" || server.contains('*')) {
        true => Some(Err((
            "it does not say where the server's name ends".to_owned(),
            Some("Write mcp(SERVER/TOOL), where both can have a *.".to_owned()),
        ))),
        false => Some(Ok(Tools::mcp(server, tool))),
    }
}

fn mcp_fit(server: &[String], tool: &[String], question: &Question) -> Fit {
    let Some((rest, doubled)) = whole_name(&question.tool) else { return Fit::No };
    let fits = |parts: (&str, &str)| is_like(server, parts.0) && is_like(tool, parts.1);
    if let Some(known) = &question.server {
        let separator = if doubled { "__" } else { "_" };
        let tool = rest.strip_prefix(known.as_str()).and_then(|rest| rest.strip_prefix(separator));
        // A name that does not fit its server is nobody's.
        return tool.map_or(Fit::Maybe, |tool| if fits((known, tool)) { Fit::Yes } else { Fit::No });
    }
    if let ([server], [tool]) = (server, tool) {
        // Two servers with such names would be one to Gemini CLI, too.
        let is = rest == format!("{server}_{tool}") || rest == format!("{server}__{tool}");
        return if is { Fit::Yes } else { Fit::No };
    }
    let splits = rest.match_indices('_').filter_map(|(at, _)| {
        let (server, tool) = rest.split_at(at);
        let tool = tool.trim_start_matches('_');
        (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
    });
    let fitting: Vec<bool> = splits.map(fits).collect();
    match (fitting.iter().all(|fits| *fits), fitting.iter().any(|fits| *fits)) {
        (true, true) => Fit::Yes,
        (_, true) => Fit::Maybe,
        (_, false) => Fit::No,
    }
}

/// Server and tool in one, and whether two underscores are between them.
fn whole_name(name: &str) -> Option<(&str, bool)> {
    match name.strip_prefix("mcp_") {
        Some(rest) => Some(rest.strip_prefix('_').map_or((rest, false), |rest| (rest, true))),
        None => name.contains("__").then_some((name, true)),
    }
}
