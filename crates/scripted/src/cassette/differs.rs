//! What differs between two requests, for people.

use serde_json::Value;

use super::Asked;
use super::normal::SECRET;

/// So much of a text is shown, from a little before the place where it differs.
const SHOWN: usize = 60;
const BEFORE: usize = 20;

pub(super) fn same(recorded: &Asked, asked: &Asked) -> bool {
    recorded.method == asked.method
        && fits(&recorded.path, &asked.path)
        && place(&recorded.body, &asked.body, "").is_none()
}

/// Whether a text is the one that was recorded, whatever stands where that one had secrets.
fn fits(recorded: &str, asked: &str) -> bool {
    let mut between = recorded.split(SECRET);
    let first = between.next().unwrap_or_default();
    let literals = between.map(|rest| rest.split_once("]]").map_or(rest, |(_, literal)| literal));
    let mut literals: Vec<&str> = literals.collect();
    let Some(last) = literals.pop() else { return recorded == asked };
    let Some(mut rest) = asked.strip_prefix(first) else { return false };
    for literal in literals {
        let Some((_, after)) = rest.split_once(literal) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

/// How unlike two requests are: one of the same kind and the same beginning is meant.
pub(super) fn distance(recorded: &Asked, asked: &Asked) -> usize {
    let paths = usize::from(recorded.path != asked.path) * 1000;
    paths + lengths(&recorded.body, &asked.body) * 10 + count(&recorded.body, &asked.body)
}

/// How many entries the conversation of one has more.
fn lengths(left: &Value, right: &Value) -> usize {
    let of = |body: &Value| body.get("contents").and_then(Value::as_array).map_or(0, Vec::len);
    of(left).abs_diff(of(right))
}

fn count(left: &Value, right: &Value) -> usize {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let here =
                left.iter().map(|(name, value)| right.get(name).map_or(1, |other| count(value, other)));
            here.sum::<usize>() + right.keys().filter(|name| !left.contains_key(*name)).count()
        }
        (Value::Array(left), Value::Array(right)) => {
            let both: usize = left.iter().zip(right).map(|(left, right)| count(left, right)).sum();
            both + left.len().abs_diff(right.len())
        }
        (Value::String(left), Value::String(right)) => usize::from(!fits(left, right)),
        _ => usize::from(left != right),
    }
}

/// What differs, in words: the first place, and how many more there are. None when nothing does.
pub(super) fn in_words(recorded: &Asked, asked: &Asked) -> Option<String> {
    let first = first(recorded, asked)?;
    // An entry too many or too few is one place.
    match count(&recorded.body, &asked.body).saturating_sub(1) {
        more @ 1.. if recorded.path == asked.path => Some(format!("{first} (and {more} more)")),
        _ => Some(first),
    }
}

/// The first place that differs; none when nothing does.
fn first(recorded: &Asked, asked: &Asked) -> Option<String> {
    if recorded.method != asked.method || recorded.path != asked.path {
        let was = format!("{} {}", recorded.method, recorded.path);
        return Some(format!("recorded was {was}, asked is {} {}", asked.method, asked.path));
    }
    place(&recorded.body, &asked.body, "")
}

fn place(recorded: &Value, asked: &Value, at: &str) -> Option<String> {
    match (recorded, asked) {
        (Value::Object(left), Value::Object(right)) => {
            let within = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            let changed = left.iter().find_map(|(name, value)| match right.get(name) {
                Some(other) => place(value, other, &within(name)),
                None => Some(format!("{} was recorded and is missing", within(name))),
            });
            let added = || right.keys().find(|name| !left.contains_key(*name));
            changed.or_else(|| added().map(|name| format!("{} was not recorded", within(name))))
        }
        (Value::Array(left), Value::Array(right)) => {
            let mut both = left.iter().zip(right).enumerate();
            let changed =
                both.find_map(|(index, (left, right))| place(left, right, &format!("{at}[{index}]")));
            let lengths = || format!("{at} has {} entries, recorded were {}", right.len(), left.len());
            changed.or_else(|| (left.len() != right.len()).then(lengths))
        }
        (Value::String(left), Value::String(right)) if fits(left, right) => None,
        (Value::String(left), Value::String(right)) => {
            let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
            Some(format!("{at}: recorded was {:?}, asked is {:?}", shown(left, same), shown(right, same)))
        }
        _ if recorded == asked => None,
        _ => Some(format!("{at}: recorded was {}, asked is {}", brief(recorded), brief(asked))),
    }
}

fn shown(text: &str, same: usize) -> String {
    let from = same.saturating_sub(BEFORE);
    let dots = |is: bool| if is { "…" } else { "" };
    let part: String = text.chars().skip(from).take(SHOWN).collect();
    let is_cut = text.chars().nth(from + SHOWN).is_some();
    format!("{}{part}{}", dots(from > 0), dots(is_cut))
}

fn brief(value: &Value) -> String {
    shortened(&value.to_string())
}

pub(super) fn shortened(text: &str) -> String {
    shown(text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_stands_in_the_place_of_a_secret_fits() {
        let recorded = "the [[secret:A]] of [[secret:B]], [[secret:A]]";
        for fitting in ["the a of b, a", "the [[secret:C]] of , of b, ]]"] {
            assert!(fits(recorded, fitting), "{fitting}");
        }
        for other in ["the a of b", "a the a of b, a", "", "the of, "] {
            assert!(!fits(recorded, other), "{other}");
        }
        assert!(fits("[[secret:A]]", "") && fits("x", "x") && !fits("x", "y"));
        assert!(!fits("ab[[secret:A]]ba", "aba"));
    }

    fn asked(body: Value) -> Asked {
        Asked { method: "POST".into(), path: "/m".into(), body }
    }

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        let recorded =
            asked(json!({"contents": [{"parts": [{"text": "Write a poem about rivers, please"}]}]}));
        let difference = |body: Value| in_words(&recorded, &asked(body));
        assert_eq!(difference(recorded.body.clone()), None);
        assert_eq!(
            difference(json!({"contents": [{"parts": [{"text": "Write a poem about lakes, please"}]}]}))
                .unwrap(),
            "contents[0].parts[0].text: recorded was \"Write a poem about rivers, please\", asked is \"Write a poem about \
             lakes, please\""
        );
        assert_eq!(difference(json!({"contents": []})).unwrap(), "contents has 0 entries, recorded were 1");
        assert_eq!(difference(json!({})).unwrap(), "contents was recorded and is missing");
        let more = json!({"contents": recorded.body["contents"], "tools": []});
        assert_eq!(difference(more).unwrap(), "tools was not recorded");
        let two = json!({"contents": [{"parts": [{"text": "Hi"}]}], "tools": []});
        assert!(difference(two).unwrap().ends_with(", asked is \"Hi\" (and 1 more)"));
    }
}
