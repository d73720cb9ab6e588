//! The service manager of Windows: it starts us, is told how we are, and asks us to stop.

use crate::platform::manager::Notice;
use parking_lot::Mutex;
use std::{ffi::OsString, io, process, sync::OnceLock, thread, time::Duration};
use tokio::sync::Notify;
use windows_service::{
    Error, define_windows_service,
    service::{
        ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus,
        ServiceType,
    },
    service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle},
    service_dispatcher,
};

/// What the service is called.
const NAME: &str = "nexusd";

/// How long the manager waits for the next sign of life, while we start or stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a stop takes at most: calls under way, servers that do not want to end.
const LONGEST_STOP: Duration = Duration::from_secs(30);

/// These say that starting again does not help, so the manager hears of them as an ordinary end. All else
/// looks like a crash to it, and it starts us again.
const FINAL: [u8; 4] = [0, 2, 75, 78];

type Work = Box<dyn Fn() -> u8 + Send + Sync>;

/// What the service does, for whom, and how the manager is reached. There is one service in a process,
/// and the manager calls plain functions.
static WORK: OnceLock<(Option<String>, Work)> = OnceLock::new();
static MANAGER: OnceLock<Manager> = OnceLock::new();
static STOP: Notify = Notify::const_new();

struct Manager {
    handle: ServiceStatusHandle,
    state: Mutex<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Running,
    Stopping { checkpoint: u32 },
    Stopped { code: u8 },
}

/// Whether the manager has started us.
pub fn is_there() -> bool {
    MANAGER.get().is_some()
}

/// The account that may use the service, besides its own.
pub fn client() -> Option<&'static str> {
    WORK.get()?.0.as_deref()
}

/// Waits until the manager wants us to stop.
pub async fn asked_to_stop() {
    STOP.notified().await;
}

/// The manager looks at the process only.
pub fn watchdog() -> Option<Duration> {
    None
}

/// Tells the manager. Without one nothing happens.
pub fn tell(notice: Notice<'_>) {
    let Some(manager) = MANAGER.get() else {
        return;
    };
    match notice {
        Notice::Ready => manager.go_on(|state| match state {
            State::Starting => Some(State::Running),
            _ => None,
        }),
        Notice::Stopping => manager.stop(),
        Notice::Reloading | Notice::Alive | Notice::Status(_) => {}
    }
}

/// Does the work of the service, when the manager says so, until it is done.
pub fn run(
    client: Option<String>,
    work: impl Fn() -> u8 + Send + Sync + 'static,
) -> io::Result<()> {
    // It is called once.
    let _ = WORK.set((client, Box::new(work)));
    /// What Windows says to a process that is no service.
    const NOT_A_SERVICE: i32 = 1063;
    service_dispatcher::start(NAME, ffi_main).map_err(|error| match error {
        Error::Winapi(error) if error.raw_os_error() == Some(NOT_A_SERVICE) => io::Error::other(
            "Windows runs this command: `nexusctl service install --system` tells it to",
        ),
        Error::Winapi(error) => error,
        error => io::Error::other(error),
    })
}

define_windows_service!(ffi_main, main);

fn main(_arguments: Vec<OsString>) {
    let Ok(handle) = service_control_handler::register(NAME, control) else {
        // Nobody can be told.
        process::exit(1);
    };
    let manager = MANAGER.get_or_init(|| Manager {
        handle,
        state: Mutex::new(State::Starting),
    });
    manager.report(State::Starting);
    let code = WORK.get().map_or(1, |(_, work)| work());
    if !FINAL.contains(&code) {
        process::exit(code.into());
    }
    manager.go_on(|_| Some(State::Stopped { code }));
}

fn control(control: ServiceControl) -> ServiceControlHandlerResult {
    match control {
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        ServiceControl::Stop | ServiceControl::Shutdown | ServiceControl::Preshutdown => {
            if let Some(manager) = MANAGER.get() {
                manager.stop();
            }
            STOP.notify_one();
            ServiceControlHandlerResult::NoError
        }
        _ => ServiceControlHandlerResult::NotImplemented,
    }
}

impl Manager {
    /// Goes on to another state, if there is one after this.
    fn go_on(&self, next: impl FnOnce(State) -> Option<State>) {
        let mut state = self.state.lock();
        if let Some(next) = next(*state) {
            *state = next;
            self.report(next);
        }
    }

    /// Says that we stop, and again every second until we have, or have taken too long.
    fn stop(&'static self) {
        let mut first = false;
        self.go_on(|state| match state {
            State::Stopping { .. } | State::Stopped { .. } => None,
            State::Starting | State::Running => {
                first = true;
                Some(State::Stopping { checkpoint: 1 })
            }
        });
        if !first {
            return;
        }
        let remind = move || {
            for _ in 0..LONGEST_STOP.as_secs() {
                thread::sleep(Duration::from_secs(1));
                self.go_on(|state| match state {
                    State::Stopping { checkpoint } => Some(State::Stopping {
                        checkpoint: checkpoint + 1,
                    }),
                    _ => None,
                });
            }
        };
        // Without it the first word has to do.
        let _ = thread::Builder::new().name("stopping".into()).spawn(remind);
    }

    fn report(&self, state: State) {
        if let Err(error) = self.handle.set_service_status(state.status()) {
            tracing::warn!(%error, "cannot tell the service manager");
        }
    }
}

impl State {
    /// In the manager's words.
    fn status(self) -> ServiceStatus {
        let (current_state, checkpoint) = match self {
            Self::Starting => (ServiceState::StartPending, 1),
            Self::Running => (ServiceState::Running, 0),
            Self::Stopping { checkpoint } => (ServiceState::StopPending, checkpoint),
            Self::Stopped { .. } => (ServiceState::Stopped, 0),
        };
        ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state,
            controls_accepted: match self {
                Self::Running => {
                    ServiceControlAccept::STOP
                        | ServiceControlAccept::SHUTDOWN
                        | ServiceControlAccept::PRESHUTDOWN
                }
                _ => ServiceControlAccept::empty(),
            },
            exit_code: match self {
                Self::Stopped { code } if code != 0 => {
                    ServiceExitCode::ServiceSpecific(code.into())
                }
                _ => ServiceExitCode::NO_ERROR,
            },
            checkpoint,
            // Whoever is between states has to say more before long.
            wait_hint: if checkpoint > 0 {
                PATIENCE
            } else {
                Duration::ZERO
            },
            process_id: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_service_that_runs_can_be_told_to_stop() {
        let running = State::Running.status();
        let stop = ServiceControlAccept::STOP;
        assert!(running.controls_accepted.contains(stop));
        for state in [
            State::Starting,
            State::Stopping { checkpoint: 1 },
            State::Stopped { code: 0 },
        ] {
            assert!(state.status().controls_accepted.is_empty());
        }
    }

    #[test]
    fn a_service_between_states_says_how_long_to_wait_and_that_it_gets_on() {
        let stopping = State::Stopping { checkpoint: 7 }.status();
        assert_eq!((stopping.checkpoint, stopping.wait_hint), (7, PATIENCE));
        assert_eq!(State::Starting.status().wait_hint, PATIENCE);
        assert_eq!(State::Running.status().wait_hint, Duration::ZERO);
    }

    #[test]
    fn the_exit_code_is_told() {
        let stopped = |code| State::Stopped { code }.status().exit_code;
        assert_eq!(stopped(0), ServiceExitCode::NO_ERROR);
        assert_eq!(stopped(78), ServiceExitCode::ServiceSpecific(78));
    }
}
