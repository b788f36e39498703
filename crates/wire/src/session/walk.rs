//! A large object read value by value.
//!
//! A session of up to 0.38 is one object of many megabytes, which may be cut off anywhere. So this steps through the brackets and
//! commas of the outermost object and of its `messages`, and leaves every value between them to serde_json.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::object::{Decode, Via};

/// The text is not JSON, from here on.
pub(super) struct Broken;

pub(super) struct Walk<'a> {
    text: &'a str,
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Walk { text }
    }

    /// The first character that is not white space.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.text = self.text.trim_start_matches([' ', '\t', '\r', '\n']);
        self.text.chars().next()
    }

    /// Takes a bracket or a comma, if it is the next thing.
    pub(super) fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(sign);
        if found {
            self.text = self.text.strip_prefix(sign).unwrap_or(self.text);
        }
        found
    }

    /// Takes the next value. Does not move if that is not possible.
    fn value<T: Decode<'a>>(&mut self) -> Result<T, Broken> {
        let mut values = serde_json::Deserializer::from_str(self.text).into_iter::<Via<T>>();
        let Some(Ok(Via(value))) = values.next() else { return Err(Broken) };
        self.text = self.text.get(values.byte_offset()..).ok_or(Broken)?;
        Ok(value)
    }

    pub(super) fn skip(&mut self) -> Result<&'a str, Broken> {
        self.value::<&'a RawValue>().map(RawValue::get)
    }

    /// Calls `f` at every value of an object; `f` has to take it.
    pub(super) fn object(
        &mut self,
        mut f: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        self.list('{', '}', |walk| {
            let key = walk.value::<Cow<'a, str>>()?;
            if walk.take(':') { f(walk, key) } else { Err(Broken) }
        })
    }

    /// Calls `f` at every value of an array; `f` has to take it.
    pub(super) fn array(&mut self, f: impl FnMut(&mut Self) -> Result<(), Broken>) -> Result<(), Broken> {
        self.list('[', ']', f)
    }

    fn list(
        &mut self,
        open: char,
        close: char,
        mut f: impl FnMut(&mut Self) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        if !self.take(open) {
            return Err(Broken);
        }
        if self.take(close) {
            return Ok(());
        }
        loop {
            f(self)?;
            if self.take(close) {
                return Ok(());
            }
            if !self.take(',') {
                return Err(Broken);
            }
        }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }
}
