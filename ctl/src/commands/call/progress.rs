//! How far a call has come, on a terminal.

use crate::output::safe;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nexus_client::Progress;
use std::time::Duration;

/// A bar counts in these: progress is a fraction.
const STEPS: u64 = 1000;
const TICK: Duration = Duration::from_millis(100);

/// A bar that is there from the first news on, and gone when the call is over.
#[derive(Debug, Default)]
pub(crate) struct Bar(Option<ProgressBar>);

impl Bar {
    /// Writes something else to the terminal without tearing the bar.
    pub(crate) fn beside(&self, write: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        let (template, done) = match fraction(progress) {
            Some(done) => ("{bar:30} {percent:>3}% {wide_msg}", done),
            None => ("{spinner} {wide_msg}", 0.0),
        };
        let message = match &progress.message {
            Some(message) => safe::line(message),
            None if progress.total.is_none() => progress.progress.to_string(),
            None => String::new(),
        };
        let bar = self.0.get_or_insert_with(|| {
            // Hidden until it has something to show.
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::hidden());
            bar.set_style(style(template));
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
            bar
        });
        bar.set_style(style(template));
        bar.update(|state| state.set_pos((done * STEPS as f64) as u64));
        bar.set_message(message);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are ours: one that does not parse would be seen at once.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// How much is done, where the total is known and makes sense.
fn fraction(progress: &Progress) -> Option<f64> {
    let total = progress.total.filter(|total| *total > 0.0)?;
    let done = progress.progress / total;
    done.is_finite().then(|| done.clamp(0.0, 1.0))
}
