#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use alhena_batch::meaning::Options;

use super::routes::Begins;
use super::*;
use crate::conversations::{ConversationState, ConversationView};
use crate::runs::{RunState, RunView};

const HOUR: i64 = 3_600_000;

/// What can be said to be over at a time.
trait Ends: Begins {
    fn end(&mut self, at: Timestamp);
}

impl Ends for RunView {
    fn end(&mut self, at: Timestamp) {
        (self.state, self.finished_at) = (RunState::Finished, Some(at));
    }
}

impl Ends for ConversationView {
    fn end(&mut self, at: Timestamp) {
        (self.state, self.closed_at) = (ConversationState::Closed, Some(at));
    }
}

fn shelf<V: Shelved>(dir: &Path, most: usize) -> Shelf<V> {
    let keeping = Keeping { most, longest: Duration::from_secs(3600) };
    Shelf::open(dir.join(V::NAME), 5, keeping, Arc::default()).unwrap()
}

fn key(name: &str) -> Key {
    Key { name: name.to_owned(), asked: "the same".to_owned() }
}

fn start<V: Begins>(shelf: &Shelf<V>, name: &str) -> Result<Started<V>, Problem> {
    shelf.begin(Some(key(name)), |id| V::asked(id, &Options::new()))
}

fn begun<V: Begins>(shelf: &Shelf<V>, name: &str) -> Arc<Kept<V>> {
    match start(shelf, name).unwrap() {
        Started::New(kept) => kept,
        Started::Before(_) => panic!("{name} was begun before"),
    }
}

fn is_known<V: Begins>(shelf: &Shelf<V>, name: &str, kept: &Kept<V>) -> bool {
    let all = shelf.all();
    let by_key = all.before(&key(name)).unwrap().is_some();
    assert_eq!(
        (by_key, kept.dir.exists()),
        (all.kept.contains_key(&kept.id), by_key),
        "all of it or nothing"
    );
    by_key
}

/// Ids of the same millisecond have no order.
fn next_millisecond() {
    let now = Timestamp::now();
    while Timestamp::now() == now {
        std::hint::spin_loop();
    }
}

fn only_so_many_are_kept<V: Ends>() {
    let dir = tempfile::tempdir().unwrap();
    let shelf: Shelf<V> = shelf(dir.path(), 2);
    let now = Timestamp::now();
    let names = ["goes on", "first", "second", "third", "fourth"];
    let all = names.map(|name| {
        let kept = begun(&shelf, name);
        next_millisecond();
        kept
    });
    all.iter().skip(1).for_each(|kept| kept.locked().end(now));
    shelf.prune(now);
    let known: Vec<bool> = names.iter().zip(&all).map(|(name, kept)| is_known(&shelf, name, kept)).collect();
    assert_eq!(known, [true, false, false, true, true]);
    begun(&shelf, "first");
    assert!(matches!(start(&shelf, "fourth").unwrap(), Started::Before(_)));
}

#[test]
fn the_oldest_are_forgotten_when_there_are_too_many_with_their_keys_and_their_files() {
    only_so_many_are_kept::<RunView>();
    only_so_many_are_kept::<ConversationView>();
}

fn only_for_so_long<V: Ends>() {
    let dir = tempfile::tempdir().unwrap();
    let shelf: Shelf<V> = shelf(dir.path(), 100);
    let now = Timestamp::now().as_millis();
    let at = |hours: i64| Timestamp::from_millis(now + hours * HOUR);
    let (going, early, late) = (begun(&shelf, "going"), begun(&shelf, "early"), begun(&shelf, "late"));
    early.locked().end(at(0));
    late.locked().end(at(5));
    let known = |when: i64| {
        shelf.prune(Timestamp::from_millis(when));
        [("going", &going), ("early", &early), ("late", &late)]
            .map(|(name, kept)| is_known(&shelf, name, kept))
    };
    assert_eq!(known(now + HOUR), [true; 3]);
    assert_eq!(known(now + HOUR + 1), [true, false, true]);
    // What took long is as new as its end.
    assert_eq!(known(now + 6 * HOUR), [true, false, true]);
    assert_eq!(known(now + 100 * HOUR), [true, false, false]);
    begun(&shelf, "early");
}

#[test]
fn what_is_over_is_forgotten_with_age_and_what_goes_on_is_not() {
    only_for_so_long::<RunView>();
    only_for_so_long::<ConversationView>();
}

#[test]
fn a_shelf_that_is_told_to_be_the_last_begins_nothing_and_still_knows_what_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let shelf: Shelf<RunView> = shelf(dir.path(), 100);
    let run = begun(&shelf, "one");
    assert_eq!(shelf.last().len(), 1);
    assert!(start(&shelf, "two").is_err());
    assert!(matches!(start(&shelf, "one").unwrap(), Started::Before(before) if before.id == run.id));
}

#[test]
fn more_than_so_many_at_once_are_refused_until_one_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let shelf: Shelf<ConversationView> = shelf(dir.path(), 100);
    let first = begun(&shelf, "0");
    (1..5).for_each(|name| drop(begun(&shelf, &name.to_string())));
    assert!(start(&shelf, "5").is_err());
    first.locked().end(Timestamp::now());
    begun(&shelf, "5");
}
