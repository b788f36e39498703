//! A session and its sub-agents, read from disk.

use std::collections::HashMap;
use std::io;

use alhena::model::message::Block;
use alhena::model::{Include, Message};
use alhena::session::export::Page;
use alhena::session::{Session, Transcript};
use alhena::wire::session::MessageRecord;

/// What to read of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// What was said.
    Said,
    /// Every record.
    Everything,
    /// What was said, with what the CLI dropped from the conversation.
    History,
}

/// The files of a session in memory.
pub struct Files {
    main: Transcript,
    /// In the order of the session's children; a sub-agent's file that is gone must not hide the session.
    children: Vec<Option<Transcript>>,
}

impl Files {
    pub fn read(session: &Session) -> io::Result<Self> {
        let main = Transcript::read(&session.file.path)?;
        let children = session.children.iter().map(|child| Transcript::read(&child.file.path).ok());
        Ok(Self { main, children: children.collect() })
    }

    /// Hands the conversation to `f`, with those of the sub-agents; they borrow from what is read on the way.
    pub fn with_page<T>(&self, session: &Session, what: What, f: impl FnOnce(&Page<'_>) -> T) -> T {
        let children: Vec<(&Session, &Transcript)> = session
            .children
            .iter()
            .zip(&self.children)
            .filter_map(|(child, read)| Some((child, read.as_ref()?)))
            .collect();
        let transcripts = || std::iter::once(&self.main).chain(children.iter().map(|(_, read)| *read));
        let lists: Vec<Vec<Message<'_>>> = match what {
            What::History => transcripts().map(|read| read.history().messages).collect(),
            What::Said => transcripts().map(|read| read.messages(Include::Said)).collect(),
            What::Everything => transcripts().map(|read| read.messages(Include::Everything)).collect(),
        };
        let (said, others) = lists.split_first().map_or((&[][..], &[][..]), |(said, others)| (said, others));
        let calls = calls_of_agents(said);
        let mut page = Page::new(session, said);
        page.children = children
            .iter()
            .zip(others)
            .map(|((child, _), list)| {
                (calls.get(&child.id).cloned().unwrap_or_default(), Page::new(child, list))
            })
            .collect();
        f(&page)
    }
}

/// The call that started each sub-agent, by the agent's id.
fn calls_of_agents(said: &[Message<'_>]) -> HashMap<String, String> {
    let has_calls = |message: &&Message<'_>| {
        message.content.blocks().iter().any(|block| matches!(block, Block::ToolUse { .. }))
    };
    let mut calls = HashMap::new();
    for message in said.iter().filter(has_calls) {
        let Some(record) = MessageRecord::from_text(message.original.get()) else { continue };
        for call in record.tool_calls.into_iter().flatten() {
            if let (Some(agent), Some(id)) = (call.agent_id, call.id) {
                calls.insert(agent.into_owned(), id.into_owned());
            }
        }
    }
    calls
}
