//! A terminal that progress, log messages and questions share.

use crate::{
    commands::call::Bar,
    output::{Output, style},
};
use anstyle::Style;
use nexus_client::{LogLevel, LogMessage, Progress};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What comes while a question is open is held back; more than this is let go.
const MOST_HELD: usize = 1000;

/// Stderr, while a call is under way.
#[derive(Debug)]
pub(crate) struct Screen {
    output: Output,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    bar: Bar,
    asking: bool,
    held: Vec<String>,
}

impl Screen {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            output,
            state: Mutex::default(),
        }
    }

    /// Shows how far the call has come.
    pub(crate) fn progress(&self, progress: &Progress) {
        let mut state = self.state();
        if !state.asking {
            state.bar.show(progress);
        }
    }

    /// Shows what the server has logged.
    pub(crate) fn log(&self, message: &LogMessage) {
        let line = self.log_line(message);
        let mut state = self.state();
        if !state.asking {
            state.bar.beside(|| self.output.stderr_line(&line));
        } else if state.held.len() < MOST_HELD {
            state.held.push(line);
        }
    }

    fn log_line(&self, message: &LogMessage) -> String {
        let level = format!("[{}]", message.level);
        let level = self.output.paint_stderr(&level, of_level(message.level));
        let logger = message.logger.as_deref().map(|name| format!("{name}: "));
        let text = logger.unwrap_or_default() + &message.text();
        format!("{level} {}", self.output.safe_stderr(&text))
    }

    /// The call is over.
    pub(crate) fn clear(&self) {
        self.state().bar = Bar::default();
    }

    /// Has the terminal to itself until it is dropped.
    pub(super) fn begin(&self) -> Shown<'_> {
        let mut state = self.state();
        state.asking = true;
        state.bar = Bar::default();
        drop(state);
        Shown {
            screen: self,
            open: true,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question on the screen.
pub(super) struct Shown<'a> {
    screen: &'a Screen,
    open: bool,
}

impl Shown<'_> {
    pub(super) fn say(&self, line: &str) {
        let line = self.screen.output.safe_stderr(line);
        self.screen.output.stderr_line(&line);
    }

    pub(super) fn warn(&self, line: &str, style: Style) {
        let line = self.screen.output.safe_stderr(line);
        let line = self.screen.output.paint_stderr(&line, style);
        self.screen.output.stderr_line(&line);
    }

    /// What stands before the place where the answer is typed.
    pub(super) fn prompt(&mut self, text: &str) {
        let text = self.screen.output.safe_stderr(text);
        let text = self.screen.output.paint_stderr(&text, style::BOLD);
        self.screen.output.stderr_text(&format!("{text} "));
    }

    /// It has been answered.
    pub(super) fn finish(mut self) {
        self.open = false;
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if self.open {
            let line = "\n(this need not be answered any more)";
            let line = self.screen.output.paint_stderr(line, style::DIM);
            self.screen.output.stderr_line(&line);
        }
        let mut state = self.screen.state();
        state.asking = false;
        for line in state.held.drain(..) {
            self.screen.output.stderr_line(&line);
        }
    }
}

/// What a level looks like.
fn of_level(level: LogLevel) -> Style {
    match level {
        LogLevel::Debug => style::DIM,
        LogLevel::Info => style::PLAIN,
        LogLevel::Notice => style::BOLD,
        LogLevel::Warning => style::CARE,
        _ => style::BAD,
    }
}
