//! How long a server may take.

use crate::agent::Agent;
use std::{pin::Pin, time::Duration};
use tokio::time::{Instant, sleep};

/// The longest that anybody may wait for an answer to anything.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Does the work within the limit; `None` when time is up. While the agent thinks about a question that it
/// was asked by this server, the clock stands still: the server cannot go on without the answer.
pub(super) async fn within<T>(
    limit: Duration,
    agent: &Agent,
    server: &str,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let mut questions = agent.watch_questions();
    let mut left = limit;
    loop {
        let is_asked = questions.borrow_and_update().contains_key(server);
        let began = Instant::now();
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            // The sender is the agent's, which the caller holds.
            _ = questions.changed() => {
                if !is_asked {
                    left = left.saturating_sub(began.elapsed());
                }
            }
            () = sleep(if is_asked { LONGEST } else { left }) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Answers, Attachment, Hello, Question, ToAgent};
    use std::{pin::pin, sync::Arc};
    use tokio::{sync::mpsc, time::timeout};

    const SECOND: Duration = Duration::from_secs(1);

    /// Somebody who can be asked, a question, and where it would arrive: nobody answers there.
    fn asked() -> (Arc<Agent>, Question, mpsc::Receiver<ToAgent>) {
        let agent = Arc::new(Agent::default());
        let (to, from) = mpsc::channel(8);
        let hello = Hello {
            answers: Answers::ALL,
            ..Hello::default()
        };
        agent.attach(Attachment::new(hello, to));
        let question = Question {
            server: "s".into(),
            method: "elicitation/create".into(),
            params: Default::default(),
        };
        (agent, question, from)
    }

    #[tokio::test(start_paused = true)]
    async fn time_is_up_when_it_is_up() {
        let agent = Agent::default();
        assert_eq!(
            within(SECOND, &agent, "s", pin!(sleep(SECOND / 2))).await,
            Some(())
        );
        assert_eq!(
            within(SECOND, &agent, "s", pin!(sleep(SECOND * 2))).await,
            None
        );
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_thinks_for_ever() {
        let (agent, question, _silent) = asked();
        let work = pin!(agent.ask(question));
        assert!(within(SECOND, &agent, "s", work).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_still_while_somebody_is_asked() {
        let (agent, question, _silent) = asked();
        let work = async |question| {
            sleep(SECOND / 2).await;
            // Nobody answers for an hour.
            let _ = timeout(SECOND * 3600, agent.ask(question)).await;
            sleep(SECOND / 4).await;
        };
        assert_eq!(
            within(SECOND, &agent, "s", pin!(work(question.clone()))).await,
            Some(())
        );
        // Another server's question is no excuse.
        assert_eq!(
            within(SECOND, &agent, "other", pin!(work(question))).await,
            None
        );
    }
}
