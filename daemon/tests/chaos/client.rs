//! A client: it calls tools, misbehaves now and then, and writes down what it asked and what it got.

use crate::{
    dice::Dice,
    history::{Entry, Failed, Invocation, Outcome, What},
    report::Tally,
    roster::GUEST,
};
use nexus_client::{Error, Nexus, ToolResult};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    error::Error as _,
    ops::RangeInclusive,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

/// More than the daemon takes.
const OVERSIZE: usize = 17 << 20;

/// What all clients of a run share.
pub(crate) struct Load {
    pub(crate) socket: PathBuf,
    pub(crate) servers: Vec<String>,
    pub(crate) answers: HashMap<String, Answers>,
    /// Between two calls, in µs.
    pub(crate) pause: RangeInclusive<u64>,
    /// How long a call may take.
    pub(crate) patience: Duration,
    /// Whether the clients misbehave too.
    pub(crate) rough: bool,
    pub(crate) epoch: Instant,
    pub(crate) seed: u64,
    pub(crate) stop: AtomicBool,
    pub(crate) tally: Tally,
    /// Large requests go one by one: it is not memory that is tested.
    pub(crate) large: Semaphore,
}

impl Load {
    pub(crate) async fn connect(&self) -> Result<Nexus, Error> {
        let builder = Nexus::builder().socket(&self.socket);
        builder
            .wait_for_daemon(Duration::from_secs(20))
            .connect()
            .await
    }

    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// How a server writes its answers, learned from one of each: cut where the part stands that differs.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    echo: Vec<String>,
    add: Vec<String>,
    generated: Vec<String>,
    slow: Vec<String>,
}

impl Answers {
    pub(crate) async fn learn(nexus: &Nexus, server: &str) -> Result<Self, Error> {
        let ask = |tool: &str, arguments: Value, mark: &'static str| {
            let call = nexus.tools().call(format!("{server}.{tool}"), arguments);
            async move {
                let answer = call.timeout(Duration::from_secs(20)).await?;
                let pieces: Vec<String> =
                    answer.raw().as_str().split(mark).map(Into::into).collect();
                assert!(
                    pieces.len() > 1,
                    "{mark} is not in {}",
                    answer.raw().as_str()
                );
                Ok::<_, Error>(pieces)
            }
        };
        Ok(Self {
            echo: ask("echo", json!({"message": "=mark="}), "=mark=").await?,
            add: ask("add", json!({"a": 123_456, "b": 654_321}), "777777").await?,
            generated: ask("tool_0001", json!({"input": "=mark="}), "=mark=").await?,
            slow: ask(
                "slow_operation",
                json!({"duration": 0.001, "steps": 1}),
                "Done: 1 steps in 0.001 seconds.",
            )
            .await?,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Plain,
    Stream,
    ShortDeadline,
    /// Drops the call.
    Leave,
    /// Drops the call, and the connection with it.
    HangUp,
    UnknownTool,
    BadArguments,
    Oversize,
    /// Calls a server that may be gone.
    Guest,
}

const MANNERS: &[(u64, Manner)] = &[
    (840, Manner::Plain),
    (90, Manner::Stream),
    (20, Manner::ShortDeadline),
    (20, Manner::Leave),
    (10, Manner::HangUp),
    (5, Manner::UnknownTool),
    (5, Manner::BadArguments),
    (1, Manner::Oversize),
    (9, Manner::Guest),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Echo,
    Add,
    Generated,
    Slow,
}

/// A call that is about to be made.
struct Order {
    nonce: String,
    manner: Manner,
    invocation: Invocation,
    arguments: Value,
    /// How long it may take; nothing is said to the daemon if it is left before.
    time: Option<Duration>,
    leave_after: Duration,
}

pub(crate) struct Client {
    number: u32,
    calls: u64,
    dice: Dice,
    load: Arc<Load>,
    log: Vec<Entry>,
}

impl Client {
    pub(crate) fn new(load: &Arc<Load>, number: u32) -> Self {
        Self {
            number,
            calls: 0,
            dice: Dice::new(load.seed, u64::from(number) + 1),
            load: Arc::clone(load),
            log: Vec::new(),
        }
    }

    /// Calls until it is told to stop, and returns what it wrote down.
    pub(crate) async fn run(mut self) -> Vec<Entry> {
        let mut nexus = self.load.connect().await.expect("the daemon is there");
        while !self.load.stop.load(Ordering::Relaxed) {
            let manner = if self.load.rough {
                self.dice.weighted(MANNERS)
            } else {
                Manner::Plain
            };
            let many = if manner == Manner::Plain && self.dice.within(0..=4) == 0 {
                self.dice.within(2..=4)
            } else {
                1
            };
            let orders: Vec<Order> = (0..many).map(|_| self.order(manner)).collect();
            for order in &orders {
                self.write(&order.nonce, What::Invoked(order.invocation.clone()));
            }
            let load = Arc::clone(&self.load);
            let made = orders.iter().map(|order| make(&nexus, &load, order));
            let outcomes = futures_util::future::join_all(made).await;
            let mut pause = self.dice.micros(self.load.pause.clone());
            for (order, (at, outcome)) in orders.iter().zip(outcomes) {
                if matches!(outcome, Outcome::Failed(_)) {
                    pause = pause.max(Duration::from_millis(2));
                }
                let what = What::Ended(outcome);
                self.log.push(self.entry(&order.nonce, at, what));
            }
            if manner == Manner::HangUp {
                nexus = self.load.connect().await.expect("the daemon is there");
            }
            sleep(pause).await;
        }
        self.log
    }

    fn order(&mut self, manner: Manner) -> Order {
        self.calls += 1;
        let nonce = format!("c{}-{}", self.number, self.calls);
        let unique = u64::from(self.number) * 1_000_000 + self.calls;
        let server = match manner {
            Manner::Guest => GUEST.to_owned(),
            _ => self.dice.pick(&self.load.servers).clone(),
        };
        let leaves = matches!(manner, Manner::Leave | Manner::HangUp);
        let tool = match manner {
            Manner::BadArguments | Manner::Oversize => Tool::Echo,
            _ if leaves && self.dice.within(0..=1) == 0 => Tool::Slow,
            _ => self.dice.weighted(&[
                (50, Tool::Echo),
                (20, Tool::Add),
                (10, Tool::Generated),
                (20, Tool::Slow),
            ]),
        };
        let answers = self
            .load
            .answers
            .get(&server)
            .or_else(|| self.load.answers.values().next());
        let answers = answers.expect("every server was learned").clone();
        let (name, mut arguments, pieces, changing) = match tool {
            Tool::Echo => {
                let message = self.message(&nonce);
                ("echo", json!({"message": message}), answers.echo, message)
            }
            Tool::Add => {
                let arguments = json!({"a": unique * 7, "b": unique * 3});
                ("add", arguments, answers.add, (unique * 10).to_string())
            }
            Tool::Generated => {
                let input = self.message(&nonce);
                (
                    "tool_0001",
                    json!({"input": input}),
                    answers.generated,
                    input,
                )
            }
            Tool::Slow => {
                // One that is left would go on for minutes if nobody cancelled it.
                let whole = if leaves {
                    300_000
                } else {
                    self.dice.within(5..=60)
                };
                let time = Duration::from_millis(whole) + Duration::from_nanos(unique % 1_000_000);
                let (seconds, steps) = (time.as_secs_f64(), self.dice.within(1..=4));
                let text = format!("Done: {steps} steps in {seconds} seconds.");
                let arguments = json!({"duration": seconds, "steps": steps});
                ("slow_operation", arguments, answers.slow, text)
            }
        };
        arguments["nonce"] = json!(nonce);
        let mut name = name.to_owned();
        let mut expected = Some(pieces.join(&changing));
        match manner {
            Manner::UnknownTool => {
                name += "_that_nobody_has";
                expected = None;
            }
            Manner::BadArguments => {
                arguments["message"] = json!(5);
                expected = None;
            }
            // The arguments are made when it is its turn.
            Manner::Oversize => expected = None,
            _ => {}
        }
        Order {
            nonce,
            manner,
            invocation: Invocation {
                server,
                tool: name,
                idempotent: tool != Tool::Slow,
                expected,
            },
            arguments,
            time: match manner {
                Manner::ShortDeadline => Some(self.dice.micros(0..=5000)),
                Manner::Oversize => Some(Duration::from_secs(20)),
                _ if leaves => None,
                _ => Some(self.load.patience),
            },
            leave_after: self.dice.micros(0..=30_000),
        }
    }

    /// A text that is nobody else's, now and then a long one.
    fn message(&mut self, nonce: &str) -> String {
        let filler = match self.dice.within(0..=99) {
            0 => self.dice.within(4000..=16_000),
            _ => self.dice.within(0..=200),
        };
        format!("{nonce} {}", "x".repeat(filler as usize))
    }

    fn write(&mut self, nonce: &str, what: What) {
        let entry = self.entry(nonce, self.load.epoch.elapsed(), what);
        self.log.push(entry);
    }

    fn entry(&self, nonce: &str, at: Duration, what: What) -> Entry {
        Entry {
            at,
            client: self.number,
            nonce: nonce.to_owned(),
            what,
        }
    }
}

async fn make(nexus: &Nexus, load: &Load, order: &Order) -> (Duration, Outcome) {
    let fault = match order.manner {
        Manner::Plain | Manner::Stream | Manner::Guest => None,
        Manner::ShortDeadline => Some("short deadline"),
        Manner::Leave => Some("call dropped"),
        Manner::HangUp => Some("client gone"),
        Manner::UnknownTool => Some("unknown tool"),
        Manner::BadArguments => Some("bad arguments"),
        Manner::Oversize => Some("oversized"),
    };
    if let Some(fault) = fault {
        load.tally.count(fault);
    }
    let outcome = call(nexus, load, order).await;
    (load.epoch.elapsed(), outcome)
}

async fn call(nexus: &Nexus, load: &Load, order: &Order) -> Outcome {
    let Invocation { server, tool, .. } = &order.invocation;
    let mut arguments = order.arguments.clone();
    let _turn = if order.manner == Manner::Oversize {
        let turn = load.large.acquire().await.ok();
        arguments["message"] = json!("x".repeat(OVERSIZE));
        turn
    } else {
        None
    };
    let mut call = nexus.tools().call(format!("{server}.{tool}"), arguments);
    if let Some(time) = order.time {
        call = call.timeout(time);
    }
    match order.manner {
        Manner::Leave | Manner::HangUp => match timeout(order.leave_after, call).await {
            Ok(answer) => outcome(answer),
            Err(_) => Outcome::Cancelled,
        },
        Manner::Stream => match call.stream().await {
            Ok(stream) => outcome(stream.result().await),
            Err(error) => outcome(Err(error)),
        },
        _ => outcome(call.await),
    }
}

fn outcome(answer: Result<ToolResult, Error>) -> Outcome {
    let error = match answer {
        Ok(result) => return Outcome::Ok(result.raw().as_str().to_owned()),
        Err(error) => error,
    };
    let reason = match &error {
        Error::Failed(failure) => failure.reason.as_str(),
        Error::Disconnected { .. } => "DISCONNECTED",
        Error::Unreachable { .. } => "UNREACHABLE",
        Error::Timeout { .. } => "TIMEOUT",
        Error::Protocol(_) => "PROTOCOL",
        _ => "OTHER",
    };
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message += &format!(": {error}");
        cause = error.source();
    }
    Outcome::Failed(Failed {
        reason: reason.to_owned(),
        maybe_executed: error.maybe_executed(),
        message,
        exit: error
            .failure()
            .and_then(|failure| failure.details.exit.clone()),
    })
}
