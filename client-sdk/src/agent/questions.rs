//! The questions that are being answered: a task for each.

use super::{AgentInfo, ElicitationMode, ElicitationRequest, Refusal, SamplingRequest};
use crate::RawJson;
use bytes::Bytes;
use nexus_proto::v1::{self, agent_answer::Outcome};
use std::collections::HashMap;
use tokio::task::{AbortHandle, Id, JoinSet};

/// More questions than this at once are refused: something runs wild.
const MOST: usize = 64;

/// The daemon takes no larger message.
const LARGEST: usize = 16 << 20;

type Answered = Result<Bytes, Refusal>;

/// The questions that are being answered. Dropping it aborts them all.
#[derive(Debug, Default)]
pub(super) struct Questions {
    tasks: JoinSet<Answered>,
    ids: HashMap<Id, u64>,
    open: HashMap<u64, AbortHandle>,
}

impl Questions {
    /// Takes a question on, or says at once why not.
    pub(super) fn ask(
        &mut self,
        agent: &AgentInfo,
        question: v1::AgentQuestion,
    ) -> Option<v1::AgentAnswer> {
        let id = question.id;
        if self.open.len() >= MOST {
            let refusal = Refusal::new(Refusal::INTERNAL, "too many questions at once");
            return Some(answer(id, Err(refusal)));
        }
        // A number that is used again is another question, and the last one stands.
        self.withdraw(id);
        let task = self.tasks.spawn(handle(agent.clone(), question));
        self.ids.insert(task.id(), id);
        self.open.insert(id, task);
        None
    }

    /// Aborts the work on a question that need not be answered any more.
    pub(super) fn withdraw(&mut self, id: u64) {
        if let Some(task) = self.open.remove(&id) {
            // Its end is that of nobody's question, whether it is aborted in time or not.
            self.ids.remove(&task.id());
            task.abort();
        }
    }

    /// The next answer; `None` when nothing is asked.
    pub(super) async fn next(&mut self) -> Option<v1::AgentAnswer> {
        loop {
            let (task, answered) = match self.tasks.join_next_with_id().await? {
                Ok((task, answered)) => (task, answered),
                Err(error) => {
                    let refusal = Refusal::new(Refusal::INTERNAL, "the agent failed to answer");
                    (error.id(), Err(refusal))
                }
            };
            if let Some(id) = self.ids.remove(&task) {
                self.open.remove(&id);
                return Some(answer(id, answered));
            }
        }
    }
}

/// Has the agent's own handler answer.
async fn handle(agent: AgentInfo, question: v1::AgentQuestion) -> Answered {
    let v1::AgentQuestion { server, .. } = question;
    let params = RawJson::from_wire(question.params, "a question")
        .map_err(|error| Refusal::new(Refusal::INVALID_PARAMS, error.to_string()))?;
    let answered = match (
        question.method.as_str(),
        &agent.sampling,
        &agent.elicitation,
    ) {
        ("sampling/createMessage", Some(handler), _) => {
            let answer = handler(SamplingRequest { server, params }).await?;
            answer.into_bytes()
        }
        ("elicitation/create", _, Some(handler)) => {
            let request = ElicitationRequest { server, params };
            if request.mode() == ElicitationMode::Url && !agent.elicitation_url {
                let message = "this agent cannot send anybody to a page";
                return Err(Refusal::new(Refusal::INVALID_PARAMS, message));
            }
            handler(request).await?.into_bytes()
        }
        (method, ..) => {
            let message = format!("this agent does not answer `{method}`");
            return Err(Refusal::new(Refusal::METHOD_NOT_FOUND, message));
        }
    };
    if answered.len() >= LARGEST {
        return Err(Refusal::new(Refusal::INTERNAL, "the answer is too large"));
    }
    Ok(answered)
}

fn answer(question: u64, answered: Answered) -> v1::AgentAnswer {
    let outcome = match answered {
        Ok(result) => Outcome::Result(result),
        Err(refusal) => Outcome::Refusal(v1::AgentRefusal {
            code: refusal.code,
            message: refusal.message,
        }),
    };
    v1::AgentAnswer {
        question,
        outcome: Some(outcome),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElicitationAnswer, SamplingAnswer};
    use std::future::pending;

    fn question(id: u64, method: &str, params: &'static str) -> v1::AgentQuestion {
        v1::AgentQuestion {
            id,
            server: "demo".into(),
            method: method.into(),
            params: params.as_bytes().into(),
        }
    }

    fn refusal(answer: &v1::AgentAnswer) -> (i32, &str) {
        match answer.outcome.as_ref().unwrap() {
            Outcome::Refusal(refusal) => (refusal.code, refusal.message.as_str()),
            Outcome::Result(result) => panic!("{result:?}"),
        }
    }

    #[tokio::test]
    async fn a_handler_that_panics_is_an_answer_too() {
        let agent = AgentInfo::new("x").on_sampling(|_| async { panic!("boom") });
        let mut questions = Questions::default();
        questions.ask(&agent, question(1, "sampling/createMessage", "{}"));
        let answer = questions.next().await.unwrap();
        assert_eq!(
            (answer.question, refusal(&answer).0),
            (1, Refusal::INTERNAL)
        );
        // Not a word of the panic: it may hold what is nobody's business.
        assert!(!refusal(&answer).1.contains("boom"));
    }

    #[tokio::test]
    async fn what_was_withdrawn_is_not_answered() {
        let agent = AgentInfo::new("x")
            .on_sampling(|_| pending())
            .on_elicitation(|_| async { Ok(ElicitationAnswer::decline()) });
        let mut questions = Questions::default();
        questions.ask(&agent, question(1, "sampling/createMessage", "{}"));
        questions.ask(&agent, question(2, "elicitation/create", "{}"));
        questions.ask(&agent, question(3, "elicitation/create", "{}"));
        questions.withdraw(1);
        questions.withdraw(2);
        assert_eq!(questions.next().await.unwrap().question, 3);
        assert_eq!(questions.next().await, None);
        assert!(questions.ids.is_empty() && questions.open.is_empty());
    }

    #[tokio::test]
    async fn a_number_that_is_used_again_is_another_question() {
        let agent = AgentInfo::new("x")
            .on_sampling(|_| pending())
            .on_elicitation(|_| async { Ok(ElicitationAnswer::decline()) });
        for withdrawn in [true, false] {
            let mut questions = Questions::default();
            questions.ask(&agent, question(1, "sampling/createMessage", "{}"));
            if withdrawn {
                questions.withdraw(1);
            }
            questions.ask(&agent, question(1, "elicitation/create", "{}"));
            let answer = questions.next().await.unwrap();
            assert!(matches!(answer.outcome, Some(Outcome::Result(_))));
            assert_eq!(questions.next().await, None);
        }
    }

    #[tokio::test]
    async fn what_an_agent_cannot_do_is_refused() {
        let agent =
            AgentInfo::new("x").on_elicitation(|_| async { Ok(ElicitationAnswer::decline()) });
        for (method, params, code) in [
            ("sampling/createMessage", "{}", Refusal::METHOD_NOT_FOUND),
            ("tea/make", "{}", Refusal::METHOD_NOT_FOUND),
            (
                "elicitation/create",
                r#"{"mode":"url"}"#,
                Refusal::INVALID_PARAMS,
            ),
        ] {
            let mut questions = Questions::default();
            questions.ask(&agent, question(1, method, params));
            assert_eq!(
                refusal(&questions.next().await.unwrap()).0,
                code,
                "{method}"
            );
        }
    }

    #[tokio::test]
    async fn too_many_and_too_much_are_refused() {
        let agent = AgentInfo::new("x").on_sampling(|_| pending());
        let mut questions = Questions::default();
        for id in 0..MOST as u64 {
            let asked = question(id, "sampling/createMessage", "{}");
            assert_eq!(questions.ask(&agent, asked), None);
        }
        let asked = question(99, "sampling/createMessage", "{}");
        assert!(questions.ask(&agent, asked).is_some());

        let agent = AgentInfo::new("x")
            .on_sampling(|_| async { Ok(SamplingAnswer::from_raw(vec![b' '; LARGEST])) });
        let mut questions = Questions::default();
        questions.ask(&agent, question(1, "sampling/createMessage", "{}"));
        let answer = questions.next().await.unwrap();
        assert_eq!(refusal(&answer).1, "the answer is too large");
    }
}
