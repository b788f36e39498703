//! How every wire type is read: objects that skip unknown fields, and words from an open set.
//!
//! Gemini CLI adds fields from release to release without notice (`cached` in 0.22, `models` in 0.34), and now and then a
//! field has another type than before. Reading therefore has two ways: one strict and fast, one that gives what fits.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

use crate::raw::without_lone_surrogates;

/// How a field's value is read. Like `Deserialize`, but it borrows strings behind `Option` and `Cow` as well, and it
/// knows what to do when the field is not there.
pub(crate) trait Decode<'de>: Sized {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    fn absent<E: de::Error>(key: &'static str) -> Result<Self, E> {
        Err(E::missing_field(key))
    }

    /// Reads what can be read: inside the value, a field of another type than expected counts as absent, and lone surrogates
    /// are replaced. Slower; for what was already found not to fit.
    fn lenient(text: &'de str) -> Option<Self> {
        strict(text).ok()
    }
}

pub(crate) fn strict<'de, T: Decode<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).map(|Via(value)| value)
}

/// Makes a `Decode` type usable where serde asks for `Deserialize`.
pub(crate) struct Via<T>(pub T);

impl<'de, T: Decode<'de>> Deserialize<'de> for Via<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::decode(deserializer).map(Via)
    }
}

/// serde borrows a `Cow` only where it is told to.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Decode<'de> for Cow<'a, str> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|Text(text)| text)
    }

    fn lenient(text: &'de str) -> Option<Self> {
        strict(text).ok().or_else(|| {
            let repaired = without_lone_surrogates(text)?;
            serde_json::from_str(&repaired).ok().map(Cow::Owned)
        })
    }
}

impl<'de> Decode<'de> for bool {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bool::deserialize(deserializer)
    }
}

impl<'de, T: Decode<'de>> Decode<'de> for Option<T> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| value.map(|Via(value)| value))
    }

    fn absent<E: de::Error>(_key: &'static str) -> Result<Self, E> {
        Ok(None)
    }

    fn lenient(text: &'de str) -> Option<Self> {
        if text == "null" { Some(None) } else { T::lenient(text).map(Some) }
    }
}

impl<'de, T: Decode<'de>> Decode<'de> for Box<T> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::decode(deserializer).map(Box::new)
    }

    fn lenient(text: &'de str) -> Option<Self> {
        T::lenient(text).map(Box::new)
    }
}

impl<'de, T: Decode<'de>> Decode<'de> for Vec<T> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list: Vec<Via<T>> = Deserialize::deserialize(deserializer)?;
        Ok(list.into_iter().map(|Via(item)| item).collect())
    }

    fn lenient(text: &'de str) -> Option<Self> {
        let items: Vec<&'de RawValue> = serde_json::from_str(text).ok()?;
        items.into_iter().map(|item| T::lenient(item.get())).collect()
    }
}

/// Cuts the tie to the text that a value was parsed from.
pub(crate) trait IntoOwned {
    type Owned;
    fn into_owned(self) -> Self::Owned;
}

impl IntoOwned for Cow<'_, str> {
    type Owned = Cow<'static, str>;
    fn into_owned(self) -> Cow<'static, str> {
        Cow::Owned(self.into_owned())
    }
}

impl<T: IntoOwned> IntoOwned for Option<T> {
    type Owned = Option<T::Owned>;
    fn into_owned(self) -> Self::Owned {
        self.map(T::into_owned)
    }
}

impl<T: IntoOwned> IntoOwned for Box<T> {
    type Owned = Box<T::Owned>;
    fn into_owned(self) -> Self::Owned {
        Box::new(T::into_owned(*self))
    }
}

impl<T: IntoOwned> IntoOwned for Vec<T> {
    type Owned = Vec<T::Owned>;
    fn into_owned(self) -> Self::Owned {
        self.into_iter().map(T::into_owned).collect()
    }
}

macro_rules! owned_already {
    ($($type:ty),*) => { $(impl $crate::object::IntoOwned for $type {
        type Owned = $type;
        fn into_owned(self) -> $type { self }
    })* };
}
owned_already!(bool, crate::Count);

/// An object read field by field.
pub(crate) trait Object<'de>: Sized {
    fn read<A: de::MapAccess<'de>>(map: A) -> Result<Self, A::Error>;

    /// Takes fields of any type and leaves out those that do not fit. `None` only if one that must be there is missing.
    fn from_fields<'k>(fields: impl Iterator<Item = (&'k str, &'de str)>) -> Option<Self>;
}

pub(crate) struct ObjectVisitor<T>(pub PhantomData<T>);

impl<'de, T: Object<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::read(map)
    }
}
