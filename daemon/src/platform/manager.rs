//! Whoever has started us and wants to hear how we are: systemd, the service manager of Windows, or nobody.

#[cfg(target_os = "linux")]
pub use super::systemd::{is_there, tell, watchdog};
#[cfg(windows)]
pub use super::windows::service::{is_there, tell, watchdog};
#[cfg(not(any(target_os = "linux", windows)))]
pub use nobody::{is_there, tell, watchdog};

/// What the manager is told.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'a> {
    /// We serve.
    Ready,
    /// We read the configuration again.
    Reloading,
    /// We stop.
    Stopping,
    /// We live.
    Alive,
    /// How we are, in a line.
    Status(&'a str),
}

#[cfg(not(any(target_os = "linux", windows)))]
mod nobody {
    use super::Notice;
    use std::time::Duration;

    /// Whether somebody has started us who wants to hear of us.
    pub fn is_there() -> bool {
        false
    }

    /// Tells nobody.
    pub fn tell(_notice: Notice<'_>) {}

    /// How often somebody wants to hear that we live.
    pub fn watchdog() -> Option<Duration> {
        None
    }
}
