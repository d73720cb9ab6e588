//! The few colours there are.

use anstyle::{AnsiColor, Style};
use nexus_client::ServerState;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const CARE: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// What a state looks like.
pub(crate) fn of_state(state: ServerState) -> Style {
    match state {
        ServerState::Ready => GOOD,
        ServerState::CrashLoop | ServerState::Failed | ServerState::NeedsAuth => BAD,
        ServerState::Stopped | ServerState::Idle => DIM,
        _ => CARE,
    }
}

/// The text in that style, or as it is.
pub(crate) fn paint(text: &str, style: Style, color: bool) -> String {
    if color && !text.is_empty() && style != PLAIN {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}
