//! How every wire type is read and written: objects that keep unknown fields, and words from an open set.
//!
//! Gemini CLI adds fields from release to release without notice (`cached` in 0.22, `models` in 0.34), so each object
//! keeps what it does not know, in order. serde's own `flatten` would do that too, but it buffers every value of the
//! object first and so never borrows; on delta-heavy streams that halves the speed. Hence the small macros below.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::SerializeMap;

/// How a field's value is read. Like `Deserialize`, but it borrows strings behind `Option` and `Cow` as well, and it
/// knows what to do when the field is not there.
pub(crate) trait Decode<'de>: Sized {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    fn absent<E: de::Error>(key: &'static str) -> Result<Self, E> {
        Err(E::missing_field(key))
    }

    fn is_absent(&self) -> bool {
        false
    }
}

/// Makes a `Decode` type usable where serde asks for `Deserialize`.
pub(crate) struct Via<T>(pub T);

impl<'de, T: Decode<'de>> Deserialize<'de> for Via<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::decode(deserializer).map(Via)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
}

impl<'de: 'a, 'a> Decode<'de> for Cow<'a, str> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

impl<'de> Decode<'de> for bool {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bool::deserialize(deserializer)
    }
}

struct OptionVisitor<T>(PhantomData<T>);

impl<'de, T: Decode<'de>> Visitor<'de> for OptionVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        T::decode(deserializer).map(Some)
    }
}

impl<'de, T: Decode<'de>> Decode<'de> for Option<T> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(OptionVisitor(PhantomData))
    }

    fn absent<E: de::Error>(_key: &'static str) -> Result<Self, E> {
        Ok(None)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<'de, T: Decode<'de>> Decode<'de> for Box<T> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::decode(deserializer).map(Box::new)
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Decode<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Via(item)) = seq.next_element()? {
            list.push(item);
        }
        Ok(list)
    }
}

impl<'de, T: Decode<'de>> Decode<'de> for Vec<T> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
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

/// Defines an object of the wire: a struct whose fields carry the CLI's own names, plus `extra` for the rest.
macro_rules! wire_object {
    ($(#[$meta:meta])* pub struct $name:ident<'a> { $($body:tt)* }) => {
        wire_object!(@define [$(#[$meta])*] $name [<'a>] [: 'a, 'a] [<'static>] { $($body)* });
        impl $name<'_> {
            /// Cuts the tie to the text that this was parsed from.
            pub fn into_owned(self) -> $name<'static> {
                $crate::object::IntoOwned::into_owned(self)
            }
        }
    };
    ($(#[$meta:meta])* pub struct $name:ident { $($body:tt)* }) => {
        wire_object!(@define [$(#[$meta])*] $name [] [] [] { $($body)* });
    };
    (@define [$(#[$meta:meta])*] $name:ident [$($lt:tt)*] [$($bound:tt)*] [$($owned:tt)*] {
        $($(#[$fmeta:meta])* $key:literal $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name $($lt)* {
            $($(#[$fmeta])* pub $field: $type,)*
            /// Upstream: fields that this release of Alhena does not know, as they were written.
            pub extra: $crate::Extra,
        }

        impl<'de $($bound)*> $crate::object::Object<'de> for $name $($lt)* {
            fn read<A: serde::de::MapAccess<'de>>(mut map: A, tag: $crate::object::Tag) -> Result<Self, A::Error> {
                use $crate::object::{Decode, Via};
                $(let mut $field: Option<$type> = None;)*
                let mut extra = $crate::Extra::default();
                while let Some(Via(key)) = map.next_key::<Via<std::borrow::Cow<'de, str>>>()? {
                    match &*key {
                        $($key => {
                            let Via(value) = map.next_value::<Via<$type>>()?;
                            if value.is_absent() { extra.push_null($key); }
                            $field = Some(value);
                        })*
                        other if tag.is(other) => { map.next_value::<serde::de::IgnoredAny>()?; }
                        other => extra.push(other, map.next_value()?),
                    }
                }
                Ok($name {
                    $($field: match $field { Some(value) => value, None => <$type as Decode<'de>>::absent($key)? },)*
                    extra,
                })
            }
        }

        impl<'de $($bound)*> $crate::object::Decode<'de> for $name $($lt)* {
            fn decode<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map($crate::object::ObjectVisitor::<Self>(std::marker::PhantomData))
            }
        }

        impl<'de $($bound)*> serde::Deserialize<'de> for $name $($lt)* {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <Self as $crate::object::Decode<'de>>::decode(deserializer)
            }
        }

        impl $($lt)* $crate::object::SerializeFields for $name $($lt)* {
            fn serialize_fields<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $(if !$crate::object::Decode::is_absent(&self.$field) { map.serialize_entry($key, &self.$field)?; })*
                self.extra.serialize_into(map)
            }
        }

        impl $($lt)* serde::Serialize for $name $($lt)* {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $crate::object::SerializeFields::serialize_fields(self, &mut map)?;
                map.end()
            }
        }

        impl $($lt)* $crate::object::IntoOwned for $name $($lt)* {
            type Owned = $name $($owned)*;
            fn into_owned(self) -> Self::Owned {
                $name {
                    $($field: $crate::object::IntoOwned::into_owned(self.$field),)*
                    extra: self.extra,
                }
            }
        }
    };
}

/// Defines a word from an open set: the words the CLI is known to write, and any other.
macro_rules! wire_word {
    ($(#[$meta:meta])* pub enum $name:ident<'a> { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name<'a> {
            $($(#[$vmeta])* $variant,)*
            /// A word that no known release writes.
            Other(std::borrow::Cow<'a, str>),
        }

        impl $name<'_> {
            /// The word as it was written.
            pub fn as_str(&self) -> &str {
                match self { $($name::$variant => $word,)* $name::Other(word) => word }
            }

            /// Cuts the tie to the text that this was parsed from.
            pub fn into_owned(self) -> $name<'static> {
                match self {
                    $($name::$variant => $name::$variant,)*
                    $name::Other(word) => $name::Other(std::borrow::Cow::Owned(word.into_owned())),
                }
            }
        }

        impl<'a> From<std::borrow::Cow<'a, str>> for $name<'a> {
            fn from(word: std::borrow::Cow<'a, str>) -> Self {
                match &*word { $($word => $name::$variant,)* _ => $name::Other(word) }
            }
        }

        impl<'de: 'a, 'a> $crate::object::Decode<'de> for $name<'a> {
            fn decode<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <std::borrow::Cow<'a, str> as $crate::object::Decode<'de>>::decode(deserializer).map(Self::from)
            }
        }

        impl serde::Serialize for $name<'_> {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl $crate::object::IntoOwned for $name<'_> {
            type Owned = $name<'static>;
            fn into_owned(self) -> Self::Owned { $name::into_owned(self) }
        }
    };
}

/// An object read field by field.
pub(crate) trait Object<'de>: Sized {
    fn read<A: de::MapAccess<'de>>(map: A, tag: Tag) -> Result<Self, A::Error>;
}

/// Whether an object carries a key that names the struct and so is none of its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    None,
    Type,
}

impl Tag {
    pub(crate) fn is(self, key: &str) -> bool {
        self == Tag::Type && key == "type"
    }
}

pub(crate) struct ObjectVisitor<T>(pub PhantomData<T>);

impl<'de, T: Object<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::read(map, Tag::None)
    }
}

/// An object written field by field, so that an event can put its `type` in front.
pub(crate) trait SerializeFields {
    fn serialize_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}
