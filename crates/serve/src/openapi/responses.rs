//! What can go wrong, by what is asked.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::{ContentBuilder, Object, Ref, RefOr, Response, ResponseBuilder, Type};

fn problems(list: &[(u16, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    list.iter()
        .map(|(status, about)| {
            let mut response = ResponseBuilder::new()
                .description(*about)
                .content("application/problem+json", content.clone());
            if *status == 429 {
                let seconds = HeaderBuilder::new().schema(Object::with_type(Type::Integer)).build();
                response = response.header("retry-after", seconds);
            }
            (status.to_string(), RefOr::T(response.build()))
        })
        .collect()
}

const INPUT: (u16, &str) = (400, "What was asked makes no sense");
const TOKEN: (u16, &str) = (401, "There is no token, or a wrong one");
const REFUSED: (u16, &str) = (403, "It may not be asked for");
const UNKNOWN: (u16, &str) = (404, "There is no such thing");
const SLOW: (u16, &str) = (408, "The body did not arrive in time");
const CONFLICT: (u16, &str) = (409, "It does not go with how things are");
const LARGE: (u16, &str) = (413, "The body is too large");
const KIND: (u16, &str) = (415, "The body is not JSON");
const MANY: (u16, &str) = (429, "There are too many already");
const BROKEN: (u16, &str) = (500, "Something of the server's own went wrong");
const AWAY: (u16, &str) = (503, "Something that is needed is not there, or the server is ending");

macro_rules! sets {
    ($($(#[$about:meta])* $name:ident: $list:expr;)*) => {$(
        $(#[$about])*
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                problems(&$list)
            }
        }
    )*};
}

sets! {
    /// Of lists.
    Reading: [INPUT, TOKEN, REFUSED, BROKEN];
    /// Of one thing.
    Finding: [INPUT, TOKEN, REFUSED, UNKNOWN, BROKEN];
    /// Of what is only there when a run is over.
    NotYet: [CONFLICT];
    /// Of what only so many get at once.
    TooMany: [MANY];
    /// Of what begins something.
    Starting: [INPUT, TOKEN, REFUSED, SLOW, CONFLICT, LARGE, KIND, MANY, BROKEN, AWAY];
    /// Of what changes something.
    Changing: [INPUT, TOKEN, REFUSED, UNKNOWN, SLOW, CONFLICT, LARGE, KIND, BROKEN, AWAY];
    /// Of one terminal.
    FindingTerminal: [INPUT, TOKEN, REFUSED, UNKNOWN, CONFLICT, BROKEN, AWAY];
    /// Of what changes a terminal.
    ChangingTerminal: [INPUT, TOKEN, REFUSED, UNKNOWN, SLOW, CONFLICT, LARGE, KIND, BROKEN, AWAY];
    /// Of what needs Gemini CLI.
    Unavailable: [AWAY];
}
