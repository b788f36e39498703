//! A session and its sub-agents, read from disk.

use std::collections::HashMap;
use std::io;

use alhena_model::{Conversation, Include, Message};

use crate::export::Page;
use crate::{Session, Transcript};

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
#[derive(Debug)]
pub struct Files {
    main: Transcript,
    /// In the order of the session's children; a sub-agent's file that is gone must not hide the session.
    children: Vec<Option<Transcript>>,
}

impl Files {
    /// Reads them.
    pub fn read(session: &Session) -> io::Result<Self> {
        let main = Transcript::read(&session.file.path)?;
        let children = session.children.iter().map(|child| Transcript::read(&child.file.path).ok());
        Ok(Self { main, children: children.collect() })
    }

    /// The conversation, without those of sub-agents.
    pub fn conversation(&self, what: What) -> Conversation<'_> {
        conversation(&self.main, what)
    }

    /// Hands the conversation to `f`, with those of the sub-agents; they borrow from what is read on the way.
    pub fn with_page<T>(&self, session: &Session, what: What, f: impl FnOnce(&Page<'_>) -> T) -> T {
        let children: Vec<(&Session, &Transcript)> = session
            .children
            .iter()
            .zip(&self.children)
            .filter_map(|(child, read)| Some((child, read.as_ref()?)))
            .collect();
        let conversations = std::iter::once(&self.main).chain(children.iter().map(|(_, read)| *read));
        let mut conversations = conversations.map(|read| conversation(read, what));
        let main = conversations.next().unwrap_or_default();
        let calls = calls_of_agents(&main);
        let said = &main.into_messages()[..];
        let others: Vec<Vec<Message<'_>>> = conversations.map(Conversation::into_messages).collect();
        let mut page = Page::new(session, said);
        page.children = children
            .iter()
            .zip(&others)
            .map(|((child, _), list)| {
                (calls.get(&child.id).cloned().unwrap_or_default(), Page::new(child, list))
            })
            .collect();
        f(&page)
    }
}

fn conversation(read: &Transcript, what: What) -> Conversation<'_> {
    match what {
        What::History => read.history().conversation,
        What::Said => read.conversation(Include::Said),
        What::Everything => read.conversation(Include::Everything),
    }
}

/// The call that started each sub-agent, by the agent's id.
fn calls_of_agents(said: &Conversation<'_>) -> HashMap<String, String> {
    let runs = said.entries().iter().flat_map(|entry| &entry.runs);
    runs.filter_map(|run| Some((run.agent.as_ref()?.to_string(), run.id.to_string()))).collect()
}
