//! Scripts of single lives, and every short history against a tiny model of the world.

use super::*;
use Event::Command as Do;

const SECOND: Duration = Duration::from_secs(1);

fn machine() -> Machine {
    Machine::new(Limits::default(), 42)
}

fn at(seconds: u64) -> Mono {
    Mono::from_secs(seconds)
}

fn ready() -> Machine {
    let mut m = machine();
    let g = Generation(1);
    assert_eq!(m.step(at(0), Do(Command::Start)), Some(Action::Spawn(g)));
    assert_eq!(m.step(at(1), Event::Ready(g)), None);
    m
}

#[test]
fn a_server_that_dies_after_a_good_start_is_back_at_once() {
    let mut m = ready();
    let action = m.step(at(2), Event::Exited(Generation(1)));
    assert_eq!(action, Some(Action::Spawn(Generation(2))));
    assert_eq!(m.restarts(), 1);
}

#[test]
fn late_news_of_an_earlier_generation_is_ignored() {
    let mut m = ready();
    m.step(at(2), Event::Exited(Generation(1)));
    let before = m.state();
    for event in [
        Event::Exited(Generation(1)),
        Event::Ready(Generation(1)),
        Event::HandshakeFailed(Generation(1)),
        Event::GaveUp(Generation(1)),
        Event::SpawnFailed(Generation(1)),
        Event::CannotSpawn(Generation(1)),
    ] {
        assert_eq!(m.step(at(3), event), None);
        assert_eq!(m.state(), before, "{event:?}");
    }
}

#[test]
fn stopping_gets_harder_step_by_step() {
    let mut m = ready();
    let g = Generation(1);
    assert_eq!(
        m.step(at(2), Do(Command::Stop)),
        Some(Action::CloseInput(g))
    );
    assert_eq!(m.step(at(3), Event::Tick), None);
    assert_eq!(m.step(at(4), Event::Tick), Some(Action::Terminate(g)));
    assert_eq!(m.step(at(7), Event::Tick), Some(Action::Kill(g)));
    assert_eq!(m.deadline(), None);
    assert_eq!(m.step(at(8), Event::Exited(g)), None);
    assert_eq!(m.state(), State::Stopped);
}

#[test]
fn a_start_that_takes_too_long_is_ended_and_tried_again() {
    let mut m = machine();
    m.step(at(0), Do(Command::Start));
    assert_eq!(m.deadline(), Some(at(60)));
    let action = m.step(at(60), Event::Tick);
    assert_eq!(action, Some(Action::CloseInput(Generation(1))));
    m.step(at(61), Event::Exited(Generation(1)));
    assert!(matches!(m.state(), State::Backoff { .. }));
}

#[test]
fn a_command_that_cannot_work_is_not_tried_again_until_somebody_asks() {
    let mut m = machine();
    m.step(at(0), Do(Command::Start));
    m.step(at(0), Event::CannotSpawn(Generation(1)));
    assert_eq!((m.state(), m.deadline()), (State::Failed, None));
    let action = m.step(at(9), Do(Command::Start));
    assert_eq!(action, Some(Action::Spawn(Generation(2))));
}

#[test]
fn a_restart_is_never_charged() {
    let mut m = ready();
    for round in 1..20 {
        let g = Generation(round);
        assert_eq!(
            m.step(at(round), Do(Command::Restart)),
            Some(Action::CloseInput(g))
        );
        let next = Generation(round + 1);
        assert_eq!(
            m.step(at(round), Event::Exited(g)),
            Some(Action::Spawn(next))
        );
        m.step(at(round), Event::Ready(next));
    }
    assert_eq!(m.restarts(), 0);
}

#[test]
fn a_stop_that_is_taken_back_ends_in_a_new_process() {
    let mut m = ready();
    m.step(at(2), Do(Command::Stop));
    m.step(at(2), Do(Command::Start));
    let action = m.step(at(3), Event::Exited(Generation(1)));
    assert_eq!(action, Some(Action::Spawn(Generation(2))));
}

#[test]
fn a_server_that_closes_its_output_is_ended_and_comes_back() {
    let mut m = ready();
    let action = m.step(at(2), Event::GaveUp(Generation(1)));
    assert_eq!(action, Some(Action::Kill(Generation(1))));
    let action = m.step(at(2), Event::Exited(Generation(1)));
    assert_eq!(action, Some(Action::Spawn(Generation(2))));
}

#[test]
fn commands_say_when_there_was_nothing_to_do() {
    let mut m = machine();
    assert_eq!(m.answer(Command::Stop), Outcome::AlreadyTrue);
    assert_eq!(m.answer(Command::Start), Outcome::Accepted);
    m.step(at(0), Do(Command::Start));
    assert_eq!(m.answer(Command::Start), Outcome::AlreadyTrue);
    assert_eq!(m.answer(Command::Restart), Outcome::Accepted);
}

/// The world around the machine: at most one process, and what the machine has been told of it.
#[derive(Clone)]
struct World {
    machine: Machine,
    now: Mono,
    child: Option<Generation>,
}

impl World {
    fn choices(&self) -> Vec<Event> {
        let mut events = vec![
            Do(Command::Start),
            Do(Command::Stop),
            Do(Command::Restart),
            Event::Tick,
        ];
        let current = self.machine.generation();
        if let Some(child) = self.child {
            events.extend([
                Event::Ready(child),
                Event::HandshakeFailed(child),
                Event::GaveUp(child),
                Event::Exited(child),
            ]);
            events.extend([Event::CannotSpawn(child), Event::SpawnFailed(child)]);
        }
        if current.0 > 1 {
            let earlier = Generation(current.0 - 1);
            events.extend([Event::Exited(earlier), Event::Ready(earlier)]);
        }
        events
    }

    fn take(&mut self, event: Event, path: &[Event]) {
        let m = &mut self.machine;
        // Time passes: on a tick to the deadline, otherwise a little.
        self.now = match (event, m.deadline()) {
            (Event::Tick, Some(deadline)) => self.now.max(deadline),
            _ => self.now.plus(SECOND),
        };
        let gone = match event {
            Event::Exited(g) | Event::CannotSpawn(g) | Event::SpawnFailed(g) => Some(g),
            _ => None,
        };
        // A spawn can only fail while it is being tried.
        let trying = matches!(m.state(), State::Starting { .. });
        if matches!(event, Event::CannotSpawn(_) | Event::SpawnFailed(_)) && !trying {
            return;
        }
        if gone.is_some() && gone == self.child {
            self.child = None;
        }
        let was = m.state();
        let earlier = gone.is_some_and(|g| g < m.generation());
        let action = m.step(self.now, event);
        if earlier {
            assert_eq!(
                (m.state(), action),
                (was, None),
                "late news did something: {path:?}"
            );
        }
        match action {
            Some(Action::Spawn(g)) => {
                assert_eq!(self.child, None, "two children: {path:?}");
                assert!(m.wanted(), "an unwanted process: {path:?}");
                if let State::Backoff { until } | State::CrashLoop { until } = was {
                    let asked = matches!(event, Do(_));
                    assert!(asked || self.now >= until, "too soon: {path:?}");
                }
                self.child = Some(g);
            }
            Some(Action::CloseInput(g) | Action::Terminate(g) | Action::Kill(g)) => {
                assert_eq!(self.child, Some(g), "ends what is not there: {path:?}");
            }
            None => {}
        }
        let has_child = matches!(
            m.state(),
            State::Starting { .. } | State::Ready { .. } | State::Stopping { .. }
        );
        assert_eq!(
            has_child,
            self.child.is_some(),
            "{:?} after {path:?}",
            m.state()
        );
        if m.state() == State::Stopped {
            assert!(!m.wanted(), "wanted, but at rest: {path:?}");
        }
    }

    /// However it got here, a stop ends in `Stopped` once the process does what it is told.
    fn check_that_stop_ends(mut self, path: &[Event]) {
        self.take(Do(Command::Stop), path);
        for _ in 0..4 {
            if let State::Stopping {
                step: StopStep::Killed,
                ..
            } = self.machine.state()
                && let Some(child) = self.child
            {
                self.take(Event::Exited(child), path);
            }
            if self.machine.state() == State::Stopped {
                return;
            }
            self.take(Event::Tick, path);
        }
        panic!("never stops: {:?} after {path:?}", self.machine.state());
    }
}

#[test]
fn every_history_of_six_events_keeps_the_invariants() {
    fn explore(world: &World, path: &mut Vec<Event>, count: &mut u64) {
        *count += 1;
        world.clone().check_that_stop_ends(path);
        if path.len() == 6 {
            return;
        }
        for event in world.choices() {
            let mut next = world.clone();
            path.push(event);
            next.take(event, path);
            explore(&next, path, count);
            path.pop();
        }
    }
    let world = World {
        machine: machine(),
        now: at(0),
        child: None,
    };
    let mut count = 0;
    explore(&world, &mut Vec::new(), &mut count);
    assert!(count > 100_000, "{count}");
}
