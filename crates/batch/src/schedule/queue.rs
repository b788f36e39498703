//! Jobs that wait for their turn: in the order of their numbers, one at a time in each place.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Instant;

/// Who waits.
#[derive(Debug, Default)]
pub struct Queue {
    free: BTreeSet<usize>,
    lanes: HashMap<u32, BTreeSet<usize>>,
    /// The first job of each lane in which nobody works.
    first: BTreeMap<usize, u32>,
    busy: Vec<u32>,
    later: BTreeMap<(Instant, usize), Option<u32>>,
}

impl Queue {
    /// Adds a job.
    pub fn push(&mut self, number: usize, lane: Option<u32>) {
        match lane {
            None => {
                self.free.insert(number);
            }
            Some(lane) => {
                self.lanes.entry(lane).or_default().insert(number);
                self.offer(lane);
            }
        }
    }

    /// Adds a job that may not begin before a time.
    pub fn push_later(&mut self, number: usize, lane: Option<u32>, at: Instant) {
        self.later.insert((at, number), lane);
    }

    /// Says which job of a lane is next, if one may be.
    fn offer(&mut self, lane: u32) {
        self.first.retain(|_, other| *other != lane);
        let next = self.lanes.get(&lane).and_then(BTreeSet::first);
        if let Some(next) = next.filter(|_| !self.busy.contains(&lane)) {
            self.first.insert(*next, lane);
        }
    }

    /// Lets those wait no longer whose time has come.
    pub fn wake(&mut self, now: Instant) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, number), lane) = entry.remove_entry();
            self.push(number, lane);
        }
    }

    /// When the next of those may begin.
    pub fn next_time(&self) -> Option<Instant> {
        self.later.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next job that may begin now; its lane is taken, too. `dir` tells the directory of a lane.
    pub fn take<'a>(&mut self, dir: impl Fn(u32) -> &'a Path) -> Option<(usize, Option<u32>)> {
        let apart = |one: &Path, other: &Path| !one.starts_with(other) && !other.starts_with(one);
        let may_begin = |lane: u32| self.busy.iter().all(|busy| apart(dir(lane), dir(*busy)));
        let held =
            self.first.iter().find(|(_, lane)| may_begin(**lane)).map(|(number, lane)| (*number, *lane));
        let free = self.free.first().copied();
        match (free, held) {
            (Some(free), Some((number, _))) if free < number => self.take_free(),
            (_, Some((number, lane))) => {
                self.lanes.get_mut(&lane)?.remove(&number);
                self.busy.push(lane);
                self.offer(lane);
                Some((number, Some(lane)))
            }
            _ => self.take_free(),
        }
    }

    fn take_free(&mut self) -> Option<(usize, Option<u32>)> {
        self.free.pop_first().map(|number| (number, None))
    }

    /// Nobody works in a lane any more.
    pub fn release(&mut self, lane: Option<u32>) {
        if let Some(lane) = lane {
            self.busy.retain(|busy| *busy != lane);
            self.offer(lane);
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.free.len() + self.later.len() + self.lanes.values().map(BTreeSet::len).sum::<usize>()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.free.is_empty() && self.later.is_empty() && self.lanes.values().all(BTreeSet::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn dir(lane: u32) -> &'static Path {
        Path::new(match lane {
            0 => "/a",
            1 => "/a/b",
            2 => "/ab",
            _ => "/c",
        })
    }

    #[test]
    fn jobs_go_in_their_order_and_one_at_a_time_in_each_place() {
        let mut queue = Queue::default();
        for (number, lane) in
            [(0, Some(0)), (1, Some(0)), (2, None), (3, Some(1)), (4, Some(2)), (5, Some(3))]
        {
            queue.push(number, lane);
        }
        let take = |queue: &mut Queue| queue.take(dir).map(|(number, _)| number);
        // 1 waits for 0, and 3 is in a directory below.
        assert_eq!([take(&mut queue), take(&mut queue)], [Some(0), Some(2)]);
        assert_eq!([take(&mut queue), take(&mut queue), take(&mut queue)], [Some(4), Some(5), None]);
        queue.release(Some(0));
        assert_eq!([take(&mut queue), take(&mut queue)], [Some(1), None]);
        queue.release(Some(0));
        assert_eq!([take(&mut queue), take(&mut queue)], [Some(3), None]);
        assert!(queue.is_empty());
    }

    #[test]
    fn who_has_to_wait_longer_is_woken_in_time_and_not_before() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push_later(7, None, now + Duration::from_secs(5));
        queue.wake(now);
        assert_eq!((queue.take(dir), queue.len(), queue.is_empty()), (None, 1, false));
        assert_eq!(queue.next_time(), Some(now + Duration::from_secs(5)));
        queue.wake(now + Duration::from_secs(5));
        assert_eq!(queue.take(dir), Some((7, None)));
    }
}
