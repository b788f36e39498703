//! Work on many files at once.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

/// More threads than this only wait for the disk.
const MOST: usize = 8;

/// Applies `work` to every item on as many threads as the machine has, and gives the results in order.
///
/// Each thread has a state of its own, made by `start`: a buffer that is used again and again.
pub(crate) fn map<T, S, R>(
    items: &[T],
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R>
where
    T: Sync,
    R: Send,
{
    let count = thread::available_parallelism().map_or(1, NonZero::get).min(MOST).min(items.len());
    if count <= 1 {
        let mut state = start();
        return items.iter().map(|item| work(&mut state, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| {
                let mut state = start();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(&mut state, item);
                    done.lock().push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let doubled = super::map(&items, || (), |(), item| item * 2);
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(super::map(&[] as &[usize], || (), |(), item| *item), [] as [usize; 0]);
    }
}
