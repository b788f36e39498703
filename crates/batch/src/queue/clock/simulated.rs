//! Many workers and one quota, in a time that does not pass: what `docs/scale.md` says of it is from here
//! (`cargo test -p alhena-batch simulated -- --nocapture`).
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{Next, Turn};

const MS: u64 = 1;
const MINUTE: u64 = 60_000 * MS;
/// How long a call takes that is answered, and one that is turned away.
const ANSWERED: u64 = 4_000;
const TURNED_AWAY: u64 = 200;
const LENGTH: u64 = 30 * MINUTE;

/// What workers know of each other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Clock {
    /// Nothing: each waits for what it was told itself.
    Own,
    /// The time, and all begin when it comes.
    Shared,
    /// The time, and each begins a little later by chance: as it is done.
    Spread,
}

#[derive(Debug)]
struct Figures {
    answered: u64,
    turned_away: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Look,
    TurnedAway,
}

/// So many jobs at once, against so many calls in each minute.
fn simulate(slots: usize, quota: u64, clock: Clock) -> Figures {
    let mut dice = 1_u64;
    let mut chance = || {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut turns: Vec<Turn> = (0..slots).map(|_| Turn::default()).collect();
    let mut held = vec![0_u64; slots];
    let mut figures = Figures { answered: 0, turned_away: 0 };
    let (mut minute, mut calls) = (0, 0);
    let mut times: BinaryHeap<Reverse<(u64, usize, Step)>> =
        (0..slots).map(|slot| Reverse((slot as u64 % 1000, slot, Step::Look))).collect();
    while let Some(Reverse((now, slot, step))) = times.pop() {
        if now >= LENGTH {
            break;
        }
        if now / MINUTE != minute {
            (minute, calls) = (now / MINUTE, 0);
        }
        let whose = if clock == Clock::Own { slot } else { 0 };
        if step == Step::TurnedAway {
            // It was told how long: to the end of this minute.
            held[whose] = held[whose].max((minute + 1) * MINUTE);
            turns[slot] = Turn::default();
        }
        let left = held[whose].checked_sub(now).filter(|left| *left > 0).map(Duration::from_millis);
        let spread = if clock == Clock::Spread { chance() } else { 0.0 };
        let next = match turns[slot].next(left, spread) {
            Next::Wait(time) => (now + u64::try_from(time.as_millis()).unwrap(), slot, Step::Look),
            Next::Call => {
                turns[slot] = Turn::default();
                calls += 1;
                if calls <= quota {
                    figures.answered += 1;
                    (now + ANSWERED, slot, Step::Look)
                } else {
                    figures.turned_away += 1;
                    (now + TURNED_AWAY, slot, Step::TurnedAway)
                }
            }
        };
        times.push(Reverse(next));
    }
    figures
}

#[test]
fn a_shared_clock_uses_the_quota_and_spreading_spares_most_calls_in_vain() {
    println!("jobs at once | calls a minute | clock | of what is possible | calls in vain for 100 answers");
    for slots in [10, 100, 1000] {
        for quota in [60, 600, 6000] {
            let possible = (quota * 30).min(slots as u64 * LENGTH / ANSWERED);
            let mut vain = Vec::new();
            for clock in [Clock::Own, Clock::Shared, Clock::Spread] {
                let Figures { answered, turned_away } = simulate(slots, quota, clock);
                let (used, in_vain) =
                    (answered as f64 / possible as f64 * 100.0, turned_away as f64 / answered as f64 * 100.0);
                println!("{slots} | {quota} | {clock:?} | {used:.0} % | {in_vain:.1}");
                assert!(used > 80.0, "{slots} {quota} {clock:?}: {used}");
                vain.push(in_vain);
            }
            assert!(vain[2] <= vain[1] && vain[1] <= vain[0], "{vain:?}");
            assert!(vain[2] < 40.0, "{slots} {quota}: {vain:?}");
        }
    }
}

#[test]
fn who_has_not_waited_begins_at_once_and_who_has_looks_twice() {
    let seconds = Duration::from_secs;
    assert_eq!(Turn::default().next(None, 0.5), Next::Call);
    let mut turn = Turn::default();
    assert_eq!(turn.next(Some(seconds(30)), 0.5), Next::Wait(seconds(30)));
    assert_eq!(turn.next(None, 0.5), Next::Wait(Duration::from_millis(7500)));
    // Somebody was told again meanwhile.
    assert_eq!(turn.next(Some(seconds(2)), 0.5), Next::Wait(seconds(2)));
    assert_eq!(turn.next(None, 0.1), Next::Wait(Duration::from_millis(1500)));
    assert_eq!(turn.next(None, 0.1), Next::Call);
}
