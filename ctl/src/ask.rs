//! Whoever sits at the terminal answers what a server asks while it works on a call.

mod dialog;
mod form;
mod screen;

use crate::output::style;
use dialog::{Answer, Dialog, Heard};
use futures_util::FutureExt as _;
use nexus_client::{AgentInfo, ElicitationAnswer, ElicitationRequest, Refusal, Root};
pub(crate) use screen::Screen;
use std::{env, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines, Stdin},
    sync::Mutex,
};

/// An agent that asks whoever sits there. It works in the current folder.
pub(crate) fn agent(screen: &Arc<Screen>) -> AgentInfo {
    let asker = Arc::new(Asker {
        screen: Arc::clone(screen),
        typed: Mutex::new(BufReader::new(tokio::io::stdin()).lines()),
    });
    let agent = AgentInfo::new("nexusctl")
        .version(env!("CARGO_PKG_VERSION"))
        .elicitation_url()
        .on_elicitation(move |request| {
            let asker = Arc::clone(&asker);
            async move { asker.ask(&request).await }
        });
    match env::current_dir() {
        Ok(folder) => agent.roots([Root::folder(folder)]),
        Err(_) => agent,
    }
}

struct Asker {
    screen: Arc<Screen>,
    // Whoever holds it has the terminal: one question at a time.
    typed: Mutex<Lines<BufReader<Stdin>>>,
}

impl Asker {
    /// Holds the dialog. It can be dropped at any point: the question was withdrawn.
    async fn ask(&self, request: &ElicitationRequest) -> Result<ElicitationAnswer, Refusal> {
        let mut typed = self.typed.lock().await;
        let mut dialog = Dialog::new(request).map_err(|why| Refusal::new(-32602, why))?;
        // What was typed for a question that was withdrawn is no answer to this one.
        while let Some(Ok(Some(_))) = typed.next_line().now_or_never() {}
        let mut shown = self.screen.begin();
        for line in dialog.intro() {
            shown.say(&line);
        }
        let answer = loop {
            let question = dialog.question();
            for line in &question.lines {
                shown.say(line);
            }
            shown.prompt(&question.prompt);
            // A terminal that cannot be read is as good as one that is closed.
            let line = typed.next_line().await.unwrap_or_default();
            if line.is_none() {
                shown.say("");
            }
            match dialog.hear(line.as_deref()) {
                Heard::Next => {}
                Heard::Wrong(why) => shown.warn(&why, style::CARE),
                Heard::Done(answer) => break answer,
            }
        };
        shown.finish();
        Ok(match answer {
            Answer::Filled(json) => {
                ElicitationAnswer::from_raw(format!(r#"{{"action":"accept","content":{json}}}"#))
            }
            Answer::Agreed => ElicitationAnswer::accept_url(),
            Answer::Declined => ElicitationAnswer::decline(),
            Answer::Cancelled => ElicitationAnswer::cancel(),
        })
    }
}
