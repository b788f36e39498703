//! The two forms that almost everything on the wire has.

/// Defines an object of the wire: a struct whose fields carry the CLI's own names. Other fields are skipped.
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
            fn read<A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                use $crate::object::{Decode, Via};
                $(let mut $field: Option<$type> = None;)*
                while let Some(Via(key)) = map.next_key::<Via<std::borrow::Cow<'de, str>>>()? {
                    match &*key {
                        $($key => {
                            let Via(value) = map.next_value::<Via<$type>>()?;
                            $field = Some(value);
                        })*
                        _ => { map.next_value::<serde::de::IgnoredAny>()?; }
                    }
                }
                Ok($name {
                    $($field: match $field { Some(value) => value, None => <$type as Decode<'de>>::absent($key)? },)*
                })
            }

            fn from_fields<'k>(
                fields: impl Iterator<Item = (&'k str, &'de str)>,
            ) -> Option<Self> {
                use $crate::object::Decode;
                $(let mut $field: Option<$type> = None;)*
                for (key, text) in fields {
                    match key {
                        $($key => $field = <$type as Decode<'de>>::lenient(text).or($field),)*
                        _ => {}
                    }
                }
                Some($name {
                    $($field: match $field {
                        Some(value) => value,
                        None => <$type as Decode<'de>>::absent::<serde::de::value::Error>($key).ok()?,
                    },)*
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

        impl $($lt)* $crate::object::IntoOwned for $name $($lt)* {
            type Owned = $name $($owned)*;
            fn into_owned(self) -> Self::Owned {
                $name {
                    $($field: $crate::object::IntoOwned::into_owned(self.$field),)*
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

        impl $crate::object::IntoOwned for $name<'_> {
            type Owned = $name<'static>;
            fn into_owned(self) -> Self::Owned { $name::into_owned(self) }
        }
    };
}
