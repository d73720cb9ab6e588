//! How many servers may be started at once, for all of them together. A hundred servers that die in the
//! same moment come back a few at a time; and when the system has no room for another process, nobody
//! asks for one for a while.

use parking_lot::Mutex;
use std::{sync::Arc, thread, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Lets servers start, a few at a time.
#[derive(Debug)]
pub struct Limiter {
    turns: Arc<Semaphore>,
    pause: Mutex<Pause>,
}

#[derive(Debug, Default)]
struct Pause {
    until: Option<Instant>,
    length: Duration,
}

/// The right to start one server now. It ends when it is dropped.
#[derive(Debug, Default)]
pub struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Limiter {
    /// So many at once.
    pub fn new(at_once: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(at_once)),
            pause: Mutex::default(),
        }
    }

    /// Two for each processor: most of a start is waiting.
    pub fn for_this_machine() -> Self {
        Self::new(2 * thread::available_parallelism().map_or(1, usize::from))
    }

    /// Waits for a turn. First come, first served.
    pub async fn turn(self: Arc<Self>) -> Turn {
        // It is never closed.
        let permit = Arc::clone(&self.turns).acquire_owned().await.ok();
        loop {
            let pause = self.pause.lock().until;
            match pause.filter(|&until| until > Instant::now()) {
                None => return Turn { _permit: permit },
                Some(until) => sleep_until(until).await,
            }
        }
    }

    /// The system has no room for another process: nobody is started for a while. Returns for how long.
    pub fn no_room(&self) -> Duration {
        let mut pause = self.pause.lock();
        let now = Instant::now();
        // Several that fail together are one failure.
        if pause.until.is_none_or(|until| until <= now) {
            pause.length = (pause.length * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
            pause.until = Some(now + pause.length);
        }
        pause.length
    }

    /// A process was started: there is room.
    pub fn room(&self) {
        let mut pause = self.pause.lock();
        pause.length = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test(start_paused = true)]
    async fn no_more_than_a_few_start_at_once() {
        let limiter = Arc::new(Limiter::new(3));
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let starts = (0..50).map(|_| {
            let (limiter, now, most) = (Arc::clone(&limiter), Arc::clone(&now), Arc::clone(&most));
            tokio::spawn(async move {
                let turn = limiter.turn().await;
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(10)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                drop(turn);
            })
        });
        for start in starts.collect::<Vec<_>>() {
            start.await.unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn without_room_nobody_starts_for_longer_and_longer() {
        let limiter = Arc::new(Limiter::new(4));
        let mut before = Duration::ZERO;
        for _ in 0..10 {
            let started = Instant::now();
            let pause = limiter.no_room();
            assert_eq!(limiter.no_room(), pause, "two at once count as one");
            assert!(pause > before || pause == LONGEST_PAUSE);
            Arc::clone(&limiter).turn().await;
            assert!(started.elapsed() >= pause);
            before = pause;
        }
        limiter.room();
        assert_eq!(limiter.no_room(), FIRST_PAUSE);
    }
}
