//! Numbers and maps of the wire.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserializer, Visitor};
use serde_json::value::RawValue;

use crate::object::{Decode, IntoOwned, Via, strict};

/// A number that counts something. The CLI writes JavaScript numbers: whole and not negative in every recording, but
/// nothing upstream promises it, and one odd figure must not cost the whole event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// What every known release writes.
    Whole(u64),
    /// A fraction or a negative number.
    Other(f64),
}

impl Count {
    /// The number as a count: rounded, and 0 when negative.
    pub fn get(self) -> u64 {
        match self {
            Count::Whole(whole) => whole,
            Count::Other(other) => other.round() as u64,
        }
    }
}

impl From<u64> for Count {
    fn from(whole: u64) -> Self {
        Count::Whole(whole)
    }
}

/// An object used as a map, in the order in which it was written; `stats.models` is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<'a, T>(pub Vec<(Cow<'a, str>, T)>);

impl<T> Default for Named<'_, T> {
    fn default() -> Self {
        Named(Vec::new())
    }
}

impl<T> Named<'_, T> {
    /// The value under a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Name and value of each entry.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
        Ok(Count::Whole(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
        Ok(u64::try_from(number).map_or(Count::Other(number as f64), Count::Whole))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Count, E> {
        // JavaScript does not tell 1 from 1.0; nor does this.
        let whole = (0.0..9e15).contains(&number) && number.fract() == 0.0;
        Ok(if whole { Count::Whole(number as u64) } else { Count::Other(number) })
    }
}

impl<'de> Decode<'de> for Count {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct NamedVisitor<T>(PhantomData<T>);

impl<'de, T: Decode<'de>> Visitor<'de> for NamedVisitor<T> {
    type Value = Named<'de, T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((Via(name), Via(value))) = map.next_entry()? {
            entries.push((name, value));
        }
        Ok(Named(entries))
    }
}

impl<'de: 'a, 'a, T: Decode<'de>> Decode<'de> for Named<'a, T> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(NamedVisitor(PhantomData))
    }

    fn lenient(text: &'de str) -> Option<Self> {
        let entries: Named<'de, &'de RawValue> = strict(text).ok()?;
        let read = entries.0.into_iter().map(|(name, value)| Some((name, T::lenient(value.get())?)));
        read.collect::<Option<_>>().map(Named)
    }
}

impl<T: IntoOwned> IntoOwned for Named<'_, T> {
    type Owned = Named<'static, T::Owned>;
    fn into_owned(self) -> Self::Owned {
        Named(
            self.0
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name.into_owned()), value.into_owned()))
                .collect(),
        )
    }
}
