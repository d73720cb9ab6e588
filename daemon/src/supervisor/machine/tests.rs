//! Scripts of single lives, and every short history against a tiny model of the world.

use super::*;
use Event::Command as Do;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const FIRST: Generation = Generation(1);
const SECOND_ONE: Generation = Generation(2);

fn machine() -> Machine {
    Machine::new(Limits::default(), true, Generation::default(), 42)
}

fn at(seconds: u64) -> Mono {
    Mono::from_secs(seconds)
}

fn starting() -> Machine {
    let mut m = machine();
    let queued = m.step(at(0), Do(Command::Start));
    assert_eq!(queued, Some(Action::Queue(FIRST)));
    let spawned = m.step(at(0), Event::Turn(FIRST));
    assert_eq!(spawned, Some(Action::Spawn(FIRST)));
    m
}

fn ready() -> Machine {
    let mut m = starting();
    assert_eq!(m.step(at(1), Event::Ready(FIRST)), None);
    m
}

#[test]
fn a_server_that_dies_after_a_good_start_is_back_at_once() {
    let mut m = ready();
    let action = m.step(at(2), Event::Exited(FIRST));
    assert_eq!(action, Some(Action::Queue(SECOND_ONE)));
    assert_eq!(m.restarts(), 1);
}

#[test]
fn late_news_of_an_earlier_generation_is_ignored() {
    let mut m = ready();
    m.step(at(2), Event::Exited(FIRST));
    m.step(at(2), Event::Turn(SECOND_ONE));
    let before = m.state();
    for event in [
        Event::Turn(FIRST),
        Event::Exited(FIRST),
        Event::Left(FIRST),
        Event::Drained(FIRST),
        Event::Ready(FIRST),
        Event::HandshakeFailed(FIRST),
        Event::GaveUp(FIRST),
        Event::SpawnFailed(FIRST),
        Event::NoRoom(FIRST),
        Event::CannotSpawn(FIRST),
        Event::Denied(FIRST),
    ] {
        assert_eq!(m.step(at(3), event), None);
        assert_eq!(m.state(), before, "{event:?}");
    }
}

#[test]
fn stopping_gets_harder_step_by_step() {
    let mut m = ready();
    let g = FIRST;
    assert_eq!(
        m.step(at(2), Do(Command::Stop)),
        Some(Action::CloseInput(g))
    );
    assert_eq!(m.step(at(3), Event::Tick), None);
    assert_eq!(m.step(at(4), Event::Tick), Some(Action::Terminate(g)));
    assert_eq!(m.step(at(7), Event::Tick), Some(Action::Kill(g)));
    assert_eq!(m.step(at(8), Event::Exited(g)), None);
    assert_eq!(m.state(), State::Stopped);
}

#[test]
fn what_not_even_the_system_can_end_is_abandoned() {
    let mut m = ready();
    m.step(at(2), Do(Command::Restart));
    m.step(at(4), Event::Tick);
    m.step(at(7), Event::Tick);
    assert_eq!(m.step(at(12), Event::Tick), Some(Action::Abandon(FIRST)));
    // Whoever abandons it says that it has ended.
    let action = m.step(at(12), Event::Exited(FIRST));
    assert_eq!(action, Some(Action::Queue(SECOND_ONE)));
}

#[test]
fn a_server_that_wants_a_credential_is_not_tried_until_somebody_asks() {
    for mut m in [starting(), ready()] {
        assert_eq!(m.step(at(2), Event::Denied(FIRST)), None);
        assert!(matches!(m.state(), State::Failed { .. }));
        assert_eq!((m.deadline(), m.step(at(999), Event::Tick)), (None, None));
        let action = m.step(at(1000), Do(Command::Restart));
        assert_eq!(action, Some(Action::Queue(SECOND_ONE)));
    }
    let mut m = ready();
    m.step(at(2), Do(Command::Stop));
    m.step(at(3), Event::Denied(FIRST));
    assert_eq!(m.state(), State::Stopped);
}

#[test]
fn a_start_that_takes_too_long_is_ended_and_tried_again() {
    let mut m = starting();
    assert_eq!(m.deadline(), Some(at(60)));
    let action = m.step(at(60), Event::Tick);
    assert_eq!(action, Some(Action::CloseInput(FIRST)));
    m.step(at(61), Event::Exited(FIRST));
    assert!(matches!(m.state(), State::Backoff { .. }));
}

#[test]
fn whoever_waits_for_its_turn_is_not_late() {
    let mut m = machine();
    m.step(at(0), Do(Command::Start));
    assert_eq!((m.state(), m.deadline()), (State::Queued, None));
    m.step(at(1000), Event::Turn(FIRST));
    assert_eq!(m.deadline(), Some(at(1060)));
}

#[test]
fn a_system_without_room_is_nobodys_fault() {
    let mut m = starting();
    for _ in 0..20 {
        let action = m.step(at(1), Event::NoRoom(FIRST));
        assert_eq!(action, Some(Action::Queue(FIRST)));
        let action = m.step(at(1), Event::Turn(FIRST));
        assert_eq!(action, Some(Action::Spawn(FIRST)));
    }
    assert_eq!(m.restarts(), 0);
    assert!(!m.is_looping());
}

#[test]
fn a_command_that_cannot_work_is_not_tried_again_until_somebody_asks() {
    let mut m = starting();
    m.step(at(0), Event::CannotSpawn(FIRST));
    assert_eq!(m.state(), State::Failed { since: at(0) });
    assert_eq!(m.deadline(), None);
    // A call is not enough so soon.
    assert_eq!(m.answer(at(9), Command::Demand), Outcome::Refused);
    assert_eq!(m.step(at(9), Do(Command::Demand)), None);
    let mut later = m.clone();
    let queued = Some(Action::Queue(SECOND_ONE));
    assert_eq!(later.step(at(10), Do(Command::Demand)), queued);
    assert_eq!(m.step(at(9), Do(Command::Start)), queued);
}

#[test]
fn a_crash_loop_may_be_tried_by_a_call_now_and_then() {
    let mut m = starting();
    let mut now = 0;
    while !matches!(m.state(), State::CrashLoop { .. }) {
        now += 1;
        m.step(at(now), Event::Exited(m.generation()));
        if let Some(deadline) = m.deadline()
            && matches!(m.state(), State::Backoff { .. })
        {
            m.step(deadline, Event::Tick);
            m.step(deadline, Event::Turn(m.generation()));
        }
    }
    let loops = m.generation();
    assert_eq!(m.step(at(now + 9), Do(Command::Demand)), None);
    let queued = m.step(at(now + 10), Do(Command::Demand));
    assert_eq!(queued, Some(Action::Queue(Generation(loops.0 + 1))));
    assert!(m.is_looping(), "also while it is tried");
    m.step(at(now + 10), Event::Turn(m.generation()));
    m.step(at(now + 10), Event::Exited(m.generation()));
    assert!(matches!(m.state(), State::CrashLoop { .. }));
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
            Some(Action::Queue(next))
        );
        m.step(at(round), Event::Turn(next));
        m.step(at(round), Event::Ready(next));
    }
    assert_eq!(m.restarts(), 0);
}

#[test]
fn a_stop_that_is_taken_back_ends_in_a_new_process() {
    for again in [Command::Start, Command::Demand] {
        let mut m = ready();
        m.step(at(2), Do(Command::Stop));
        m.step(at(2), Do(again));
        let action = m.step(at(3), Event::Exited(FIRST));
        assert_eq!(action, Some(Action::Queue(SECOND_ONE)));
    }
}

#[test]
fn what_is_replaced_finishes_its_calls_first() {
    let mut m = ready();
    let retired = m.step(at(2), Do(Command::Replace));
    assert_eq!(retired, Some(Action::Retire(FIRST)));
    let closed = Some(Action::CloseInput(FIRST));
    let mut patient = m.clone();
    assert_eq!(patient.step(at(3), Event::Drained(FIRST)), closed);
    assert_eq!(m.step(at(11), Event::Tick), None);
    assert_eq!(m.step(at(12), Event::Tick), closed);
    let action = m.step(at(12), Event::Exited(FIRST));
    assert_eq!(action, Some(Action::Queue(SECOND_ONE)));
}

#[test]
fn what_is_not_wanted_is_not_replaced() {
    let mut m = machine();
    assert_eq!(m.step(at(0), Do(Command::Replace)), None);
    assert_eq!(m.state(), State::Stopped);
}

#[test]
fn one_that_is_kept_alive_comes_back_and_one_that_is_not_rests() {
    for (keep_alive, state) in [(true, State::Queued), (false, State::Stopped)] {
        let mut m = ready();
        m.reconfigure(SECOND, keep_alive);
        m.step(at(2), Event::Left(FIRST));
        assert_eq!(m.state(), state);
        assert_eq!(m.wanted(), keep_alive);
    }
}

#[test]
fn a_server_that_closes_its_output_is_ended_and_comes_back() {
    let mut m = ready();
    let action = m.step(at(2), Event::GaveUp(FIRST));
    assert_eq!(action, Some(Action::Kill(FIRST)));
    let action = m.step(at(2), Event::Exited(FIRST));
    assert_eq!(action, Some(Action::Queue(SECOND_ONE)));
}

#[test]
fn one_that_was_greeted_in_the_wrong_way_is_started_again_once_and_without_blame() {
    let mut m = machine();
    m.step(at(0), Do(Command::Start));
    m.step(at(0), Event::Turn(FIRST));
    assert!(m.forgives_greeting());
    let action = m.step(at(1), Event::Misgreeted(FIRST));
    assert_eq!(action, Some(Action::Queue(SECOND_ONE)));
    assert_eq!(m.restarts(), 0);
    m.step(at(1), Event::Turn(SECOND_ONE));
    assert!(!m.forgives_greeting());
    // The second time it is an end like any other.
    let mut other = m.clone();
    let ended = other.step(at(2), Event::Exited(SECOND_ONE));
    assert_eq!(m.step(at(2), Event::Misgreeted(SECOND_ONE)), ended);
    assert_eq!(m.state(), other.state());
}

#[test]
fn commands_say_when_there_was_nothing_to_do() {
    let mut m = machine();
    assert_eq!(m.answer(at(0), Command::Stop), Outcome::AlreadyTrue);
    assert_eq!(m.answer(at(0), Command::Start), Outcome::Accepted);
    assert_eq!(m.answer(at(0), Command::Demand), Outcome::Accepted);
    m.step(at(0), Do(Command::Start));
    assert_eq!(m.answer(at(0), Command::Start), Outcome::AlreadyTrue);
    assert_eq!(m.answer(at(0), Command::Demand), Outcome::AlreadyTrue);
    assert_eq!(m.answer(at(0), Command::Rest), Outcome::Refused);
    assert_eq!(m.answer(at(0), Command::Restart), Outcome::Accepted);
}

/// The world around the machine: at most one process, and what the machine has been told of it.
#[derive(Clone)]
struct World {
    machine: Machine,
    now: Mono,
    child: Option<Generation>,
}

impl World {
    fn new() -> Self {
        Self {
            machine: machine(),
            now: at(0),
            child: None,
        }
    }

    fn choices(&self) -> Vec<Event> {
        let mut events = vec![
            Do(Command::Start),
            Do(Command::Stop),
            Do(Command::Restart),
            Do(Command::Demand),
            Do(Command::Rest),
            Do(Command::Replace),
            Event::Tick,
        ];
        let current = self.machine.generation();
        if self.machine.state() == State::Queued {
            events.push(Event::Turn(current));
        }
        if let Some(child) = self.child {
            events.extend([
                Event::Ready(child),
                Event::HandshakeFailed(child),
                Event::GaveUp(child),
                Event::Drained(child),
                Event::Left(child),
                Event::Exited(child),
                Event::Denied(child),
                Event::Misgreeted(child),
            ]);
            // A spawn can only fail while it is being tried.
            if matches!(self.machine.state(), State::Starting { .. }) {
                events.extend([
                    Event::CannotSpawn(child),
                    Event::SpawnFailed(child),
                    Event::NoRoom(child),
                ]);
            }
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
            Event::Exited(g)
            | Event::Misgreeted(g)
            | Event::Left(g)
            | Event::Denied(g)
            | Event::CannotSpawn(g)
            | Event::SpawnFailed(g)
            | Event::NoRoom(g) => Some(g),
            _ => None,
        };
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
            Some(Action::Queue(_)) => {
                assert_eq!(self.child, None, "two children: {path:?}");
                assert!(m.wanted(), "an unwanted process: {path:?}");
                if let State::Backoff { until } | State::CrashLoop { until, .. } = was {
                    let asked = matches!(event, Do(_));
                    assert!(asked || self.now >= until, "too soon: {path:?}");
                }
                if let (
                    State::CrashLoop { since, .. } | State::Failed { since },
                    Do(Command::Demand),
                ) = (was, event)
                {
                    assert!(self.now - since >= HOPE, "a call asks too often: {path:?}");
                }
            }
            Some(Action::Spawn(g)) => {
                assert_eq!(self.child, None, "two children: {path:?}");
                assert_eq!(was, State::Queued, "out of turn: {path:?}");
                self.child = Some(g);
            }
            Some(
                Action::Retire(g) | Action::CloseInput(g) | Action::Terminate(g) | Action::Kill(g),
            ) => {
                assert_eq!(self.child, Some(g), "ends what is not there: {path:?}");
            }
            Some(Action::Abandon(g)) => {
                assert_eq!(self.child, Some(g), "ends what is not there: {path:?}");
                return self.take(Event::Exited(g), path);
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
        for _ in 0..6 {
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
    let world = World::new();
    let mut count = 0;
    explore(&world, &mut Vec::new(), &mut count);
    assert!(count > 100_000, "{count}");
}

proptest! {
    #[test]
    fn long_histories_keep_the_invariants(picks in prop::collection::vec(any::<prop::sample::Index>(), 1..200)) {
        let mut world = World::new();
        let mut path = Vec::new();
        for pick in picks {
            let event = *pick.get(&world.choices());
            path.push(event);
            world.take(event, &path);
        }
        world.check_that_stop_ends(&path);
    }
}
