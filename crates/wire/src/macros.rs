//! The two forms that almost everything on the wire has.

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
        $($(#[doc = $doc:literal])* $key:literal $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name $($lt)* {
            $($(#[doc = $doc])* pub $field: $type,)*
            /// Upstream: fields that this release of Alhena does not know, as they were written.
            pub extra: $crate::Extra,
        }

        #[cfg(feature = "schema")]
        impl $($lt)* $name $($lt)* {
            /// The fields that are known, in order.
            pub const FIELDS: &'static [$crate::schema::Field] = &[$($crate::schema::Field {
                name: $key,
                rust: stringify!($type),
                doc: concat!($($doc, "\n",)*),
            },)*];
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
                            extra.set_null($key, value.is_absent());
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

            fn from_fields<'k>(
                fields: impl Iterator<Item = (&'k str, &'de str)>,
            ) -> Option<Self> {
                use $crate::object::Decode;
                $(let mut $field: Option<$type> = None;)*
                let mut extra = $crate::Extra::default();
                for (key, text) in fields {
                    match key {
                        $($key => match <$type as Decode<'de>>::lenient(text) {
                            Some(value) if !value.is_absent() => $field = Some(value),
                            _ => extra.push(key, $crate::Raw::trusted(text)),
                        })*
                        other => extra.push(other, $crate::Raw::trusted(text)),
                    }
                }
                Some($name {
                    $($field: match $field {
                        Some(value) => value,
                        None => <$type as Decode<'de>>::absent::<serde::de::value::Error>($key).ok()?,
                    },)*
                    extra,
                })
            }
        }

        impl<'de $($bound)*> $crate::object::Decode<'de> for $name $($lt)* {
            fn decode<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map($crate::object::ObjectVisitor::<Self>(std::marker::PhantomData))
            }

            fn lenient(text: &'de str) -> Option<Self> {
                let fields: $crate::Named<'de, &'de serde_json::value::RawValue> = $crate::object::strict(text).ok()?;
                $crate::object::Object::from_fields(fields.iter().map(|(key, value)| (key, value.get())))
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

            fn lenient(text: &'de str) -> Option<Self> {
                <std::borrow::Cow<'a, str> as $crate::object::Decode<'de>>::lenient(text).map(Self::from)
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
