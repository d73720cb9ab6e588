//! When to look again, and when to sleep. It is told the time.

use super::{Instant, Way};
use std::time::Duration;

/// How long a thread looks again: about as long as it would take to fall asleep and be woken.
const MOMENT: Duration = Duration::from_micros(100);

/// It looks again from so much luck on, and a look in vain costs as much.
pub(super) const ENOUGH: u8 = 4;

/// Luck does not grow beyond this: eight looks in vain end it.
const MOST: u8 = 32;

/// Whoever kept the core for so long will keep it again.
const LONG: Duration = Duration::from_micros(500);

/// What was lost to them is made up for by so much of sleeping as usual.
const REST: u32 = 100;

/// What a thread knows of what it passed on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    /// What was last passed on, if what comes now may still be close to it.
    last: Option<(Instant, Way)>,
    /// It looks again because of that.
    looking: bool,
    /// There was nothing to do since.
    idle: bool,
    /// How often the next message came close to what was passed on, each way.
    luck: [u8; 2],
    /// It does not look again before.
    rests_until: Option<Instant>,
}

impl Watch {
    pub(super) const NEW: Self = Self {
        last: None,
        looking: false,
        idle: false,
        luck: [0; 2],
        rests_until: None,
    };

    /// A message was passed on.
    pub(super) fn passed_on(&mut self, now: Instant, way: Way) {
        // What was passed on without a pause had come together.
        if let Some((last, before)) = self.last
            && self.idle
            // Whoever sleeps is woken late.
            && now.duration_since(last) < 2 * MOMENT
        {
            let luck = &mut self.luck[before as usize];
            *luck = MOST.min(*luck + 1);
        }
        self.last = Some((now, way));
        self.idle = false;
        self.rests_until = self.rests_until.filter(|until| now < *until);
        self.looking = self.luck[way as usize] >= ENOUGH && self.rests_until.is_none();
    }

    /// There is nothing to do: whether to look again rather than to sleep.
    pub(super) fn looks_again(&mut self, now: impl FnOnce() -> Instant) -> bool {
        let has_looked = std::mem::replace(&mut self.idle, true);
        if !self.looking {
            return false;
        }
        let now = now();
        if let Some((last, way)) = self.last
            && now.duration_since(last) >= MOMENT
        {
            self.looking = false;
            if has_looked {
                // What comes now comes too late to be called close.
                self.last = None;
                let luck = &mut self.luck[way as usize];
                *luck = luck.saturating_sub(ENOUGH);
            }
        }
        self.looking
    }

    /// Somebody else had the core until now: this look is the last until something is passed on again.
    pub(super) fn gave_way(&mut self, now: Instant, took: Duration) {
        self.looking = false;
        if took >= LONG {
            self.rests_until = Some(now + REST * took);
        }
    }

    #[cfg(test)]
    pub(super) fn is_looking(&self) -> bool {
        self.looking
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(1);

    /// Time passes.
    struct Story {
        watch: Watch,
        now: Instant,
    }

    impl Story {
        fn new() -> Self {
            Self {
                watch: Watch::NEW,
                now: Instant::now(),
            }
        }

        /// It passes many messages on, one at a time.
        fn lucky() -> Self {
            let mut story = Self::new();
            for _ in 0..100 {
                story.passes_on(Way::Up);
                story.looks();
                story.passes_on(Way::Down);
                story.looks();
            }
            story
        }

        fn waits(&mut self, time: Duration) -> &mut Self {
            self.now += time;
            self
        }

        fn passes_on(&mut self, way: Way) -> &mut Self {
            self.watch.passed_on(self.now, way);
            self.waits(SHORT)
        }

        fn looks(&mut self) -> bool {
            self.watch.looks_again(|| self.now)
        }
    }

    #[test]
    fn messages_far_apart_are_no_reason_to_look() {
        let mut story = Story::new();
        for _ in 0..100 {
            assert!(!story.passes_on(Way::Up).looks());
            story.waits(2 * MOMENT);
        }
    }

    #[test]
    fn some_that_follow_each_other_closely_are() {
        let mut story = Story::new();
        let looks = (0..8).map(|_| story.passes_on(Way::Up).looks());
        let first = looks.take_while(|looks| !looks).count();
        assert_eq!(first, usize::from(ENOUGH));
    }

    #[test]
    fn what_is_written_in_pieces_is_one_message() {
        let mut story = Story::new();
        for _ in 0..100 {
            for _ in 0..10 {
                story.passes_on(Way::Down);
            }
            assert!(!story.looks());
            story.waits(2 * MOMENT);
        }
    }

    #[test]
    fn it_looks_for_a_moment_and_no_longer() {
        let mut story = Story::lucky();
        assert!(story.passes_on(Way::Up).looks());
        assert!(story.waits(MOMENT - 2 * SHORT).looks());
        assert!(!story.waits(SHORT).looks());
        assert!(!story.looks());
        assert!(story.passes_on(Way::Up).looks());
    }

    #[test]
    fn whoever_looks_in_vain_time_and_again_stops() {
        let mut story = Story::lucky();
        let mut looked = 0;
        while story.waits(10 * MOMENT).passes_on(Way::Up).looks() {
            assert!(!story.waits(MOMENT).looks());
            looked += 1;
        }
        assert_eq!(looked, MOST / ENOUGH);
    }

    #[test]
    fn whoever_was_busy_all_the_time_has_not_looked_in_vain() {
        let mut story = Story::lucky();
        for _ in 0..100 {
            assert!(!story.passes_on(Way::Up).waits(MOMENT).looks());
        }
        assert!(story.passes_on(Way::Up).looks());
    }

    /// A server that answers at once, and an agent that thinks about each answer.
    #[test]
    fn one_way_pays_and_the_other_does_not() {
        let mut story = Story::new();
        let mut looks = [0, 0];
        for _ in 0..100 {
            looks[0] += u32::from(story.passes_on(Way::Up).looks());
            story.waits(MOMENT / 2);
            looks[1] += u32::from(story.passes_on(Way::Down).looks());
            story.waits(100 * MOMENT).looks();
        }
        assert_eq!(looks, [96, 0]);
    }

    /// The worst that can come: what is always just too late to be worth a look.
    #[test]
    fn what_is_always_a_little_late_is_mostly_slept_through() {
        let mut story = Story::lucky();
        let mut looked = 0;
        for _ in 0..1000 {
            looked += u32::from(story.passes_on(Way::Up).looks());
            story.waits(MOMENT).looks();
        }
        assert!(looked < 250, "{looked}");
    }

    #[test]
    fn whoever_gave_way_sleeps_until_there_is_more() {
        let mut story = Story::lucky();
        story.passes_on(Way::Up);
        story.watch.gave_way(story.now, SHORT);
        assert!(!story.looks());
        assert!(story.passes_on(Way::Up).looks());
    }

    #[test]
    fn a_core_that_others_keep_is_left_to_them_for_a_while() {
        let mut story = Story::lucky();
        story.watch.gave_way(story.now, LONG);
        assert!(!story.passes_on(Way::Up).looks());
        story.waits(REST * LONG - 2 * SHORT);
        assert!(!story.passes_on(Way::Up).looks());
        assert!(story.passes_on(Way::Up).looks());
    }
}
